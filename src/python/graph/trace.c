/* Owns the walk that all traces share; its memory stays. A trace begins with the GIL and ends before Python code
 * runs. */
#include "python/graph/trace.h"

#include <string.h>

#include "analysis/garbage.h"      // lp_garbage_subtract
#include "base/rawmem.h"           // lp_raw_free
#include "python/owners/autograd_births.h"  // lp_autograd_note_births
#include "python/owners/opaque.h"  // lp_opaque_find
#include "python/owners/torch_changes.h"  // lp_torch_changes
#include "python/compat/heap.h"    // lp_heap_is_collecting
#include "python/compat/interpreter.h"  // lp_interpreter_each_kept
#include "python/births/hooks.h"          // lp_hooks_at_exit
#include "python/graph/ascent.h"          // lp_node_remembers
#include "python/graph/bounded.h"         // lp_bounded_find

static lp_walk the_walk;           /* its memory is kept from one snapshot to the next; the GIL protects it */

/* ---- roots that Python code can name ---- */

/* The step in which a module's namespace was made, if that was in the window; else 0. */
static uint32_t birth_in_window(const lp_walk *walk, uint32_t node) {
    lp_site_id site;
    uint32_t step;
    lp_walk_birth(walk, lp_walk_object(walk, node), &site, &step);
    return walk->request->group_count > 0 && step >= walk->request->first_step ? step : 0;
}

/* 1 if modules were made in LP_COLLECTORS_STEPS of the window: sys.modules grows then, and leads to them. */
static int modules_grow(const lp_walk *walk) {
    uint32_t seen[LP_COLLECTORS_STEPS], count = 0;
    for (uint32_t i = 0; i < walk->module_count && count < LP_COLLECTORS_STEPS; i++) {
        uint32_t step = birth_in_window(walk, walk->module[i].node), at = 0;
        while (at < count && seen[at] != step) {
            at++;
        }
        if (step != 0 && at == count) {
            seen[count++] = step;
        }
    }
    return count == LP_COLLECTORS_STEPS;
}

void lp_trace_reach_from_names(lp_trace *trace) {
    lp_walk *walk = trace->walk;
    int by_table = modules_grow(walk);
    for (int main_module = 1; main_module >= 0; main_module--) {
        for (uint32_t i = 0; i < walk->module_count; i++) {
            const lp_module_root *module = &walk->module[i];
            if ((strcmp(lp_kinds_ascii(module->name), "__main__") == 0) == main_module &&
                !(by_table && birth_in_window(walk, module->node) != 0)) {
                lp_paths_add_root(&trace->paths, module->node);
            }
        }
    }
    for (uint32_t i = 0; i < walk->frame_count; i++) {
        if (walk->frame_is_tied == NULL || !walk->frame_is_tied[i]) {
            lp_paths_add_root(&trace->paths, walk->block_count + i);
        }
    }
    lp_paths_run(&trace->paths, &walk->graph);
}

/* ---- what remains ---- */

static int is_reached(const lp_trace *trace, uint32_t node) { return trace->paths.parent[node] != LP_NODE_NONE; }

static int all_grown_reached(const lp_trace *trace) {
    for (uint32_t i = 0; i < trace->walk->grown_count; i++) {
        if (!is_reached(trace, trace->walk->grown[i].node)) {
            return 0;
        }
    }
    return 1;
}

static lp_status count_unexplained(lp_trace *trace) {
    lp_walk *walk = trace->walk;
    trace->refs = lp_raw_calloc(walk->graph.node_count, sizeof(*trace->refs));
    if (trace->refs == NULL) {
        return LP_NO_MEMORY;
    }
    for (uint32_t node = walk->first_object; node < walk->graph.node_count; node++) {
        if (!is_reached(trace, node)) {
            trace->refs[node] = (int64_t)Py_REFCNT(lp_walk_object(walk, node));
        }
    }
    lp_torch_subtract_own(&trace->torch, trace->refs);
    return lp_garbage_subtract(&walk->graph, trace->paths.parent, trace->refs);
}

/* Values that a running frame has on its stack.  A slot may be stale, so it counts only for an
 * object that has a reference to explain. */
