/* A graph made from bytes, and every analysis of src/analysis on it beside a slow and obvious one.
 * The includer defines CHECK(condition): test_analyses.c feeds random bytes, tests/fuzz what a fuzzer finds. */
#ifndef LP_GRAPH_ORACLE_H
#define LP_GRAPH_ORACLE_H

#include <string.h>

#include "analysis/dominators.h"
#include "analysis/frozen.h"
#include "analysis/garbage.h"
#include "analysis/paths.h"
#include "analysis/reverse.h"
#include "analysis/scc.h"
#include "base/rawmem.h"

enum { ORACLE_MOST = 20 };

typedef struct oracle {
    lp_graph graph;
    uint32_t count;
    int edges[ORACLE_MOST][ORACLE_MOST];      /* how many, late ones too */
    uint8_t is_root[ORACLE_MOST], is_outside[ORACLE_MOST];
    uint32_t root[2 * ORACLE_MOST], root_count;
} oracle;

typedef struct oracle_bytes {
    const uint8_t *at, *end;
} oracle_bytes;

static uint8_t oracle_next(oracle_bytes *bytes) { return bytes->at < bytes->end ? *bytes->at++ : 0; }

static void oracle_edge(oracle *o, uint32_t source, uint32_t target, int late[ORACLE_MOST][ORACLE_MOST], int is_late) {
    o->edges[source][target]++;
    late[source][target] += is_late;
}

/* Nodes, roots (perhaps twice), reached marks, then pairs of bytes: an edge, late if the second byte is high. */
static void oracle_make(oracle *o, const uint8_t *data, size_t size) {
    oracle_bytes bytes = {data, data + size};
    int late[ORACLE_MOST][ORACLE_MOST] = {{0}};
    memset(o, 0, sizeof(*o));
    o->count = 1 + oracle_next(&bytes) % ORACLE_MOST;
    for (uint32_t i = oracle_next(&bytes) % ORACLE_MOST; i > 0; i--) {
        o->root[o->root_count] = oracle_next(&bytes) % o->count;
        o->is_root[o->root[o->root_count++]] = 1;
    }
    for (uint32_t i = 0; i < o->count; i += 8) {
        uint8_t mask = oracle_next(&bytes);
        for (uint32_t k = 0; k < 8 && i + k < o->count; k++) {
            o->is_outside[i + k] = (mask >> k) & 1;
        }
    }
    while (bytes.at < bytes.end) {
        uint8_t source = oracle_next(&bytes), target = oracle_next(&bytes);
        oracle_edge(o, source % o->count, (target & 127) % o->count, late, target >= 192);
    }
    CHECK(lp_graph_reserve_nodes(&o->graph, o->count) == LP_OK);
    for (uint32_t a = 0; a < o->count; a++) {
        lp_graph_add_node(&o->graph, 0);
    }
    for (uint32_t a = 0; a < o->count; a++) {
        for (uint32_t b = 0; b < o->count; b++) {
            for (int n = late[a][b]; n < o->edges[a][b]; n++) {
                CHECK(lp_graph_reserve_edges(&o->graph, 1) == LP_OK);
                lp_graph_add_edge(&o->graph, b);
            }
            for (int n = 0; n < late[a][b]; n++) {
                CHECK(lp_graph_add_late(&o->graph, (lp_late_edge){a, b, "late", (uint32_t)n, (a + b) % 3}) == LP_OK);
            }
        }
        lp_graph_close_row(&o->graph);
    }
    lp_graph_sort_late(&o->graph);
    CHECK(lp_graph_is_valid(&o->graph));
}

/* What the nodes marked in `from` reach, themselves too, without passing `without`. */
static void oracle_reach(const oracle *o, const uint8_t *from, uint32_t without, uint8_t *out) {
    int changed = 1;
    for (uint32_t i = 0; i < o->count; i++) {
        out[i] = from[i] && i != without;
    }
    while (changed) {
        changed = 0;
        for (uint32_t a = 0; a < o->count; a++) {
            for (uint32_t b = 0; b < o->count; b++) {
                if (out[a] && o->edges[a][b] > 0 && !out[b] && b != without) {
                    out[b] = 1;
                    changed = 1;
                }
            }
        }
    }
}

/* ---- rows ---- */

