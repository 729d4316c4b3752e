/* Garbage by component, by the collector's own verdict worked out again. Nothing is collected, untracked or
 * changed. */
#include "python/graph/cycles.h"

#include <string.h>

#include "base/clock.h"           // lp_clock_ns
#include "base/rawmem.h"          // lp_raw_malloc
#include "python/owners/buffers.h"       // lp_buffers_each
#include "python/compat/heap.h"   // lp_heap_is_gc
#include "python/heap/sizes.h"         // lp_size_of

static int is_garbage(const lp_cycles *c, uint32_t node) { return c->parts.component[node] != LP_NODE_NONE; }

/* ---- the collector's verdict ---- */

static int is_tracked(const lp_cycles *c, uint32_t node) {
    lp_walk *walk = c->trace->walk;
    PyObject *op = lp_walk_object(walk, node);
    return lp_walk_is_object(walk, node) && lp_heap_is_gc(op) && lp_heap_gc_is_tracked(op) &&
           !(walk->graph.flag[node] & LP_NODE_MADE);
}

typedef struct visitor {
    lp_cycles *cycles;
    void (*each)(lp_cycles *, uint32_t target);
} visitor;

static int visit_object(PyObject *op, void *visitor_) {
    const visitor *v = visitor_;
    uint32_t node = lp_heap_is_aligned(op) ? lp_walk_find(v->cycles->trace->walk, op) : LP_NODE_NONE;
    if (node != LP_NODE_NONE) {
        v->each(v->cycles, node);
    }
    return 0;
}

/* The garbage that the collector sees a tracked object refer to; rows of arrays have more than that. */
static void each_seen(lp_cycles *c, uint32_t node, void (*each)(lp_cycles *, uint32_t target)) {
    lp_walk *walk = c->trace->walk;
    const lp_graph *graph = &walk->graph;
    PyObject *op = lp_walk_object(walk, node);
    int kind = lp_kinds_get(&walk->kinds, Py_TYPE(op)).kind;
    if (kind == LP_KIND_ARRAY || kind == LP_KIND_RECORD || kind == LP_KIND_DTYPE) {
        visitor v = {c, each};
        lp_heap_traverse(op, visit_object, &v);
        return;
    }
    for (uint32_t i = graph->row[node]; i < graph->row[node + 1]; i++) {
        each(c, graph->edge[i]);
    }
}

static void subtract_one(lp_cycles *c, uint32_t target) { c->trace->refs[target]--; }

static void hold(lp_cycles *c, uint32_t target) {
    if (is_garbage(c, target) && !c->held[target] && is_tracked(c, target)) {
        c->held[target] = 1;
        c->node[c->node_count++] = target;
    }
}

