/* Owns the pass, kept mapped between runs. Each object is counted once, none is kept alive, no Python code runs;
 * the GIL. */
#include "python/heap/census.h"

#include <string.h>

#include "base/clock.h"            // lp_clock_ns
#include "base/rawmem.h"           // lp_raw_malloc
#include "ledger/epoch.h"          // lp_epoch_steps
#include "python/heap/census_rows.h"     // lp_census_note_container
#include "python/heap/census_seen.h"    // what was counted already
#include "python/heap/census_tables.h"  // types and cells
#include "python/compat/freelists.h"    // lp_freelists_count
#include "python/compat/heap.h"    // the heap
#include "python/compat/heap_locals.h"  // running frames
#include "python/heap/kinds.h"          // lp_kind
#include "python/layouts/numpy.h"   // lp_numpy_traverse
#include "python/heap/numbers.h"        // LP_KEPT_NODES
#include "python/heap/untracked.h"      // lp_untracked_each

/* Memory loads of one object wait for each other (object, type, stamp, table); in batches those
 * of many objects run side by side. */
#define BATCH_COUNT 128
#define EDGE_COUNT 1024
#define PREFETCH_AHEAD 16

/* pymalloc serves blocks up to this size, malloc larger ones. */
#define SMALL_BLOCK_BYTES 512

/* An object being counted and the group it belongs to. */
typedef struct mark {
    PyObject *op;
    uint64_t key;                      /* type index << 32 | stamp; 0: not counted */
} mark;

/* The running pass; GIL. */
typedef struct pass {
    lp_census_tables tables;
    lp_census *census;
    PyTypeObject *own_type;
    PyObject *batch[BATCH_COUNT];      /* tracked objects not yet counted */
    size_t batch_count;
    PyObject *edges[EDGE_COUNT];       /* referents not yet looked at */
    PyObject *fresh[EDGE_COUNT];       /* of those, the ones seen for the first time */
    size_t edge_count;
    mark marks[EDGE_COUNT];            /* objects being counted */
    PyObject **pending;                /* untracked containers not yet traversed */
    size_t pending_count, pending_capacity;
    uint64_t object_count, total_bytes, large_bytes, old_count, old_bytes, blocks;
    int full;
    void (*then)(void *arg);           /* called before what was met is forgotten; or NULL */
    void *then_arg;
    int group_old;                     /* objects without a stamp get rows too, under site 0 */
    uint64_t container_floor;          /* smaller containers are not among the biggest */
} pass;

static pass state;   /* kept mapped between runs */

/* ---- counting one object ---- */

static void note_container(pass *p, PyObject *op, uint32_t type, lp_stamp stamp, uint64_t bytes) {
    lp_census_container row = {
        .address = (uint64_t)(uintptr_t)op,
        .length = lp_size_length(op, &p->tables.types[type].rule),
        .bytes = bytes,
        .type = type,
        .site = LP_STAMP_SITE(stamp),
        .first_step = lp_epoch_steps(LP_STAMP_EPOCH(stamp)).first_step,
    };
    p->container_floor = lp_census_note_container(p->census, &row);
}

static inline uint64_t find_key(pass *p, PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    uint32_t index = lp_census_find_type(&p->tables, type);
    lp_stamp stamp = lp_birth_stamp(op);
    if (LP_UNLIKELY(index == 0 || LP_STAMP_SITE(stamp) == LP_SITE_SELF || type == p->own_type)) {
        p->blocks += p->full && index != 0 ? lp_size_blocks(op, &p->tables.types[index].rule) : 0;
        return 0;
    }
    return ((uint64_t)index << 32) | stamp;
}

/* Bytes of a large object in blocks that pymalloc leaves to malloc: a container's own block is small. */
static uint64_t large_part(uint64_t bytes, const lp_size_rule *rule) {
    uint64_t own = lp_size_is_container(rule) ? rule->base_bytes : 0;
    return bytes - own > SMALL_BLOCK_BYTES ? bytes - own : 0;
}

/* That of its birth; of a large container from before the watch that grew in it, the line that last grew it. */
static inline lp_stamp stamp_to_count(const pass *p, PyObject *op, lp_stamp birth, uint64_t bytes) {
    int is_old_and_large = birth == 0 && p->full && !p->group_old && bytes > SMALL_BLOCK_BYTES;
    return LP_UNLIKELY(is_old_and_large) ? lp_heap_growth_of_old(op) : birth;
}