static void reach_from_stacks(lp_trace *trace) {
    lp_walk *walk = trace->walk;
    for (uint32_t i = 0; i < walk->frame_count; i++) {
        const lp_running_frame *frame = &walk->frame[i];
        for (uint32_t s = frame->local_count; s < frame->local_count + frame->stack_count; s++) {
            PyObject *op = lp_frames_slot_object(frame->slot[s]);
            uint32_t node = op == NULL || !lp_is_word_aligned((uintptr_t)op) ? LP_NODE_NONE : lp_walk_find(walk, op);
            if (node != LP_NODE_NONE && !is_reached(trace, node) && trace->refs[node] > 0) {
                lp_paths_add_root(&trace->paths, node);
                trace->paths.parent[node] = walk->block_count + i;
            }
        }
    }
    lp_paths_run(&trace->paths, &walk->graph);
}

static lp_status put(lp_map *map, uint64_t key, uint32_t value) {
    uint32_t *slot = lp_map_put(map, key, NULL);
    if (slot == NULL) {
        return LP_NO_MEMORY;
    }
    *slot = value;
    return LP_OK;
}

static lp_status add_special_root(lp_trace *trace, uint32_t node, lp_trace_kind kind) {
    lp_status status = put(&trace->root_kind, (uint64_t)node + 1, kind);
    if (status == LP_OK) {
        lp_paths_add_root(&trace->paths, node);
    }
    return status;
}

/* What grows can't lie in the few words of a state itself: there it is an old entry of a free list. */
static int may_be_stale(const lp_trace *trace, uint32_t node, lp_keeper keeper) {
    return keeper == LP_KEEPER_INTERPRETER && (trace->walk->graph.flag[node] & LP_NODE_GROWING) != 0;
}

/* One reference of an object that nothing else explains is CPython's own. */
static void reach_from_keeper(const void *object, lp_keeper keeper, void *trace_) {
    lp_trace *trace = trace_;
    uint32_t node = lp_walk_find(trace->walk, object);
    if (node == LP_NODE_NONE || !lp_walk_is_object(trace->walk, node) || is_reached(trace, node) ||
        trace->refs[node] <= 0 || may_be_stale(trace, node, keeper)) {
        return;
    }
    static const lp_trace_kind kinds[] = {
        [LP_KEEPER_ATEXIT] = LP_TRACE_ATEXIT,
        [LP_KEEPER_SIGNALS] = LP_TRACE_SIGNALS,
        [LP_KEEPER_INTERPRETER] = LP_TRACE_INTERPRETER,
    };
    add_special_root(trace, node, kinds[keeper]);
}

static void reach_from_interpreter(lp_trace *trace) {
    lp_interpreter_each_kept(lp_hooks_at_exit(), reach_from_keeper, trace);
    lp_paths_run(&trace->paths, &trace->walk->graph);
}

/* ---- what C objects keep to themselves ---- */

/* Atoms lead nowhere; they matter only as members. */
static int is_outsider(const lp_trace *trace, uint32_t node) {
    const lp_graph *graph = &trace->walk->graph;
    int matters = (graph->flag[node] & (LP_NODE_GROWING | LP_NODE_LATE)) || graph->row[node + 1] != graph->row[node];
    return matters && trace->refs[node] != 0 && !is_reached(trace, node);
}

static int may_hold(void *trace, uint32_t node) { return is_reached(trace, node); }

static lp_status reach_from_holder(void *trace_, uint32_t holder, uint32_t node) {
    lp_trace *trace = trace_;
    if (is_reached(trace, node)) {
        return LP_OK;
    }
    lp_paths_add_root(&trace->paths, node);
    trace->paths.parent[node] = holder;
    return lp_graph_add_late(&trace->walk->graph, (lp_late_edge){holder, node, "memory", 0, LP_LATE_NONE});
}

/* Of what is not reached: references to it may be there. */
static lp_status want_unreached(const lp_trace *trace, lp_map *wanted) {
    const lp_walk *walk = trace->walk;
    lp_status status = LP_OK;
    int has_outsider = 0;
    for (uint32_t node = walk->first_object; node < walk->graph.node_count && status == LP_OK; node++) {
        if (trace->refs[node] != 0 && !is_reached(trace, node)) {
            has_outsider |= is_outsider(trace, node);
            status = put(wanted, walk->address[node], node + 1);
        }
    }
    if (!has_outsider) {
        lp_map_clear(wanted);
    }
    return status;
}

