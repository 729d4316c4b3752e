/* Owns the leaves of both shadows. A leaf, once mapped, stays; a stamp is written by the owner of its address
 * alone. */
#include "ledger/shadow.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/pages.h"    // lp_pages_filled
#include "base/rawmem.h"   // lp_raw_map
#include "ledger/alive.h"  // lp_alive_reset

#define LEAF_BYTES (LP_SHADOW_LEAF_STAMPS * sizeof(lp_stamp))

lp_shadow lp_shadow_blocks, lp_shadow_small, lp_shadow_nowhere;

/* Leaves in use, for passes over all stamps; slot i is valid once non-NULL. */
#define LEAF_MAX 65536
static lp_stamp *_Atomic leaves[LEAF_MAX];
static struct {
    uintptr_t start;
    int is_small;
} leaf_info[LEAF_MAX];
static _Atomic size_t leaf_count;
static _Atomic uint64_t dropped_count;

static int leaf_lg(int is_small) { return LP_SHADOW_LEAF_LG + lp_shadow_granule_lg(is_small); }

static size_t root_bytes(int is_small) {
    return ((size_t)1 << (LP_SHADOW_ADDRESS_BITS - leaf_lg(is_small))) * sizeof(*lp_shadow_blocks);
}

/* Between a leaf and its entry in a root. */
static uintptr_t bytes_before(uintptr_t index_in_root) { return index_in_root * LEAF_BYTES; }

static lp_shadow map_root(int is_small) { return lp_raw_map_sparse(root_bytes(is_small)); }

lp_status lp_shadow_init(void) {
    if (lp_shadow_blocks == NULL) {
        lp_shadow_blocks = map_root(0);
    }
    if (lp_shadow_blocks != NULL && lp_shadow_nowhere == NULL) {
        lp_shadow_nowhere = map_root(0);
    }
    if (lp_shadow_nowhere != NULL && lp_shadow_small == NULL) {
        lp_shadow_small = map_root(1);
    }
    return lp_shadow_small == NULL ? LP_NO_MEMORY : LP_OK;
}

/* Create a leaf where a root has none. */
static void add_leaf(lp_shadow root, uintptr_t index, int is_small) {
    lp_stamp *fresh = lp_raw_map(LEAF_BYTES);
    if (fresh == NULL || (uintptr_t)fresh == bytes_before(index)) {   /* such an entry would be 0 */
        atomic_fetch_add(&dropped_count, 1);
        return;
    }
    uintptr_t expected = 0, entry = (uintptr_t)fresh - bytes_before(index);
    if (!__atomic_compare_exchange_n(&root[index], &expected, entry, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        lp_raw_unmap(fresh, LEAF_BYTES);
        return;
    }
    lp_raw_wrote_sparse();
    size_t at = atomic_fetch_add(&leaf_count, 1);
    if (at < LEAF_MAX) {
        leaf_info[at].start = index << leaf_lg(is_small);
        leaf_info[at].is_small = is_small;
        atomic_store(&leaves[at], fresh);
    }
}

lp_stamp *lp_shadow_make_place(const void *pointer, int is_small) {
    uintptr_t address = (uintptr_t)pointer;
    lp_stamp *place = lp_shadow_place(pointer, is_small);
    if (LP_UNLIKELY(place == NULL) && !(address >> LP_SHADOW_ADDRESS_BITS)) {
        add_leaf(is_small ? lp_shadow_small : lp_shadow_blocks, address >> leaf_lg(is_small), is_small);
        place = lp_shadow_place(pointer, is_small);
    }
    return place;
}

void lp_shadow_set(const void *pointer, int is_small, lp_stamp stamp) {
    lp_stamp *place = lp_shadow_make_place(pointer, is_small);
    if (place != NULL) {
        *place = stamp;
    }
}

static size_t known_leaves(void) {
    size_t count = atomic_load(&leaf_count);
    return count < LEAF_MAX ? count : LEAF_MAX;
}

void lp_shadow_reset(void) {
    for (size_t i = 0; i < known_leaves(); i++) {
        lp_stamp *leaf = atomic_load(&leaves[i]);
        if (leaf != NULL) {
            lp_raw_map_discard(leaf, LEAF_BYTES);
        }
    }
    atomic_store(&dropped_count, 0);
    lp_alive_reset();
}

/* Many stamps of a page are 0 (objects span granules): a page of zeroes may be the kernel's
 * shared one, and a store would make it a page of ours. */
static int is_zero(const lp_stamp *stamps, size_t count) {
    lp_stamp any = 0;
    for (size_t i = 0; i < count; i++) {
        any |= stamps[i];
    }
    return any == 0;
}

/* to[epoch]: the new epoch, shifted to its place in a stamp; to[0] is 0. */
static int remap_page(lp_stamp *stamps, size_t count, const void *to_) {
    const lp_stamp *to = to_;
    for (size_t i = 0; i < count; i++) {
        stamps[i] = (stamps[i] & ~LP_STAMP(0, LP_EPOCH_MAX)) | to[LP_STAMP_EPOCH(stamps[i])];
    }
    return 1;
}

/* visit(stamps, count, arg) for each page of a mapping that has something, until it returns 0; 1 if it never did.
 * Only pages that were written to: reading the others would cost page tables for nothing. */
static int each_page(void *mapping, size_t bytes, int (*visit)(lp_stamp *, size_t, const void *), const void *arg) {
    enum { CHUNK = 1024 };
    unsigned char resident[CHUNK];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t done = 0; done < bytes; done += CHUNK * page) {
        size_t rest = bytes - done, length = rest < CHUNK * page ? rest : CHUNK * page;
        lp_pages_filled((char *)mapping + done, (length + page - 1) / page, resident);
        for (size_t i = 0; i * page < length; i++) {
            lp_stamp *stamps = (lp_stamp *)((char *)mapping + done + i * page);
            if ((resident[i] & 1) && !is_zero(stamps, page / sizeof(lp_stamp)) &&
                !visit(stamps, page / sizeof(lp_stamp), arg)) {
                return 0;
            }
        }
    }
    return 1;
}

