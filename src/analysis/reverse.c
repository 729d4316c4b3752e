/* Turns the rows round by counting. Late edges are there too; an edge appears as often as it was. */
#include "analysis/reverse.h"

#include "base/rawmem.h"  // lp_raw_malloc

static void count_targets(const lp_graph *graph, uint32_t *row) {
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        row[graph->edge[i] + 1]++;
    }
    for (uint32_t i = 0; i < graph->late_count; i++) {
        row[graph->late[i].target + 1]++;
    }
    for (uint32_t node = 0; node < graph->node_count; node++) {
        row[node + 1] += row[node];
    }
}

lp_status lp_reverse_make(const lp_graph *graph, lp_reverse *out) {
    size_t edges = (size_t)graph->edge_count + graph->late_count, nodes = graph->node_count;
    *out = (lp_reverse){0};
    if (edges > UINT32_MAX) {
        return LP_LIMIT;
    }
    out->row = lp_raw_calloc(nodes + 1, sizeof(*out->row));
    out->source = lp_raw_malloc((edges + 1) * sizeof(*out->source));
    uint32_t *next = lp_raw_malloc((nodes + 1) * sizeof(*next));
    if (out->row == NULL || out->source == NULL || next == NULL) {
        lp_raw_free(next);
        lp_reverse_fini(out);
        return LP_NO_MEMORY;
    }
    count_targets(graph, out->row);
    for (uint32_t node = 0; node < nodes; node++) {
        next[node] = out->row[node];
    }
    for (uint32_t node = 0, target; node < nodes; node++) {
        for (lp_edges it = lp_edges_of(graph, node); lp_edges_next(&it, &target);) {
            out->source[next[target]++] = node;
        }
    }
    lp_raw_free(next);
    return LP_OK;
}

void lp_reverse_fini(lp_reverse *reverse) {
    lp_raw_free(reverse->row);
    lp_raw_free(reverse->source);
    *reverse = (lp_reverse){0};
}
