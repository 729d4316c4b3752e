#include "python/owners/torch_views.h"

#include <string.h>

/* A share is counted in these, so that sums of small ones fit a map's value. */
#define SHARES 4096u

uint32_t lp_views_order(lp_torch *torch, uint64_t address, uint64_t part, uint64_t whole) {
    uint64_t shares = whole == 0 ? 0 : (uint64_t)((double)part / (double)whole * SHARES);
    if (shares >= SHARES >> 1) {
        return LP_ORDER_ALIAS;   /* it needs what it keeps, whoever else shows a part of that */
    }
    uint32_t *shown = lp_map_put(&torch->shown, address, NULL);
    if (shown != NULL) {
        *shown = *shown < SHARES ? *shown + (uint32_t)shares : SHARES;
    }
    return LP_ORDER_VIEW;
}

void lp_views_settle(lp_torch *torch) {
    lp_graph *graph = &torch->walk->graph;
    for (uint32_t i = 0; i < graph->late_count; i++) {
        lp_late_edge *edge = &graph->late[i];
        int is_view =
            edge->order == LP_ORDER_VIEW && (strcmp(edge->label, "_base") == 0 || strcmp(edge->label, "buffer") == 0);
        if (is_view && lp_map_get(&torch->shown, torch->walk->address[edge->target], 0) >= SHARES >> 1) {
            edge->order = LP_ORDER_ALIAS;
        }
    }
}
