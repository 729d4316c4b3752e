/* What keeps one object alive, and what would go with it. */
#ifndef LP_RETENTION_H
#define LP_RETENTION_H

#include "analysis/reverse.h"
#include "python/graph/trace.h"

/* A path from a root to the object. */
typedef struct lp_found_path {
    uint32_t root, first;    /* first: the node below the root; the rest by lp_retention.toward */
    uint32_t length;
    uint8_t outside;         /* root is LP_NODE_NONE: `first` is held by something unknown */
} lp_found_path;

typedef struct lp_retention {
    lp_trace *trace;
    uint32_t object;
    lp_reverse reverse;
    uint32_t *toward;        /* node => the next one on the way to the object, or LP_NODE_NONE */
    uint32_t *distance;
    lp_found_path path[LP_RETENTION_MOST];
    uint32_t count;
    int64_t own, unexplained;  /* references of the call itself; all that nothing explains */
    int is_in_graph;
} lp_retention;

/* Paths, nearest first, those from names before others.  Ends with lp_retention_release(). */
lp_status lp_retention_paths(lp_retention *retention, lp_trace *trace, const lp_walk_request *request, PyObject *op,
                             uint32_t torch_budget);
void lp_retention_release(lp_retention *retention);
/* The nodes of a path from its root to the object; their number.  Of a longer path both ends are taken, and the nodes
 * between them, in the middle of the others, are counted. */
uint32_t lp_retention_get(const lp_retention *retention, const lp_found_path *path, uint32_t *out_nodes, uint32_t max,
                          uint32_t *out_left_out);

/* Bytes that would be freed if the object went: objects and native blocks.  Ends with lp_trace_release(). */
lp_status lp_retention_size(lp_trace *trace, const lp_walk_request *request, PyObject *op, uint32_t torch_budget,
                            uint64_t *out_bytes);

#endif
