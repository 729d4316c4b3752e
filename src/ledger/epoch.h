/* Epochs: which steps each 12-bit epoch of a stamp stands for.
 *
 * epoch => [first_step, last_step].  The current epoch is the current step alone
 * until the bits run out; then the old epochs are merged into spans of a power of two
 * steps, the newest 1,024 stay single, and every stamp is rewritten
 * (lp_shadow_remap_epochs), so a run of any length keeps the birth step, exact for
 * young blocks, a range for old ones (a 1,535th to a 768th of the run).
 *
 * The GIL protects all of it; native blocks carry whole 32-bit steps instead. */
#ifndef LP_EPOCH_H
#define LP_EPOCH_H

#include "ledger/shadow.h"  // LP_EPOCH_MAX

extern uint32_t lp_epoch_now;          /* epoch of the current step, 1..LP_EPOCH_MAX */
extern LP_HIDDEN lp_stamp lp_epoch_bits;  /* a stamp of it without a site */
extern uint32_t lp_step_now;           /* number of the current step; read by every thread */

typedef struct lp_epoch_range {
    uint32_t first_step, last_step;
    uint8_t mode;                      /* the mechanism that stamped: 1 allocator hook, 2 creation events */
} lp_epoch_range;

void lp_epoch_reset(uint8_t mode);     /* step 0, epoch 1 */
void lp_epoch_set_mode(uint8_t mode);
/* End the step; returns the number of the new one. */
uint32_t lp_epoch_advance(void);
/* The steps of an epoch; epoch 0 gives {0, 0, 0}. */
lp_epoch_range lp_epoch_steps(uint32_t epoch);

#endif
