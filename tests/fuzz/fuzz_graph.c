/* libFuzzer: a graph from bytes, every analysis against a slow one; and arbitrary rows through lp_graph_is_valid(). */
#include "fuzz.h"

#include "graph_oracle.h"

/* What a saved snapshot may hold: only rows that pass the check may be walked. */
static void walk_unchecked_rows(const uint8_t *data, size_t size) {
    uint32_t words[64];
    size_t count = size / 4 < 64 ? size / 4 : 64;
    if (count < 3) {
        return;
    }
    memcpy(words, data, count * sizeof(*words));
    uint32_t nodes = words[0] % 16, edges = words[1] % 32;
    if (3 + nodes + 1 + edges > count) {
        return;
    }
    uint8_t flag[16] = {0};
    lp_graph graph = {.node_count = nodes,
                      .row_count = nodes,
                      .edge_count = edges,
                      .row = words + 3,
                      .edge = words + 3 + nodes + 1,
                      .flag = flag};
    if (!lp_graph_is_valid(&graph)) {
        return;
    }
    uint32_t root = nodes > 0 ? words[2] % nodes : 0;
    lp_dominators tree;
    lp_paths paths = {0};
    CHECK(lp_dominators_find(&graph, &root, nodes > 0, &tree) == LP_OK);
    CHECK(lp_paths_reset(&paths, nodes) == LP_OK);
    if (nodes > 0) {
        lp_paths_add_root(&paths, root);
    }
    lp_paths_run(&paths, &graph);
    CHECK(paths.tail == tree.count);
    lp_paths_fini(&paths);
    lp_dominators_fini(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    oracle_check_all(data, size < 400 ? size : 400);
    walk_unchecked_rows(data, size);
    return 0;
}
