/* Whether torch's getters would meet what another thread is changing. */
#ifndef LP_OWNERS_TORCH_CHANGES_H
#define LP_OWNERS_TORCH_CHANGES_H

/* Why they must not be called now, static text; NULL where they may be.  GIL held. */
const char *lp_torch_changes(void);
/* Lets other threads run until there is no reason, for LP_TORCH_PATIENCE_NS at most.  GIL held, and given up meanwhile:
 * before a walk begins. */
void lp_torch_await_changes(void);

#endif
