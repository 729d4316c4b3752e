/* Hooks of autograd nodes and of the tensors that they saved, which no getter gives: from their memory. */
#include "python/owners/torch_parts.h"

#include <string.h>

#include "python/layouts/torch.h"  // lp_torch_each_hook

/* The node whose memory is read, and pairs of nodes that are known. */
typedef struct reading {
    lp_torch *torch;
    uint32_t node;
    lp_map known;
} reading;

static uint64_t pair_key(uint32_t source, uint32_t target) { return lp_map_pair(source + 1, target); }

/* ---- hooks of nodes ---- */

/* A dict that the walk knows, or LP_NODE_NONE. */
static uint32_t known_dict(const lp_walk *walk, uint64_t word) {
    uint32_t node = lp_walk_find(walk, (void *)(uintptr_t)word);
    return node != LP_NODE_NONE && lp_walk_is_object(walk, node) && PyDict_Check(lp_walk_object(walk, node))
               ? node
               : LP_NODE_NONE;
}

static void visit_hook(void *arg, uint64_t address) {
    reading *r = arg;
    int is_new;
    uint32_t dict = known_dict(r->torch->walk, address);
    if (dict == LP_NODE_NONE || lp_graph_row_has(&r->torch->walk->graph, r->node, dict)) {
        return;
    }
    if (lp_map_put(&r->known, pair_key(r->node, dict), &is_new) != NULL && is_new) {
        lp_torch_add_late(r->torch, (lp_late_edge){r->node, dict, "hooks", 0, LP_LATE_ONE});
    }
}

static void read_all_hooks(lp_torch *torch) {
    const lp_graph *graph = &torch->walk->graph;
    uint64_t word[LP_TORCH_NODE_WORDS];
    reading r = {.torch = torch};
    for (uint32_t i = 0; i < graph->late_count; i++) {
        if (graph->late[i].refs == LP_LATE_ONE) {
            lp_map_put(&r.known, pair_key(graph->late[i].source, graph->late[i].target), NULL);
        }
    }
    for (uint32_t i = 0; i < torch->walk->torch_count && torch->walk->status == LP_OK; i++) {
        r.node = torch->walk->torch_node[i];
        if (lp_walk_kind(torch->walk, r.node) == LP_KIND_AUTOGRAD &&
            lp_torch_read_node(lp_walk_object(torch->walk, r.node), word)) {
            lp_torch_each_hook(word, visit_hook, &r);
        }
    }
    lp_map_fini(&r.known);
}

/* ---- hooks of saved tensors ---- */

/* The getters give the hook that unpacks. */
static void visit_saved_hook(void *arg, uint64_t pack, uint64_t unpack) {
    reading *r = arg;
    uint32_t unpack_hook = lp_walk_find(r->torch->walk, (void *)(uintptr_t)unpack);
    uint32_t pack_hook = pack == 0 ? LP_NODE_NONE : lp_walk_find(r->torch->walk, (void *)(uintptr_t)pack);
    if (unpack_hook != LP_NODE_NONE && pack_hook != LP_NODE_NONE &&
        lp_map_get(&r->known, pair_key(r->node, unpack_hook), 0) != 0) {
        lp_torch_add_late(r->torch, (lp_late_edge){r->node, pack_hook, "pack_hook", 0, LP_LATE_ONE});
    }
}

static void read_all_pack_hooks(lp_torch *torch) {
    const lp_graph *graph = &torch->walk->graph;
    uint32_t late_count = graph->late_count, last = LP_NODE_NONE;
    reading r = {.torch = torch};
    for (uint32_t i = 0; i < late_count; i++) {
        uint32_t *slot = strcmp(graph->late[i].label, "unpack_hook") != 0
                             ? NULL
                             : lp_map_put(&r.known, pair_key(graph->late[i].source, graph->late[i].target), NULL);
        if (slot != NULL) {
            *slot = 1;
        }
    }
    for (uint32_t i = 0; i < late_count && r.known.count > 0; i++) {
        r.node = graph->late[i].source;
        /* The edges of one node follow each other: it is read once. */
        if (strcmp(graph->late[i].label, "unpack_hook") == 0 && r.node != last) {
            lp_torch_each_saved_hook(lp_walk_object(torch->walk, r.node), visit_saved_hook, &r);
            last = r.node;
        }
    }
    lp_map_fini(&r.known);
}

void lp_torch_read_hooks(lp_torch *torch) {
    read_all_hooks(torch);
    read_all_pack_hooks(torch);
}
