/* The graph's algorithms against naive models on random graphs: rows, shortest paths,
 * what reference counts leave unexplained, strongly connected components. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/addresses.h"
#include "analysis/garbage.h"
#include "analysis/graph.h"
#include "base/map.h"
#include "analysis/paths.h"
#include "analysis/scc.h"

enum { MOST = 24 };

/* naive[a][b]: number of edges from a to b */
typedef struct model {
    lp_graph graph;
    int edges[MOST][MOST];
    uint32_t count;
} model;

static uint32_t seed = 12345;

static uint32_t next_random(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void make_random(model *m, uint32_t count, uint32_t edges, int with_late) {
    memset(m->edges, 0, sizeof(m->edges));
    lp_graph_clear(&m->graph);
    m->count = count;
    CHECK(lp_graph_reserve_nodes(&m->graph, count) == LP_OK);
    for (uint32_t i = 0; i < count; i++) {
        lp_graph_add_node(&m->graph, 0);
    }
    for (uint32_t i = 0; i < edges; i++) {
        m->edges[next_random(count)][next_random(count)]++;
    }
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < count; b++) {
            for (int n = 0; n < m->edges[a][b]; n++) {
                CHECK(lp_graph_reserve_edges(&m->graph, 1) == LP_OK);
                lp_graph_add_edge(&m->graph, b);
            }
        }
        lp_graph_close_row(&m->graph);
    }
    for (uint32_t i = 0; with_late && i < count / 2; i++) {
        uint32_t a = next_random(count), b = next_random(count);
        m->edges[a][b]++;
        CHECK(lp_graph_add_late(&m->graph, (lp_late_edge){a, b, "late", i, LP_LATE_ONE}) == LP_OK);
    }
    lp_graph_sort_late(&m->graph);
    CHECK(lp_graph_is_valid(&m->graph));
}

static void test_edges_are_those_that_were_added(void) {
    model m = {0};
    for (int round = 0; round < 200; round++) {
        int seen[MOST][MOST] = {{0}};
        make_random(&m, 1 + next_random(MOST), next_random(60), round % 2);
        for (uint32_t a = 0; a < m.count; a++) {
            uint32_t b;
            for (lp_edges it = lp_edges_of(&m.graph, a); lp_edges_next(&it, &b);) {
                seen[a][b]++;
            }
        }
        CHECK(memcmp(seen, m.edges, sizeof(seen)) == 0);
    }
    lp_graph_fini(&m.graph);
}

/* Distances from a set of roots, by relaxing until nothing changes. */
static void naive_distances(const model *m, const uint8_t *is_root, int *out) {
    for (uint32_t i = 0; i < m->count; i++) {
        out[i] = is_root[i] ? 0 : 1000;
    }
    for (uint32_t round = 0; round < m->count; round++) {
        for (uint32_t a = 0; a < m->count; a++) {
            for (uint32_t b = 0; b < m->count; b++) {
                if (m->edges[a][b] && out[a] + 1 < out[b]) {
                    out[b] = out[a] + 1;
                }
            }
        }
    }
}

static void test_paths_are_shortest(void) {
    model m = {0};
    lp_paths paths = {0};
    for (int round = 0; round < 200; round++) {
        uint8_t is_root[MOST] = {0};
        int distance[MOST];
        uint32_t node[MOST + 1];
        make_random(&m, 1 + next_random(MOST), next_random(60), round % 2);
        CHECK(lp_paths_reset(&paths, m.count) == LP_OK);
        for (uint32_t i = 0; i < 1 + next_random(3); i++) {
            uint32_t root = next_random(m.count);
            CHECK(lp_paths_add_root(&paths, root) == !is_root[root]);
            is_root[root] = 1;
        }
        lp_paths_run(&paths, &m.graph);
        naive_distances(&m, is_root, distance);
        for (uint32_t i = 0; i < m.count; i++) {
            CHECK((paths.parent[i] == LP_NODE_NONE) == (distance[i] >= 1000));
            if (paths.parent[i] == LP_NODE_NONE) {
                continue;
            }
            uint32_t length = lp_paths_get(&paths, i, node, MOST + 1);
            CHECK(length == (uint32_t)distance[i] + 1 && node[length - 1] == i && is_root[node[0]]);
            for (uint32_t k = 0; k + 1 < length; k++) {
                CHECK(m.edges[node[k]][node[k + 1]] > 0);
            }
        }
    }
    lp_paths_fini(&paths);
    lp_graph_fini(&m.graph);
}

static void test_subtraction_counts_edges_between_unreached_nodes(void) {
    model m = {0};
    for (int round = 0; round < 200; round++) {
        uint32_t parent[MOST];
        int64_t refs[MOST], expected[MOST];
        make_random(&m, 1 + next_random(MOST), next_random(60), round % 2);
        for (uint32_t i = 0; i < m.count; i++) {
            parent[i] = next_random(3) == 0 ? i : LP_NODE_NONE;
            refs[i] = expected[i] = 10;
        }
        for (uint32_t a = 0; a < m.count; a++) {
            for (uint32_t b = 0; b < m.count; b++) {
                expected[b] -= parent[a] == LP_NODE_NONE ? m.edges[a][b] : 0;
            }
        }
        CHECK(lp_garbage_subtract(&m.graph, parent, refs) == LP_OK);
        CHECK(memcmp(refs, expected, m.count * sizeof(*refs)) == 0);
    }
    lp_graph_fini(&m.graph);
}

