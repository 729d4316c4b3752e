/* Between freeze.c and freeze_types.c: the state of one freezing. */
#ifndef LP_FREEZER_H
#define LP_FREEZER_H

#include "python/graph/freeze.h"
#include "python/heap/census_tables.h"
#include "python/heap/sizes.h"   // lp_size_rule

#define LP_FREEZER_CACHE 1024

typedef struct lp_known_type {
    PyTypeObject *type;
    lp_size_rule rule;
    uint32_t number;           /* index into type_name */
    uint32_t group;            /* of its objects without a site; LP_NODE_NONE: not made yet */
    uint32_t census;           /* its number in the census */
    uint64_t old_count, old_bytes;   /* of its objects without a stamp */
    uint8_t holds, is_own, is_array, is_dict;
} lp_known_type;

typedef struct lp_extra_buffer {
    uint32_t medium;
    uint64_t bytes;
} lp_extra_buffer;

typedef struct lp_freezer {
    lp_trace *trace;
    lp_walk *walk;
    const lp_cycles *cycles;
    lp_frozen *out;
    lp_known_type *type;
    uint32_t type_count, type_capacity, name_capacity, group_capacity;
    uint32_t cache[LP_FREEZER_CACHE];     /* by address: index into type */
    lp_map type_at, name_at, group_at;
    lp_late_edge *late;        /* those of the walk, then to buffers and to values in use */
    uint32_t late_count, late_capacity;
    lp_extra_buffer *buffer;
    uint32_t buffer_count, buffer_capacity;
    uint32_t first_storage;    /* buffers before are of arrays */
    int64_t *refs;             /* node => references that nothing in the graph explains; NULL for a bare walk */
    uint8_t *seen;             /* node => MAY_HOLD, IS_DICT; NULL for a bare walk */
    lp_census_tables *tables;  /* objects by type, site and step; NULL for a bare walk */
    lp_status status;
} lp_freezer;

/* Keep the first failure; -1. */
int lp_freezer_fail(lp_freezer *z);
/* The number of a name. */
uint32_t lp_freezer_name(lp_freezer *z, const char *name);
/* NULL when out of memory; valid until the next call. */
lp_known_type *lp_freezer_type(lp_freezer *z, PyTypeObject *type);
/* The number of a group, or LP_NODE_NONE. */
uint32_t lp_freezer_group(lp_freezer *z, uint32_t type, uint32_t medium, lp_site_id site);
/* A node's group and bytes; a group that is LP_NODE_NONE is a failure. */
void lp_freezer_put(lp_freezer *z, uint32_t node, uint32_t group, uint64_t bytes);
/* The objects of known types and of z->tables as a census. */
lp_status lp_freezer_census(lp_freezer *z, lp_census **out_census);

#endif
