/* Storages and arrays that no block of the ledger stands for. Each storage counts once, however many tensors
 * show it. */
#include "python/owners/buffers.h"

#include "base/rawmem.h"                // lp_raw_free
#include "python/layouts/numpy.h"       // lp_numpy_owned_bytes
#include "python/owners/torch_parts.h"  // lp_storage_of_node

static int has_block(const lp_walk *walk, uint32_t node) {
    uint32_t target;
    for (lp_edges it = lp_edges_of(&walk->graph, node); lp_edges_next(&it, &target);) {
        if (target < walk->block_count) {
            return 1;
        }
    }
    return 0;
}

uint64_t lp_buffers_of_array(lp_walk *walk, uint32_t node) {
    return lp_walk_kind(walk, node) == LP_KIND_ARRAY && !has_block(walk, node)
               ? lp_numpy_owned_bytes(lp_walk_object(walk, node))
               : 0;
}

/* ---- storages ---- */

#define COUNTED_ELSEWHERE UINT32_MAX /* in storages.number */

typedef struct storage {
    uint32_t node;           /* a tensor on it, or its object */
    uint32_t medium;
    uint64_t bytes;          /* 0: shared with a tensor that is not in the set */
} storage;

typedef struct storages {
    lp_storage_calls calls;
    const lp_map *lent;
    lp_map number;           /* address => index + 1 */
    storage *of;
    uint32_t count, capacity;
} storages;

/* LP_MEDIUM_COUNT for a device that has none: XPU, MPS, CUDA's seventeenth. */
static uint32_t medium_of(const lp_torch_storage *read) {
    return read->device == 0 ? LP_MEDIUM_CPU
           : read->device == 1 && read->device_index < LP_MEDIUM_COUNT - LP_MEDIUM_CUDA0
               ? LP_MEDIUM_CUDA0 + read->device_index
               : LP_MEDIUM_COUNT;
}

/* 0 if its bytes are those of a block, which a view does not refer to, or of what lent them, or of no medium. */
static int read_storage(const lp_walk *walk, const storages *s, uint64_t address, storage *out) {
    lp_torch_storage read;
    if (lp_map_get(s->lent, address, LP_NODE_NONE) != LP_NODE_NONE) {
        return 0;
    }
    if (lp_storage_read(&s->calls, address, &read) && read.data != 0 && read.bytes >> LP_ADDRESSES_BITS == 0) {
        out->medium = medium_of(&read);
        out->bytes = read.bytes;
        return out->medium != LP_MEDIUM_COUNT &&
               lp_walk_find_block(walk, (const void *)(uintptr_t)read.data) == LP_NODE_NONE;
    }
    return 1;
}

/* The index of the storage of a node + 1; 0 if it has none, or one that is counted elsewhere. */
static uint32_t take_storage(lp_walk *walk, storages *s, uint32_t node) {
    uint64_t address = has_block(walk, node) ? 0 : lp_storage_of_node(&s->calls, walk, node);
    uint32_t *number = address == 0 ? NULL : lp_map_put(&s->number, address, NULL);
    storage *of = number == NULL ? NULL : lp_walk_reserve(s->of, s->count, &s->capacity, sizeof(*of));
    if (of == NULL) {
        return 0;
    }
    s->of = of;
    if (*number == 0) {
        of[s->count] = (storage){.node = node};
        *number = read_storage(walk, s, address, &of[s->count]) ? ++s->count : COUNTED_ELSEWHERE;
    }
    return *number == COUNTED_ELSEWHERE ? 0 : *number;
}

/* Those that a node outside of the set keeps alive as well. */
static void leave_shared(lp_walk *walk, storages *s, int (*is_in)(void *, uint32_t), void *arg) {
    for (uint32_t i = 0; i < walk->torch_count && s->count > 0; i++) {
        uint32_t node = walk->torch_node[i];
        uint64_t address = is_in(arg, node) ? 0 : lp_storage_of_node(&s->calls, walk, node);
        uint32_t number = address == 0 ? 0 : lp_map_get(&s->number, address, 0);
        if (number != 0 && number != COUNTED_ELSEWHERE) {
            s->of[number - 1].bytes = 0;
        }
    }
}

static void release(storages *s) {
    lp_map_fini(&s->number);
    lp_raw_free(s->of);
}

void lp_buffers_each(lp_walk *walk, const lp_map *lent, int (*is_in)(void *, uint32_t),
                     void (*add)(void *, uint32_t, uint32_t, uint64_t), void *arg) {
    storages s = {.lent = lent};
    if (!lp_storage_find_calls(&s.calls)) {
        return;
    }
    for (uint32_t i = 0; i < walk->torch_count; i++) {
        if (is_in(arg, walk->torch_node[i])) {
            take_storage(walk, &s, walk->torch_node[i]);
        }
    }
    leave_shared(walk, &s, is_in, arg);
    for (uint32_t i = 0; i < s.count; i++) {
        if (s.of[i].bytes != 0) {
            add(arg, s.of[i].node, s.of[i].medium, s.of[i].bytes);
        }
    }
    release(&s);
}

void lp_buffers_each_user(lp_walk *walk, const lp_map *lent,
                          void (*add)(void *, uint32_t, uint32_t, uint32_t, uint64_t), void *arg) {
    storages s = {.lent = lent};
    uint32_t count = lp_storage_find_calls(&s.calls) ? walk->torch_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = take_storage(walk, &s, walk->torch_node[i]);
        if (number != 0) {
            add(arg, walk->torch_node[i], number - 1, s.of[number - 1].medium, s.of[number - 1].bytes);
        }
    }
    release(&s);
}
