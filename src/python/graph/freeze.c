/* Copies a walk into a frozen graph: numbers and names only. No object outlives the call on its account. */
#include "python/graph/freeze.h"

#include <string.h>

#include "analysis/garbage.h"      // lp_garbage_subtract
#include "base/rawmem.h"           // lp_raw_malloc
#include "python/owners/buffers.h"        // lp_buffers_each_tensor
#include "python/graph/relate.h"         // lp_relate_is_lru_cache
#include "python/compat/heap.h"         // lp_heap_prefetch_blocks
#include "python/heap/census_rows.h"    // lp_census_copy_rows
#include "python/heap/census_tables.h"
#include "python/heap/sizes.h"          // lp_size_rule
#include "python/values/type_names.h"     // lp_type_name_copy

#define CACHE 1024
/* What the frozen graph takes for each node and what making it takes beside. */
#define FROZEN_NODE_BYTES (LP_TRACE_NODE_BYTES + 25 + 16)

typedef struct known_type {
    PyTypeObject *type;
    lp_size_rule rule;
    uint32_t number;           /* index into type_name */
    uint32_t group;            /* of its objects without a site; LP_NODE_NONE: not made yet */
    uint32_t census;           /* its number in the census */
    uint64_t old_count, old_bytes;   /* of its objects without a stamp */
    uint8_t holds, is_own, is_array, is_dict;
} known_type;

enum { MAY_HOLD = 1, IS_DICT = 2 };

typedef struct extra_buffer {
    uint32_t medium;
    uint64_t bytes;
} extra_buffer;

typedef struct freezer {
    lp_trace *trace;
    lp_walk *walk;
    const lp_cycles *cycles;
    lp_frozen *out;
    known_type *type;
    uint32_t type_count, type_capacity, name_capacity, group_capacity;
    uint32_t cache[CACHE];     /* by address: index into type */
    lp_map type_at, name_at, group_at;
    lp_late_edge *late;        /* those of the walk, then to buffers and to values in use */
    uint32_t late_count, late_capacity;
    extra_buffer *buffer;
    uint32_t buffer_count, buffer_capacity;
    uint32_t first_storage;    /* buffers before are of arrays */
    int64_t *refs;             /* node => references that nothing in the graph explains; NULL for a bare walk */
    uint8_t *seen;             /* node => MAY_HOLD, IS_DICT; NULL for a bare walk */
    lp_census_tables *tables;  /* objects by type, site and step; NULL for a bare walk */
    lp_status status;
} freezer;

static int fail(freezer *z) {
    z->status = z->status == LP_OK ? LP_NO_MEMORY : z->status;
    return -1;
}

/* ---- types and groups ---- */

/* The number of a name; takes the text over. */
static uint32_t name_number(freezer *z, char *text) {
    uint32_t *number = text == NULL ? NULL : lp_map_put(&z->name_at, lp_map_hash_text(text), NULL);
    char **names = number == NULL
                       ? NULL
                       : lp_walk_reserve(z->out->type_name, z->out->type_count, &z->name_capacity, sizeof(*names));
    if (names != NULL) {
        z->out->type_name = names;
    }
    if (names == NULL || *number != 0) {
        lp_raw_free(text);
        return names == NULL ? (uint32_t)fail(z) : *number - 1;
    }
    names[z->out->type_count] = text;
    *number = ++z->out->type_count;
    return *number - 1;
}

static uint32_t fixed_name(freezer *z, const char *name) {
    char *text = lp_raw_malloc(strlen(name) + 1);
    if (text != NULL) {
        memcpy(text, name, strlen(name) + 1);
    }
    return name_number(z, text);
}

static int is_holder_type(const known_type *known, PyTypeObject *type) {
    return lp_size_is_container(&known->rule) || known->is_array || lp_relate_is_lru_cache(type);
}

static uint32_t learn_type(freezer *z, PyTypeObject *type) {
    known_type *types = lp_walk_reserve(z->type, z->type_count, &z->type_capacity, sizeof(*types));
    if (types == NULL) {
        return (uint32_t)fail(z);
    }
    z->type = types;
    known_type *known = &types[z->type_count];
    int kind = lp_kinds_get(&z->walk->kinds, type).kind;
    *known = (known_type){.type = type,
                          .rule = lp_size_rule_of(type),
                          .group = LP_NODE_NONE,
                          .is_own = kind == LP_KIND_OWN,
                          .is_array = kind == LP_KIND_ARRAY};
    known->holds = (uint8_t)is_holder_type(known, type);
    known->is_dict = PyType_FastSubclass(type, Py_TPFLAGS_DICT_SUBCLASS) != 0;
    known->census = z->tables == NULL ? 0 : lp_census_find_type(z->tables, type);
    known->number = name_number(z, lp_type_name_copy(type));
    return z->status != LP_OK ? LP_NODE_NONE : z->type_count++;
}