/* What is found may keep more in the same way. */
static lp_status reach_from_opaque(lp_trace *trace) {
    lp_map wanted = {0};
    lp_opaque_request request = {trace->walk, &wanted, may_hold, reach_from_holder, trace};
    lp_status status;
    uint32_t found;
    do {
        found = trace->walk->graph.late_count;
        lp_map_clear(&wanted);
        status = want_unreached(trace, &wanted);
        if (status == LP_OK && wanted.count > 0) {
            status = lp_opaque_find(&request);
            lp_graph_sort_late(&trace->walk->graph);
            lp_paths_run(&trace->paths, &trace->walk->graph);
        }
    } while (status == LP_OK && trace->walk->graph.late_count > found);
    lp_map_fini(&wanted);
    return status;
}

/* What C++ owns is no lost reference; nor can one be told from that while autograd nodes are unread. */
static lp_trace_kind kind_of_outsider(const lp_trace *trace, uint32_t node, const lp_map *owned) {
    lp_walk *walk = trace->walk;
    int is_torch = (walk->graph.flag[node] & LP_NODE_TORCH) != 0;
    int is_unsure = is_torch && (!walk->request->torch || !trace->torch.is_complete);
    return is_unsure || lp_map_get(owned, (uint64_t)node + 1, 0) != 0 ? LP_TRACE_OUTSIDE : LP_TRACE_LOST;
}

static lp_status map_owned(const lp_torch *torch, lp_map *out_owned) {
    lp_status status = LP_OK;
    for (uint32_t i = 0; i < torch->outside_count && status == LP_OK; i++) {
        status = put(out_owned, (uint64_t)torch->outside[i].node + 1, 1);
    }
    return status;
}

static lp_status reach_from_outside(lp_trace *trace) {
    lp_walk *walk = trace->walk;
    lp_map owned = {0};
    lp_status status = map_owned(&trace->torch, &owned);
    for (uint32_t node = walk->first_object; node < walk->graph.node_count && status == LP_OK; node++) {
        if (is_outsider(trace, node)) {
            status = add_special_root(trace, node, kind_of_outsider(trace, node, &owned));
        }
    }
    lp_map_fini(&owned);
    lp_paths_run(&trace->paths, &walk->graph);
    return status;
}

/* ---- garbage ---- */

/* How well a cycle can be told from this node: instances and tensors first. */
static int seed_rank(lp_trace *trace, uint32_t node) {
    if (!lp_walk_is_object(trace->walk, node)) {
        return LP_SEED_NONE;
    }
    PyObject *op = lp_walk_object(trace->walk, node);
    int kind = lp_kinds_get(&trace->walk->kinds, Py_TYPE(op)).kind;
    if (kind == LP_KIND_TENSOR) {
        return LP_SEED_TENSOR;
    }
    if (PyDict_Check(op) || PyCell_Check(op) || PyTuple_Check(op)) {
        return LP_SEED_CONTAINER;
    }
    return (Py_TYPE(op)->tp_flags & Py_TPFLAGS_HEAPTYPE) ? LP_SEED_INSTANCE : LP_SEED_BUILT_IN;
}

/* The line that made a node, for comparison: what is older than the watch, or made by the walk, comes last. */
static lp_site_id seed_site(const lp_trace *trace, uint32_t node) {
    lp_site_id site = lp_site_base(LP_STAMP_SITE(lp_birth_stamp(lp_walk_object(trace->walk, node))));
    return (trace->walk->graph.flag[node] & LP_NODE_MADE) || site <= LP_SITE_SELF ? UINT32_MAX : site;
}

