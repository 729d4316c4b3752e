/* What a process holds besides memory: descriptors, threads, child processes, segments of shared memory. */
#ifndef LP_RESOURCES_H
#define LP_RESOURCES_H

#include "base/base.h"  // lp_status, uint64_t

#define LP_FD_KIND_LIST(X)                                                                                             \
    X(FILE, "file")                                                                                                    \
    X(SOCKET, "socket")                                                                                                \
    X(PIPE, "pipe")                                                                                                    \
    X(SHARED_MEMORY, "shm")                                                                                            \
    X(DEVICE, "device")                                                                                                \
    X(OTHER, "other")

typedef enum lp_fd_kind {
#define LP_X(name, text) LP_FD_##name,
    LP_FD_KIND_LIST(LP_X)
#undef LP_X
        LP_FD_KIND_COUNT
} lp_fd_kind;

const char *lp_fd_kind_name(lp_fd_kind kind);

typedef struct lp_resources {
    uint64_t descriptors, descriptors_by_kind[LP_FD_KIND_COUNT];
    uint64_t threads;
    uint64_t children;    /* child processes, ended ones that nobody waited for too */
    uint64_t segments;    /* files of /dev/shm that are mapped */
    uint64_t semaphores;  /* of these files, the named semaphores; not in `segments` */
} lp_resources;

/* All of it: a microsecond a descriptor, and one a mapping where the bytes of all mappings have changed since the last call, which
 * is kept: the caller holds the GIL.  LP_UNSUPPORTED: no Linux; LP_SYSTEM: no /proc. */
lp_status lp_resources_read(lp_resources *out_resources);

/* Descriptors and threads only, at the price of a mark: two calls of stat() where the kernel is 6.2 or newer. */
lp_status lp_resources_count(uint64_t *out_descriptors, uint64_t *out_threads);

/* Child processes only; -1 without Linux. */
int64_t lp_resources_children(void);

/* Open descriptors, where the kernel (6.2 or newer) says how many; else the number that the next one gets, which rises with
 * one that stays open, unless that is a copy of one that was closed after it (mmap's).  0 or less if neither is known. */
int64_t lp_open_descriptors(void);

#endif