static known_type *find_type(freezer *z, PyTypeObject *type) {
    uint32_t *cached = &z->cache[((uintptr_t)type >> 4) & (CACHE - 1)];
    if (LP_LIKELY(*cached < z->type_count && z->type[*cached].type == type)) {
        return &z->type[*cached];
    }
    uint32_t *slot = lp_map_put(&z->type_at, (uintptr_t)type, NULL);
    if (slot == NULL) {
        fail(z);
        return NULL;
    }
    if (*slot == 0) {
        uint32_t number = learn_type(z, type);
        if (number == LP_NODE_NONE) {
            return NULL;
        }
        *slot = number + 1;
    }
    *cached = *slot - 1;
    return &z->type[*cached];
}

static uint32_t find_group(freezer *z, uint32_t type, uint32_t medium, lp_site_id site) {
    uint64_t key = (((uint64_t)type << 32) | (medium << LP_SITE_BITS) | site) + 1;
    uint32_t *slot = lp_map_put(&z->group_at, key, NULL);
    lp_frozen_group *groups =
        slot == NULL ? NULL
                     : lp_walk_reserve(z->out->group_of, z->out->group_count, &z->group_capacity, sizeof(*groups));
    if (groups == NULL) {
        return (uint32_t)fail(z);
    }
    z->out->group_of = groups;
    if (*slot == 0) {
        groups[z->out->group_count] = (lp_frozen_group){.type = type, .medium = medium, .site = site};
        *slot = ++z->out->group_count;
    }
    return *slot - 1;
}

static void put(freezer *z, uint32_t node, uint32_t group, uint64_t bytes) {
    if (group == LP_NODE_NONE) {
        fail(z);
        return;
    }
    z->out->group[node] = group;
    z->out->bytes[node] = bytes;
    z->out->group_of[group].count++;
    z->out->group_of[group].bytes += bytes;
}

/* ---- nodes ---- */

static void add_edge(freezer *z, uint32_t source, uint32_t target) {
    lp_late_edge *late = lp_walk_reserve(z->late, z->late_count, &z->late_capacity, sizeof(*late));
    if (late == NULL) {
        fail(z);
        return;
    }
    z->late = late;
    z->late[z->late_count++] = (lp_late_edge){source, target, "", UINT32_MAX, LP_LATE_NONE};
}

static void add_buffer(freezer *z, uint32_t medium, uint64_t bytes) {
    extra_buffer *buffers = lp_walk_reserve(z->buffer, z->buffer_count, &z->buffer_capacity, sizeof(*buffers));
    if (buffers == NULL) {
        fail(z);
        return;
    }
    z->buffer = buffers;
    z->buffer[z->buffer_count++] = (extra_buffer){medium, bytes};
}

static void add_tensor(void *z_, uint32_t tensor, uint32_t number, uint32_t medium, uint64_t bytes) {
    freezer *z = z_;
    if (z->first_storage + number == z->buffer_count) {
        add_buffer(z, medium, bytes);
    }
    add_edge(z, tensor, z->walk->graph.node_count + z->first_storage + number);
}

