#include "ledger/epoch.h"

/* Epochs that stay one step each when old ones are merged. */
#define KEPT_SINGLE 1024

uint32_t lp_epoch_now = 1;
uint32_t lp_step_now;

static lp_epoch_range ranges[LP_EPOCH_MAX + 1];

void lp_epoch_reset(uint8_t mode) {
    __atomic_store_n(&lp_step_now, 0, __ATOMIC_RELAXED);
    lp_epoch_now = 1;
    ranges[1] = (lp_epoch_range){0, 0, mode};
}

void lp_epoch_set_mode(uint8_t mode) {
    ranges[lp_epoch_now].mode = mode;
}

/* Merge pairs of the old epochs of the same mode; the newest KEPT_SINGLE move down unmerged. */
static void merge_old_epochs(void) {
    static uint16_t new_epoch[LP_EPOCH_MAX + 1];
    uint32_t next = 0, old = 1;
    while (old <= lp_epoch_now) {
        lp_epoch_range range = ranges[old];
        new_epoch[old] = (uint16_t)++next;
        uint32_t pair = old + 1;
        if (pair + KEPT_SINGLE <= lp_epoch_now && ranges[pair].mode == range.mode) {
            range.last_step = ranges[pair].last_step;
            new_epoch[pair] = (uint16_t)next;
            old = pair;
        }
        ranges[next] = range;
        old++;
    }
    lp_epoch_now = next;
    lp_shadow_remap_epochs(new_epoch);
}

uint32_t lp_epoch_advance(void) {
    if (lp_epoch_now == LP_EPOCH_MAX) {
        merge_old_epochs();
    }
    uint8_t mode = ranges[lp_epoch_now].mode;
    uint32_t step = lp_step_now + 1;
    lp_epoch_now++;
    ranges[lp_epoch_now] = (lp_epoch_range){step, step, mode};
    __atomic_store_n(&lp_step_now, step, __ATOMIC_RELAXED);
    return step;
}

lp_epoch_range lp_epoch_steps(uint32_t epoch) {
    if (epoch == 0 || epoch > lp_epoch_now) {
        return (lp_epoch_range){0, 0, 0};
    }
    return ranges[epoch];
}