/* What the collector would find alive among the garbage: c->held.  Uses c->node as its queue. */
static void ask_collector(lp_cycles *c, const uint32_t *garbage, uint32_t count) {
    lp_walk *walk = c->trace->walk;
    for (uint32_t i = 0; i < count; i++) {
        if (lp_walk_is_object(walk, garbage[i])) {
            int is_kept = (walk->graph.flag[garbage[i]] & LP_NODE_KEPT) != 0;   /* by this walk */
            c->trace->refs[garbage[i]] = (int64_t)Py_REFCNT(lp_walk_object(walk, garbage[i])) - is_kept;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_tracked(c, garbage[i])) {
            each_seen(c, garbage[i], subtract_one);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (c->trace->refs[garbage[i]] > 0) {
            hold(c, garbage[i]);
        }
    }
    for (uint32_t head = 0; head < c->node_count; head++) {
        each_seen(c, c->node[head], hold);
    }
    c->node_count = 0;
}

/* ---- components ---- */

static int refers_to_itself(const lp_graph *graph, uint32_t node) {
    uint32_t target;
    for (lp_edges it = lp_edges_of(graph, node); lp_edges_next(&it, &target);) {
        if (target == node) {
            return 1;
        }
    }
    return 0;
}

static int is_cyclic(const lp_cycles *c, uint32_t id) {
    return c->parts.size[id] > 1 || refers_to_itself(&c->trace->walk->graph, c->parts.first[id]);
}

static void count_node(lp_cycles *c, lp_cycle *cycle, uint32_t node) {
    lp_walk *walk = c->trace->walk;
    if (node < walk->block_count) {
        cycle->bytes[walk->block[node].medium] += walk->block[node].bytes;
        return;
    }
    cycle->tracked += (uint32_t)is_tracked(c, node);
    if (lp_walk_is_object(walk, node) && !(walk->graph.flag[node] & LP_NODE_MADE)) {
        cycle->bytes[LP_MEDIUM_PYTHON] += lp_size_of(lp_walk_object(walk, node));
        cycle->bytes[LP_MEDIUM_NUMPY] += lp_buffers_of_array(walk, node);
    }
}

static void claim(lp_cycles *c, uint32_t number, uint32_t node) {
    c->owner[node] = number;
    c->node[c->node_count++] = node;
    count_node(c, &c->cycle[number], node);
}

/* A cycle keeps its members and what is reached from them but is in no other cycle. */
static void claim_all(lp_cycles *c, uint32_t number, uint32_t *holder_of) {
    lp_cycle *cycle = &c->cycle[number];
    const lp_graph *graph = &c->trace->walk->graph;
    int any_tracked = 0, any_held = 0;
    cycle->from = c->node_count;
    claim(c, number, c->parts.first[cycle->component]);
    for (uint32_t head = cycle->from, target; head < c->node_count; head++) {
        uint32_t node = c->node[head], id = c->parts.component[node];
        cycle->members += id == cycle->component;
        if (id == cycle->component) {
            any_tracked |= is_tracked(c, node);
            any_held |= c->held[node];
        }
        for (lp_edges it = lp_edges_of(graph, node); lp_edges_next(&it, &target);) {
            if (!is_garbage(c, target) || c->owner[target] != LP_NODE_NONE) {
                continue;
            }
            uint32_t other = c->parts.component[target];
            if (other == cycle->component || !is_cyclic(c, other)) {
                claim(c, number, target);
            } else if (holder_of[other] == LP_NODE_NONE) {
                holder_of[other] = number;
            }
        }
    }
    cycle->to = c->node_count;
    cycle->collectable = any_tracked && !any_held;
}

/* ---- the edge that the collector lacks ---- */

/* The most telling first. */
static int rank_of_label(const char *label) {
    static const struct {
        const char *label;
        int rank;
    } ranks[] = {
        {"hooks", LP_TELLS_HOOK},
        {"_backward_hooks", LP_TELLS_HOOK},
        {"_post_accumulate_grad_hooks", LP_TELLS_HOOK},
        {"grad", LP_TELLS_GIVEN},
        {"_base", LP_TELLS_GIVEN},
        {"metadata", LP_TELLS_GIVEN},
        {"untyped_storage()", LP_TELLS_GIVEN},
        {"unpack_hook", LP_TELLS_GIVEN},
        {"pack_hook", LP_TELLS_GIVEN},
        {"next_functions", LP_TELLS_NEXT},
        {"variable", LP_TELLS_VARIABLE},
        {"grad_fn", LP_TELLS_GRAD_FN},
    };
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        if (strcmp(label, ranks[i].label) == 0) {
            return ranks[i].rank;
        }
    }
    return LP_TELLS_OTHER;
}

/* Of edges that tell as much, the one between the better seeds; of many the first. */
static int is_more_telling(lp_cycles *c, const lp_cycle *cycle, uint32_t source, uint32_t target) {
    if (c->parts.size[cycle->component] > LP_CYCLE_COMPARED) {
        return 0;
    }
    if (source != cycle->source) {
        return lp_trace_is_better_seed(c->trace, source, cycle->source);
    }
    return lp_trace_is_better_seed(c->trace, target, cycle->target);
}

static void consider(lp_cycles *c, lp_cycle *cycle, int *best, int rank, uint32_t source, uint32_t target) {
    if (rank < *best || (rank == *best && is_more_telling(c, cycle, source, target))) {
        *best = rank;
        cycle->source = source;
        cycle->target = target;
    }
}