static void oracle_check_rows(const oracle *o) {
    int seen[ORACLE_MOST][ORACLE_MOST] = {{0}}, joined[ORACLE_MOST][ORACLE_MOST] = {{0}},
        turned[ORACLE_MOST][ORACLE_MOST] = {{0}};
    lp_graph copy;
    lp_reverse reverse;
    CHECK(lp_graph_join_late(&o->graph, &copy) == LP_OK);
    CHECK(copy.late_count == 0 && copy.row_count == o->count && lp_graph_is_valid(&copy));
    CHECK(lp_reverse_make(&o->graph, &reverse) == LP_OK);
    for (uint32_t a = 0, b; a < o->count; a++) {
        for (lp_edges it = lp_edges_of(&o->graph, a); lp_edges_next(&it, &b);) {
            seen[a][b]++;
        }
        for (lp_edges it = lp_edges_of(&copy, a); lp_edges_next(&it, &b);) {
            joined[a][b]++;
        }
        for (uint32_t i = reverse.row[a]; i < reverse.row[a + 1]; i++) {
            turned[reverse.source[i]][a]++;
            CHECK(i == reverse.row[a] || reverse.source[i - 1] <= reverse.source[i]);
        }
    }
    CHECK(memcmp(seen, o->edges, sizeof(seen)) == 0);
    CHECK(memcmp(joined, o->edges, sizeof(seen)) == 0);
    CHECK(memcmp(turned, o->edges, sizeof(seen)) == 0);
    lp_reverse_fini(&reverse);
    lp_graph_fini(&copy);
}

/* ---- shortest paths ---- */

static void oracle_check_paths(const oracle *o) {
    lp_paths paths = {0};
    uint32_t distance[ORACLE_MOST], node[ORACLE_MOST + 1];
    CHECK(lp_paths_reset(&paths, o->count) == LP_OK);
    for (uint32_t i = 0; i < o->count; i++) {
        distance[i] = o->is_root[i] ? 0 : 1000;
    }
    for (uint32_t i = 0; i < o->root_count; i++) {
        lp_paths_add_root(&paths, o->root[i]);
    }
    lp_paths_run(&paths, &o->graph);
    for (uint32_t round = 0; round < o->count; round++) {
        for (uint32_t a = 0; a < o->count; a++) {
            for (uint32_t b = 0; b < o->count; b++) {
                if (o->edges[a][b] > 0 && distance[a] + 1 < distance[b]) {
                    distance[b] = distance[a] + 1;
                }
            }
        }
    }
    for (uint32_t i = 0; i < o->count; i++) {
        CHECK((paths.parent[i] == LP_NODE_NONE) == (distance[i] >= 1000));
        uint32_t length = paths.parent[i] == LP_NODE_NONE ? 0 : lp_paths_get(&paths, i, node, ORACLE_MOST + 1);
        CHECK(length == 0 || (length == distance[i] + 1 && node[length - 1] == i && o->is_root[node[0]]));
        for (uint32_t k = 0; k + 1 < length; k++) {
            CHECK(o->edges[node[k]][node[k + 1]] > 0);
        }
    }
    lp_paths_fini(&paths);
}

/* ---- garbage ---- */

static void oracle_parents(const oracle *o, uint32_t *parent) {
    for (uint32_t i = 0; i < o->count; i++) {
        parent[i] = o->is_outside[i] ? i : LP_NODE_NONE;
    }
}

static void oracle_check_subtraction(const oracle *o) {
    uint32_t parent[ORACLE_MOST];
    int64_t refs[ORACLE_MOST], expected[ORACLE_MOST];
    oracle_parents(o, parent);
    for (uint32_t b = 0; b < o->count; b++) {
        int shared = 0;
        expected[b] = refs[b] = (int64_t)(b % 5);
        for (uint32_t a = 0; a < o->count; a++) {
            expected[b] -= o->is_outside[a] ? 0 : o->edges[a][b];
        }
        for (uint32_t i = 0; i < o->graph.late_count; i++) {
            const lp_late_edge *edge = &o->graph.late[i];
            if (edge->target == b && !o->is_outside[edge->source]) {
                expected[b] += edge->refs != LP_LATE_ONE;
                shared |= edge->refs == LP_LATE_SHARED;
            }
        }
        expected[b] -= shared && expected[b] > 0;
    }
    CHECK(lp_garbage_subtract(&o->graph, parent, refs) == LP_OK);
    CHECK(memcmp(refs, expected, o->count * sizeof(*refs)) == 0);
}

/* ---- components ---- */

static void oracle_close(const oracle *o, uint8_t reaches[ORACLE_MOST][ORACLE_MOST]) {
    for (uint32_t a = 0; a < o->count; a++) {
        for (uint32_t b = 0; b < o->count; b++) {
            reaches[a][b] = !o->is_outside[a] && !o->is_outside[b] && o->edges[a][b] > 0;
        }
    }
    for (uint32_t k = 0; k < o->count; k++) {
        for (uint32_t a = 0; a < o->count; a++) {
            for (uint32_t b = 0; b < o->count; b++) {
                reaches[a][b] |= reaches[a][k] & reaches[k][b];
            }
        }
    }
}

