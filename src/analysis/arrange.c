/* The order is that of a walk in depth through the tree of shortest paths. That tree is found in breadth, where what
 * comes next is known early enough to be fetched; the rest are sums over it. */
#include "analysis/arrange.h"

#include "analysis/paths.h"
#include "base/rawmem.h"  // lp_raw_malloc

/* How many nodes ahead something is fetched: first the row, then its edges, then the numbers of their targets. */
enum { ROW_AHEAD = 48, EDGES_AHEAD = 24, TARGETS_AHEAD = 8, MOST_TARGETS = 8 };

typedef struct arrangement {
    lp_paths paths;
    uint32_t *number;    /* node => its place in the queue, then its new number */
    uint32_t *old;       /* new number => node */
    uint32_t *above;     /* place => place of the node above it; LP_NODE_NONE for a root */
    uint32_t *size;      /* place => nodes of its branch, then the next free number in it */
} arrangement;

static lp_status allocate(arrangement *a, size_t nodes) {
    uint32_t **array[] = {&a->number, &a->old, &a->above, &a->size};
    for (size_t i = 0; i < sizeof(array) / sizeof(array[0]); i++) {
        *array[i] = lp_raw_malloc((nodes + 1) * sizeof(uint32_t));
        if (*array[i] == NULL) {
            return LP_NO_MEMORY;
        }
    }
    return LP_OK;
}

static void free_all(arrangement *a) {
    lp_paths_fini(&a->paths);
    lp_raw_free(a->number);
    lp_raw_free(a->old);
    lp_raw_free(a->above);
    lp_raw_free(a->size);
}

/* ---- numbers ---- */

/* Those with the same node above them are neighbours in the queue. */
static void find_above(arrangement *a) {
    const uint32_t *queue = a->paths.queue, *parent = a->paths.parent;
    uint32_t tail = a->paths.tail, last = LP_NODE_NONE, place = LP_NODE_NONE;
    for (uint32_t at = 0; at < tail; at++) {
        a->number[queue[at]] = at;
    }
    for (uint32_t at = 0; at < tail; at++) {
        uint32_t node = queue[at], above = parent[node];
        if (above != last) {
            last = above;
            place = a->number[above];
        }
        a->above[at] = above == node ? LP_NODE_NONE : place;
    }
}

static void measure_branches(arrangement *a) {
    for (uint32_t at = 0; at < a->paths.tail; at++) {
        a->size[at] = 1;
    }
    for (uint32_t at = a->paths.tail; at-- > 0;) {
        if (a->above[at] != LP_NODE_NONE) {
            a->size[a->above[at]] += a->size[at];
        }
    }
}

static void number_nodes(arrangement *a, uint32_t node_count) {
    uint32_t next = 0;
    for (uint32_t at = 0; at < a->paths.tail; at++) {
        uint32_t *from = a->above[at] == LP_NODE_NONE ? &next : &a->size[a->above[at]];
        uint32_t node = a->paths.queue[at], number = *from;
        *from += a->size[at];
        a->size[at] = number + 1;
        a->number[node] = number;
        a->old[number] = node;
    }
    for (uint32_t node = 0; node < node_count && next < node_count; node++) {
        if (a->paths.parent[node] == LP_NODE_NONE) {
            a->number[node] = next;
            a->old[next++] = node;
        }
    }
}

/* ---- what is numbered ---- */

static void fetch(const lp_graph *graph, const arrangement *a, uint32_t at) {
    uint32_t count = graph->node_count;
    if (at + ROW_AHEAD < count) {
        __builtin_prefetch(&graph->row[a->old[at + ROW_AHEAD]]);
    }
    if (at + EDGES_AHEAD < count) {
        __builtin_prefetch(&graph->edge[graph->row[a->old[at + EDGES_AHEAD]]]);
    }
    if (at + TARGETS_AHEAD < count) {
        uint32_t node = a->old[at + TARGETS_AHEAD], from = graph->row[node], to = graph->row[node + 1];
        to = to - from > MOST_TARGETS ? from + MOST_TARGETS : to;
        for (; from < to; from++) {
            __builtin_prefetch(&a->number[graph->edge[from]]);
        }
    }
}

