/* How many owners beyond Python a tensor, function or storage has, and what the edges to it stand for. */
#include "python/owners/torch_parts.h"

#include "base/rawmem.h"           // lp_raw_free
#include "python/layouts/torch.h"  // lp_torch_node_owners

/* What is known of the owners of one node. */
typedef struct owners {
    uint32_t known;          /* late edges that stand for an owner */
    uint32_t first;          /* the first of them */
    int is_row_edge;         /* the reference they stand for is in a row already */
} owners;

typedef struct counting {
    lp_torch *torch;
    lp_map number;           /* node + 1 => index in of + 1 */
    owners *of;
    uint32_t count, capacity;
} counting;

static int count_shared(counting *c) {
    lp_graph *graph = &c->torch->walk->graph;
    for (uint32_t i = 0; i < graph->late_count; i++) {
        lp_late_edge *edge = &graph->late[i];
        if (edge->refs != LP_LATE_SHARED) {
            continue;
        }
        uint32_t *number = lp_map_put(&c->number, (uint64_t)edge->target + 1, NULL);
        owners *of = lp_walk_reserve(c->of, c->count, &c->capacity, sizeof(*of));
        if (number == NULL || of == NULL) {
            return -1;
        }
        c->of = of;
        if (*number == 0) {
            of[c->count] = (owners){.first = i};
            *number = ++c->count;
        }
        of[*number - 1].known++;
        of[*number - 1].is_row_edge |= lp_graph_row_has(graph, edge->source, edge->target);
        edge->refs = LP_LATE_NONE;
    }
    return 0;
}

/* Owners of a node beyond its wrapper, or -1 if they can't be counted; whether they hold a reference to the wrapper. */
static int64_t count_owners(counting *c, uint32_t node, int *out_holds_wrapper) {
    const lp_torch_names *names = c->torch->names;
    lp_walk *walk = c->torch->walk;
    PyObject *op = lp_walk_object(walk, node);
    *out_holds_wrapper = names->tensors_are_coupled;
    switch (lp_walk_kind(walk, node)) {
    case LP_KIND_TENSOR:
        return names->use_count == NULL ? -1 : (int64_t)lp_torch_call_for_number(names->use_count, op) - 1;
    case LP_KIND_STORAGE:
        return (int64_t)lp_storage_users(&names->storage, lp_storage_of_node(&names->storage, walk, node)) - 1;
    default:
        return lp_torch_node_owners(op, out_holds_wrapper);
    }
}

static void settle(counting *c, uint32_t node) {
    lp_torch *torch = c->torch;
    uint32_t number = lp_map_get(&c->number, (uint64_t)node + 1, 0);
    owners none = {0}, *of = number == 0 ? &none : &c->of[number - 1];
    int holds_wrapper;
    int64_t count = count_owners(c, node, &holds_wrapper);
    if (count > (int64_t)of->known) {
        lp_torch_outsider *outside =
            lp_walk_reserve(torch->outside, torch->outside_count, &torch->outside_capacity, sizeof(*outside));
        if (outside == NULL) {
            torch->walk->status = LP_NO_MEMORY;
            return;
        }
        torch->outside = outside;
        torch->outside[torch->outside_count++] = (lp_torch_outsider){node, (uint32_t)(count - of->known)};
    }
    if (of->known > 0 && count != 0 && holds_wrapper && !of->is_row_edge) {
        torch->walk->graph.late[of->first].refs = LP_LATE_ONE;
    }
}

void lp_torch_settle_counts(lp_torch *torch) {
    counting c = {.torch = torch};
    if (count_shared(&c) == 0) {
        for (uint32_t i = 0; i < torch->walk->torch_count && torch->walk->status == LP_OK; i++) {
            settle(&c, torch->walk->torch_node[i]);
        }
    } else {
        torch->walk->status = LP_NO_MEMORY;
    }
    lp_map_fini(&c.number);
    lp_raw_free(c.of);
}
