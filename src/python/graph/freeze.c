/* Copies a walk into a frozen graph: numbers and names only. No object outlives the call on its account. */
#include "python/graph/freezer.h"

#include <string.h>

#include "analysis/numbers.h"
#include "analysis/garbage.h"      // lp_garbage_subtract
#include "base/rawmem.h"           // lp_raw_malloc
#include "python/owners/buffers.h"        // lp_buffers_each_user
#include "python/graph/edge_names.h"     // lp_names_is_carrier
#include "python/compat/heap.h"         // lp_heap_prefetch_blocks

/* What the frozen graph takes for each node and what making it takes beside. */
#define FROZEN_NODE_BYTES (LP_TRACE_NODE_BYTES + 25 + 16)

/* freezer.seen */
enum { MAY_HOLD = 1, IS_DICT = 2 };

/* ---- nodes ---- */

static void add_edge(lp_freezer *z, uint32_t source, uint32_t target) {
    lp_late_edge *late = lp_walk_reserve(z->late, z->late_count, &z->late_capacity, sizeof(*late));
    if (late == NULL) {
        lp_freezer_fail(z);
        return;
    }
    z->late = late;
    z->late[z->late_count++] = (lp_late_edge){source, target, "", UINT32_MAX, LP_LATE_NONE};
}

static void add_buffer(lp_freezer *z, uint32_t medium, uint64_t bytes) {
    lp_extra_buffer *buffers = lp_walk_reserve(z->buffer, z->buffer_count, &z->buffer_capacity, sizeof(*buffers));
    if (buffers == NULL) {
        lp_freezer_fail(z);
        return;
    }
    z->buffer = buffers;
    z->buffer[z->buffer_count++] = (lp_extra_buffer){medium, bytes};
}

static void add_storage_user(void *z_, uint32_t node, uint32_t number, uint32_t medium, uint64_t bytes) {
    lp_freezer *z = z_;
    if (z->first_storage + number == z->buffer_count) {
        add_buffer(z, medium, bytes);
    }
    add_edge(z, node, z->walk->graph.node_count + z->first_storage + number);
}

/* What else is read while the object is in the cache: nothing comes back to it later. */
static void note_object(lp_freezer *z, uint32_t node, PyObject *op, lp_known_type *known, lp_stamp stamp,
                        uint64_t bytes) {
    if (z->refs == NULL) {
        return;
    }
    z->refs[node] = (int64_t)Py_REFCNT(op);
    z->seen[node] = (uint8_t)((known->holds ? MAY_HOLD : 0) | (known->is_dict ? IS_DICT : 0));
    if ((z->walk->graph.flag[node] & LP_NODE_MADE) || known->is_own || LP_STAMP_SITE(stamp) == LP_SITE_SELF) {
        return;
    }
    if (LP_LIKELY(stamp == 0)) {
        known->old_count++;
        known->old_bytes += bytes;
    } else {
        lp_census_add(z->tables, known->census, stamp, 1, bytes);
    }
}

static void put_array(lp_freezer *z, uint32_t node) {
    uint64_t bytes = lp_buffers_of_array(z->walk, node);
    if (bytes != 0) {
        add_buffer(z, LP_MEDIUM_NUMPY, bytes);
        add_edge(z, node, z->walk->graph.node_count + z->buffer_count - 1);
    }
}

static void put_object(lp_freezer *z, uint32_t node) {
    PyObject *op = lp_walk_object(z->walk, node);
    int is_made = (z->walk->graph.flag[node] & LP_NODE_MADE) != 0;
    lp_known_type *known = lp_freezer_type(z, Py_TYPE(op));
    if (known == NULL) {
        return;
    }
    lp_stamp stamp = is_made ? 0 : lp_birth_stamp(op);
    lp_site_id site = known->is_own ? LP_SITE_SELF : LP_STAMP_SITE(stamp);
    uint64_t bytes = is_made ? 0 : lp_size_by_rule(op, &known->rule);
    note_object(z, node, op, known, stamp, bytes);
    if (LP_LIKELY(site == LP_SITE_UNKNOWN)) {
        if (known->group == LP_NODE_NONE) {
            known->group = lp_freezer_group(z, known->number, LP_MEDIUM_PYTHON, site);
        }
        lp_freezer_put(z, node, known->group, bytes);
    } else {
        lp_freezer_put(z, node, lp_freezer_group(z, known->number, LP_MEDIUM_PYTHON, lp_site_base(site)), bytes);
    }
    if (LP_UNLIKELY(known->is_array) && !is_made) {
        put_array(z, node);
    }
}

