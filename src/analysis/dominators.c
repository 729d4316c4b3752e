/* Semi-NCA over the vertices in the order of a search in depth. Owns nothing: all arrays are the caller's or of
 * one call. */
#include "analysis/dominators.h"

#include <string.h>

#include "analysis/numbers.h"
#include "base/rawmem.h"  // lp_raw_malloc

/* What the search knows of a node, in one place of the cache. */
typedef struct vertex {
    uint32_t number;       /* in preorder, 0: not reached */
    uint32_t last;         /* the last reference into it that came from a node with a larger number; 0: none */
} vertex;

/* Such a reference; references from smaller numbers need not be kept. */
typedef struct reference {
    uint32_t source;       /* preorder number */
    uint32_t before;       /* the reference before it into the same node; 0: none */
} reference;

/* All but vertex[] and reference[] is indexed by preorder number, from 1; 0 is the root above all roots. */
typedef struct state {
    const lp_graph *graph;
    vertex *vertex;
    reference *reference;  /* from 1 */
    uint32_t *node;
    uint32_t *parent;      /* in the depth first tree; compressed as the work goes on */
    uint32_t *dominator;
    uint32_t *semi;
    uint32_t *least;       /* smallest semidominator between a node and its compressed parent */
    uint32_t *scratch;     /* next edge to look at, then the path that is compressed */
    uint32_t count, reference_count;
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
    s->vertex = lp_raw_calloc(words, sizeof(*s->vertex));
    s->reference = lp_raw_malloc(((size_t)s->graph->edge_count + 1) * sizeof(*s->reference));
    return s->vertex == NULL || s->reference == NULL ? LP_NO_MEMORY : LP_OK;
}

static void free_state(state *s) {
    uint32_t *array[] = {s->node, s->parent, s->dominator, s->semi, s->least, s->scratch};
    for (size_t i = 0; i < sizeof(array) / sizeof(array[0]); i++) {
        lp_raw_free(array[i]);
    }
    lp_raw_free(s->vertex);
    lp_raw_free(s->reference);
}

/* ---- depth first ---- */

static uint32_t enter(state *s, uint32_t node, uint32_t parent) {
    uint32_t i = ++s->count;
    s->vertex[node].number = i;
    s->node[i] = node;
    s->parent[i] = s->semi[i] = parent;
    return i;
}

/* A reference to a node that was met before.  What lies above it in the tree is its semidominator already; from
 * elsewhere it counts once more is known. */
static inline void note_reference(state *s, uint32_t source, vertex *target) {
    uint32_t i = target->number;
    if (source < i) {
        s->semi[i] = source < s->semi[i] ? source : s->semi[i];
    } else if (source > i) {
        s->reference[++s->reference_count] = (reference){source, target->last};
        target->last = s->reference_count;
    }
}

static void search_from(state *s, uint32_t root) {
    const uint32_t *edge = s->graph->edge, *row = s->graph->row, rows = s->graph->row_count;
    uint32_t i = enter(s, root, 0), at = 0, end = 0;
    if (root < rows) {
        at = row[root];
        end = row[root + 1];
    }
    for (;;) {
        if (at == end) {
            i = s->parent[i];
            if (i == 0) {
                return;
            }
            at = s->scratch[i];
            end = row[s->node[i] + 1];
            continue;
        }
        uint32_t target = edge[at++];
        vertex *met = &s->vertex[target];
        if (met->number != 0) {
            note_reference(s, i, met);
            continue;
        }
        uint32_t below = enter(s, target, i);
        if (target < rows && row[target] != row[target + 1]) {   /* else a leaf */
            s->scratch[i] = at;
            i = below;
            at = row[target];
            end = row[target + 1];
        }
    }
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
        if (i > LP_DOMINATORS_AHEAD) {
            __builtin_prefetch(&s->vertex[s->node[i - LP_DOMINATORS_AHEAD]]);
            __builtin_prefetch(&s->reference[s->vertex[s->node[i - LP_DOMINATORS_REFERENCES_AHEAD]].last]);
        }
        for (uint32_t e = s->vertex[s->node[i]].last; e != 0 && best > 0; e = s->reference[e].before) {
            uint32_t seen = least_above(s, s->reference[e].source, i);
            best = seen < best ? seen : best;
        }
        s->semi[i] = s->least[i] = best;
    }
}

/* Numbers fall on the way up the dominator tree, so jumps find the nearest dominator that is not below the
 * semidominator in steps as the logarithm of the depth (E. W. Myers, "An applicative random-access stack", Information
 * Processing Letters 17, 1983).  Depths and jumps lie where semidominators were searched with. */
static void find_dominators(state *s, lp_dominators *out) {
    uint32_t *depth = s->least, *jump = s->scratch;
    depth[0] = jump[0] = 0;
    for (uint32_t i = 1; i <= s->count; i++) {
        uint32_t above = s->dominator[i], semi = s->semi[i];
        while (above > semi) {
            above = jump[above] > semi ? jump[above] : s->dominator[above];
        }
        uint32_t next = jump[above];
        s->dominator[i] = above;
        depth[i] = depth[above] + 1;
        jump[i] = depth[above] - depth[next] == depth[next] - depth[jump[next]] ? jump[next] : above;
        out->idom[s->node[i]] = above == 0 ? s->node[i] : s->node[above];
        out->order[i - 1] = s->node[i];
    }
    out->count = s->count;
}

static void find(state *s, const uint32_t *roots, uint32_t root_count, lp_dominators *out) {
    for (uint32_t i = 0; i < root_count; i++) {
        if (s->vertex[roots[i]].number == 0) {
            search_from(s, roots[i]);
        }
    }
    for (uint32_t i = 0; i < root_count; i++) {
        s->semi[s->vertex[roots[i]].number] = 0;
    }
    find_semidominators(s);
    find_dominators(s, out);
}

lp_status lp_dominators_find(const lp_graph *graph, const uint32_t *roots, uint32_t root_count, lp_dominators *out) {
    state s = {.graph = graph};
    size_t words = (size_t)graph->node_count + 1;
    *out = (lp_dominators){.idom = lp_raw_malloc(words * sizeof(uint32_t)),
                           .order = lp_raw_malloc(words * sizeof(uint32_t))};
    lp_status status = out->idom == NULL || out->order == NULL ? LP_NO_MEMORY : make_state(&s);
    if (status == LP_OK) {
        memset(out->idom, 0xff, words * sizeof(uint32_t));
        find(&s, roots, root_count, out);
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