/* The second half: how large it is. */
static inline void count_object(pass *p, PyObject *op, uint64_t key) {
    uint32_t type = (uint32_t)(key >> 32);
    const lp_size_rule *rule = &p->tables.types[type].rule;
    uint64_t bytes = rule->kind == LP_SIZE_FIXED && !rule->has_values ? rule->base_bytes : lp_size_by_rule(op, rule);
    lp_stamp stamp = stamp_to_count(p, op, (lp_stamp)key, bytes);
    p->object_count++;
    p->total_bytes += bytes;
    if (p->full) {
        p->blocks += rule->kind == LP_SIZE_FIXED && !rule->has_values ? 1 : lp_size_blocks(op, rule);
    }
    if (LP_UNLIKELY(bytes > SMALL_BLOCK_BYTES) && !(stamp == 0 && lp_size_is_buffer(rule))) {
        p->large_bytes += large_part(bytes, rule);
    }
    if ((lp_stamp)key == 0) {
        p->old_count++;
        p->old_bytes += bytes;
    }
    if (stamp != 0 || p->group_old) {
        lp_census_add(&p->tables, type, stamp, 1, bytes);
    }
    if (LP_UNLIKELY(rule->kind == LP_SIZE_BYTEARRAY) && p->full && lp_heap_part(op) != NULL) {
        lp_seen_add(lp_heap_part(op));   /* counted with it */
    }
    if (LP_UNLIKELY(bytes > p->container_floor) && lp_size_is_container(rule)) {
        note_container(p, op, type, stamp, bytes);
    }
}

static void count_marks(pass *p, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (p->marks[i].key != 0) {
            count_object(p, p->marks[i].op, p->marks[i].key);
        }
    }
}

/* Find the group of op and fetch what its size and its count will be read from. */
static inline void mark_object(pass *p, size_t at, PyObject *op) {
    uint64_t key = find_key(p, op);
    p->marks[at].op = op;
    p->marks[at].key = key;
    __builtin_prefetch(lp_census_slot(&p->tables, key));
    const lp_size_rule *rule = &p->tables.types[key >> 32].rule;
    if (rule->kind == LP_SIZE_DICT || rule->has_values) {
        lp_heap_prefetch_blocks(op);
    }
}

/* The stamp lies at op or up to 32 bytes before it. */
static inline void prefetch_stamp(PyObject *op) {
    const lp_stamp *place = LP_UNLIKELY(lp_shadow_small == NULL) ? NULL : lp_shadow_place(op, 0);
    if (place != NULL) {
        __builtin_prefetch(place);
    }
}

/* ---- tracked objects ---- */

static void count_batch(pass *p) {
    for (size_t i = 0; i < p->batch_count; i++) {
        mark_object(p, i, p->batch[i]);
    }
    count_marks(p, p->batch_count);
    p->batch_count = 0;
}

static int visit_tracked(PyObject *op, void *arg) {
    pass *p = arg;
    p->batch[p->batch_count++] = op;
    prefetch_stamp(op);
    if (p->batch_count == BATCH_COUNT) {
        count_batch(p);
    }
    return 0;
}

/* ---- everything they refer to ---- */

static void push_pending(pass *p, PyObject *op) {
    if (p->pending_count == p->pending_capacity) {
        size_t capacity = p->pending_capacity == 0 ? 4096 : p->pending_capacity * 2;
        PyObject **grown = lp_raw_realloc(p->pending, capacity * sizeof(*grown));
        if (grown == NULL) {
            p->census->dropped_count++;
            return;
        }
        p->pending = grown;
        p->pending_capacity = capacity;
    }
    p->pending[p->pending_count++] = op;
}

/* Tracked objects come by themselves; untracked ones are traversed because someone refers to them. */
static inline int is_traversed_here(const pass *p, PyObject *op, uint64_t key) {
    /* What is not counted, leakprobe's own, is followed all the same. */
    const lp_census_type *type = &p->tables.types[key >> 32];
    return type->hidden != LP_KIND_LEAF ||
           ((key == 0 || type->has_gc) && lp_heap_is_gc(op) && !lp_heap_gc_is_tracked(op));
}