static void test_shared_owners_stand_for_one_reference_or_none(void) {
    lp_graph graph = {0};
    uint32_t parent[3] = {LP_NODE_NONE, LP_NODE_NONE, LP_NODE_NONE};
    int64_t refs[3] = {0, 0, 2};
    CHECK(lp_graph_reserve_nodes(&graph, 3) == LP_OK);
    for (int i = 0; i < 3; i++) {
        lp_graph_add_node(&graph, 0);
        lp_graph_close_row(&graph);
    }
    CHECK(lp_graph_add_late(&graph, (lp_late_edge){0, 2, "a", 0, LP_LATE_SHARED}) == LP_OK);
    CHECK(lp_graph_add_late(&graph, (lp_late_edge){1, 2, "a", 0, LP_LATE_SHARED}) == LP_OK);
    CHECK(lp_graph_add_late(&graph, (lp_late_edge){0, 1, "a", 0, LP_LATE_SHARED}) == LP_OK);
    CHECK(lp_graph_add_late(&graph, (lp_late_edge){1, 0, "a", 0, LP_LATE_NONE}) == LP_OK);
    lp_graph_sort_late(&graph);
    CHECK(lp_garbage_subtract(&graph, parent, refs) == LP_OK);
    CHECK(refs[0] == 0 && refs[1] == 0 && refs[2] == 1);
    lp_graph_fini(&graph);
}

