/* What an object reaches, and the pages on which its reference counts lie.
 *
 * Reading an object raises its reference count, which copies its page in a process that was
 * forked.  A region is what one object reaches and none before it in the same lp_reach did;
 * types, modules, functions and code are not followed, nor are objects of leakprobe.  The walk
 * runs no Python code, takes no reference and writes to no object. */
#ifndef LP_REACH_H
#define LP_REACH_H

#include "python/heap/kinds.h"

#include "analysis/addresses.h"
#include "process/pagemap.h"  // lp_page
#include "python/heap/sizes.h"     // lp_size_rule

/* Types told apart; the last is for all others.  Bits of lp_page.kinds. */
#define LP_REGION_TYPES 60
/* Bit of pages on which there are objects that the collector writes to. */
#define LP_REGION_TRACKED 63

typedef struct lp_region_type {
    PyTypeObject *type;         /* borrowed, while the region is walked */
    lp_size_rule rule;
    char *name;
    uint64_t count, bytes;
} lp_region_type;

typedef struct lp_region {
    lp_region_type type[LP_REGION_TYPES];
    uint32_t type_count;
    uint64_t count, bytes;      /* objects, and their own blocks */
    uint64_t array_bytes;       /* data of numpy arrays, which reading does not copy */
    lp_page *page;              /* sorted, each once */
    size_t page_count, page_capacity;
} lp_region;

typedef struct lp_reach {
    lp_addresses seen;
    lp_kinds kinds;
    lp_region **region;
    uint32_t region_count;
    uintptr_t *pending;
    size_t pending_count, pending_capacity;
    uint64_t object_count, object_limit;
    lp_region *walked;          /* the region in work */
    lp_status status;
} lp_reach;

/* object_limit: LP_LIMIT beyond it, over all regions.  pre: lp_kinds_init(), lp_heap_init(). */
lp_status lp_reach_init(lp_reach *reach, uint64_t object_limit);
/* Add the region of an object; *out_region stays valid until the end. */
lp_status lp_reach_add(lp_reach *reach, PyObject *op, uint32_t *out_region);
/* No more regions will be added: give back what only the walk needs. */
void lp_reach_finish(lp_reach *reach);
void lp_reach_fini(lp_reach *reach);

#endif