static void find_lacking_edge(lp_cycles *c, lp_cycle *cycle) {
    const lp_graph *graph = &c->trace->walk->graph;
    int best = LP_TELLS_NOTHING;
    for (uint32_t i = cycle->from; i < cycle->to; i++) {
        uint32_t node = c->node[i];
        if (c->parts.component[node] != cycle->component) {
            continue;
        }
        int seen = is_tracked(c, node);
        for (uint32_t e = graph->row[node]; !seen && e < graph->row[node + 1]; e++) {
            /* Wrappers that the walk made are seen once they are there. */
            if (c->parts.component[graph->edge[e]] == cycle->component && !(graph->flag[node] & LP_NODE_MADE)) {
                consider(c, cycle, &best, LP_TELLS_GIVEN, node, graph->edge[e]);
            }
        }
        const lp_late_edge *late = lp_graph_first_late(graph, node), *end = graph->late + graph->late_count;
        for (; late != NULL && late < end && late->source == node; late++) {
            if (c->parts.component[late->target] == cycle->component &&
                (late->refs == LP_LATE_ONE || !(seen && lp_graph_row_has(graph, node, late->target)))) {
                consider(c, cycle, &best, rank_of_label(late->label), node, late->target);
            }
        }
    }
}

/* ---- buffers that the ledger does not know ---- */

static int is_owned(void *cycles, uint32_t node) { return ((lp_cycles *)cycles)->owner[node] != LP_NODE_NONE; }

static void add_buffer(void *cycles_, uint32_t node, uint32_t medium, uint64_t bytes) {
    lp_cycles *c = cycles_;
    c->cycle[c->owner[node]].bytes[medium] += bytes;
}

/* ---- all of it ---- */

static uint32_t *list_garbage(const lp_cycles *c, uint32_t *out_count) {
    const lp_walk *walk = c->trace->walk;
    uint32_t count = 0, at = 0;
    for (uint32_t node = 0; node < walk->graph.node_count; node++) {
        count += is_garbage(c, node);
    }
    uint32_t *list = lp_raw_malloc(((size_t)count + 1) * sizeof(*list));
    for (uint32_t node = 0; list != NULL && node < walk->graph.node_count; node++) {
        if (is_garbage(c, node)) {
            list[at++] = node;
        }
    }
    *out_count = count;
    return list;
}

static lp_status add_cycles(lp_cycles *c, uint32_t *holder_of) {
    /* Components are numbered from the last to the first: those that refer come first this way. */
    for (uint32_t id = c->parts.count; id-- > 0;) {
        if (!lp_walk_is_object(c->trace->walk, c->parts.first[id]) || !is_cyclic(c, id)) {
            continue;
        }
        lp_cycle *cycle = lp_walk_reserve(c->cycle, c->count, &c->capacity, sizeof(*cycle));
        if (cycle == NULL) {
            return LP_NO_MEMORY;
        }
        c->cycle = cycle;
        c->cycle[c->count] =
            (lp_cycle){.component = id, .held_by = holder_of[id], .source = LP_NODE_NONE, .target = LP_NODE_NONE};
        claim_all(c, c->count, holder_of);
        if (!c->cycle[c->count].collectable) {
            find_lacking_edge(c, &c->cycle[c->count]);
        }
        c->count++;
    }
    return LP_OK;
}

static lp_status allocate(lp_cycles *c, uint32_t garbage_count, uint32_t **out_holder_of) {
    size_t nodes = c->trace->walk->graph.node_count, components = (size_t)c->parts.count + 1;
    c->node = lp_raw_malloc(((size_t)garbage_count + 1) * sizeof(*c->node));
    c->owner = lp_raw_malloc(nodes * sizeof(*c->owner));
    c->held = lp_raw_calloc(nodes, 1);
    *out_holder_of = lp_raw_malloc(components * sizeof(**out_holder_of));
    if (c->node == NULL || c->owner == NULL || c->held == NULL || *out_holder_of == NULL) {
        return LP_NO_MEMORY;
    }
    memset(c->owner, LP_NODE_NONE_BYTE, nodes * sizeof(*c->owner));
    memset(*out_holder_of, LP_NODE_NONE_BYTE, components * sizeof(**out_holder_of));
    return LP_OK;
}

