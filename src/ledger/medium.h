/* Where bytes live: one row for each medium.  Python's names, the hooks' modules, docs and messages read this table. */
#ifndef LP_MEDIUM_H
#define LP_MEDIUM_H

/* X(NAME, name, module, on_cuda, meaning):
 *
 *   module    whose import brings the libraries that a hook patches; "" for a medium without a hook
 *   on_cuda   1: nothing can be asked of it before the program has started CUDA, and nothing in a worker process
 *   meaning   what lives there, as users read it
 *
 * The last row stands for all CUDA devices: the medium of device i is LP_MEDIUM_CUDA0 + i. */
#define LP_MEDIUM_LIST(X)                                                                                              \
    X(PYTHON, "python", "", 0, "objects of Python's own allocators")                                                   \
    X(NUMPY, "numpy", "numpy", 0, "data of numpy arrays")                                                              \
    X(CPU, "cpu", "torch", 0, "storages of CPU tensors")                                                               \
    X(SHARED, "shared", "torch", 0, "storages in shared memory")                                                       \
    X(PINNED, "pinned", "torch", 1, "host memory that is pinned for CUDA")                                             \
    X(NATIVE, "native", "", 0, "memory of other libraries, by samples")                                                \
    X(WORKER, "worker", "", 0, "memory of DataLoader workers")                                                         \
    X(FD, "fd", "", 0, "open file descriptors, counted")                                                               \
    X(THREAD, "thread", "", 0, "running threads, counted")                                                             \
    X(PROCESS, "process", "", 0, "child processes, counted")                                                           \
    X(CUDA0, "cuda", "torch", 1, "storages on a CUDA device")

typedef enum lp_medium {
#define LP_X(name, ...) LP_MEDIUM_##name,
    LP_MEDIUM_LIST(LP_X)
#undef LP_X
        LP_MEDIUM_FAMILIES,
    LP_MEDIUM_COUNT = LP_MEDIUM_CUDA0 + 16
} lp_medium;

_Static_assert(LP_MEDIUM_CUDA0 + 1 == LP_MEDIUM_FAMILIES, "the row of CUDA is the last one");

typedef struct lp_medium_row {
    const char *name; /* of the family: "cuda" for all devices */
    const char *module; /* "": no hook */
    int on_cuda;
    const char *meaning;
} lp_medium_row;

extern const lp_medium_row lp_media[LP_MEDIUM_FAMILIES];

/* "python", ..., "cuda:3"; never NULL for a valid medium. */
const char *lp_medium_name(lp_medium medium);
/* The medium of a name, or -1. */
int lp_medium_find(const char *name);

#endif
