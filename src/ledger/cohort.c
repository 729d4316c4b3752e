/* Owns cohorts in chunks that never move, so that a block may keep a number. The index has those with survivors;
 * the rest are on the free list. */
#include "ledger/cohort.h"

#include <string.h>

#include "base/numbers.h" // LP_HASH_FACTOR
#include "base/probing.h" // lp_probing_fills
#include "base/rawmem.h"  // lp_raw_malloc

enum { CHUNK = 1 << LP_COHORT_CHUNK_LG, FIRST_MASK = 1023 };

static size_t home(const lp_cohorts *cohorts, uint64_t key) {
    uint64_t hash = key * LP_HASH_FACTOR;
    hash = (hash ^ hash >> 32) * LP_HASH_MIX;
    return (size_t)(hash >> 32) & cohorts->mask;
}

static uint64_t key_at(const lp_cohorts *cohorts, size_t i) { return lp_cohorts_get(cohorts, cohorts->slots[i])->key; }

static size_t find_slot(const lp_cohorts *cohorts, uint64_t key) {
    size_t i = home(cohorts, key);
    while (cohorts->slots[i] != 0 && key_at(cohorts, i) != key) {
        i = (i + 1) & cohorts->mask;
    }
    return i;
}

static int resize(lp_cohorts *cohorts, size_t mask) {
    lp_cohorts fresh = *cohorts;
    fresh.mask = mask;
    fresh.slots = lp_raw_calloc(mask + 1, sizeof(uint32_t));
    if (fresh.slots == NULL) {
        return -1;
    }
    for (size_t i = 0; cohorts->slots != NULL && i <= cohorts->mask; i++) {
        if (cohorts->slots[i] != 0) {
            fresh.slots[find_slot(&fresh, key_at(cohorts, i))] = cohorts->slots[i];
        }
    }
    lp_raw_free(cohorts->slots);
    *cohorts = fresh;
    return 0;
}

/* Room in the index for one more: at most three quarters full. */
static int make_room(lp_cohorts *cohorts) {
    if (cohorts->slots == NULL) {
        return resize(cohorts, FIRST_MASK);
    }
    if ((cohorts->count + 1) * 4 <= cohorts->mask * 3 || resize(cohorts, cohorts->mask * 2 + 1) == 0) {
        return 0;
    }
    return cohorts->count + 1 < cohorts->mask ? 0 : -1;
}

/* A chunk more; the list of chunks grows by 64 at a time. */
static int add_chunk(lp_cohorts *cohorts) {
    uint32_t chunk_count = cohorts->end / CHUNK;
    if (chunk_count % 64 == 0) {
        lp_cohort_record **chunks = lp_raw_realloc(cohorts->chunks, (chunk_count + 64) * sizeof(*chunks));
        if (chunks == NULL) {
            return -1;
        }
        memset(chunks + chunk_count, 0, 64 * sizeof(*chunks));
        cohorts->chunks = chunks;
    }
    if (cohorts->chunks[chunk_count] == NULL) {
        cohorts->chunks[chunk_count] = lp_raw_malloc(CHUNK * sizeof(lp_cohort_record));
    }
    return cohorts->chunks[chunk_count] == NULL ? -1 : 0;
}

/* A free id, 0 when out of memory. */
static uint32_t take_id(lp_cohorts *cohorts) {
    uint32_t id = cohorts->first_free;
    if (id != 0) {
        cohorts->first_free = lp_cohorts_get(cohorts, id)->next_free;
        return id;
    }
    if (cohorts->end == UINT32_MAX - CHUNK || (cohorts->end % CHUNK == 0 && add_chunk(cohorts) != 0)) {
        return 0;
    }
    if (cohorts->end == 0) {
        *lp_cohorts_get(cohorts, 0) = (lp_cohort_record){0, 0, 0, 0};
        cohorts->end = 1;
    }
    return cohorts->end++;
}

uint32_t lp_cohorts_add(lp_cohorts *cohorts, uint64_t key, uint64_t bytes) {
    if (make_room(cohorts) != 0) {
        return 0;
    }
    size_t i = find_slot(cohorts, key);
    uint32_t id = cohorts->slots[i];
    if (id == 0) {
        id = take_id(cohorts);
        if (id == 0) {
            return 0;
        }
        *lp_cohorts_get(cohorts, id) = (lp_cohort_record){.key = key};
        cohorts->slots[i] = id;
        cohorts->count++;
    }
    lp_cohort_record *record = lp_cohorts_get(cohorts, id);
    record->count++;
    record->bytes += bytes;
    return id;
}

static void close_hole(lp_cohorts *cohorts, size_t hole) {
    for (size_t i = (hole + 1) & cohorts->mask; cohorts->slots[i] != 0; i = (i + 1) & cohorts->mask) {
        if (lp_probing_fills(i, home(cohorts, key_at(cohorts, i)), hole, cohorts->mask)) {
            cohorts->slots[hole] = cohorts->slots[i];
            hole = i;
        }
    }
    cohorts->slots[hole] = 0;
}

void lp_cohorts_remove(lp_cohorts *cohorts, uint32_t id, uint64_t bytes) {
    lp_cohort_record *record = lp_cohorts_get(cohorts, id);
    LP_ASSERT(id != 0 && id < cohorts->end && record->count != 0 && record->bytes >= bytes);
    record->bytes -= bytes;
    if (--record->count != 0) {
        return;
    }
    close_hole(cohorts, find_slot(cohorts, record->key));
    cohorts->count--;
    record->next_free = cohorts->first_free;
    cohorts->first_free = id;
}

static int is_index_valid(const lp_cohorts *cohorts) {
    size_t found = 0;
    for (size_t i = 0; cohorts->slots != NULL && i <= cohorts->mask; i++) {
        uint32_t id = cohorts->slots[i];
        if (id == 0) {
            continue;
        }
        if (id >= cohorts->end || lp_cohorts_get(cohorts, id)->count == 0 ||
            find_slot(cohorts, key_at(cohorts, i)) != i) {
            return 0;
        }
        found++;
    }
    return found == cohorts->count;
}

int lp_cohorts_is_valid(const lp_cohorts *cohorts) {
    size_t free_count = 0;
    for (uint32_t id = cohorts->first_free; id != 0; id = lp_cohorts_get(cohorts, id)->next_free) {
        if (id >= cohorts->end || lp_cohorts_get(cohorts, id)->count != 0 || ++free_count > cohorts->end) {
            return 0;
        }
    }
    return is_index_valid(cohorts) && free_count + cohorts->count + (cohorts->end != 0) == cohorts->end;
}

void lp_cohorts_clear(lp_cohorts *cohorts) {
    for (uint32_t first = 0; first < cohorts->end; first += CHUNK) {
        lp_raw_free(cohorts->chunks[first / CHUNK]);
    }
    lp_raw_free(cohorts->chunks);
    lp_raw_free(cohorts->slots);
    memset(cohorts, 0, sizeof(*cohorts));
}
