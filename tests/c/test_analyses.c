/* Rows, reversed rows, shortest paths, subtraction, components and dominators against the slow
 * versions of graph_oracle.h, on random graphs; and what happens without memory. */
#include "harness.h"

#include "graph_oracle.h"

#include "base/rawmem.h"

static unsigned long long random_state = 88172645463325252ull;

static void test_random_graphs(void) {
    for (int round = 0; round < 3000; round++) {
        uint8_t data[120];
        size_t size = harness_random(&random_state) % sizeof(data);
        for (size_t i = 0; i < size; i++) {
            data[i] = (uint8_t)harness_random(&random_state);
        }
        oracle_check_all(data, size);
    }
}

static void make_chain(lp_graph *graph, uint32_t length, int closed) {
    CHECK(lp_graph_reserve_nodes(graph, length) == LP_OK && lp_graph_reserve_edges(graph, length) == LP_OK);
    for (uint32_t i = 0; i < length; i++) {
        lp_graph_add_node(graph, 0);
    }
    for (uint32_t i = 0; i < length; i++) {
        if (i + 1 < length || closed) {
            lp_graph_add_edge(graph, (i + 1) % length);
        }
        lp_graph_close_row(graph);
    }
}

static void test_a_long_chain_needs_no_stack(void) {
    enum { LENGTH = 1000000 };
    lp_graph graph = {0};
    lp_dominators tree;
    uint32_t root = 0;
    uint64_t *bytes = malloc(LENGTH * sizeof(*bytes));
    make_chain(&graph, LENGTH, 1);
    CHECK(lp_dominators_find(&graph, &root, 1, &tree) == LP_OK);
    CHECK(tree.count == LENGTH && tree.idom[0] == 0 && tree.idom[LENGTH - 1] == LENGTH - 2);
    for (uint32_t i = 0; i < LENGTH; i++) {
        bytes[i] = 1;
    }
    lp_dominators_sum(&tree, bytes);
    CHECK(bytes[0] == LENGTH && bytes[LENGTH - 1] == 1);
    lp_dominators_fini(&tree);
    lp_graph_fini(&graph);
    free(bytes);
}

/* What node 0 reaches without passing `without`. */
static void reach_without(const lp_graph *graph, uint32_t without, uint8_t *reached) {
    uint32_t stack[1000], count = 0, target;
    memset(reached, 0, graph->node_count);
    if (without != 0) {
        reached[stack[count++] = 0] = 1;
    }
    while (count > 0) {
        for (lp_edges it = lp_edges_of(graph, stack[--count]); lp_edges_next(&it, &target);) {
            if (!reached[target] && target != without) {
                reached[stack[count++] = target] = 1;
            }
        }
    }
}

/* A chain with edges from and to anywhere on it: deep dominator trees. */
static void make_tangle(lp_graph *graph, uint32_t length, uint32_t extra) {
    uint8_t more[200][200] = {{0}};
    for (uint32_t i = 0; i < extra; i++) {
        more[harness_random(&random_state) % length][harness_random(&random_state) % length] = 1;
    }
    CHECK(lp_graph_reserve_nodes(graph, length) == LP_OK && lp_graph_reserve_edges(graph, length + extra) == LP_OK);
    for (uint32_t i = 0; i < length; i++) {
        lp_graph_add_node(graph, 0);
    }
    for (uint32_t i = 0; i < length; i++) {
        for (uint32_t k = 0; k < length; k++) {
            if (k == i + 1 || more[i][k]) {
                lp_graph_add_edge(graph, k);
            }
        }
        lp_graph_close_row(graph);
    }
}

/* The strict dominator that has most dominators itself is the nearest. */
static void check_nearest(const lp_graph *graph, const lp_dominators *tree) {
    static uint8_t left[200][200];
    uint32_t above[200] = {0}, nodes = graph->node_count;
    for (uint32_t d = 0; d < nodes; d++) {
        reach_without(graph, d, left[d]);
        for (uint32_t n = 0; n < nodes; n++) {
            above[n] += !left[d][n];
        }
    }
    for (uint32_t n = 0; n < nodes; n++) {
        uint32_t best = n;
        for (uint32_t d = 0; d < nodes; d++) {
            best = d != n && !left[d][n] && (best == n || above[d] > above[best]) ? d : best;
        }
        CHECK(tree->idom[n] == best);
    }
}

