/* Owns the rows. Row n is closed before row n + 1, late edges are sorted once, and no edge leads beyond the last
 * node. */
#include "analysis/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/rawmem.h"  // lp_raw_realloc

/* Index 2^32 - 1 is LP_NODE_NONE; the array of rows has one entry more than nodes. */
#define MOST (UINT32_MAX - 2)

void lp_graph_clear(lp_graph *graph) {
    graph->node_count = graph->row_count = graph->edge_count = graph->late_count = 0;
}

void lp_graph_fini(lp_graph *graph) {
    lp_raw_free(graph->row);
    lp_raw_free(graph->edge);
    lp_raw_free(graph->flag);
    lp_raw_free(graph->late);
    *graph = (lp_graph){0};
}

/* The capacity after growing `have` to hold at least `count + more`; 0 when impossible. */
static uint32_t next_capacity(uint32_t have, uint32_t count, uint32_t more, uint32_t least) {
    uint64_t need = (uint64_t)count + more, size = have < least ? least : have;
    if (need > MOST) {
        return 0;
    }
    while (size < need) {
        size += size / 2;
    }
    return size > MOST ? MOST : (uint32_t)size;
}

lp_status lp_graph_reserve_nodes(lp_graph *graph, uint32_t more) {
    if (LP_LIKELY((uint64_t)graph->node_count + more <= graph->node_capacity)) {
        return LP_OK;
    }
    uint32_t size = next_capacity(graph->node_capacity, graph->node_count, more, 1u << 14);
    if (size == 0) {
        return LP_LIMIT;
    }
    uint32_t *row = lp_raw_realloc(graph->row, ((size_t)size + 1) * sizeof(*row));
    if (row == NULL) {
        return LP_NO_MEMORY;
    }
    graph->row = row;
    row[0] = 0;
    uint8_t *flag = lp_raw_realloc(graph->flag, size);
    if (flag == NULL) {
        return LP_NO_MEMORY;
    }
    graph->flag = flag;
    graph->node_capacity = size;
    return LP_OK;
}

lp_status lp_graph_reserve_edges(lp_graph *graph, uint32_t more) {
    if (LP_LIKELY((uint64_t)graph->edge_count + more <= graph->edge_capacity)) {
        return LP_OK;
    }
    uint32_t size = next_capacity(graph->edge_capacity, graph->edge_count, more, 1u << 15);
    if (size == 0) {
        return LP_LIMIT;
    }
    uint32_t *edge = lp_raw_realloc(graph->edge, (size_t)size * sizeof(*edge));
    if (edge == NULL) {
        return LP_NO_MEMORY;
    }
    graph->edge = edge;
    graph->edge_capacity = size;
    return LP_OK;
}

lp_status lp_graph_add_late(lp_graph *graph, lp_late_edge edge) {
    if (graph->late_count == graph->late_capacity) {
        uint32_t size = next_capacity(graph->late_capacity, graph->late_count, 1, 1u << 10);
        lp_late_edge *late = size == 0 ? NULL : lp_raw_realloc(graph->late, (size_t)size * sizeof(*late));
        if (late == NULL) {
            return LP_NO_MEMORY;
        }
        graph->late = late;
        graph->late_capacity = size;
    }
    LP_ASSERT(edge.source < graph->node_count && edge.target < graph->node_count);
    graph->late[graph->late_count++] = edge;
    graph->flag[edge.source] |= LP_NODE_LATE;
    return LP_OK;
}

static int compare_late(const void *left_, const void *right_) {
    const lp_late_edge *left = left_, *right = right_;
    if (left->source != right->source) {
        return left->source < right->source ? -1 : 1;
    }
    if (left->order != right->order) {
        return left->order < right->order ? -1 : 1;
    }
    if (left->target != right->target) {
        return left->target < right->target ? -1 : 1;
    }
    return strcmp(left->label, right->label);
}

void lp_graph_sort_late(lp_graph *graph) {
    if (graph->late_count > 1) {
        qsort(graph->late, graph->late_count, sizeof(*graph->late), compare_late);
    }
    LP_ASSERT(lp_graph_is_valid(graph));
}