static inline void fetch(const lp_walk *walk, uint32_t node) {
    if (node + LP_FREEZE_OBJECT_AHEAD < walk->graph.node_count) {
        __builtin_prefetch(lp_walk_object(walk, node + LP_FREEZE_OBJECT_AHEAD));
    }
    PyObject *op = node + LP_FREEZE_BLOCKS_AHEAD < walk->graph.node_count
                       ? lp_walk_object(walk, node + LP_FREEZE_BLOCKS_AHEAD)
                       : NULL;
    if (op != NULL && Py_TYPE(op) != &PyList_Type) {
        lp_heap_prefetch_blocks(op);
    }
}

static void put_nodes(lp_freezer *z) {
    const lp_walk *walk = z->walk;
    uint32_t no_type = lp_freezer_name(z, ""),
             frame = lp_freezer_group(z, lp_freezer_name(z, "frame"), LP_MEDIUM_PYTHON, LP_SITE_UNKNOWN);
    for (uint32_t node = 0; node < walk->block_count; node++) {
        const lp_block *block = &walk->block[node];
        lp_freezer_put(z, node, lp_freezer_group(z, no_type, block->medium, lp_site_base(block->site)), block->bytes);
    }
    for (uint32_t node = walk->block_count; node < walk->first_object; node++) {
        lp_freezer_put(z, node, frame, 0);
    }
    for (uint32_t node = walk->first_object; node < walk->graph.node_count && z->status == LP_OK; node++) {
        fetch(walk, node);
        put_object(z, node);
    }
}

static int can_take_rows(const lp_freezer *z);

static lp_status copy_addresses(lp_freezer *z, size_t all) {
    z->out->address = lp_raw_calloc(all + 1, sizeof(*z->out->address));
    if (z->out->address != NULL) {
        memcpy(z->out->address, z->walk->address, z->walk->graph.node_count * sizeof(*z->out->address));
    }
    return z->out->address == NULL ? LP_NO_MEMORY : LP_OK;
}

static lp_status make_nodes(lp_freezer *z) {
    lp_frozen *out = z->out;
    const lp_walk *walk = z->walk;
    size_t nodes = walk->graph.node_count;
    out->group = lp_raw_malloc((nodes + 1) * sizeof(*out->group));
    out->bytes = lp_raw_malloc((nodes + 1) * sizeof(*out->bytes));
    if (z->cycles != NULL) {
        z->refs = lp_raw_calloc(nodes + 1, sizeof(*z->refs));
        z->seen = lp_raw_calloc(nodes + 1, 1);
    }
    if (out->group == NULL || out->bytes == NULL || (z->cycles != NULL && (z->refs == NULL || z->seen == NULL))) {
        return LP_NO_MEMORY;
    }
    put_nodes(z);
    z->first_storage = z->buffer_count;
    if (z->status == LP_OK && walk->request->torch && !z->trace->is_torch_changing) {
        lp_buffers_each_user(z->walk, &z->trace->torch.lent, add_storage_user, z);
    }
    size_t all = nodes + z->buffer_count;
    uint32_t *group = lp_raw_realloc(out->group, (all + 1) * sizeof(*group));
    out->group = group != NULL ? group : out->group;
    uint64_t *bytes = lp_raw_realloc(out->bytes, (all + 1) * sizeof(*bytes));
    out->bytes = bytes != NULL ? bytes : out->bytes;
    if (group == NULL || bytes == NULL || (!can_take_rows(z) && copy_addresses(z, all) != LP_OK)) {
        return LP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < z->buffer_count && z->status == LP_OK; i++) {
        lp_freezer_put(z, (uint32_t)nodes + i,
                       lp_freezer_group(z, lp_freezer_name(z, ""), z->buffer[i].medium, LP_SITE_UNKNOWN),
                       z->buffer[i].bytes);
    }
    return z->status;
}

