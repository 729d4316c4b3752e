/* A frozen object graph: what a snapshot keeps of a heap walk.  Numbers only; nothing is kept alive.
 *
 *   nodes   objects, frames, buffers: address, shallow bytes, group
 *   groups  (medium, type, base site): nodes that are counted together
 *   roots   first those with a name (modules, running frames), then what is held by anything else,
 *           then garbage: one node of each part that nothing refers to
 *
 * Those are stored; lp_frozen_finish() works out the rest from them, so that a file can't hold a
 * tree that leads in circles. */
#ifndef LP_FROZEN_H
#define LP_FROZEN_H

#include "analysis/dominators.h"
#include "analysis/paths.h"
#include "ledger/medium.h"
#include "ledger/site.h"   // lp_site_id

#define LP_FROZEN_HOLDER 1   /* graph.flag: keeps things in number, and is no mere namespace */

typedef struct lp_frozen_group {
    uint64_t count, bytes;
    uint32_t type;           /* index into type_name */
    lp_site_id site;
    uint32_t medium;         /* lp_medium */
    uint32_t reserved;
} lp_frozen_group;

typedef struct lp_frozen {
    lp_graph graph;          /* every edge is in a row */
    uint64_t *address, *bytes;
    uint32_t *group;
    lp_frozen_group *group_of;
    uint32_t group_count;
    char **type_name;        /* each once; "" for buffers */
    uint32_t type_count;
    uint32_t *root;
    uint32_t root_count, named_count, alive_count;   /* roots: [0, named), [named, alive), [alive, root_count) */
    /* worked out */
    uint32_t *parent;        /* shortest paths from the roots, as lp_paths.parent */
    uint32_t *idom;          /* as lp_dominators.idom */
    uint64_t *retained;      /* bytes */
    uint64_t dominators_ns;
} lp_frozen;

/* Paths, unless they are there, dominators, retained sizes.  LP_BAD_INPUT for numbers that do not fit together. */
lp_status lp_frozen_finish(lp_frozen *frozen);
/* Shortest paths from the roots, those with a name first.  pre: roots and edges are nodes. */
lp_status lp_frozen_find_paths(const lp_frozen *frozen, lp_paths *out_paths);
void lp_frozen_fini(lp_frozen *frozen);
/* Bytes of memory that it takes. */
uint64_t lp_frozen_memory(const lp_frozen *frozen);

/* The `most` nodes with the largest retained size, largest first, dominators before what they dominate;
 * returns their number. */
uint32_t lp_frozen_largest(const lp_frozen *frozen, uint32_t most, uint32_t *out_nodes);

/* type => bytes retained by its nodes, each counted below the first of its type only. */
lp_status lp_frozen_retained_by_type(const lp_frozen *frozen, uint64_t *out_bytes);

/* node => the nearest holder above it on its path, else the root of that path; LP_NODE_NONE for a root. */
lp_status lp_frozen_holders(const lp_frozen *frozen, uint32_t *out_holder);

typedef struct lp_frozen_tally {
    uint32_t group, holder;
    uint64_t count, bytes;
} lp_frozen_tally;

/* Nodes of `newer` by group and holder, without those that `older` (or NULL) has too: the same address
 * and type.  *out_rows is freed with lp_raw_free(). */
lp_status lp_frozen_tally_by_holder(const lp_frozen *newer, const lp_frozen *older, lp_frozen_tally **out_rows,
                                    uint32_t *out_count);

#endif
