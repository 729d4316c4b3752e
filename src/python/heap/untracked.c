/* Objects that only stamps know. Memory is proved to be an object before it is read as one. */
#include "python/heap/untracked.h"

#include "base/rawmem.h"              // lp_raw_calloc
#include "ledger/shadow.h"            // lp_shadow_region_at
#include "python/compat/lookups.h"  // lp_lookup_base
#include "python/compat/heap.h"       // lp_heap_looks_alive
#include "python/births/hooks.h"             // lp_hooks_get_status
#include "python/layouts/numpy.h"      // lp_numpy_data
#include "python/heap/numbers.h"           // LP_LOST_WORDS
#include "python/heap/sizes.h"             // lp_size_of

/* ---- objects in live blocks ---- */

typedef struct search {
    lp_untracked_round round;          /* LP_UNTRACKED_ROUNDS: all */
    int (*is_known)(void *arg, uintptr_t address);
    int (*visit)(PyObject *, void *arg);
    void *arg;
    int is_any;                        /* tracked ones too, of whatever type */
} search;

/* A structure may begin with a number and a type too: more of what such an object must have. */
static int is_sane(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    if (!lp_mappings_has(&lp_heap_mappings, op, (uint64_t)type->tp_basicsize)) {
        return 0;
    }
    if (PyBytes_CheckExact(op)) {
        uint64_t bytes = (uint64_t)PyBytes_GET_SIZE(op);
        return bytes < LP_LOST_BYTES_MOST && lp_mappings_has(&lp_heap_mappings, op, sizeof(PyBytesObject) + bytes) &&
               PyBytes_AS_STRING(op)[bytes] == 0;
    }
    return lp_size_of(op) < LP_LOST_BYTES_MOST &&
           (lp_lookup_base(type, "numpy.ndarray") == NULL || lp_numpy_is_sane(op));
}

/* The object whose block begins at `block` if `presize` bytes lie before it, or NULL. */
static PyObject *object_at(const search *s, uintptr_t block, size_t presize) {
    PyObject *op = (PyObject *)(block + presize);
    if (!lp_heap_looks_alive(op) || *(const uint64_t *)op > LP_LOST_COUNT_MOST) {
        return NULL;
    }
    PyTypeObject *type = Py_TYPE(op);
    if (s->round != LP_UNTRACKED_ROUNDS && (type == &PyBytes_Type) != (s->round == LP_UNTRACKED_BYTES)) {
        return NULL;
    }
    if (lp_presize(type) != presize || !(s->is_any || s->is_known(s->arg, (uintptr_t)type))) {
        return NULL;
    }
    if (presize > 0 && s->is_any && lp_heap_gc_is_tracked(op)) {
        return lp_heap_is_linked(op) && is_sane(op) ? op : NULL;
    }
    return (presize > 0 ? lp_heap_is_untracked(op) : is_sane(op)) ? op : NULL;
}

/* An object whose stamp this is: its block starts in the granule. */
static int is_at(PyObject *op, uintptr_t start, size_t granule_bytes) {
    return (uintptr_t)op - lp_presize(Py_TYPE(op)) - start < granule_bytes;
}

/* 1 if an object that is known is the one whose birth is stamped here. */
static int is_stamp_known(const search *s, uintptr_t start, size_t granule_bytes) {
    for (size_t offset = 0; offset < granule_bytes + LP_PRESIZE_MOST; offset += LP_OBJECT_ALIGN) {
        PyObject *op = (PyObject *)(start + offset);
        if (s->is_known(s->arg, start + offset) && lp_heap_looks_alive(op) && is_at(op, start, granule_bytes)) {
            return 1;
        }
    }
    return 0;
}

static PyObject *object_of_stamp(const search *s, uintptr_t start, size_t granule_bytes) {
    PyObject *op = NULL;
    for (uintptr_t block = start; block < start + granule_bytes && op == NULL; block += LP_OBJECT_ALIGN) {
        for (size_t presize = 0; presize <= LP_PRESIZE_MOST && op == NULL; presize += LP_OBJECT_ALIGN) {
            op = object_at(s, block, presize);
        }
    }
    return op;
}

static int look_at(const lp_shadow_region *region, size_t at, const search *s) {
    size_t granule_bytes = (size_t)1 << lp_shadow_granule_lg(region->is_small);
    uintptr_t start = region->start + at * granule_bytes;
    if (is_stamp_known(s, start, granule_bytes)) {
        return 0;
    }
    PyObject *op = object_of_stamp(s, start, granule_bytes);
    return op == NULL ? 0 : s->visit(op, s->arg);
}

static int look_at_page(const lp_shadow_region *region, size_t first, size_t count, const search *s) {
    int result = 0;
    for (size_t at = first; at < first + count && result == 0; at++) {
        lp_stamp stamp = region->stamps[at];
        int is_birth = LP_STAMP_IS_BIRTH(stamp) && LP_STAMP_SITE(stamp) != LP_SITE_SELF;
        result = is_birth ? look_at(region, at, s) : 0;
    }
    return result;
}

static void look_everywhere(const search *s) {
    unsigned char resident[LP_STAMP_PAGES];
    size_t page = lp_shadow_page_stamps();
    int result = 0;
    for (size_t i = 0; i < lp_shadow_region_count() && result == 0; i++) {
        lp_shadow_region region = lp_shadow_region_at(i);
        for (size_t at = 0; region.stamps != NULL && at < LP_SHADOW_LEAF_STAMPS && result == 0;
             at += LP_STAMP_PAGES * page) {
            lp_shadow_resident(region.stamps + at, LP_STAMP_PAGES, resident);
            for (size_t k = 0; k < LP_STAMP_PAGES && result == 0; k++) {
                result = resident[k] & 1 ? look_at_page(&region, at + k * page, page, s) : 0;
            }
        }
    }
}

