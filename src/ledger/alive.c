#include "ledger/alive.h"

#include <string.h>

lp_alive_count lp_alive[(size_t)1 << LP_SITE_BITS];

/* Bytes of both halves of a granule of lp_shadow_blocks. */
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
        lp_alive[LP_STAMP_SITE(stamp)].births++;
    }
}

void lp_alive_born(const void *block, int is_small, lp_stamp stamp) {
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
    lp_stamp *place = lp_shadow_make_place(block, 0);
    if (place != NULL) {
        lp_alive_died(block);
        *place = stamp | LP_STAMP_GROWTH;
    }
}

void lp_alive_correct(lp_stamp *place, lp_stamp instead) {
    count_death(*place);
    *place = instead;
}

/* Only pages with a count in them: a store would make the others the process's own. */
void lp_alive_reset(void) {
    enum { CHUNK = 512 };
    static const lp_alive_count none[CHUNK];
    for (size_t at = 0; at < (size_t)1 << LP_SITE_BITS; at += CHUNK) {
        if (memcmp(&lp_alive[at], none, sizeof(none)) != 0) {
            memset(&lp_alive[at], 0, sizeof(none));
        }
    }
}
