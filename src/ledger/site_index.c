/* Slots are found from the hash on, one after another; a table that is made anew is at most half full. */
#include "ledger/site_index.h"

#include "base/rawmem.h"     // lp_raw_calloc
#include "ledger/numbers.h"  // LP_INDEX_IS_FULL

static int is_kept(const lp_site_index *index, lp_site_id id) {
    return id != 0 && (index->is_kept == NULL || index->is_kept(id));
}

static size_t mask_for(const lp_site_index *index) {
    size_t kept = 0, mask = LP_INDEX_SLOTS_LEAST - 1;
    for (size_t i = 0; index->slots != NULL && i <= index->mask; i++) {
        kept += (size_t)is_kept(index, index->slots[i]);
    }
    while (!LP_INDEX_IS_ROOMY(kept, mask + 1)) {
        mask += mask + 1;
    }
    return mask;
}

/* A site stands in the old slots more than once where its hash has changed. */
static void copy_slots(const lp_site_index *from, lp_site_index *to) {
    for (size_t i = 0; from->slots != NULL && i <= from->mask; i++) {
        lp_site_id id = from->slots[i];
        if (!is_kept(from, id)) {
            continue;
        }
        size_t at = from->hash_of(id) & to->mask;
        while (to->slots[at] != 0 && to->slots[at] != id) {
            at = (at + 1) & to->mask;
        }
        to->used += to->slots[at] == 0;
        to->slots[at] = id;
    }
}

int lp_site_index_reserve(lp_site_index *index) {
    if (index->slots != NULL && !LP_INDEX_IS_FULL(index->used, index->mask + 1)) {
        return 0;
    }
    lp_site_index fresh = {index->hash_of, index->is_kept, NULL, mask_for(index), 0};
    fresh.slots = lp_raw_calloc(fresh.mask + 1, sizeof(uint32_t));
    if (fresh.slots == NULL) {
        return index->slots != NULL && index->used + 1 < index->mask ? 0 : -1;
    }
    copy_slots(index, &fresh);
    lp_raw_free(index->slots);
    *index = fresh;
    return 0;
}

static int is_reached(const lp_site_index *index, size_t slot) {
    size_t at = index->hash_of(index->slots[slot]) & index->mask;
    while (at != slot && index->slots[at] != 0) {
        at = (at + 1) & index->mask;
    }
    return at == slot;
}

int lp_site_index_is_valid(const lp_site_index *index, lp_site_id end, int all_reached) {
    size_t used = 0;
    for (size_t i = 0; index->slots != NULL && i <= index->mask; i++) {
        lp_site_id id = index->slots[i];
        if (id != 0 && (id < LP_SITE_FIRST || id >= end || (all_reached && !is_reached(index, i)))) {
            return 0;
        }
        used += id != 0;
    }
    return used == index->used && used <= index->mask;
}