/* The walk follows those too (heapwalk.c). */
static inline int is_young_code(PyObject *op, uint64_t key) {
    return Py_TYPE(op) == &PyCode_Type && (lp_stamp)key != 0;
}

static inline void prefetch_seen(PyObject *op) {
    uintptr_t address = (uintptr_t)op;
    if (LP_LIKELY(!(address >> LP_SEEN_ADDRESS_BITS))) {
        uint64_t *word = lp_seen_word(address);
        __builtin_prefetch(word);
    }
}

static void count_edges(pass *p) {
    size_t fresh_count = 0;
    for (size_t i = 0; i < p->edge_count; i++) {
        PyObject *op = p->edges[i];
        if (i + PREFETCH_AHEAD < p->edge_count) {
            prefetch_seen(p->edges[i + PREFETCH_AHEAD]);
        }
        if (lp_seen_add(op)) {
            __builtin_prefetch(op);
            prefetch_stamp(op);
            p->fresh[fresh_count++] = op;
        }
    }
    p->edge_count = 0;
    for (size_t i = 0; i < fresh_count; i++) {
        PyObject *op = p->fresh[i];
        if (LP_UNLIKELY(!lp_heap_looks_alive(op))) {
            p->census->bad_pointer_count++;
            p->marks[i].key = 0;
            continue;
        }
        mark_object(p, i, op);
        if (is_traversed_here(p, op, p->marks[i].key) || is_young_code(op, p->marks[i].key)) {
            push_pending(p, op);
        }
    }
    count_marks(p, fresh_count);
}

static int visit_edge(PyObject *op, void *arg) {
    pass *p = arg;
    if (LP_UNLIKELY(!lp_heap_is_aligned(op))) {
        p->census->bad_pointer_count += op != NULL;
        return 0;
    }
    p->edges[p->edge_count++] = op;
    if (p->edge_count == EDGE_COUNT) {
        count_edges(p);
    }
    return 0;
}

/* Sequences are most of a heap's edges, and need no call for each. */
static void add_items(pass *p, PyObject *const *items, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        visit_edge(items[i], p);
    }
}

static void add_referents(pass *p, PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    if (type == &PyTuple_Type) {
        add_items(p, ((PyTupleObject *)op)->ob_item, Py_SIZE(op));
    } else if (type == &PyList_Type) {
        add_items(p, ((PyListObject *)op)->ob_item, Py_SIZE(op));
    } else if (LP_UNLIKELY(type == &PyCode_Type)) {
        lp_heap_traverse_code(op, visit_edge, p);
    } else {
        lp_heap_traverse(op, visit_edge, p);
    }
}

static void add_pending_referents(pass *p, PyObject *op) {
    switch (p->tables.types[lp_census_find_type(&p->tables, Py_TYPE(op))].hidden) {
    case LP_KIND_ARRAY:
        lp_numpy_traverse(op, visit_edge, p);
        break;
    case LP_KIND_RECORD:
        lp_numpy_traverse_record(op, visit_edge, p);
        break;
    case LP_KIND_DTYPE:
        lp_numpy_traverse_dtype(op, visit_edge, p);
        break;
    default:
        break;
    }
    add_referents(p, op);
}

static void count_pending(pass *p) {
    count_edges(p);
    while (p->pending_count > 0) {
        while (p->pending_count > 0) {
            add_pending_referents(p, p->pending[--p->pending_count]);
        }
        count_edges(p);
    }
}

/* The collector tracks an array of a Python subclass, and knows of its attributes only. */
static inline void note_hidden(pass *p, const mark *found) {
    if (LP_UNLIKELY(p->tables.types[found->key >> 32].hidden != LP_KIND_LEAF)) {
        push_pending(p, found->op);
    }
}

static void count_batch_full(pass *p) {
    for (size_t i = 0; i < p->batch_count; i++) {
        prefetch_seen(p->batch[i]);
    }
    size_t fresh_count = 0;
    for (size_t i = 0; i < p->batch_count; i++) {
        if (lp_seen_add(p->batch[i])) {
            mark_object(p, fresh_count, p->batch[i]);
            note_hidden(p, &p->marks[fresh_count++]);
        }
        lp_heap_prefetch_blocks(p->batch[i]);
    }
    count_marks(p, fresh_count);
    for (size_t i = 0; i < p->batch_count; i++) {
        add_referents(p, p->batch[i]);
    }
    p->batch_count = 0;
    count_pending(p);
}