static void oracle_check_cycle(const oracle *o, const lp_components *parts, uint32_t start, int has_cycle) {
    uint32_t scratch[ORACLE_MOST], node[ORACLE_MOST + 1];
    memset(scratch, 0xff, sizeof(scratch));
    uint32_t length = lp_components_cycle(&o->graph, parts, start, scratch, node, ORACLE_MOST + 1);
    CHECK((length > 0) == has_cycle);
    for (uint32_t i = 0; i < length; i++) {
        CHECK(o->edges[node[i]][node[(i + 1) % length]] > 0);
        CHECK(parts->component[node[i]] == parts->component[start]);
    }
    for (uint32_t i = 0; i < o->count; i++) {
        CHECK(scratch[i] == LP_NODE_NONE);
    }
}

static void oracle_check_components(const oracle *o) {
    uint32_t parent[ORACLE_MOST];
    uint8_t reaches[ORACLE_MOST][ORACLE_MOST] = {{0}};
    lp_components parts;
    oracle_parents(o, parent);
    oracle_close(o, reaches);
    CHECK(lp_components_find(&o->graph, parent, &parts) == LP_OK);
    for (uint32_t a = 0; a < o->count; a++) {
        CHECK((parts.component[a] == LP_NODE_NONE) == (o->is_outside[a] != 0));
        int entered = 0;
        for (uint32_t b = 0; b < o->count && !o->is_outside[a]; b++) {
            int together = !o->is_outside[b] && (a == b || (reaches[a][b] && reaches[b][a]));
            CHECK((parts.component[a] == parts.component[b]) == together);
            entered |= !together && reaches[b][a];
        }
        if (!o->is_outside[a]) {
            CHECK(parts.entered[parts.component[a]] == entered);
            oracle_check_cycle(o, &parts, a, reaches[a][a]);
        }
    }
    lp_components_fini(&parts);
}

/* ---- dominators ---- */

/* dominates[d][n]: without d, no root reaches n. */
static void oracle_dominate(const oracle *o, uint8_t dominates[ORACLE_MOST][ORACLE_MOST], uint8_t *reached) {
    oracle_reach(o, o->is_root, LP_NODE_NONE, reached);
    for (uint32_t d = 0; d < o->count; d++) {
        uint8_t left[ORACLE_MOST];
        oracle_reach(o, o->is_root, d, left);
        for (uint32_t n = 0; n < o->count; n++) {
            dominates[d][n] = reached[n] && !left[n];
        }
    }
}

/* The strict dominator that all other strict dominators dominate, or the node itself. */
static uint32_t oracle_nearest(const oracle *o, uint8_t dominates[ORACLE_MOST][ORACLE_MOST], uint32_t node) {
    uint32_t best = node;
    for (uint32_t d = 0; d < o->count; d++) {
        if (d != node && dominates[d][node] && (best == node || dominates[best][d])) {
            best = d;
        }
    }
    return best;
}

static void oracle_check_dominators(const oracle *o) {
    uint8_t dominates[ORACLE_MOST][ORACLE_MOST] = {{0}}, reached[ORACLE_MOST], seen[ORACLE_MOST] = {0};
    uint64_t bytes[ORACLE_MOST], expected[ORACLE_MOST];
    lp_dominators tree;
    lp_graph copy;
    CHECK(lp_graph_join_late(&o->graph, &copy) == LP_OK);
    CHECK(lp_dominators_find(&copy, o->root, o->root_count, &tree) == LP_OK);
    oracle_dominate(o, dominates, reached);
    uint32_t reached_count = 0;
    for (uint32_t n = 0; n < o->count; n++) {
        CHECK(tree.idom[n] == (reached[n] ? oracle_nearest(o, dominates, n) : LP_NODE_NONE));
        reached_count += reached[n];
        expected[n] = reached[n] ? 0 : 1u << n;
        for (uint32_t m = 0; m < o->count; m++) {
            expected[n] += dominates[n][m] ? 1u << m : 0;
        }
        bytes[n] = 1u << n;
    }
    CHECK(tree.count == reached_count);
    for (uint32_t i = 0; i < tree.count; i++) {
        uint32_t node = tree.order[i];
        CHECK(reached[node] && !seen[node] && (tree.idom[node] == node || seen[tree.idom[node]]));
        seen[node] = 1;
    }
    lp_dominators_sum(&tree, bytes);
    CHECK(memcmp(bytes, expected, o->count * sizeof(*bytes)) == 0);
    lp_dominators_fini(&tree);
    lp_graph_fini(&copy);
}

/* ---- a frozen graph ---- */