static lp_status arrange_rows(lp_graph *graph, const arrangement *a) {
    uint32_t *row = lp_raw_malloc(((size_t)graph->node_count + 1) * sizeof(*row));
    uint32_t *edge = lp_raw_malloc(((size_t)graph->edge_count + 1) * sizeof(*edge)), end = 0;
    if (row == NULL || edge == NULL) {
        lp_raw_free(row);
        lp_raw_free(edge);
        return LP_NO_MEMORY;
    }
    for (uint32_t at = 0; at < graph->node_count; at++) {
        uint32_t node = a->old[at];
        fetch(graph, a, at);
        row[at] = end;
        for (uint32_t e = graph->row[node]; e < graph->row[node + 1]; e++) {
            edge[end++] = a->number[graph->edge[e]];
        }
    }
    row[graph->node_count] = end;
    lp_raw_free(graph->row);
    lp_raw_free(graph->edge);
    graph->row = row;
    graph->edge = edge;
    return LP_OK;
}

static lp_status arrange_words(uint64_t **inout, const arrangement *a, size_t count) {
    uint64_t *arranged = lp_raw_malloc((count + 1) * sizeof(*arranged));
    if (arranged == NULL) {
        return LP_NO_MEMORY;
    }
    for (size_t at = 0; at < count; at++) {
        arranged[at] = (*inout)[a->old[at]];
    }
    lp_raw_free(*inout);
    *inout = arranged;
    return LP_OK;
}

static lp_status arrange_groups_and_flags(lp_frozen *f, const arrangement *a) {
    size_t count = f->graph.node_count;
    uint32_t *group = lp_raw_malloc((count + 1) * sizeof(*group));
    uint8_t *flag = lp_raw_malloc(count + 1);
    if (group == NULL || flag == NULL) {
        lp_raw_free(group);
        lp_raw_free(flag);
        return LP_NO_MEMORY;
    }
    for (size_t at = 0; at < count; at++) {
        group[at] = f->group[a->old[at]];
        flag[at] = f->graph.flag[a->old[at]];
    }
    lp_raw_free(f->group);
    lp_raw_free(f->graph.flag);
    f->group = group;
    f->graph.flag = flag;
    return LP_OK;
}

/* Uses what measured the branches. */
static void arrange_paths(lp_frozen *f, arrangement *a) {
    uint32_t *arranged = a->size;
    for (uint32_t at = 0; at < f->graph.node_count; at++) {
        uint32_t above = a->paths.parent[a->old[at]];
        arranged[at] = above == LP_NODE_NONE ? LP_NODE_NONE : a->number[above];
    }
    a->size = NULL;
    f->parent = arranged;
    for (uint32_t i = 0; i < f->root_count; i++) {
        f->root[i] = a->number[f->root[i]];
    }
}

static lp_status arrange(lp_frozen *f, arrangement *a) {
    size_t nodes = f->graph.node_count;
    lp_status status = lp_frozen_find_paths(f, &a->paths);
    if (status == LP_OK) {
        status = allocate(a, nodes);
    }
    if (status != LP_OK) {
        return status;
    }
    find_above(a);
    measure_branches(a);
    number_nodes(a, f->graph.node_count);
    arrange_paths(f, a);
    lp_paths_fini(&a->paths);
    lp_raw_free(a->above);
    a->above = NULL;
    status = arrange_rows(&f->graph, a);
    if (status == LP_OK) {
        status = arrange_words(&f->address, a, nodes);
    }
    if (status == LP_OK) {
        status = arrange_words(&f->bytes, a, nodes);
    }
    return status == LP_OK ? arrange_groups_and_flags(f, a) : status;
}

lp_status lp_frozen_arrange(lp_frozen *f, uint32_t **out_old) {
    arrangement a = {0};
    LP_ASSERT(f->graph.late_count == 0 && f->graph.row_count == f->graph.node_count && f->parent == NULL);
    lp_status status = arrange(f, &a);
    *out_old = a.old;
    a.old = NULL;
    free_all(&a);
    if (status != LP_OK) {
        lp_raw_free(*out_old);
        *out_old = NULL;
    }
    return status;
}
