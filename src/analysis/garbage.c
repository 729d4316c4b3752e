/* Subtracts internal references and spreads from what is left over. Counts are of the moment; nothing is
 * changed. */
#include "analysis/garbage.h"

#include <limits.h>  // CHAR_BIT

#include "analysis/numbers.h"
#include "base/rawmem.h"  // lp_raw_calloc

static int is_left_out(const uint32_t *parent, uint32_t node) { return parent != NULL && parent[node] != LP_NODE_NONE; }

/* All rows are one array; what they lead to is fetched ahead. */
static void subtract_all(const lp_graph *graph, int64_t *refs) {
    uint32_t end = graph->row_count == 0 ? 0 : graph->row[graph->row_count];
    for (uint32_t i = 0; i < end; i++) {
        if (i + LP_GARBAGE_AHEAD < end) {
            __builtin_prefetch(&refs[graph->edge[i + LP_GARBAGE_AHEAD]], 1);
        }
        refs[graph->edge[i]]--;
    }
}

static void subtract_rows(const lp_graph *graph, const uint32_t *parent, int64_t *refs) {
    if (parent == NULL) {
        subtract_all(graph, refs);
        return;
    }
    for (uint32_t node = 0; node < graph->row_count; node++) {
        if (parent[node] != LP_NODE_NONE) {
            continue;
        }
        for (uint32_t i = graph->row[node]; i < graph->row[node + 1]; i++) {
            refs[graph->edge[i]]--;
        }
    }
}

lp_status lp_garbage_subtract(const lp_graph *graph, const uint32_t *parent, int64_t *refs) {
    subtract_rows(graph, parent, refs);
    if (graph->late_count == 0) {
        return LP_OK;
    }
    uint8_t *shared = lp_raw_calloc((size_t)graph->node_count / CHAR_BIT + 1, 1);
    if (shared == NULL) {
        return LP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < graph->late_count; i++) {
        const lp_late_edge *edge = &graph->late[i];
        if (!is_left_out(parent, edge->source) && edge->refs == LP_LATE_ONE) {
            refs[edge->target]--;
        }
    }
    for (uint32_t i = 0; i < graph->late_count; i++) {
        const lp_late_edge *edge = &graph->late[i];
        uint8_t *byte = &shared[edge->target / CHAR_BIT], bit = (uint8_t)(1u << (edge->target % CHAR_BIT));
        if (!is_left_out(parent, edge->source) && edge->refs == LP_LATE_SHARED && !(*byte & bit)) {
            *byte |= bit;
            /* Owners beyond Python may hold no reference at all: then there is none to explain. */
            refs[edge->target] -= refs[edge->target] > 0;
        }
    }
    lp_raw_free(shared);
    return LP_OK;
}