int lp_untracked_has_known(uintptr_t start, int is_small, int (*is_known)(void *arg, uintptr_t address), void *arg) {
    search s = {LP_UNTRACKED_ROUNDS, is_known, NULL, arg, 0};
    return is_stamp_known(&s, start, (size_t)1 << lp_shadow_granule_lg(is_small));
}

PyObject *lp_untracked_object(uintptr_t start, int is_small, int (*is_known)(void *arg, uintptr_t address), void *arg) {
    search s = {LP_UNTRACKED_ROUNDS, is_known, NULL, arg, 0};
    return object_of_stamp(&s, start, (size_t)1 << lp_shadow_granule_lg(is_small));
}

PyObject *lp_untracked_or_not(uintptr_t start, int is_small) {
    search s = {LP_UNTRACKED_ROUNDS, NULL, NULL, NULL, 1};
    return object_of_stamp(&s, start, (size_t)1 << lp_shadow_granule_lg(is_small));
}

int lp_untracked_are_wanted;

void lp_untracked_each(lp_untracked_round round, int (*is_known)(void *arg, uintptr_t address),
                       int (*visit)(PyObject *, void *arg), void *arg) {
    int is_split = lp_heap_has_part(&PyByteArray_Type);   /* else one round is enough */
    search s = {is_split ? round : LP_UNTRACKED_ROUNDS, is_known, visit, arg, 0};
    int is_exact = lp_untracked_are_wanted && lp_hooks_get_status()->sees_deaths;
    if (is_exact && (is_split || round == LP_UNTRACKED_OTHERS)) {
        look_everywhere(&s);
    }
}

/* ---- arrays that hold themselves ---- */

/* 1 for each block that something in the graph refers to; NULL when out of memory. */
static uint8_t *find_owned(const lp_walk *walk) {
    uint8_t *owned = lp_raw_calloc((size_t)walk->block_count + 1, 1);
    for (uint32_t i = 0; owned != NULL && i < walk->graph.edge_count; i++) {
        if (walk->graph.edge[i] < walk->block_count) {
            owned[walk->graph.edge[i]] = 1;
        }
    }
    return owned;
}

/* An array whose data is one of the ledger's blocks that nobody owns; the words of other arrays are anything. */
static int is_lost_array(lp_walk *walk, const uint8_t *owned, uint64_t word) {
    PyObject *op = (PyObject *)(uintptr_t)word;
    if (word >> LP_SHADOW_ADDRESS_BITS != 0 || !lp_mappings_has(&lp_heap_mappings, op, LP_ARRAY_HEAD_BYTES) ||
        !lp_heap_looks_alive(op) || lp_walk_find(walk, Py_TYPE(op)) == LP_NODE_NONE ||
        lp_kinds_get(&walk->kinds, Py_TYPE(op)).kind != LP_KIND_ARRAY || !lp_numpy_is_sane(op)) {
        return 0;
    }
    uint32_t block = lp_walk_find_block(walk, lp_numpy_data(op));
    return block != LP_NODE_NONE && !owned[block] && walk->block[block].address == (uintptr_t)lp_numpy_data(op);
}

static void look_into(lp_walk *walk, const uint8_t *owned, const lp_block *block, size_t count) {
    const uint64_t *word = (const uint64_t *)(uintptr_t)block->address;
    if (!lp_mappings_has(&lp_heap_mappings, word, count * sizeof(*word))) {
        return;
    }
    for (size_t i = 0; i < count && walk->status == LP_OK; i++) {
        if (word[i] > UINT16_MAX && lp_is_word_aligned(word[i]) && is_lost_array(walk, owned, word[i])) {
            lp_walk_add(walk, (PyObject *)(uintptr_t)word[i], 0);
        }
    }
}

static void add_arrays(lp_walk *walk) {
    uint32_t numpy_count = 0;
    size_t rest = LP_LOST_WORDS_IN_ALL;
    for (uint32_t i = 0; i < walk->block_count; i++) {
        numpy_count += walk->block[i].medium == LP_MEDIUM_NUMPY;
    }
    uint8_t *owned = numpy_count == 0 ? NULL : find_owned(walk);
    for (uint32_t i = 0; owned != NULL && i < walk->block_count && rest > 0; i++) {
        const lp_block *block = &walk->block[i];
        if (block->medium == LP_MEDIUM_NUMPY && !owned[i] && lp_is_word_aligned(block->address)) {
            uint64_t words = block->bytes / sizeof(uint64_t);
            size_t count = words < LP_LOST_WORDS ? (size_t)words : LP_LOST_WORDS;
            count = count < rest ? count : rest;
            rest -= count;
            look_into(walk, owned, block, count);
        }
    }
    lp_raw_free(owned);
}

/* ---- for a walk ---- */

static int is_in_walk(void *walk, uintptr_t address) { return lp_walk_find(walk, (void *)address) != LP_NODE_NONE; }

static int add_object(PyObject *op, void *walk) { return lp_walk_add(walk, op, 0) == LP_NODE_NONE; }

lp_status lp_untracked_add(lp_walk *walk) {
    if (lp_untracked_are_wanted) {
        lp_forget_looked_up_names();   /* one that is met would die as torch's getters look their own names up */
    }
    for (int round = 0; round < LP_UNTRACKED_ROUNDS && walk->status == LP_OK; round++) {
        lp_untracked_each((lp_untracked_round)round, is_in_walk, add_object, walk);
        if (walk->status == LP_OK) {
            walk->status = lp_walk_continue(walk);
        }
    }
    add_arrays(walk);
    return walk->status == LP_OK ? lp_walk_continue(walk) : walk->status;
}