const lp_late_edge *lp_graph_first_late(const lp_graph *graph, uint32_t source) {
    if (!(graph->flag[source] & LP_NODE_LATE)) {
        return NULL;
    }
    uint32_t low = 0, high = graph->late_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (graph->late[middle].source < source) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < graph->late_count && graph->late[low].source == source ? &graph->late[low] : NULL;
}

lp_edges lp_edges_of(const lp_graph *graph, uint32_t node) {
    LP_ASSERT(node < graph->node_count);
    lp_edges edges = {.source = node};
    if (LP_LIKELY(node < graph->row_count && graph->edge != NULL)) {
        edges.at = graph->edge + graph->row[node];
        edges.end = graph->edge + graph->row[node + 1];
    }
    if (LP_UNLIKELY(graph->flag[node] & LP_NODE_LATE)) {
        edges.late = lp_graph_first_late(graph, node);
        edges.late_end = edges.late == NULL ? NULL : graph->late + graph->late_count;
    }
    return edges;
}

lp_status lp_graph_join_late(const lp_graph *graph, lp_graph *out) {
    uint64_t edges = (uint64_t)graph->edge_count + graph->late_count;
    *out = (lp_graph){0};
    if (edges > MOST) {
        return LP_LIMIT;
    }
    out->row = lp_raw_malloc(((size_t)graph->node_count + 1) * sizeof(*out->row));
    out->edge = lp_raw_malloc(((size_t)edges + 1) * sizeof(*out->edge));
    out->flag = lp_raw_calloc((size_t)graph->node_count + 1, 1);
    if (out->row == NULL || out->edge == NULL || out->flag == NULL) {
        lp_graph_fini(out);
        return LP_NO_MEMORY;
    }
    out->row[0] = 0;
    out->node_count = out->node_capacity = graph->node_count;
    out->edge_capacity = (uint32_t)edges;
    uint32_t plain = graph->late_count == 0 ? graph->row_count : 0;   /* rows to copy as they are */
    if (plain > 0 && graph->edge_count > 0) {
        memcpy(out->row, graph->row, ((size_t)plain + 1) * sizeof(*out->row));
        memcpy(out->edge, graph->edge, graph->row[plain] * sizeof(*out->edge));
        out->row_count = plain;
        out->edge_count = graph->row[plain];
    }
    for (uint32_t node = out->row_count, target; node < graph->node_count; node++) {
        for (lp_edges it = lp_edges_of(graph, node); lp_edges_next(&it, &target);) {
            out->edge[out->edge_count++] = target;
        }
        lp_graph_close_row(out);
    }
    LP_ASSERT(lp_graph_is_valid(out));
    return LP_OK;
}

static int are_rows_valid(const lp_graph *graph) {
    if (graph->row_count > graph->node_count ||
        (graph->row_count > 0 && graph->row[graph->row_count] > graph->edge_count)) {
        return 0;
    }
    for (uint32_t node = 0; node < graph->row_count; node++) {
        if (graph->row[node] > graph->row[node + 1]) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        if (graph->edge[i] >= graph->node_count) {
            return 0;
        }
    }
    return 1;
}

int lp_graph_is_valid(const lp_graph *graph) {
    if (!are_rows_valid(graph)) {
        return 0;
    }
    for (uint32_t i = 0; i < graph->late_count; i++) {
        const lp_late_edge *edge = &graph->late[i];
        if (edge->source >= graph->node_count || edge->target >= graph->node_count ||
            !(graph->flag[edge->source] & LP_NODE_LATE) || (i > 0 && edge[-1].source > edge->source)) {
            return 0;
        }
    }
    return 1;
}

int lp_graph_row_has(const lp_graph *graph, uint32_t source, uint32_t target) {
    uint32_t end = source < graph->row_count ? graph->row[source + 1] : 0;
    for (uint32_t i = end == 0 ? 0 : graph->row[source]; i < end; i++) {
        if (graph->edge[i] == target) {
            return 1;
        }
    }
    return 0;
}
