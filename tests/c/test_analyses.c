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
    test_no_memory();
    return 0;
}