static int visit_tracked_full(PyObject *op, void *arg) {
    pass *p = arg;
    p->batch[p->batch_count++] = op;
    prefetch_stamp(op);
    if (p->batch_count == BATCH_COUNT) {
        count_batch_full(p);
    }
    return 0;
}

/* ---- the pass ---- */

/* A local variable may be all that holds an untracked container; the stack above the locals is
 * left out, its unused slots hold what has died. */
static int visit_frame(const lp_running_frame *frame, void *arg) {
    pass *p = arg;
    for (uint32_t i = 0; i < frame->local_count; i++) {
        visit_edge(lp_frames_slot_object(frame->slot[i]), p);
    }
    return 0;
}

static lp_status start_pass(pass *p, int full, PyTypeObject *own_type, lp_census *census) {
    p->census = census;
    p->own_type = own_type;
    p->batch_count = p->edge_count = p->pending_count = 0;
    p->container_floor = 0;
    p->object_count = p->total_bytes = p->large_bytes = p->old_count = p->old_bytes = 0;
    p->blocks = 0;
    p->full = full;
    if (full) {
        lp_heap_begin_walk();
    }
    lp_status status = lp_census_tables_clear(&p->tables);
    return status == LP_OK && full ? lp_seen_init() : status;
}

static int is_seen(void *unused, uintptr_t address) {
    (void)unused;
    return lp_seen_has(address);
}

static lp_status walk_heap(pass *p, int full) {
    lp_status status = lp_heap_each_tracked(full ? visit_tracked_full : visit_tracked, p);
    if (status != LP_OK) {
        return status;
    }
    if (full) {
        lp_frames_each_running(visit_frame, p);
        count_batch_full(p);
        p->census->blocks = p->blocks + (uint64_t)lp_freelists_count();
        for (int round = 0; round < LP_UNTRACKED_ROUNDS; round++) {
            lp_untracked_each((lp_untracked_round)round, is_seen, visit_edge, p);
            count_pending(p);
        }
        status = lp_seen_is_short() ? LP_NO_MEMORY : LP_OK; /* else what was not met would be taken for dead */
        if (p->then != NULL && status == LP_OK) {
            p->then(p->then_arg);
        }
        lp_seen_clear();
    } else {
        count_batch(p);
    }
    lp_census *census = p->census;
    census->object_count = p->object_count;
    census->total_bytes = p->total_bytes;
    census->large_bytes = p->large_bytes;
    census->old_count = p->old_count;
    census->old_bytes = p->old_bytes;
    census->dropped_count += p->tables.dropped_count;
    return status;
}

/* What an unusually large heap took is not kept until the next census. */
static void give_back(pass *p) {
    if (p->pending_capacity > LP_KEPT_NODES) {
        lp_raw_free(p->pending);
        p->pending = NULL;
        p->pending_capacity = 0;
    }
    lp_census_tables_give_back(&p->tables);
}

static lp_status take(int full, int group_old, PyTypeObject *own_type, lp_census **out_census) {
    LP_ASSERT_GIL();
    uint64_t start_ns = lp_clock_ns();
    lp_census *census = lp_raw_calloc(1, sizeof(lp_census));
    if (census == NULL) {
        return LP_NO_MEMORY;
    }
    census->full = full;
    lp_status status = start_pass(&state, full, own_type, census);
    state.group_old = group_old;
    if (status == LP_OK) {
        status = walk_heap(&state, full);
    }
    if (status == LP_OK) {
        status = lp_census_copy_rows(census, &state.tables);
    }
    give_back(&state);
    if (status != LP_OK) {
        lp_census_free(census);
        return status;
    }
    census->duration_ns = lp_clock_ns() - start_ns;
    *out_census = census;
    return LP_OK;
}

lp_status lp_census_take(int full, int group_old, PyTypeObject *own_type, lp_census **out_census) {
    state.then = NULL;
    return take(full, group_old, own_type, out_census);
}

lp_status lp_census_meet(PyTypeObject *own_type, void (*then)(void *arg), void *arg, lp_census **out_census) {
    state.then = then, state.then_arg = arg;
    return take(1, 0, own_type, out_census);
}