/* ---- rows ---- */

static lp_status join_rows(lp_freezer *z) {
    const lp_walk *walk = z->walk;
    uint32_t nodes = walk->graph.node_count + z->buffer_count;
    lp_graph extended = walk->graph;
    extended.flag = lp_raw_calloc((size_t)nodes + 1, 1);
    if (extended.flag == NULL) {
        return LP_NO_MEMORY;
    }
    extended.node_count = nodes;
    extended.late = z->late;
    extended.late_count = z->late_count;
    for (uint32_t i = 0; i < z->late_count; i++) {
        extended.flag[z->late[i].source] = LP_NODE_LATE;
    }
    lp_graph_sort_late(&extended);
    lp_status status = lp_graph_join_late(&extended, &z->out->graph);
    lp_raw_free(extended.flag);
    return status;
}

/* A bare walk without buffers is not needed any more: nothing is copied. */
static int can_take_rows(const lp_freezer *z) {
    return z->cycles == NULL && z->late_count == 0 && z->buffer_count == 0;
}

static void take_rows(lp_freezer *z) {
    lp_walk_hand_over(z->walk, &z->out->graph, &z->out->address);
    memset(z->out->graph.flag, 0, z->out->graph.node_count);
}

static lp_status copy_late(lp_freezer *z) {
    for (uint32_t i = 0; i < z->walk->graph.late_count && z->status == LP_OK; i++) {
        lp_late_edge edge = z->walk->graph.late[i];
        add_edge(z, edge.source, edge.target);
        if (z->status == LP_OK) {
            z->late[z->late_count - 1].order = edge.order;
        }
    }
    return z->status;
}

/* ---- roots ---- */

/* Those that nothing in the graph explains. */
static lp_status count_references(lp_freezer *z) {
    lp_torch_subtract_own(&z->trace->torch, z->refs);
    return lp_garbage_subtract(&z->walk->graph, NULL, z->refs);
}

/* Values that a running frame has on its stack, as far as they have a reference to explain. */
static void add_stack_values(lp_freezer *z) {
    const lp_walk *walk = z->walk;
    for (uint32_t i = 0; i < walk->frame_count; i++) {
        const lp_running_frame *frame = &walk->frame[i];
        for (uint32_t s = frame->local_count; s < frame->local_count + frame->stack_count; s++) {
            PyObject *op = lp_frames_slot_object(frame->slot[s]);
            uint32_t node = op == NULL || ((uintptr_t)op & 7) != 0 ? LP_NODE_NONE : lp_walk_find(walk, op);
            if (node != LP_NODE_NONE && z->refs[node] > 0) {
                z->refs[node]--;
                add_edge(z, walk->block_count + i, node);
            }
        }
    }
}

static void add_root(lp_freezer *z, uint32_t node) { z->out->root[z->out->root_count++] = node; }

static void add_named_roots(lp_freezer *z) {
    const lp_walk *walk = z->walk;
    for (int main_module = 1; main_module >= 0; main_module--) {
        for (uint32_t i = 0; i < walk->module_count; i++) {
            if ((strcmp(lp_kinds_ascii(walk->module[i].name), "__main__") == 0) == main_module) {
                add_root(z, walk->module[i].node);
            }
        }
    }
    for (uint32_t i = 0; i < walk->frame_count; i++) {
        add_root(z, walk->block_count + i);
    }
    z->out->named_count = z->out->root_count;
}

static int is_unowned_block(const lp_freezer *z, uint32_t node) {
    const lp_components *parts = &z->cycles->parts;
    return node < z->walk->block_count && z->trace->paths.parent[node] == LP_NODE_NONE &&
           (parts->component == NULL || !parts->entered[parts->component[node]]);
}

