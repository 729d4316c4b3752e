/* Where bytes live: one row for each medium.  Python's names, the hooks' modules, docs and messages read this table. */
#ifndef LP_MEDIUM_H
#define LP_MEDIUM_H

/* X(NAME, name, module, on_cuda, memory, has_owners, meaning):
 *
 *   module      whose import brings the libraries that a hook patches; "" for a medium without a hook
 *   on_cuda     1: nothing can be asked of it before the program has started CUDA, and nothing in a worker process
 *   memory      what its bytes count against: a name of LP_MEMORY_LIST
 *   has_owners  1: a walk sees which object owns a block.  0: nothing can be said of what keeps one
 *   meaning     what lives there, as users read it
 *
 * The last row stands for all CUDA devices: the medium of device i is LP_MEDIUM_CUDA0 + i. */
#define LP_MEDIUM_LIST(X)                                                                                              \
    X(PYTHON, "python", "", 0, PRIVATE, 1, "objects of Python's own allocators")                                       \
    X(NUMPY, "numpy", "numpy", 0, MALLOC, 1, "data of numpy arrays")                                                   \
    X(CPU, "cpu", "torch", 0, MALLOC, 1, "storages of CPU tensors")                                                    \
    X(SHARED, "shared", "torch", 0, SHARED, 1, "storages in shared memory")                                            \
    X(PINNED, "pinned", "torch", 1, SHARED, 1, "host memory that is pinned for CUDA")                                  \
    X(NATIVE, "native", "", 0, PRIVATE, 0, "memory of other libraries, by samples")                                    \
    X(WORKER, "worker", "", 0, CHILDREN, 0, "memory of DataLoader workers")                                            \
    X(FD, "fd", "", 0, NONE, 0, "open file descriptors, counted")                                                      \
    X(THREAD, "thread", "", 0, NONE, 0, "running threads, counted")                                                    \
    X(PROCESS, "process", "", 0, NONE, 0, "child processes, counted")                                                  \
    X(CUDA0, "cuda", "torch", 1, DEVICE, 1, "storages on a CUDA device")

/* X(NAME, name): memory of the process that malloc gives out, or others; in shared mappings, which NVIDIA's driver
 * makes of pinned memory too; of child processes; of a device; none, where a medium is counted. */
#define LP_MEMORY_LIST(X)                                                                                              \
    X(MALLOC, "malloc")                                                                                                \
    X(PRIVATE, "private")                                                                                              \
    X(SHARED, "shared")                                                                                                \
    X(CHILDREN, "children")                                                                                            \
    X(DEVICE, "device")                                                                                                \
    X(NONE, "")

typedef enum lp_memory {
#define LP_X(name, text) LP_MEMORY_##name,
    LP_MEMORY_LIST(LP_X)
#undef LP_X
} lp_memory;

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
    lp_memory memory;
    int has_owners;
    const char *meaning;
} lp_medium_row;

extern const lp_medium_row lp_media[LP_MEDIUM_FAMILIES];

/* "python", ..., "cuda:3"; never NULL for a valid medium. */
const char *lp_medium_name(lp_medium medium);
/* The row of a medium: that of the family for a CUDA device. */
static inline const lp_medium_row *lp_medium_row_of(lp_medium medium) {
    return &lp_media[medium < LP_MEDIUM_CUDA0 ? medium : LP_MEDIUM_CUDA0];
}
/* "malloc", "private", ... */
const char *lp_memory_name(lp_memory memory);
/* The medium of a name, or -1. */
int lp_medium_find(const char *name);

#endif