static lp_frozen oracle_freeze(const oracle *o) {
    lp_frozen f = {0};
    static const char *const names[] = {"a", "bb", "ccc"};
    uint32_t kinds = sizeof(names) / sizeof(names[0]), n = o->count;
    CHECK(lp_graph_join_late(&o->graph, &f.graph) == LP_OK);
    f.address = lp_raw_calloc(n + 1, 8);
    f.bytes = lp_raw_calloc(n + 1, 8);
    f.group = lp_raw_calloc(n + 1, 4);
    f.root = lp_raw_calloc(o->root_count + 1, 4);
    f.group_of = lp_raw_calloc(kinds, sizeof(*f.group_of));
    f.type_name = lp_raw_calloc(kinds, sizeof(*f.type_name));
    f.group_count = f.type_count = kinds;
    for (uint32_t i = 0; i < kinds; i++) {
        f.type_name[i] = lp_raw_calloc(8, 1);
        memcpy(f.type_name[i], names[i], strlen(names[i]));
        f.group_of[i].type = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        f.address[i] = 0x1000 + 16 * (uint64_t)i;
        f.bytes[i] = 1u << i;
        f.group[i] = (i * 7 + o->root_count) % kinds;
        f.graph.flag[i] = o->is_outside[i] ? LP_FROZEN_HOLDER : 0;
    }
    memcpy(f.root, o->root, o->root_count * sizeof(*f.root));
    f.root_count = o->root_count;
    f.named_count = o->root_count / 3;
    f.alive_count = o->root_count / 2;
    return f;
}

static void oracle_check_holders(const oracle *o, const lp_frozen *f) {
    uint32_t holder[ORACLE_MOST];
    lp_frozen_tally *rows;
    uint32_t count;
    uint64_t bytes = 0, expected = 0;
    CHECK(lp_frozen_holders(f, holder) == LP_OK);
    for (uint32_t i = 0; i < o->count; i++) {
        uint32_t at = i, above = f->parent[i];
        while (above != at && above != LP_NODE_NONE && !o->is_outside[above] && f->parent[above] != above) {
            at = above;
            above = f->parent[at];
        }
        CHECK(holder[i] == (above == at || above == LP_NODE_NONE ? LP_NODE_NONE : above));
        expected += holder[i] == LP_NODE_NONE ? 0 : f->bytes[i];
    }
    CHECK(lp_frozen_tally_by_holder(f, NULL, &rows, &count) == LP_OK);
    for (uint32_t i = 0; i < count; i++) {
        bytes += rows[i].bytes;
    }
    CHECK(bytes == expected);
    lp_raw_free(rows);
    if ((o->count * 31 + o->root_count) % 97 == 0) {   /* rarely: its index of addresses takes long to map */
        CHECK(lp_frozen_tally_by_holder(f, f, &rows, &count) == LP_OK && count == 0);
        lp_raw_free(rows);
    }
}

static void oracle_check_types(const oracle *o, const lp_frozen *f) {
    uint64_t bytes[3], expected[3] = {0};
    for (uint32_t i = 0; i < o->count; i++) {
        uint32_t type = f->group[i], at = i, inside = f->idom[i] == LP_NODE_NONE;
        while (!inside && f->idom[at] != at) {
            at = f->idom[at];
            inside = f->group[at] == type;
        }
        expected[type] += inside ? 0 : f->retained[i];
    }
    CHECK(lp_frozen_retained_by_type(f, bytes) == LP_OK);
    CHECK(memcmp(bytes, expected, sizeof(bytes)) == 0);
}

static void oracle_check_frozen(const oracle *o) {
    uint32_t node[ORACLE_MOST];
    lp_frozen f = oracle_freeze(o);
    CHECK(lp_frozen_finish(&f) == LP_OK);
    oracle_check_holders(o, &f);
    oracle_check_types(o, &f);
    for (uint32_t most = 0; most <= o->count; most++) {
        uint64_t smallest = UINT64_MAX;
        CHECK(lp_frozen_largest(&f, most, node) == most);
        for (uint32_t i = 0; i < most; i++) {
            CHECK(i == 0 || f.retained[node[i - 1]] >= f.retained[node[i]]);
            smallest = f.retained[node[i]];
            f.bytes[node[i]] |= 1u << 31;
        }
        for (uint32_t i = 0; i < o->count; i++) {
            CHECK((f.bytes[i] >> 31) || most == 0 || f.retained[i] <= smallest);
            f.bytes[i] &= ~(1u << 31);
        }
    }
    lp_frozen_fini(&f);
}

static void oracle_check_all(const uint8_t *data, size_t size) {
    oracle o;
    oracle_make(&o, data, size);
    oracle_check_rows(&o);
    oracle_check_paths(&o);
    oracle_check_subtraction(&o);
    oracle_check_components(&o);
    oracle_check_dominators(&o);
    oracle_check_frozen(&o);
    lp_graph_fini(&o.graph);
}

#endif
