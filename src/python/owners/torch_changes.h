/* Whether torch's getters would meet what another thread is changing. */
#ifndef LP_OWNERS_TORCH_CHANGES_H
#define LP_OWNERS_TORCH_CHANGES_H

/* Why they must not be called now, static text; NULL where they may be.  Lets other threads run for a while, up to
 * LP_TORCH_PATIENCE_NS, where that may help.  GIL held, and given up meanwhile: nothing may be borrowed. */
const char *lp_torch_await_changes(void);

#endif
