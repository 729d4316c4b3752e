/* Who keeps what grows: a walk, its roots, and each member of the traced groups attributed to
 * the nearest thing above it that does not grow itself. */
#ifndef LP_TRACE_H
#define LP_TRACE_H

#include "analysis/paths.h"
#include "analysis/scc.h"
#include "python/graph/edge_names.h"
#include "python/graph/numbers.h"  // LP_TRACE_*
#include "python/owners/torch.h"

/* OUTSIDE: C++ is known to own it; LOST: nothing known explains its count, or nothing refers to a block;
 * UNSEEN: a block of a medium whose owners no walk sees; ATEXIT, SIGNALS, INTERPRETER: a table of CPython's own has
 * it. */
typedef enum lp_trace_kind {
    LP_TRACE_HELD,
    LP_TRACE_OUTSIDE,
    LP_TRACE_GARBAGE,
    LP_TRACE_LOST,
    LP_TRACE_UNSEEN,
    LP_TRACE_ATEXIT,
    LP_TRACE_SIGNALS,
    LP_TRACE_INTERPRETER
} lp_trace_kind;

/* Members of a bucket, and of these the one that is nearest to a root. */
typedef struct lp_example {
    uint32_t node, depth, count;
} lp_example;

/* Members below one holder (and, in a namespace, below one of its names). */
typedef struct lp_bucket {
    uint32_t holder;            /* LP_NODE_NONE: what holds it is not in the graph */
    uint32_t top;               /* the node right below the holder; LP_NODE_NONE for a block nobody refers to */
    uint32_t sample;            /* the member that the path is shown for: examples.h */
    lp_example nearest, linked;  /* of the largest members all, and those behind several links of a chain */
    uint64_t sample_bytes, count, bytes;
    uint32_t entry;             /* LP_NODE_NONE: not shown */
    uint8_t kind;               /* lp_trace_kind */
    uint8_t in_namespace;
    uint8_t has_many_tops;      /* members lie below several of its items */
} lp_bucket;

/* Buckets that show the same pattern. */
typedef struct lp_trace_entry {
    uint32_t bucket;            /* the one with most bytes */
    uint32_t bucket_count;
    uint64_t count, bytes;
} lp_trace_entry;

/* Survivors of one entry, group and step. */
typedef struct lp_trace_cell {
    uint32_t entry, group, step;
    lp_site_id deep_site;       /* a child of the group's site that was seen, or 0 */
    uint64_t count, bytes;
} lp_trace_cell;

/* A holder that is followed last: bounded.h. */
typedef struct lp_bounded {
    uint32_t node, parent;      /* the node above it as the first paths went */
    uint64_t count;             /* of its members then */
    int is_copy, is_kept, is_released;
} lp_bounded;

typedef struct lp_trace {
    lp_walk *walk;
    lp_torch torch;
    lp_paths paths;
    lp_map root_kind;           /* root node + 1 => lp_trace_kind, for roots that are not modules or frames */
    lp_map known_root;          /* node + 1 => the root above it, of some; trace.c */
    int is_torch_changing;      /* torch's getters must not be called: lp_torch_changes() */
    int64_t *refs;              /* node => references that nothing explains; NULL if never needed */
    lp_components components;
    uint32_t *bucket_of;        /* index in walk->grown => bucket */
    uint64_t *bytes_of;         /* index in walk->grown => shallow bytes */
    lp_bucket *bucket;
    uint32_t bucket_count, bucket_capacity;
    lp_trace_entry *entry;
    uint32_t entry_count, entry_capacity;
    lp_trace_cell *cell;        /* sorted by entry, group, step */
    uint32_t cell_count, cell_capacity;
    uint64_t rest_count, rest_bytes;
    lp_bounded bounded[LP_TRACE_BOUNDED];
    uint32_t bounded_count;
} lp_trace;

/* Walk, read torch if asked, find roots, attribute.  Ends with lp_trace_release() in any case. */
lp_status lp_trace_run(lp_trace *trace, const lp_walk_request *request, uint32_t torch_budget);
void lp_trace_release(lp_trace *trace);

/* ---- for cycles.c and retention.c: the first half of a trace ---- */

/* Walk, read torch if asked; nothing is reached yet. */
lp_status lp_trace_open(lp_trace *trace, const lp_walk_request *request, uint32_t torch_budget);
/* Reach what modules and running frames lead to. */
void lp_trace_reach_from_names(lp_trace *trace);
/* Then what is held by anything else.  What is not reached afterwards is garbage, and every
 * reference to it is known.  blocked: a node that leads nowhere, as if it were gone, or LP_NODE_NONE;
 * its parent must have been set to itself before lp_trace_reach_from_names(). */
lp_status lp_trace_reach_alive(lp_trace *trace, uint32_t blocked);
/* Which of two nodes stands better for a cycle; alike cycles give alike answers, whatever the order of the walk. */
int lp_trace_is_better_seed(lp_trace *trace, uint32_t node, uint32_t than);

/* 1 while a trace or a search for cycles or paths is taken: they share one walk. */
extern int lp_trace_runs;
/* The exception for a failed walk; returns NULL. */
PyObject *lp_trace_raise(lp_status status, const lp_walk_request *request);
/* Begin and end of one: 0, 1 if the collector was on, or -1 with an exception set.  torch: its getters will be
 * called; other threads may run before it begins. */
int lp_trace_begin(int torch);
void lp_trace_end(int collects);

/* ---- between trace.c, attribution.c and trace_methods.c ---- */

lp_status lp_attribution_run(lp_trace *trace);
lp_trace_kind lp_trace_kind_of_root(const lp_trace *trace, uint32_t root);
/* That of what keeps a member. */
lp_trace_kind lp_trace_kind_of_member(lp_trace *trace, uint32_t node);
/* The root above a node, or LP_NODE_NONE. */
uint32_t lp_trace_root_of(lp_trace *trace, uint32_t node);

#endif