/* What else is read while the object is in the cache: nothing comes back to it later. */
static void note_object(freezer *z, uint32_t node, PyObject *op, known_type *known, lp_stamp stamp, uint64_t bytes) {
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

static void put_array(freezer *z, uint32_t node) {
    uint64_t bytes = lp_buffers_of_array(z->walk, node);
    if (bytes != 0) {
        add_buffer(z, LP_MEDIUM_NUMPY, bytes);
        add_edge(z, node, z->walk->graph.node_count + z->buffer_count - 1);
    }
}

static void put_object(freezer *z, uint32_t node) {
    PyObject *op = lp_walk_object(z->walk, node);
    int is_made = (z->walk->graph.flag[node] & LP_NODE_MADE) != 0;
    known_type *known = find_type(z, Py_TYPE(op));
    if (known == NULL) {
        return;
    }
    lp_stamp stamp = is_made ? 0 : lp_birth_stamp(op);
    lp_site_id site = known->is_own ? LP_SITE_SELF : LP_STAMP_SITE(stamp);
    uint64_t bytes = is_made ? 0 : lp_size_by_rule(op, &known->rule);
    note_object(z, node, op, known, stamp, bytes);
    if (LP_LIKELY(site == LP_SITE_UNKNOWN)) {
        if (known->group == LP_NODE_NONE) {
            known->group = find_group(z, known->number, LP_MEDIUM_PYTHON, site);
        }
        put(z, node, known->group, bytes);
    } else {
        put(z, node, find_group(z, known->number, LP_MEDIUM_PYTHON, lp_site_base(site)), bytes);
    }
    if (LP_UNLIKELY(known->is_array) && !is_made) {
        put_array(z, node);
    }
}

/* How many nodes ahead an object is fetched, and what its size is read from. */
enum { OBJECT_AHEAD = 24, BLOCKS_AHEAD = 8 };

static inline void fetch(const lp_walk *walk, uint32_t node) {
    if (node + OBJECT_AHEAD < walk->graph.node_count) {
        __builtin_prefetch(lp_walk_object(walk, node + OBJECT_AHEAD));
    }
    PyObject *op = node + BLOCKS_AHEAD < walk->graph.node_count ? lp_walk_object(walk, node + BLOCKS_AHEAD) : NULL;
    if (op != NULL && Py_TYPE(op) != &PyList_Type) {
        lp_heap_prefetch_blocks(op);
    }
}

static void put_nodes(freezer *z) {
    const lp_walk *walk = z->walk;
    uint32_t no_type = fixed_name(z, ""),
             frame = find_group(z, fixed_name(z, "frame"), LP_MEDIUM_PYTHON, LP_SITE_UNKNOWN);
    for (uint32_t node = 0; node < walk->block_count; node++) {
        const lp_block *block = &walk->block[node];
        put(z, node, find_group(z, no_type, block->medium, lp_site_base(block->site)), block->bytes);
    }
    for (uint32_t node = walk->block_count; node < walk->first_object; node++) {
        put(z, node, frame, 0);
    }
    for (uint32_t node = walk->first_object; node < walk->graph.node_count && z->status == LP_OK; node++) {
        fetch(walk, node);
        put_object(z, node);
    }
}

static int can_take_rows(const freezer *z);

static lp_status copy_addresses(freezer *z, size_t all) {
    z->out->address = lp_raw_calloc(all + 1, sizeof(*z->out->address));
    if (z->out->address != NULL) {
        memcpy(z->out->address, z->walk->address, z->walk->graph.node_count * sizeof(*z->out->address));
    }
    return z->out->address == NULL ? LP_NO_MEMORY : LP_OK;
}

static lp_status make_nodes(freezer *z) {
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
    if (z->status == LP_OK && walk->request->torch && !z->trace->in_backward) {
        lp_buffers_each_tensor(z->walk, add_tensor, z);
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
        put(z, (uint32_t)nodes + i, find_group(z, fixed_name(z, ""), z->buffer[i].medium, LP_SITE_UNKNOWN),
            z->buffer[i].bytes);
    }
    return z->status;
}

/* ---- rows ---- */

static lp_status join_rows(freezer *z) {
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
static int can_take_rows(const freezer *z) { return z->cycles == NULL && z->late_count == 0 && z->buffer_count == 0; }

static void take_rows(freezer *z) {
    lp_walk_hand_over(z->walk, &z->out->graph, &z->out->address);
    memset(z->out->graph.flag, 0, z->out->graph.node_count);
}

static lp_status copy_late(freezer *z) {
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
static lp_status count_references(freezer *z) {
    lp_torch_subtract_own(&z->trace->torch, z->refs);
    return lp_garbage_subtract(&z->walk->graph, NULL, z->refs);
}

/* Values that a running frame has on its stack, as far as they have a reference to explain. */
static void add_stack_values(freezer *z) {
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

static void add_root(freezer *z, uint32_t node) { z->out->root[z->out->root_count++] = node; }

static void add_named_roots(freezer *z) {
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

static int is_unowned_block(const freezer *z, uint32_t node) {
    const lp_components *parts = &z->cycles->parts;
    return node < z->walk->block_count && z->trace->paths.parent[node] == LP_NODE_NONE &&
           (parts->component == NULL || !parts->entered[parts->component[node]]);
}

static lp_status make_roots(freezer *z) {
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
static void mark_holders(freezer *z) {
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

static lp_status freeze(freezer *z) {
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

/* What is older than the stamps is counted by type alone. */
static lp_status make_census(freezer *z, lp_census **out_census) {
    lp_census *census = lp_raw_calloc(1, sizeof(*census));
    if (census == NULL) {
        return LP_NO_MEMORY;
    }
    census->full = 1;
    for (uint32_t i = 0; i < z->type_count; i++) {
        const known_type *known = &z->type[i];
        if (known->old_count > 0) {
            lp_census_add(z->tables, known->census, 0, known->old_count, known->old_bytes);
        }
    }
    lp_status status = lp_census_copy_rows(census, z->tables);
    if (status != LP_OK) {
        lp_census_free(census);
        return status;
    }
    for (size_t i = 0; i < census->row_count; i++) {
        census->object_count += census->rows[i].count;
        census->total_bytes += census->rows[i].bytes;
    }
    *out_census = census;
    return LP_OK;
}

static void free_all(freezer *z) {
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
    static freezer z;   /* the GIL protects it; too large for a stack */
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
        status = make_census(&z, out_census);
    }
    free_all(&z);
    lp_census_tables_fini(&tables);
    if (status != LP_OK) {
        lp_frozen_fini(out);
    }
    return status;
}