int lp_trace_is_better_seed(lp_trace *trace, uint32_t node, uint32_t than) {
    int rank = seed_rank(trace, node), other_rank = seed_rank(trace, than);
    if (rank != other_rank || rank == 0) {
        return rank > other_rank;
    }
    PyObject *op = lp_walk_object(trace->walk, node), *other = lp_walk_object(trace->walk, than);
    int order = strcmp(Py_TYPE(op)->tp_name, Py_TYPE(other)->tp_name);
    return order != 0 ? order < 0 : seed_site(trace, node) < seed_site(trace, than);
}

static lp_status reach_garbage(lp_trace *trace) {
    lp_walk *walk = trace->walk;
    lp_components *parts = &trace->components;
    lp_status status = lp_components_find(&walk->graph, trace->paths.parent, parts);
    if (status != LP_OK) {
        return status;
    }
    for (uint32_t node = walk->first_object; node < walk->graph.node_count; node++) {
        uint32_t id = parts->component[node];
        if (id != LP_NODE_NONE && !parts->entered[id] && parts->first[id] != node &&
            lp_trace_is_better_seed(trace, node, parts->first[id])) {
            parts->first[id] = node;
        }
    }
    for (uint32_t id = 0; id < parts->count && status == LP_OK; id++) {
        if (!parts->entered[id] && lp_walk_is_object(walk, parts->first[id])) {
            status = add_special_root(trace, parts->first[id], LP_TRACE_GARBAGE);
        }
    }
    lp_paths_run(&trace->paths, &walk->graph);
    return status;
}

static lp_status reach_rest(lp_trace *trace) {
    lp_status status = count_unexplained(trace);
    if (status == LP_OK) {
        reach_from_stacks(trace);
        reach_from_interpreter(trace);
        status = all_grown_reached(trace) ? LP_OK : reach_from_opaque(trace);
    }
    if (status == LP_OK && !all_grown_reached(trace)) {
        status = reach_from_outside(trace);
    }
    if (status == LP_OK && !all_grown_reached(trace)) {
        status = reach_garbage(trace);
    }
    return status;
}

/* ---- all that is alive ---- */

lp_status lp_trace_reach_alive(lp_trace *trace, uint32_t blocked) {
    lp_walk *walk = trace->walk;
    uint32_t *parent = trace->paths.parent;
    if (blocked != LP_NODE_NONE) {
        parent[blocked] = LP_NODE_NONE;   /* what it holds is explained by it */
    }
    lp_status status = count_unexplained(trace);
    if (status != LP_OK) {
        return status;
    }
    if (blocked != LP_NODE_NONE) {
        parent[blocked] = blocked;
    }
    reach_from_stacks(trace);
    for (uint32_t node = walk->first_object; node < walk->graph.node_count; node++) {
        if (trace->refs[node] != 0 && !is_reached(trace, node)) {
            lp_paths_add_root(&trace->paths, node);
        }
    }
    lp_paths_run(&trace->paths, &walk->graph);
    if (blocked != LP_NODE_NONE) {
        parent[blocked] = LP_NODE_NONE;
    }
    return LP_OK;
}

/* ---- the trace ---- */

lp_trace_kind lp_trace_kind_of_root(const lp_trace *trace, uint32_t root) {
    if (root == LP_NODE_NONE) {
        return trace->walk->torch_count > 0 && !trace->torch.is_complete ? LP_TRACE_OUTSIDE : LP_TRACE_LOST;
    }
    return (lp_trace_kind)lp_map_get(&trace->root_kind, (uint64_t)root + 1, LP_TRACE_HELD);
}

uint32_t lp_trace_root_of(lp_trace *trace, uint32_t node) {
    const uint32_t *parent = trace->paths.parent;
    uint32_t known = LP_NODE_NONE, root = node;
    while (root != LP_NODE_NONE && parent[root] != root && known == LP_NODE_NONE) {
        root = parent[root];
        known = root != LP_NODE_NONE && lp_node_remembers(root)
                    ? lp_map_get(&trace->known_root, (uint64_t)root + 1, LP_NODE_NONE)
                    : LP_NODE_NONE;
    }
    uint32_t end = root;
    root = known == LP_NODE_NONE ? end : known;
    for (; root != LP_NODE_NONE && node != end; node = parent[node]) {
        uint32_t *place = lp_node_remembers(node) ? lp_map_put(&trace->known_root, (uint64_t)node + 1, NULL) : NULL;
        if (place != NULL) {
            *place = root;
        }
    }
    return root;
}

