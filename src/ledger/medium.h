/* Where bytes live.  One line each; CUDA devices follow as LP_MEDIUM_CUDA0 + index. */
#ifndef LP_MEDIUM_H
#define LP_MEDIUM_H

#define LP_MEDIUM_LIST(X)                                                                                              \
    X(PYTHON, "python")                                                                                                \
    X(NUMPY, "numpy")                                                                                                  \
    X(CPU, "cpu")                                                                                                      \
    X(SHARED, "shared")                                                                                                \
    X(PINNED, "pinned")                                                                                                \
    X(NATIVE, "native")                                                                                                \
    X(WORKER, "worker")                                                                                                \
    X(FD, "fd")                                                                                                        \
    X(THREAD, "thread")                                                                                                \
    X(PROCESS, "process")

typedef enum lp_medium {
#define LP_X(name, text) LP_MEDIUM_##name,
    LP_MEDIUM_LIST(LP_X)
#undef LP_X
        LP_MEDIUM_CUDA0,
    LP_MEDIUM_COUNT = LP_MEDIUM_CUDA0 + 16
} lp_medium;

/* "python", ..., "cuda:3"; never NULL for a valid medium. */
const char *lp_medium_name(lp_medium medium);
/* The medium of a name, or -1. */
int lp_medium_find(const char *name);

#endif