/* What the components are.  pre: c->trace, c->parts. */
static lp_status analyse(lp_cycles *c) {
    uint32_t count, *garbage = list_garbage(c, &count), *holder_of = NULL;
    lp_status status = garbage == NULL ? LP_NO_MEMORY : LP_OK;
    if (count > 0 && status == LP_OK) {
        status = allocate(c, count, &holder_of);
        if (status == LP_OK) {
            ask_collector(c, garbage, count);
            status = add_cycles(c, holder_of);
        }
    }
    lp_raw_free(holder_of);
    lp_raw_free(garbage);
    return status;
}

lp_status lp_cycles_find(lp_cycles *cycles, lp_trace *trace, const lp_walk_request *request, uint32_t torch_budget) {
    *cycles = (lp_cycles){.trace = trace};
    uint64_t began = lp_clock_ns();
    lp_status status = lp_trace_open(trace, request, torch_budget);
    cycles->walk_ns = lp_clock_ns() - began;
    if (status == LP_OK) {
        lp_trace_reach_from_names(trace);
        status = lp_trace_reach_alive(trace, LP_NODE_NONE);
    }
    if (status == LP_OK && !lp_walk_fits(trace->walk, LP_TRACE_NODE_BYTES + LP_COMPONENTS_NODE_BYTES, 0)) {
        status = LP_LIMIT;
    }
    if (status == LP_OK) {
        status = lp_components_find(&trace->walk->graph, trace->paths.parent, &cycles->parts);
    }
    if (status == LP_OK) {
        status = analyse(cycles);
    }
    if (status == LP_OK && cycles->count > 0 && !trace->is_torch_changing) {
        lp_buffers_each(trace->walk, &trace->torch.lent, is_owned, add_buffer, cycles);
    }
    cycles->analysis_ns = lp_clock_ns() - began - cycles->walk_ns;
    return status;
}

lp_status lp_cycles_judge(lp_cycles *cycles, lp_trace *trace) {
    *cycles = (lp_cycles){.trace = trace, .parts = trace->components};
    return analyse(cycles);
}

const lp_cycle *lp_cycles_of(const lp_cycles *cycles, uint32_t node) {
    for (uint32_t i = 0; i < cycles->count; i++) {
        if (cycles->cycle[i].component == cycles->parts.component[node]) {
            return &cycles->cycle[i];
        }
    }
    return NULL;
}

void lp_cycles_forget(lp_cycles *cycles) {
    lp_raw_free(cycles->cycle);
    lp_raw_free(cycles->node);
    lp_raw_free(cycles->owner);
    lp_raw_free(cycles->held);
    *cycles = (lp_cycles){0};
}

void lp_cycles_release(lp_cycles *cycles) {
    lp_components_fini(&cycles->parts);
    lp_trace_release(cycles->trace);
    lp_cycles_forget(cycles);
}

/* ---- paths ---- */

static uint32_t start_of(const lp_cycles *c, const lp_cycle *cycle) {
    uint32_t best = c->parts.first[cycle->component];
    for (uint32_t i = cycle->from; i < cycle->to && i < cycle->from + LP_CYCLE_COMPARED; i++) {
        uint32_t node = c->node[i];
        if (c->parts.component[node] == cycle->component && lp_trace_is_better_seed(c->trace, node, best)) {
            best = node;
        }
    }
    return best;
}

uint32_t lp_cycles_path(const lp_cycles *c, const lp_cycle *cycle, uint32_t *scratch, uint32_t *out_nodes,
                        uint32_t max) {
    const lp_graph *graph = &c->trace->walk->graph;
    uint32_t count;
    if (cycle->source == LP_NODE_NONE) {
        uint32_t start = start_of(c, cycle);
        count = lp_components_cycle(graph, &c->parts, start, scratch, out_nodes, max - 1);
        out_nodes[count] = start;
        return count == 0 ? 0 : count + 1;
    }
    out_nodes[0] = cycle->source;
    if (cycle->source == cycle->target) {
        out_nodes[1] = cycle->source;
        return LP_PATH_ENDS;
    }
    count =
        lp_components_way(graph, &c->parts, cycle->target, cycle->source, scratch, out_nodes + 1, max - LP_PATH_ENDS);
    out_nodes[count + 1] = cycle->source;
    return count == 0 ? 0 : count + LP_PATH_ENDS;
}