lp_trace_kind lp_trace_kind_of_member(lp_trace *trace, uint32_t node) {
    uint32_t root = lp_trace_root_of(trace, node);
    return root == LP_NODE_NONE && !lp_walk_has_owners(trace->walk, node) ? LP_TRACE_UNSEEN
                                                                          : lp_trace_kind_of_root(trace, root);
}

lp_status lp_trace_open(lp_trace *trace, const lp_walk_request *request, uint32_t torch_budget) {
    LP_ASSERT_GIL();
    memset(trace, 0, sizeof(*trace));
    trace->walk = &the_walk;
    trace->torch.walk = &the_walk;
    if (lp_heap_is_collecting()) {
        return LP_UNSUPPORTED;
    }
    trace->torch.why_not = request->torch ? lp_torch_changes() : NULL;
    trace->is_torch_changing = trace->torch.why_not != NULL;
    lp_status status = lp_walk_take(trace->walk, request);
    if (status == LP_OK && request->torch && !trace->is_torch_changing) {
        status = lp_torch_take(&trace->torch, trace->walk, torch_budget);
        status = status == LP_OK ? lp_autograd_note_births(&trace->torch) : status;
    }
    if (status != LP_OK) {
        return status;
    }
    if (!lp_walk_fits(trace->walk, LP_TRACE_NODE_BYTES, 0)) {
        return LP_LIMIT;
    }
    lp_graph_sort_late(&trace->walk->graph);
    return lp_paths_reset(&trace->paths, trace->walk->graph.node_count);
}

static lp_status reach_and_attribute(lp_trace *trace) {
    lp_trace_reach_from_names(trace);
    lp_bounded_release(trace);
    lp_status status = all_grown_reached(trace) ? LP_OK : reach_rest(trace);
    return status == LP_OK ? lp_attribution_run(trace) : status;
}

/* What an attribution leaves. */
static void release_attribution(lp_trace *trace) {
    lp_raw_free(trace->bucket_of);
    lp_raw_free(trace->bytes_of);
    lp_raw_free(trace->bucket);
    lp_raw_free(trace->entry);
    lp_raw_free(trace->cell);
    trace->bucket_of = NULL, trace->bytes_of = NULL;
    trace->bucket = NULL, trace->bucket_count = trace->bucket_capacity = 0;
    trace->entry = NULL, trace->entry_count = trace->entry_capacity = 0;
    trace->cell = NULL, trace->cell_count = trace->cell_capacity = 0;
    trace->rest_count = trace->rest_bytes = 0;
}

/* The walk stays. */
static lp_status begin_again(lp_trace *trace) {
    release_attribution(trace);
    lp_map_clear(&trace->root_kind);
    lp_map_clear(&trace->known_root);
    lp_components_fini(&trace->components);
    lp_raw_free(trace->refs);
    trace->refs = NULL;
    lp_status status = lp_paths_reset(&trace->paths, trace->walk->graph.node_count);
    if (status == LP_OK) {
        lp_bounded_block(trace);
    }
    return status;
}

lp_status lp_trace_run(lp_trace *trace, const lp_walk_request *request, uint32_t torch_budget) {
    lp_status status = lp_trace_open(trace, request, torch_budget);
    if (status != LP_OK) {
        return status;
    }
    for (int round = 0; round < LP_TRACE_ROUNDS && status == LP_OK; round++) {
        status = round == 0 ? LP_OK : begin_again(trace);
        status = status == LP_OK ? reach_and_attribute(trace) : status;
        if (status == LP_OK && !lp_bounded_find(trace)) {
            break;
        }
    }
    return status;
}

void lp_trace_release(lp_trace *trace) {
    lp_paths_fini(&trace->paths);
    lp_map_fini(&trace->root_kind);
    lp_map_fini(&trace->known_root);
    lp_components_fini(&trace->components);
    lp_raw_free(trace->refs);
    release_attribution(trace);
    if (trace->walk != NULL) {
        lp_walk_release(trace->walk);
    }
    lp_torch_release(&trace->torch);
}
