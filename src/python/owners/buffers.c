#include "python/owners/buffers.h"

#include "python/layouts/numpy.h"        // lp_numpy_owned_bytes
#include "python/owners/torch_more.h"   // lp_torch_module_attribute

#include "base/rawmem.h"                // lp_raw_free
#include "process/mappings.h"           // lp_peek_words

static int has_block(const lp_walk *walk, uint32_t node) {
    uint32_t target;
    for (lp_edges it = lp_edges_of(&walk->graph, node); lp_edges_next(&it, &target);) {
        if (target < walk->block_count) {
            return 1;
        }
    }
    return 0;
}

static int kind_of(lp_walk *walk, uint32_t node) {
    return lp_kinds_get(&walk->kinds, Py_TYPE(lp_walk_object(walk, node))).kind;
}

uint64_t lp_buffers_of_array(lp_walk *walk, uint32_t node) {
    return kind_of(walk, node) == LP_KIND_ARRAY && !has_block(walk, node)
               ? lp_numpy_owned_bytes(lp_walk_object(walk, node))
               : 0;
}

/* ---- storages ---- */

typedef struct storage {
    uint32_t node;           /* a tensor on it */
    uint32_t medium;
    uint64_t bytes;          /* 0: shared with a tensor that is not in the set */
} storage;

typedef struct storages {
    PyObject *address_of, *has_storage, *use_count;   /* borrowed */
    lp_map number;           /* address => index + 1 */
    storage *of;
    uint32_t count, capacity;
} storages;

static int read_storage(const storages *s, uint64_t address, storage *out) {
    uint64_t word[LP_STORAGE_WORDS];
    PyObject *number = PyLong_FromUnsignedLongLong(address);
    uint64_t users = number == NULL ? 0 : lp_torch_call_for_number(s->use_count, number);
    Py_XDECREF(number);
    if (users == 0 || !lp_peek_words(address, word, LP_STORAGE_WORDS) ||
        (word[LP_STORAGE_COUNTS] & UINT32_MAX) != users || word[LP_STORAGE_DATA] == 0 ||
        word[LP_STORAGE_BYTES] >> LP_ADDRESSES_BITS != 0) {
        return 0;
    }
    uint32_t device = word[LP_STORAGE_DEVICE] & 0xff, index = (word[LP_STORAGE_DEVICE] >> 8) & 0xff;
    out->medium = device == 0 ? LP_MEDIUM_CPU : device == 1 && index < 16 ? LP_MEDIUM_CUDA0 + index : LP_MEDIUM_NATIVE;
    out->bytes = word[LP_STORAGE_BYTES];
    return 1;
}

static uint64_t storage_of(lp_walk *walk, const storages *s, uint32_t node) {
    PyObject *op = lp_walk_object(walk, node);
    if (kind_of(walk, node) != LP_KIND_TENSOR || lp_torch_call_for_number(s->has_storage, op) == 0) {
        return 0;
    }
    return lp_torch_call_for_number(s->address_of, op);
}

/* The index of a tensor's storage + 1; 0 if it has none, or one that a block stands for. */
static uint32_t take_storage(lp_walk *walk, storages *s, uint32_t node) {
    uint64_t address = has_block(walk, node) ? 0 : storage_of(walk, s, node);
    uint32_t *number = address == 0 ? NULL : lp_map_put(&s->number, address, NULL);
    storage *of = number == NULL ? NULL : lp_walk_reserve(s->of, s->count, &s->capacity, sizeof(*of));
    if (of == NULL) {
        return 0;
    }
    s->of = of;
    if (*number == 0) {
        of[s->count] = (storage){.node = node};
        read_storage(s, address, &of[s->count]);
        *number = ++s->count;
    }
    return *number;
}

/* 0 where torch is not there, or has not what it takes. */
static int find_getters(storages *s) {
    *s = (storages){
        .address_of = lp_torch_module_attribute("torch._C", "_storage_address"),
        .has_storage = lp_torch_module_attribute("torch._C", "_has_storage"),
        .use_count = lp_torch_module_attribute("torch._C", "_storage_Use_Count"),
    };
    return s->address_of != NULL && s->has_storage != NULL && s->use_count != NULL;
}

void lp_buffers_each(lp_walk *walk, int (*is_in)(void *, uint32_t), void (*add)(void *, uint32_t, uint32_t, uint64_t),
                     void *arg) {
    storages s;
    if (!find_getters(&s)) {
        return;
    }
    for (uint32_t i = 0; i < walk->torch_count; i++) {
        if (is_in(arg, walk->torch_node[i])) {
            take_storage(walk, &s, walk->torch_node[i]);
        }
    }
    for (uint32_t i = 0; i < walk->torch_count && s.count > 0; i++) {
        uint64_t address = is_in(arg, walk->torch_node[i]) ? 0 : storage_of(walk, &s, walk->torch_node[i]);
        uint32_t number = address == 0 ? 0 : lp_map_get(&s.number, address, 0);
        if (number != 0) {
            s.of[number - 1].bytes = 0;
        }
    }
    for (uint32_t i = 0; i < s.count; i++) {
        if (s.of[i].bytes != 0) {
            add(arg, s.of[i].node, s.of[i].medium, s.of[i].bytes);
        }
    }
    lp_map_fini(&s.number);
    lp_raw_free(s.of);
}

void lp_buffers_each_tensor(lp_walk *walk, void (*add)(void *, uint32_t, uint32_t, uint32_t, uint64_t), void *arg) {
    storages s;
    uint32_t count = find_getters(&s) ? walk->torch_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = take_storage(walk, &s, walk->torch_node[i]);
        if (number != 0) {
            add(arg, walk->torch_node[i], number - 1, s.of[number - 1].medium, s.of[number - 1].bytes);
        }
    }
    lp_map_fini(&s.number);
    lp_raw_free(s.of);
}
