/* Storages and arrays that no block of the ledger stands for. Each storage counts once, however many tensors
 * show it. */
#include "python/owners/buffers.h"

#include "base/rawmem.h"                // lp_raw_free
#include "python/layouts/numpy.h"       // lp_numpy_owned_bytes
#include "python/layouts/torch.h"       // lp_torch_read_storage
#include "python/owners/torch_parts.h"  // lp_storage_of

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

typedef struct storage {
    uint32_t node;           /* a tensor on it */
    uint32_t medium;
    uint64_t bytes;          /* 0: shared with a tensor that is not in the set */
} storage;

typedef struct storages {
    lp_storage_calls calls;
    lp_map number;           /* address => index + 1 */
    storage *of;
    uint32_t count, capacity;
} storages;

/* Its size is in its own memory, which torch's count of its users proves. */
static void read_storage(const storages *s, uint64_t address, storage *out) {
    lp_torch_storage read;
    uint64_t users = lp_storage_users(&s->calls, address);
    if (users == 0 || !lp_torch_read_storage(address, &read) || read.users != users || read.data == 0 ||
        read.bytes >> LP_ADDRESSES_BITS != 0) {
        return;
    }
    out->medium = read.device == 0 ? LP_MEDIUM_CPU
                  : read.device == 1 && read.device_index < LP_MEDIUM_COUNT - LP_MEDIUM_CUDA0
                      ? LP_MEDIUM_CUDA0 + read.device_index
                      : LP_MEDIUM_NATIVE;
    out->bytes = read.bytes;
}

static uint64_t storage_of(lp_walk *walk, const storages *s, uint32_t node) {
    return lp_walk_kind(walk, node) == LP_KIND_TENSOR ? lp_storage_of(&s->calls, lp_walk_object(walk, node)) : 0;
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

void lp_buffers_each(lp_walk *walk, int (*is_in)(void *, uint32_t), void (*add)(void *, uint32_t, uint32_t, uint64_t),
                     void *arg) {
    storages s = {0};
    if (!lp_storage_find_calls(&s.calls)) {
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
    storages s = {0};
    uint32_t count = lp_storage_find_calls(&s.calls) ? walk->torch_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = take_storage(walk, &s, walk->torch_node[i]);
        if (number != 0) {
            add(arg, walk->torch_node[i], number - 1, s.of[number - 1].medium, s.of[number - 1].bytes);
        }
    }
    lp_map_fini(&s.number);
    lp_raw_free(s.of);
}