static lp_status make_roots(lp_freezer *z) {
    const lp_walk *walk = z->walk;
    const lp_components *parts = &z->cycles->parts;
    const uint32_t *parent = z->trace->paths.parent;
    size_t most = (size_t)walk->graph.node_count + walk->module_count + walk->frame_count + parts->count + 1;
    z->out->root = lp_raw_malloc(most * sizeof(*z->out->root));
    if (z->out->root == NULL) {
        return LP_NO_MEMORY;
    }
    add_named_roots(z);
    for (uint32_t node = 0; node < walk->graph.node_count; node++) {
        if (z->refs[node] > 0 ? parent[node] != LP_NODE_NONE : parent[node] == node || is_unowned_block(z, node)) {
            add_root(z, node);
        }
    }
    z->out->alive_count = z->out->root_count;
    for (uint32_t id = parts->count; id-- > 0;) {
        if (!parts->entered[id] && lp_walk_is_object(walk, parts->first[id])) {
            add_root(z, parts->first[id]);
        }
    }
    uint32_t *root = lp_raw_realloc(z->out->root, ((size_t)z->out->root_count + 1) * sizeof(*root));
    z->out->root = root != NULL ? root : z->out->root;
    return LP_OK;
}

/* ---- holders ---- */

/* The dict of an instance, class or module only carries what its owner holds. */
static void mark_holders(lp_freezer *z) {
    const lp_walk *walk = z->walk;
    const uint32_t *parent = z->trace->paths.parent;
    for (uint32_t node = walk->first_object; node < walk->graph.row_count; node++) {
        if ((z->seen[node] & MAY_HOLD) && walk->graph.row[node + 1] != walk->graph.row[node] &&
            !((z->seen[node] & IS_DICT) && parent[node] != node && lp_names_is_carrier(walk, parent[node], node))) {
            z->out->graph.flag[node] |= LP_FROZEN_HOLDER;
        }
    }
}

/* ---- all of it ---- */

static lp_status freeze(lp_freezer *z) {
    lp_status status = lp_walk_fits(z->walk, FROZEN_NODE_BYTES, 4) ? copy_late(z) : LP_LIMIT;
    if (z->cycles == NULL) {
        lp_walk_drop_index(z->walk);   /* nothing is looked up any more: its memory serves the nodes */
    }
    if (status == LP_OK) {
        status = make_nodes(z);
    }
    if (status == LP_OK && z->cycles != NULL) {
        status = count_references(z);
    }
    if (status == LP_OK && z->cycles != NULL) {
        add_stack_values(z);
        status = z->status == LP_OK ? make_roots(z) : z->status;
    }
    if (status == LP_OK && can_take_rows(z)) {
        take_rows(z);
    } else if (status == LP_OK) {
        status = join_rows(z);
    }
    if (status == LP_OK && z->cycles != NULL) {
        mark_holders(z);
    }
    return status;
}

static void free_all(lp_freezer *z) {
    lp_raw_free(z->type);
    lp_map_fini(&z->type_at);
    lp_map_fini(&z->name_at);
    lp_map_fini(&z->group_at);
    lp_raw_free(z->late);
    lp_raw_free(z->buffer);
    lp_raw_free(z->refs);
    lp_raw_free(z->seen);
}

lp_status lp_freeze(lp_trace *trace, const lp_cycles *cycles, lp_frozen *out, lp_census **out_census) {
    LP_ASSERT_GIL();
    static lp_freezer z;   /* the GIL protects it; too large for a stack */
    lp_census_tables tables = {0};
    memset(&z, 0, sizeof(z));
    z.trace = trace;
    z.walk = trace->walk;
    z.cycles = cycles;
    z.out = out;
    z.tables = cycles == NULL ? NULL : &tables;
    *out = (lp_frozen){0};
    lp_status status = cycles == NULL ? LP_OK : lp_census_tables_clear(&tables);
    status = status == LP_OK ? freeze(&z) : status;
    status = status == LP_OK ? z.status : status;
    if (status == LP_OK && cycles != NULL) {
        status = lp_freezer_census(&z, out_census);
    }
    free_all(&z);
    lp_census_tables_fini(&tables);
    if (status != LP_OK) {
        lp_frozen_fini(out);
    }
    return status;
}
