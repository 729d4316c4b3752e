/* A graph in compressed rows: node => the nodes it refers to.
 *
 *   edge[row[n] .. row[n + 1])   targets of node n, in the order they were visited
 *   late[...]                    edges found after the rows were closed, by source
 *
 * Nodes are numbered from 0 in the order they were added; rows are closed in the
 * same order, and a node may be added long before its row.  Memory comes from
 * base/rawmem.h and is kept by lp_graph_clear(). */
#ifndef LP_GRAPH_H
#define LP_GRAPH_H

#include "base/base.h"

#define LP_NODE_NONE UINT32_MAX
/* Each byte of it, for memset(). */
#define LP_NODE_NONE_BYTE UINT8_MAX

enum {
    LP_NODE_LATE = 1,      /* has late edges */
    LP_NODE_GROWING = 2,   /* belongs to a group that is traced */
    LP_NODE_MADE = 4,      /* a wrapper that exists because of the walk: no birth of its own */
    LP_NODE_KEPT = 8,      /* a reference is held until the walk is over */
    LP_NODE_YOUNG = 16,    /* born in the window, or growing, or made */
    LP_NODE_JUDGED = 32,   /* LP_NODE_YOUNG is decided */
    LP_NODE_TORCH = 64,    /* on the list of tensors and autograd nodes */
    LP_NODE_OWN = 128      /* belongs to the probe: its edges are not followed */
};

/* How a late edge counts in the target's reference count. */
typedef enum lp_late_refs {
    LP_LATE_NONE = 0,      /* not at all */
    LP_LATE_ONE = 1,       /* one reference */
    LP_LATE_SHARED = 2     /* all such edges into a node stand for one reference together, or for none */
} lp_late_refs;

/* The order of an edge from a view to what it was cut from. */
enum { LP_ORDER_VIEW = 2, LP_ORDER_ALIAS = 3 /* the view is most of it */ };

typedef struct lp_late_edge {
    uint32_t source, target;
    const char *label;     /* borrowed, lives as long as the graph */
    uint32_t order;        /* position among equals, such as i of next_functions[i] */
    uint32_t refs;         /* lp_late_refs */
} lp_late_edge;

typedef struct lp_graph {
    uint32_t node_count, row_count, edge_count, late_count;
    uint32_t *row;
    uint32_t *edge;
    uint8_t *flag;         /* node => LP_NODE_* */
    lp_late_edge *late;
    uint32_t node_capacity, edge_capacity, late_capacity;
} lp_graph;

/* Forget nodes and edges, keep the memory. */
void lp_graph_clear(lp_graph *graph);
void lp_graph_fini(lp_graph *graph);

/* LP_LIMIT when 32 bits do not suffice. */
lp_status lp_graph_reserve_nodes(lp_graph *graph, uint32_t more);
lp_status lp_graph_reserve_edges(lp_graph *graph, uint32_t more);

/* pre: lp_graph_reserve_nodes(). */
static inline uint32_t lp_graph_add_node(lp_graph *graph, uint8_t flag) {
    LP_ASSERT(graph->node_count < graph->node_capacity);
    uint32_t node = graph->node_count++;
    graph->flag[node] = flag;
    return node;
}

/* An edge of the row that is open.  pre: lp_graph_reserve_edges(). */
static inline void lp_graph_add_edge(lp_graph *graph, uint32_t target) {
    LP_ASSERT(graph->edge_count < graph->edge_capacity);
    graph->edge[graph->edge_count++] = target;
}

/* Close the row of node row_count.  pre: row_count < node_count. */
static inline void lp_graph_close_row(lp_graph *graph) {
    LP_ASSERT(graph->row_count < graph->node_count);
    graph->row[++graph->row_count] = graph->edge_count;
}

lp_status lp_graph_add_late(lp_graph *graph, lp_late_edge edge);
/* Sort the late edges by source; call once, before any lp_edges_of(). */
void lp_graph_sort_late(lp_graph *graph);
/* The first late edge of a source, or NULL. */
const lp_late_edge *lp_graph_first_late(const lp_graph *graph, uint32_t source);

/* 1 if the row of a source has the target; late edges are in no row. */
int lp_graph_row_has(const lp_graph *graph, uint32_t source, uint32_t target);

/* for (lp_edges it = lp_edges_of(graph, node); lp_edges_next(&it, &target);) */
typedef struct lp_edges {
    const uint32_t *at, *end;
    const lp_late_edge *late, *late_end;
    uint32_t source;
} lp_edges;

lp_edges lp_edges_of(const lp_graph *graph, uint32_t node);

static inline int lp_edges_next(lp_edges *edges, uint32_t *out_target) {
    if (LP_LIKELY(edges->at < edges->end)) {
        *out_target = *edges->at++;
        return 1;
    }
    if (edges->late < edges->late_end && edges->late->source == edges->source) {
        *out_target = (edges->late++)->target;
        return 1;
    }
    return 0;
}

/* A copy whose rows hold the late edges too, behind the others; every node gets a row.
 * LP_LIMIT when 32 bits do not suffice.  pre: lp_graph_sort_late(). */
lp_status lp_graph_join_late(const lp_graph *graph, lp_graph *out_graph);

/* 1 if rows rise within the edges, every target exists, and late edges lie sorted by sources that are flagged. */
int lp_graph_is_valid(const lp_graph *graph);

#endif
