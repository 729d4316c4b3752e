/* How much of a block, or of a tensor, its views show together: one that shows a small part keeps the whole
 * for little, many that show all of it keep what they need. */
#include "python/owners/torch_parts.h"

#include <string.h>

uint32_t lp_views_order(lp_torch *torch, uint64_t address, uint64_t part, uint64_t whole) {
    uint64_t shares = whole == 0 ? 0 : (uint64_t)((double)part / (double)whole * LP_VIEW_SHARES);
    if (shares >= LP_VIEW_MOST) {
        return LP_ORDER_ALIAS;   /* it needs what it keeps, whoever else shows a part of that */
    }
    uint32_t *shown = lp_map_put(&torch->shown, address, NULL);
    if (shown != NULL) {
        *shown = *shown < LP_VIEW_SHARES ? *shown + (uint32_t)shares : LP_VIEW_SHARES;
    }
    return LP_ORDER_VIEW;
}

void lp_views_settle(lp_torch *torch) {
    lp_graph *graph = &torch->walk->graph;
    for (uint32_t i = 0; i < graph->late_count; i++) {
        lp_late_edge *edge = &graph->late[i];
        int is_view =
            edge->order == LP_ORDER_VIEW && (strcmp(edge->label, "_base") == 0 || strcmp(edge->label, "buffer") == 0);
        if (is_view && lp_map_get(&torch->shown, torch->walk->address[edge->target], 0) >= LP_VIEW_MOST) {
            edge->order = LP_ORDER_ALIAS;
        }
    }
}
