/* One pass over the heap: survivors by type, allocation site and birth step.
 *
 *   rows        (type, base site, birth steps) => {count, bytes}, in no order
 *   containers  the biggest lists, dicts, sets, deques and bytearrays, largest first
 *   totals      everything counted, objects from before the hooks too
 *
 * tracked census: what the collector tracks.  full census: that and everything it
 * refers to, each object once.  A leakprobe object is not counted.
 *
 * The pass needs the GIL, runs no Python code and keeps no object alive.  The result is
 * plain memory: types are addresses with a copied name, nothing is dereferenced later. */
#ifndef LP_CENSUS_H
#define LP_CENSUS_H

#include "python/compat/compat.h"  // PyObject

#include "ledger/site.h"    // lp_site_id

#define LP_CENSUS_CONTAINERS 64

typedef struct lp_census_row {
    uint32_t type;             /* index into types */
    lp_site_id site;
    uint32_t first_step, last_step;   /* the same, but for steps that share an epoch */
    uint64_t count, bytes;
} lp_census_row;

typedef struct lp_census_container {
    uint64_t address, length, bytes;
    uint32_t type;
    lp_site_id site;           /* LP_SITE_UNKNOWN: born before the hooks */
    uint32_t first_step;
} lp_census_container;

typedef struct lp_census_name {
    uint64_t type_id;          /* the address of the type */
    char *text;                /* "module.qualname"; NULL if no row or container needs it */
} lp_census_name;

typedef struct lp_census {
    int full;
    lp_census_row *rows;
    size_t row_count;
    lp_census_name *types;     /* [0] is never used */
    uint32_t type_count;
    lp_census_container containers[LP_CENSUS_CONTAINERS];
    uint32_t container_count;
    uint64_t object_count, total_bytes;
    uint64_t large_bytes;               /* of these, in blocks that pymalloc leaves to malloc */
    uint64_t blocks; /* full: blocks of Python's allocator of what the heap refers to, and in free lists */
    uint64_t old_count, old_bytes; /* of these, from before the hooks */
    uint64_t bad_pointer_count; /* handed out by a faulty tp_traverse, and left alone */
    uint64_t dropped_count; /* not counted by group for want of memory */
    uint64_t duration_ns;
} lp_census;

/* LP_UNSUPPORTED while the collector is running.  Objects of own_type are left out.
 * group_old: objects from before the hooks get rows too, by type, under site 0; else, in a full census, large containers that
 * grew since do, at the line that last grew them, born in no step. */
lp_status lp_census_take(int full, int group_old, PyTypeObject *own_type, lp_census **out_census);
/* A full census; at its end, while lp_seen_has() knows what was met, then(arg) is called. */
lp_status lp_census_meet(PyTypeObject *own_type, void (*then)(void *arg), void *arg, lp_census **out_census);
void lp_census_free(lp_census *census);

/* One (type, base site); window_*: of the objects born in steps first..last. */
typedef struct lp_census_group {
    uint32_t type;
    lp_site_id site;
    uint64_t count, bytes, window_count, window_bytes;
    uint32_t window_steps; /* steps of the window that still have survivors */
    uint32_t first_step, last_step;
} lp_census_group;

/* All groups, in no order; freed with lp_raw_free(). */
lp_status lp_census_groups(const lp_census *census, uint32_t first, uint32_t last, lp_census_group **out_groups,
                           size_t *out_count);
/* Rows of one group, rising by last_step, each step once; freed with lp_raw_free(). */
lp_status lp_census_series(const lp_census *census, uint64_t type_id, lp_site_id site, lp_census_row **out_rows,
                           size_t *out_count);

#endif