/* Three nodes, 0 -> 1, 1 -> 2, and late 0 -> 2, 1 -> 0, 1 -> 2. */
static lp_graph small_graph(void) {
    lp_graph graph = {0};
    CHECK(lp_graph_reserve_nodes(&graph, 3) == LP_OK && lp_graph_reserve_edges(&graph, 2) == LP_OK);
    for (uint32_t i = 0; i < 3; i++) {
        lp_graph_add_node(&graph, 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (i < 2) {
            lp_graph_add_edge(&graph, i + 1);
        }
        lp_graph_close_row(&graph);
    }
    CHECK(lp_graph_add_late(&graph, (lp_late_edge){1, 2, "a", 0, 0}) == LP_OK);
    CHECK(lp_graph_add_late(&graph, (lp_late_edge){0, 2, "a", 0, 0}) == LP_OK);
    CHECK(lp_graph_add_late(&graph, (lp_late_edge){1, 0, "a", 0, 0}) == LP_OK);
    lp_graph_sort_late(&graph);
    return graph;
}

/* Each invariant is broken in turn; memory is whole, so that it can be given back. */
static void test_a_broken_graph_is_not_valid(void) {
    lp_graph graph = small_graph();
    CHECK(lp_graph_is_valid(&graph));
#define CHECK_BROKEN(place, value)                                                                                     \
    do {                                                                                                               \
        lp_graph sound = graph;                                                                                        \
        __typeof__(place) before = place;                                                                              \
        place = value;                                                                                                 \
        CHECK(!lp_graph_is_valid(&graph));                                                                             \
        place = before;                                                                                                \
        CHECK(memcmp(&sound, &graph, sizeof(graph)) == 0 && lp_graph_is_valid(&graph));                                \
    } while (0)
    CHECK_BROKEN(graph.row_count, 4);
    CHECK_BROKEN(graph.edge_count, 1);
    CHECK_BROKEN(graph.row[1], 3);
    CHECK_BROKEN(graph.edge[1], 3);
    CHECK_BROKEN(graph.late[0].source, 3);
    CHECK_BROKEN(graph.late[2].target, LP_NODE_NONE);
    CHECK_BROKEN(graph.flag[1], 0);
    CHECK_BROKEN(graph.late[2].source, 0);   /* 0, 1, 0: not sorted */
#undef CHECK_BROKEN
    lp_graph_fini(&graph);
}

static void close_transitively(const model *m, const uint32_t *parent, uint8_t reaches[MOST][MOST]) {
    memset(reaches, 0, MOST * MOST);
    for (uint32_t a = 0; a < m->count; a++) {
        for (uint32_t b = 0; b < m->count; b++) {
            reaches[a][b] = parent[a] == LP_NODE_NONE && parent[b] == LP_NODE_NONE && m->edges[a][b] > 0;
        }
    }
    for (uint32_t k = 0; k < m->count; k++) {
        for (uint32_t a = 0; a < m->count; a++) {
            for (uint32_t b = 0; b < m->count; b++) {
                reaches[a][b] |= reaches[a][k] & reaches[k][b];
            }
        }
    }
}

static void check_cycle(const model *m, const lp_components *parts, uint32_t start, int has_cycle) {
    uint32_t scratch[MOST], node[MOST + 1];
    memset(scratch, 0xff, sizeof(scratch));
    uint32_t length = lp_components_cycle(&m->graph, parts, start, scratch, node, MOST + 1);
    CHECK((length > 0) == has_cycle);
    for (uint32_t i = 0; i < length; i++) {
        CHECK(m->edges[node[i]][node[(i + 1) % length]] > 0);
        CHECK(parts->component[node[i]] == parts->component[start]);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        CHECK(scratch[i] == LP_NODE_NONE);
    }
}

static void test_components_are_mutually_reachable_nodes(void) {
    model m = {0};
    for (int round = 0; round < 300; round++) {
        uint32_t parent[MOST];
        uint8_t reaches[MOST][MOST];
        lp_components parts;
        make_random(&m, 1 + next_random(MOST), next_random(50), round % 2);
        for (uint32_t i = 0; i < m.count; i++) {
            parent[i] = next_random(6) == 0 ? i : LP_NODE_NONE;
        }
        close_transitively(&m, parent, reaches);
        CHECK(lp_components_find(&m.graph, parent, &parts) == LP_OK);
        for (uint32_t a = 0; a < m.count; a++) {
            CHECK((parts.component[a] == LP_NODE_NONE) == (parent[a] != LP_NODE_NONE));
            if (parent[a] != LP_NODE_NONE) {
                continue;
            }
            int entered = 0;
            for (uint32_t b = 0; b < m.count; b++) {
                int together = parent[b] == LP_NODE_NONE && (a == b || (reaches[a][b] && reaches[b][a]));
                CHECK((parts.component[a] == parts.component[b]) == together);
                entered |= !together && reaches[b][a];
            }
            CHECK(parts.entered[parts.component[a]] == entered);
            check_cycle(&m, &parts, a, reaches[a][a]);
        }
        lp_components_fini(&parts);
    }
    lp_graph_fini(&m.graph);
}

static void test_a_long_chain_needs_no_stack(void) {
    enum { LENGTH = 1000000 };
    lp_graph graph = {0};
    lp_components parts;
    uint32_t *parent = malloc(LENGTH * sizeof(*parent));
    CHECK(lp_graph_reserve_nodes(&graph, LENGTH) == LP_OK && lp_graph_reserve_edges(&graph, LENGTH) == LP_OK);
    for (uint32_t i = 0; i < LENGTH; i++) {
        lp_graph_add_node(&graph, 0);
    }
    for (uint32_t i = 0; i < LENGTH; i++) {
        lp_graph_add_edge(&graph, (i + 1) % LENGTH);
        lp_graph_close_row(&graph);
        parent[i] = LP_NODE_NONE;
    }
    CHECK(lp_components_find(&graph, parent, &parts) == LP_OK);
    CHECK(parts.count == 1 && parts.size[0] == LENGTH && !parts.entered[0]);
    lp_components_fini(&parts);
    lp_graph_fini(&graph);
    free(parent);
}

static void test_addresses(void) {
    lp_addresses table = {0};
    uint64_t address[2000];
    CHECK(lp_addresses_init(&table) == LP_OK);
    for (uint32_t i = 0; i < 2000; i++) {
        address[i] = i % 3 == 0   ? 0x7f0000000008u + 24 * i
                     : i % 3 == 1 ? 0x600000000000u + 4096 * i
                                  : UINT64_MAX - 1 - i;
        uint32_t *slot = lp_addresses_slot(&table, address[i]);
        CHECK(slot != NULL && *slot == 0);
        *slot = i + 1;
    }
    for (uint32_t i = 0; i < 2000; i++) {
        CHECK(lp_addresses_find(&table, address[i]) == i);
    }
    CHECK(lp_addresses_find(&table, 0x10) == LP_ADDRESSES_NONE);
    lp_addresses_clear(&table, address, 2000);
    for (uint32_t i = 0; i < 2000; i++) {
        CHECK(lp_addresses_find(&table, address[i]) == LP_ADDRESSES_NONE);
    }
    lp_addresses_fini(&table);
}

static void test_map(void) {
    lp_map map = {0};
    int is_new;
    CHECK(lp_map_get(&map, 5, 77) == 77);
    for (uint32_t i = 1; i <= 5000; i++) {
        uint32_t *value = lp_map_put(&map, (uint64_t)i << 20, &is_new);
        CHECK(value != NULL && is_new && *value == 0);
        *value = i;
    }
    for (uint32_t i = 1; i <= 5000; i++) {
        CHECK(lp_map_get(&map, (uint64_t)i << 20, 0) == i);
        CHECK(lp_map_get(&map, ((uint64_t)i << 20) + 1, 99) == 99);
    }
    CHECK(map.count == 5000);
    lp_map_clear(&map);
    CHECK(map.count == 0 && lp_map_get(&map, 1 << 20, 9) == 9);
    lp_map_fini(&map);
}

int main(void) {
    test_edges_are_those_that_were_added();
    test_paths_are_shortest();
    test_subtraction_counts_edges_between_unreached_nodes();
    test_shared_owners_stand_for_one_reference_or_none();
    test_components_are_mutually_reachable_nodes();
    test_a_long_chain_needs_no_stack();
    test_addresses();
    test_map();
    test_a_broken_graph_is_not_valid();
    return 0;
}
