/* Semi-NCA over the vertices in the order of a search in depth. Owns nothing: all arrays are the caller's or of
 * one call. */
#include "analysis/dominators.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_malloc

/* All but number[] is indexed by preorder number, from 1; 0 is the root above all roots. */
typedef struct state {
    const lp_graph *graph;
    uint32_t *number;      /* node => preorder number, 0: not reached */
    uint32_t *node;
    uint32_t *parent;      /* in the depth first tree; compressed as the work goes on */
    uint32_t *dominator;
    uint32_t *semi;
    uint32_t *least;       /* smallest semidominator between a node and its compressed parent */
    uint32_t *scratch;     /* next edge to look at, then the path that is compressed */
    uint32_t *row, *source;/* who refers to a node */
    uint32_t count;
} state;

static lp_status make_state(state *s) {
    size_t words = (size_t)s->graph->node_count + 2;
    uint32_t **array[] = {&s->node, &s->parent, &s->dominator, &s->semi, &s->least, &s->scratch};
    for (size_t i = 0; i < sizeof(array) / sizeof(array[0]); i++) {
        *array[i] = lp_raw_malloc(words * sizeof(uint32_t));
        if (*array[i] == NULL) {
            return LP_NO_MEMORY;
        }
    }
    s->number = lp_raw_calloc(words, sizeof(uint32_t));
    return s->number == NULL ? LP_NO_MEMORY : LP_OK;
}

static void free_state(state *s) {
    uint32_t *array[] = {s->number, s->node, s->parent, s->dominator, s->semi, s->least, s->scratch, s->row, s->source};
    for (size_t i = 0; i < sizeof(array) / sizeof(array[0]); i++) {
        lp_raw_free(array[i]);
    }
}

/* ---- depth first ---- */

static uint32_t enter(state *s, uint32_t node, uint32_t parent) {
    uint32_t i = ++s->count;
    s->number[node] = i;
    s->node[i] = node;
    s->parent[i] = parent;
    s->scratch[i] = node < s->graph->row_count ? s->graph->row[node] : 0;
    return i;
}

static uint32_t row_end(const lp_graph *graph, uint32_t node) {
    return node < graph->row_count ? graph->row[node + 1] : 0;
}

static void search_from(state *s, uint32_t root) {
    const lp_graph *graph = s->graph;
    uint32_t i = enter(s, root, 0), end = row_end(graph, root);
    while (i != 0) {
        if (s->scratch[i] == end) {
            i = s->parent[i];
            end = i == 0 ? 0 : row_end(graph, s->node[i]);
            continue;
        }
        uint32_t target = graph->edge[s->scratch[i]++];
        if (s->number[target] == 0) {
            i = enter(s, target, i);
            end = row_end(graph, target);
        }
    }
}

/* ---- who refers to whom, in preorder numbers ---- */

static lp_status turn_round(state *s) {
    const lp_graph *graph = s->graph;
    s->row = lp_raw_calloc((size_t)s->count + 2, sizeof(*s->row));
    if (s->row == NULL) {
        return LP_NO_MEMORY;
    }
    for (uint32_t i = 1; i <= s->count; i++) {
        uint32_t node = s->node[i];
        for (uint32_t e = node < graph->row_count ? graph->row[node] : 0; e < row_end(graph, node); e++) {
            s->row[s->number[graph->edge[e]]]++;
        }
    }
    for (uint32_t i = 1; i <= s->count + 1; i++) {
        s->row[i] += s->row[i - 1];
    }
    s->source = lp_raw_malloc(((size_t)s->row[s->count] + 1) * sizeof(*s->source));
    if (s->source == NULL) {
        return LP_NO_MEMORY;
    }
    /* row[i] is the end of i's sources by now; filling moves it to their begin. */
    for (uint32_t i = s->count; i > 0; i--) {
        uint32_t node = s->node[i];
        for (uint32_t e = node < graph->row_count ? graph->row[node] : 0; e < row_end(graph, node); e++) {
            s->source[--s->row[s->number[graph->edge[e]]]] = i;
        }
    }
    return LP_OK;
}

/* ---- semidominators ---- */

/* The smallest semidominator on the tree path from i up to, but without, what is not above `bound`. */
static uint32_t least_above(state *s, uint32_t i, uint32_t bound) {
    uint32_t *parent = s->parent, *least = s->least, depth = 0;
    for (uint32_t at = i; parent[at] > bound; at = parent[at]) {
        s->scratch[depth++] = at;
    }
    while (depth > 0) {
        uint32_t at = s->scratch[--depth], above = parent[at];
        least[at] = least[above] < least[at] ? least[above] : least[at];
        parent[at] = parent[above];
    }
    return least[i];
}

static void find_semidominators(state *s) {
    for (uint32_t i = s->count; i > 0; i--) {
        uint32_t best = s->semi[i];
        s->dominator[i] = s->parent[i];
        for (uint32_t e = s->row[i]; e < s->row[i + 1] && best > 0; e++) {
            uint32_t source = s->source[e], seen = source <= i ? source : least_above(s, source, i);
            best = seen < best ? seen : best;
        }
        s->semi[i] = s->least[i] = best;
    }
}

static void find_dominators(state *s, lp_dominators *out) {
    for (uint32_t i = 1; i <= s->count; i++) {
        uint32_t above = s->dominator[i];
        while (above > s->semi[i]) {
            above = s->dominator[above];
        }
        s->dominator[i] = above;
        out->idom[s->node[i]] = above == 0 ? s->node[i] : s->node[above];
        out->order[i - 1] = s->node[i];
    }
    out->count = s->count;
}

static lp_status find(state *s, const uint32_t *roots, uint32_t root_count, lp_dominators *out) {
    for (uint32_t i = 0; i < root_count; i++) {
        if (s->number[roots[i]] == 0) {
            search_from(s, roots[i]);
        }
    }
    for (uint32_t i = 1; i <= s->count; i++) {
        s->semi[i] = i;
    }
    for (uint32_t i = 0; i < root_count; i++) {
        s->semi[s->number[roots[i]]] = 0;
    }
    lp_status status = turn_round(s);
    if (status == LP_OK) {
        find_semidominators(s);
        find_dominators(s, out);
    }
    return status;
}

lp_status lp_dominators_find(const lp_graph *graph, const uint32_t *roots, uint32_t root_count, lp_dominators *out) {
    state s = {.graph = graph};
    size_t words = (size_t)graph->node_count + 1;
    *out = (lp_dominators){.idom = lp_raw_malloc(words * sizeof(uint32_t)),
                           .order = lp_raw_malloc(words * sizeof(uint32_t))};
    lp_status status = out->idom == NULL || out->order == NULL ? LP_NO_MEMORY : make_state(&s);
    if (status == LP_OK) {
        memset(out->idom, 0xff, words * sizeof(uint32_t));
        status = find(&s, roots, root_count, out);
    }
    free_state(&s);
    if (status != LP_OK) {
        lp_dominators_fini(out);
    }
    return status;
}

void lp_dominators_fini(lp_dominators *dominators) {
    lp_raw_free(dominators->idom);
    lp_raw_free(dominators->order);
    *dominators = (lp_dominators){0};
}

void lp_dominators_sum(const lp_dominators *dominators, uint64_t *inout_bytes) {
    for (uint32_t i = dominators->count; i > 0; i--) {
        uint32_t node = dominators->order[i - 1], above = dominators->idom[node];
        if (above != node) {
            inout_bytes[above] += inout_bytes[node];
        }
    }
}
