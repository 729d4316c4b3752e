/* The order is that of a walk in depth through the tree of shortest paths. That tree is found in breadth, where what
 * comes next is known early enough to be fetched; the rest are sums over it. */
#include "analysis/arrange.h"

#include "analysis/numbers.h"
#include "analysis/paths.h"
#include "base/rawmem.h"  // lp_raw_malloc

/* Loops keep in registers what they read again and again: a number that is written might be any of it. */
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
    uint32_t *place_of = a->number, *out = a->above, tail = a->paths.tail, last = LP_NODE_NONE, place = LP_NODE_NONE;
    for (uint32_t at = 0; at < tail; at++) {
        place_of[queue[at]] = at;
    }
    for (uint32_t at = 0; at < tail; at++) {
        uint32_t node = queue[at], above = parent[node];
        if (above != last) {
            last = above;
            place = place_of[above];
        }
        out[at] = above == node ? LP_NODE_NONE : place;
    }
}

static void measure_branches(arrangement *a) {
    const uint32_t *above = a->above;
    uint32_t *size = a->size, tail = a->paths.tail;
    for (uint32_t at = 0; at < tail; at++) {
        size[at] = 1;
    }
    for (uint32_t at = tail; at-- > 0;) {
        if (above[at] != LP_NODE_NONE) {
            size[above[at]] += size[at];
        }
    }
}

static void number_nodes(arrangement *a, uint32_t node_count) {
    const uint32_t *queue = a->paths.queue, *parent = a->paths.parent, *above = a->above;
    uint32_t *numbers = a->number, *old = a->old, *size = a->size, tail = a->paths.tail, next = 0;
    for (uint32_t at = 0; at < tail; at++) {
        uint32_t *from = above[at] == LP_NODE_NONE ? &next : &size[above[at]];
        uint32_t number = *from;
        *from += size[at];
        size[at] = number + 1;
        numbers[queue[at]] = number;
        old[number] = queue[at];
    }
    for (uint32_t node = 0; node < node_count && next < node_count; node++) {
        if (parent[node] == LP_NODE_NONE) {
            numbers[node] = next;
            old[next++] = node;
        }
    }
}

/* ---- what is numbered ---- */

/* Row by row in the new order. */
static void write_rows(const lp_graph *graph, const arrangement *a, uint32_t *out_row, uint32_t *out_edge) {
    const uint32_t *old = a->old, *number = a->number, *row = graph->row, *edge = graph->edge;
    uint32_t count = graph->node_count, end = 0;
    for (uint32_t at = 0; at < count; at++) {
        if (at + LP_ARRANGE_ROW_AHEAD < count) {
            __builtin_prefetch(&row[old[at + LP_ARRANGE_ROW_AHEAD]]);
        }
        if (at + LP_ARRANGE_EDGES_AHEAD < count) {
            __builtin_prefetch(&edge[row[old[at + LP_ARRANGE_EDGES_AHEAD]]]);
        }
        out_row[at] = end;
        uint32_t from = row[old[at]], to = row[old[at] + 1];
        for (; from < to; from++) {
            out_edge[end++] = number[edge[from]];
        }
    }
    out_row[count] = end;
}

static lp_status arrange_rows(lp_graph *graph, const arrangement *a) {
    uint32_t *row = lp_raw_malloc(((size_t)graph->node_count + 1) * sizeof(*row));
    uint32_t *edge = lp_raw_malloc(((size_t)graph->edge_count + 1) * sizeof(*edge));
    if (row == NULL || edge == NULL) {
        lp_raw_free(row);
        lp_raw_free(edge);
        return LP_NO_MEMORY;
    }
    write_rows(graph, a, row, edge);
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
    const uint64_t *words = *inout;
    const uint32_t *old = a->old;
    for (size_t at = 0; at < count; at++) {
        arranged[at] = words[old[at]];
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
    const uint32_t *old = a->old, *old_group = f->group;
    const uint8_t *old_flag = f->graph.flag;
    for (size_t at = 0; at < count; at++) {
        group[at] = old_group[old[at]];
        flag[at] = old_flag[old[at]];
    }
    lp_raw_free(f->group);
    lp_raw_free(f->graph.flag);
    f->group = group;
    f->graph.flag = flag;
    return LP_OK;
}

/* Uses what measured the branches. */
static void arrange_paths(lp_frozen *f, arrangement *a) {
    const uint32_t *parent = a->paths.parent, *old = a->old, *number = a->number;
    uint32_t *arranged = a->size, count = f->graph.node_count;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t above = parent[old[at]];
        arranged[at] = above == LP_NODE_NONE ? LP_NODE_NONE : number[above];
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
