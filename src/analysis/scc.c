/* Tarjan's components with a stack of its own: no recursion, however long a list is linked. */
#include "analysis/scc.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_malloc

typedef struct visit {
    uint32_t node;
    lp_edges edges;
} visit;

/* State of one run of Tarjan's algorithm. */
typedef struct tarjan {
    const lp_graph *graph;
    const uint32_t *parent;
    lp_components *out;
    uint32_t *low;           /* node => smallest visit number seen from it; 0: not visited */
    uint32_t *number;        /* node => visit number, from 1 */
    uint32_t *open;          /* nodes without a component yet */
    visit *path;             /* the path down to the node in work */
    uint32_t open_count, path_count, path_capacity, next_number;
} tarjan;

static lp_status enter(tarjan *t, uint32_t node) {
    if (t->path_count == t->path_capacity) {
        uint32_t size = t->path_capacity ? t->path_capacity * 2 : 1024;
        visit *path = lp_raw_realloc(t->path, (size_t)size * sizeof(*path));
        if (path == NULL) {
            return LP_NO_MEMORY;
        }
        t->path = path;
        t->path_capacity = size;
    }
    t->number[node] = t->low[node] = ++t->next_number;
    t->open[t->open_count++] = node;
    t->path[t->path_count++] = (visit){node, lp_edges_of(t->graph, node)};
    return LP_OK;
}

static void close_component(tarjan *t, uint32_t root) {
    lp_components *out = t->out;
    uint32_t id = out->count++, node, least = root;
    out->size[id] = 0;
    do {
        node = t->open[--t->open_count];
        out->component[node] = id;
        out->size[id]++;
        least = node < least ? node : least;
    } while (node != root);
    out->first[id] = least;
}

static lp_status visit_from(tarjan *t, uint32_t start) {
    lp_status status = enter(t, start);
    while (status == LP_OK && t->path_count > 0) {
        visit *top = &t->path[t->path_count - 1];
        uint32_t node = top->node, target;
        if (lp_edges_next(&top->edges, &target)) {
            if (t->parent[target] != LP_NODE_NONE) {
                continue;
            }
            if (t->number[target] == 0) {
                status = enter(t, target);
            } else if (t->out->component[target] == LP_NODE_NONE && t->number[target] < t->low[node]) {
                t->low[node] = t->number[target];
            }
            continue;
        }
        t->path_count--;
        if (t->path_count > 0 && t->low[node] < t->low[t->path[t->path_count - 1].node]) {
            t->low[t->path[t->path_count - 1].node] = t->low[node];
        }
        if (t->low[node] == t->number[node]) {
            close_component(t, node);
        }
    }
    return status;
}

static void mark_entered(const lp_graph *graph, const lp_components *out) {
    for (uint32_t node = 0; node < graph->node_count; node++) {
        uint32_t target;
        if (out->component[node] == LP_NODE_NONE) {
            continue;
        }
        for (lp_edges it = lp_edges_of(graph, node); lp_edges_next(&it, &target);) {
            uint32_t id = out->component[target];
            if (id != LP_NODE_NONE && id != out->component[node]) {
                out->entered[id] = 1;
            }
        }
    }
}

lp_status lp_components_find(const lp_graph *graph, const uint32_t *parent, lp_components *out) {
    size_t count = graph->node_count;
    lp_status status = LP_NO_MEMORY;
    tarjan t = {.graph = graph, .parent = parent, .out = out};
    *out = (lp_components){0};
    out->component = lp_raw_malloc((count + 1) * sizeof(uint32_t));
    out->first = lp_raw_malloc((count + 1) * sizeof(uint32_t));
    out->size = lp_raw_malloc((count + 1) * sizeof(uint32_t));
    out->entered = lp_raw_calloc(count + 1, 1);
    t.low = lp_raw_malloc((count + 1) * sizeof(uint32_t));
    t.number = lp_raw_calloc(count + 1, sizeof(uint32_t));
    t.open = lp_raw_malloc((count + 1) * sizeof(uint32_t));
    if (!out->component || !out->first || !out->size || !out->entered || !t.low || !t.number || !t.open) {
        goto done;
    }
    memset(out->component, 0xff, (count + 1) * sizeof(uint32_t));
    status = LP_OK;
    for (uint32_t node = 0; node < count && status == LP_OK; node++) {
        if (parent[node] == LP_NODE_NONE && t.number[node] == 0) {
            status = visit_from(&t, node);
        }
    }
    if (status == LP_OK) {
        mark_entered(graph, out);
    }
done:
    lp_raw_free(t.low);
    lp_raw_free(t.number);
    lp_raw_free(t.open);
    lp_raw_free(t.path);
    if (status != LP_OK) {
        lp_components_fini(out);
    }
    return status;
}

void lp_components_fini(lp_components *components) {
    lp_raw_free(components->component);
    lp_raw_free(components->first);
    lp_raw_free(components->size);
    lp_raw_free(components->entered);
    *components = (lp_components){0};
}

/* Follow `from` back to the start; nodes in forward order. */
static uint32_t write_cycle(const uint32_t *from, uint32_t start, uint32_t last, uint32_t *out_nodes, uint32_t max) {
    uint32_t length = 1;
    for (uint32_t node = last; node != start; node = from[node]) {
        length++;
    }
    if (length > max) {
        return 0;
    }
    uint32_t at = length;
    for (uint32_t node = last; node != start; node = from[node]) {
        out_nodes[--at] = node;
    }
    out_nodes[0] = start;
    return length;
}

uint32_t lp_components_cycle(const lp_graph *graph, const lp_components *components, uint32_t start, uint32_t *scratch,
                             uint32_t *out_nodes, uint32_t max) {
    return lp_components_way(graph, components, start, start, scratch, out_nodes, max);
}

uint32_t lp_components_way(const lp_graph *graph, const lp_components *components, uint32_t start, uint32_t to,
                           uint32_t *scratch, uint32_t *out_nodes, uint32_t max) {
    uint32_t id = components->component[start], head = 0, tail = 0, found = 0, target;
    uint32_t *queue = lp_raw_malloc(((size_t)components->size[id] + 1) * sizeof(*queue));
    if (queue == NULL) {
        return 0;
    }
    queue[tail++] = start;
    scratch[start] = start;
    while (head < tail && found == 0) {
        uint32_t node = queue[head++];
        for (lp_edges it = lp_edges_of(graph, node); lp_edges_next(&it, &target);) {
            if (target == to) {
                found = write_cycle(scratch, start, node, out_nodes, max);
                head = tail;
                break;
            }
            if (components->component[target] == id && scratch[target] == LP_NODE_NONE) {
                scratch[target] = node;
                queue[tail++] = target;
            }
        }
    }
    for (uint32_t i = 0; i < tail; i++) {
        scratch[queue[i]] = LP_NODE_NONE;
    }
    lp_raw_free(queue);
    return found;
}