int lp_shadow_each_page(int (*visit)(lp_stamp *stamps, size_t count, const void *arg), const void *arg) {
    for (size_t i = 0; i < known_leaves(); i++) {
        lp_stamp *leaf = atomic_load(&leaves[i]);
        if (leaf != NULL && !each_page(leaf, LEAF_BYTES, visit, arg)) {
            return 0;
        }
    }
    return 1;
}

void lp_shadow_remap_epochs(const uint16_t new_epoch[LP_EPOCH_MAX + 1]) {
    static lp_stamp to[LP_EPOCH_MAX + 1];
    for (uint32_t epoch = 1; epoch <= LP_EPOCH_MAX; epoch++) {
        to[epoch] = LP_STAMP(0, new_epoch[epoch]);
    }
    lp_shadow_each_page(remap_page, to);
}

/* ---- passes of others ---- */

size_t lp_shadow_region_count(void) { return known_leaves(); }

lp_shadow_region lp_shadow_region_at(size_t i) {
    return (lp_shadow_region){atomic_load(&leaves[i]), leaf_info[i].start, leaf_info[i].is_small};
}

size_t lp_shadow_page_stamps(void) { return (size_t)sysconf(_SC_PAGESIZE) / sizeof(lp_stamp); }

size_t lp_shadow_resident(const lp_stamp *stamps, size_t pages, unsigned char *out_resident) {
    lp_pages_filled(stamps, pages, out_resident);
    return pages;
}

/* ---- proof ---- */

typedef struct bounds {
    uint32_t epoch_end, site_end;
    int is_small;            /* of which shadow the stamps are */
} bounds;

/* In the small shadow there are births only. */
static int is_stamp_valid(lp_stamp stamp, const bounds *in) {
    if (stamp == 0 || stamp == LP_STAMP_IS_SMALL) {
        return stamp == 0 || !in->is_small;
    }
    uint32_t epoch = LP_STAMP_EPOCH(stamp);
    return epoch != 0 && epoch < in->epoch_end && LP_STAMP_SITE(stamp) < in->site_end &&
           !(in->is_small && (stamp & LP_STAMP_GROWTH) != 0);
}

static int are_stamps_valid(lp_stamp *stamps, size_t count, const void *bounds_) {
    for (size_t i = 0; i < count; i++) {
        if (!is_stamp_valid(stamps[i], bounds_)) {
            return 0;
        }
    }
    return 1;
}

/* Leaves that no root was found to name yet: the caller's copy of the list. */
typedef struct unnamed {
    lp_stamp **list;
    lp_shadow root;
} unnamed;

/* Take each leaf that a page of a root names off the list, where it stands once. */
static int take_off(lp_stamp *page, size_t count, const void *unnamed_) {
    const unnamed *of = unnamed_;
    const uintptr_t *entry = (const uintptr_t *)page;
    for (size_t i = 0; i < count * sizeof(lp_stamp) / sizeof(*entry); i++) {
        lp_stamp *named = (lp_stamp *)(entry[i] + bytes_before((uintptr_t)(entry + i - of->root)));
        size_t at = 0, known = entry[i] == 0 ? 0 : known_leaves();
        while (at < known && of->list[at] != named) {
            at++;
        }
        if (entry[i] != 0 && at == known) {
            return 0;
        }
        if (entry[i] != 0) {
            of->list[at] = NULL;
        }
    }
    return 1;
}

static int hang_in_one_place(void) {
    size_t count = known_leaves(), left = 0;
    lp_stamp **list = lp_raw_malloc((count + 1) * sizeof(*list));
    for (size_t i = 0; list != NULL && i < count; i++) {
        list[i] = atomic_load(&leaves[i]);
    }
    unnamed blocks = {list, lp_shadow_blocks}, small = {list, lp_shadow_small};
    int is_valid = list == NULL || atomic_load(&leaf_count) > LEAF_MAX ||
                   (each_page(lp_shadow_blocks, root_bytes(0), take_off, &blocks) &&
                    each_page(lp_shadow_small, root_bytes(1), take_off, &small));
    for (size_t i = 0; list != NULL && i < count; i++) {
        left += list[i] != NULL;
    }
    lp_raw_free(list);
    return is_valid && (left == 0 || atomic_load(&leaf_count) > LEAF_MAX);
}

int lp_shadow_is_valid(uint32_t epoch_end, uint32_t site_end) {
    if (lp_shadow_small == NULL) {
        return atomic_load(&leaf_count) == 0;
    }
    for (size_t i = 0; i < known_leaves(); i++) {
        lp_stamp *leaf = atomic_load(&leaves[i]);
        bounds in = {epoch_end, site_end, leaf_info[i].is_small};
        if (leaf != NULL && !each_page(leaf, LEAF_BYTES, are_stamps_valid, &in)) {
            return 0;
        }
    }
    return hang_in_one_place();
}

uint64_t lp_shadow_dropped_count(void) { return atomic_load(&dropped_count); }