static void test_deep_trees(void) {
    for (uint32_t round = 0; round < 200; round++) {
        lp_graph graph = {0};
        lp_dominators tree;
        uint32_t root = 0;
        make_tangle(&graph, 2 + round % 199, harness_random(&random_state) % 40);
        CHECK(lp_dominators_find(&graph, &root, 1, &tree) == LP_OK && tree.count == graph.node_count);
        check_nearest(&graph, &tree);
        lp_dominators_fini(&tree);
        lp_graph_fini(&graph);
    }
}

/* Node 0 holds a chain of `length` nodes, and a table of the values that each of them holds: one step up at a time, the
 * values' dominators would take half of length * length steps. */
static void test_a_chain_whose_values_are_in_a_table_too(void) {
    enum { LENGTH = 2000000 };
    const uint32_t table = 2 * LENGTH + 1;
    lp_graph graph = {0};
    lp_dominators tree;
    uint32_t root = 0;
    CHECK(lp_graph_reserve_nodes(&graph, table + 1) == LP_OK &&
          lp_graph_reserve_edges(&graph, 3 * LENGTH + 2) == LP_OK);
    for (uint32_t i = 0; i <= table; i++) {
        lp_graph_add_node(&graph, 0);
    }
    for (uint32_t i = 0; i <= table; i++) {
        if (i < LENGTH) {
            lp_graph_add_edge(&graph, i + 1);   /* the next one */
        }
        if (i == 0) {
            lp_graph_add_edge(&graph, table);
        } else if (i <= LENGTH) {
            lp_graph_add_edge(&graph, LENGTH + i);
        }
        for (uint32_t k = 1; i == table && k <= LENGTH; k++) {
            lp_graph_add_edge(&graph, LENGTH + k);
        }
        lp_graph_close_row(&graph);
    }
    CHECK(lp_dominators_find(&graph, &root, 1, &tree) == LP_OK && tree.count == table + 1);
    int wrong = tree.idom[table] != 0;
    for (uint32_t i = 1; i <= LENGTH; i++) {
        wrong += tree.idom[i] != i - 1 || tree.idom[LENGTH + i] != 0;
    }
    CHECK(wrong == 0);
    lp_dominators_fini(&tree);
    lp_graph_fini(&graph);
}

/* Every request in turn is the first that fails: no crash, no block left. */
static void test_no_memory(void) {
    lp_graph graph = {0};
    lp_graph copy;
    lp_reverse reverse;
    lp_dominators tree;
    uint32_t root = 0;
    make_chain(&graph, 100, 1);
    CHECK(lp_graph_add_late(&graph, (lp_late_edge){3, 50, "late", 0, LP_LATE_ONE}) == LP_OK);
    lp_graph_sort_late(&graph);
    uint64_t before = lp_raw_block_bytes();
    for (long after = 0; after < 20; after++) {
        lp_raw_fail_after = after;
        if (lp_reverse_make(&graph, &reverse) == LP_OK) {
            lp_reverse_fini(&reverse);
        }
        lp_raw_fail_after = after;
        if (lp_graph_join_late(&graph, &copy) == LP_OK) {
            lp_raw_fail_after = after;
            lp_status status = lp_dominators_find(&copy, &root, 1, &tree);
            CHECK(status == LP_OK || status == LP_NO_MEMORY);
            CHECK(status == LP_OK || (tree.idom == NULL && tree.order == NULL));
            lp_dominators_fini(&tree);
            lp_graph_fini(&copy);
        }
        lp_raw_fail_after = -1;
        CHECK(lp_raw_block_bytes() == before);
    }
    lp_graph_fini(&graph);
}

int main(void) {
    test_random_graphs();
    test_a_long_chain_needs_no_stack();
    test_deep_trees();
    test_a_chain_whose_values_are_in_a_table_too();
    test_no_memory();
    return 0;
}
