/* Owns the counters by site. The GIL makes increments safe, and reads are of one moment. */
#include "ledger/alive.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_calloc

lp_alive_count lp_alive[LP_ALIVE_COUNT];
__attribute__((aligned(LP_ALIVE_PENDING_BYTES))) uint32_t lp_alive_pending[LP_ALIVE_PENDING_BYTES / sizeof(uint32_t)];
uint32_t *lp_alive_pending_next = lp_alive_pending + 1;

void lp_alive_count_pending(void) {
    LP_ASSERT_GIL();
    for (const uint32_t *site = lp_alive_pending + 1; site != lp_alive_pending_next; site++) {
        lp_alive[*site].births++;
    }
    lp_alive_pending_next = lp_alive_pending + 1;
}

/* No site beyond it ever had a count.  The first birth of a site never is a quick one: the cache of sites
 * knows only what was stamped here. */
static uint32_t highest_site;

static void note_site(uint32_t site) { highest_site = site > highest_site ? site : highest_site; }

/* Bytes of either half of a granule of lp_shadow_blocks. */
#define HALF ((uintptr_t)LP_SHADOW_SMALL_BYTES)

/* The stamp of a place is about to go. */
static void count_death(lp_stamp stamp) {
    if (LP_STAMP_IS_BIRTH(stamp)) {
        lp_alive[LP_STAMP_SITE(stamp)].deaths++;
    }
}

static void erase(lp_stamp *place) {
    if (place != NULL && *place != 0) {
        count_death(*place);
        *place = 0;
    }
}

static void write_birth(lp_stamp *place, lp_stamp stamp) {
    if (place != NULL) {
        count_death(*place);
        *place = stamp;
        note_site(LP_STAMP_SITE(stamp));
        lp_alive[LP_STAMP_SITE(stamp)].births++;
    }
}

void lp_alive_born(const void *block, int is_small, lp_stamp stamp) {
    LP_ASSERT_GIL();
    if (LP_UNLIKELY(stamp == 0)) {
        lp_alive_died(block);
        return;
    }
    if (LP_UNLIKELY(lp_alive_pending_is_full(lp_alive_pending_next))) {
        lp_alive_count_pending();
    }
    lp_stamp *mark = lp_shadow_make_place(block, 0);
    if (mark == NULL) {
        return;
    }
    if (!is_small) {
        lp_alive_died(block);
        write_birth(mark, stamp);
        return;
    }
    lp_stamp *place = lp_shadow_make_place(block, 1);
    if (place != NULL) {
        count_death(*mark);
        *mark = LP_STAMP_IS_SMALL;
        write_birth(place, stamp);
    }
}

/* The other half of the granule may be a small block too. */
static void small_block_died(const void *block, lp_stamp *mark) {
    const void *other = (const void *)((uintptr_t)block ^ HALF);
    lp_stamp *other_place = lp_shadow_place(other, 1);
    erase(lp_shadow_place(block, 1));
    if (other_place == NULL || *other_place == 0) {
        *mark = 0;
    }
}

void lp_alive_died(const void *block) {
    LP_ASSERT_GIL();
    lp_stamp *place = lp_shadow_place(block, 0);
    if (place == NULL || *place == 0) {
        return;
    }
    if (*place == LP_STAMP_IS_SMALL) {
        small_block_died(block, place);
    } else {
        erase(place);
    }
}

void lp_alive_grown(const void *block, lp_stamp stamp) {
    LP_ASSERT_GIL();
    lp_stamp *place = stamp == 0 ? NULL : lp_shadow_make_place(block, 0);
    lp_alive_died(block);
    if (place != NULL) {
        *place = stamp | LP_STAMP_GROWTH;
        note_site(LP_STAMP_SITE(stamp));
    }
}

void lp_alive_correct(lp_stamp *place, lp_stamp instead) {
    LP_ASSERT_GIL();
    count_death(*place);
    *place = instead;
}

void lp_alive_reset(void) {
    lp_alive_pending_next = lp_alive_pending + 1;
    memset(lp_alive, 0, (highest_site + 1) * sizeof(*lp_alive));
    memset(lp_alive + LP_ALIVE_SITES, 0, LP_LINES_MAX * sizeof(*lp_alive));
}

/* ---- proof ---- */

static int count_stamps(lp_stamp *stamps, size_t count, const void *by_site_) {
    uint32_t *by_site = *(uint32_t *const *)by_site_;
    for (size_t i = 0; i < count; i++) {
        by_site[LP_STAMP_SITE(stamps[i])] += LP_STAMP_IS_BIRTH(stamps[i]);
    }
    return 1;
}

int lp_alive_is_valid(void) {
    LP_ASSERT_GIL();
    size_t sites = LP_ALIVE_SITES;
    uint32_t *by_site = lp_raw_calloc(sites, sizeof(*by_site));
    int is_valid = 1;
    if (by_site != NULL) {
        lp_shadow_each_page(count_stamps, &by_site);
    }
    for (size_t site = 1; by_site != NULL && is_valid && site < sites; site++) {
        is_valid = by_site[site] == lp_alive_now((uint32_t)site);
    }
    lp_raw_free(by_site);
    return is_valid;
}
