/* Owns the ranges of steps. They are in order, without gaps, and each stamp's epoch has one; the GIL. */
#include "ledger/epoch.h"

/* Epochs that stay one step each when old ones are merged. */
#define KEPT_SINGLE 1024
/* Epochs that a merge leaves to the older steps; the rest are free for new ones. */
#define KEPT_OLD ((LP_EPOCH_MAX - KEPT_SINGLE) / 2)

uint32_t lp_epoch_now = 1;
lp_stamp lp_epoch_bits = LP_STAMP(0, 1);
uint32_t lp_step_now;

static lp_epoch_range ranges[LP_EPOCH_MAX + 1];

static void set_now(uint32_t epoch) {
    lp_epoch_now = epoch;
    lp_epoch_bits = LP_STAMP(0, epoch);
}

void lp_epoch_reset(uint8_t mode) {
    LP_ASSERT_GIL();
    __atomic_store_n(&lp_step_now, 0, __ATOMIC_RELAXED);
    set_now(1);
    ranges[1] = (lp_epoch_range){0, 0, mode};
}

void lp_epoch_set_mode(uint8_t mode) {
    LP_ASSERT_GIL();
    ranges[lp_epoch_now].mode = mode;
}

/* Join old epochs of one mode that lie in the same `span` steps, counted from 0.
 * Writes new_epoch[1..old_count]; returns how many epochs are left of them. */
static uint32_t join_old(uint32_t old_count, uint32_t span, uint16_t *new_epoch) {
    uint32_t left = 0, first_step = 0;
    for (uint32_t epoch = 1; epoch <= old_count; epoch++) {
        int joins = epoch > 1 && ranges[epoch].mode == ranges[epoch - 1].mode &&
                    ranges[epoch].last_step / span == first_step / span;
        if (!joins) {
            left++;
            first_step = ranges[epoch].first_step;
        }
        new_epoch[epoch] = (uint16_t)left;
    }
    return left;
}

/* Powers of two: ranges of a later merge are those of an earlier one put together, as the spans of readers are
 * (evidence/readings.py), so that what only changed its range never looks as if it had died.  Births of two modes
 * never share an epoch, until more changes of mode than epochs force it. */
static uint32_t join_into(uint32_t old_count, uint32_t wanted, uint16_t *new_epoch) {
    uint32_t steps = ranges[old_count].last_step + 1;
    for (uint32_t span = 2; span < 2 * steps && span < 1u << 31; span *= 2) {
        uint32_t left = join_old(old_count, span, new_epoch);
        if (left <= wanted) {
            return left;
        }
    }
    for (uint32_t epoch = 1; epoch <= old_count; epoch++) {
        new_epoch[epoch] = (uint16_t)((epoch + 1) / 2);
    }
    return (old_count + 1) / 2;
}

static void merge_old_epochs(void) {
    static uint16_t new_epoch[LP_EPOCH_MAX + 1];
    uint32_t old_count = lp_epoch_now - KEPT_SINGLE;
    uint32_t left = join_into(old_count, KEPT_OLD, new_epoch);
    for (uint32_t epoch = old_count + 1; epoch <= lp_epoch_now; epoch++) {
        new_epoch[epoch] = (uint16_t)(left + epoch - old_count);
    }
    lp_epoch_range joined = ranges[1];
    for (uint32_t epoch = 1; epoch <= lp_epoch_now; epoch++) {
        lp_epoch_range range = ranges[epoch];
        int continues = epoch > 1 && new_epoch[epoch] == new_epoch[epoch - 1];
        joined = continues ? (lp_epoch_range){joined.first_step, range.last_step, range.mode} : range;
        ranges[new_epoch[epoch]] = joined;
    }
    set_now(new_epoch[lp_epoch_now]);
    lp_shadow_remap_epochs(new_epoch);
}

uint32_t lp_epoch_advance(void) {
    LP_ASSERT_GIL();
    if (lp_epoch_now == LP_EPOCH_MAX) {
        merge_old_epochs();
    }
    uint8_t mode = ranges[lp_epoch_now].mode;
    uint32_t step = lp_step_now + 1;
    set_now(lp_epoch_now + 1);
    ranges[lp_epoch_now] = (lp_epoch_range){step, step, mode};
    __atomic_store_n(&lp_step_now, step, __ATOMIC_RELAXED);
    return step;
}

lp_epoch_range lp_epoch_steps(uint32_t epoch) {
    LP_ASSERT_GIL();
    if (epoch == 0 || epoch > lp_epoch_now) {
        return (lp_epoch_range){0, 0, 0};
    }
    return ranges[epoch];
}
