/* Sampling of what a preloaded shim sees: every call of malloc's functions, through whatever pointer. */
#ifndef LP_HOOK_PRELOAD_H
#define LP_HOOK_PRELOAD_H

#ifdef __linux__

#include "native/elf_slots.h"  // lp_slot_role

typedef lp_slot_role (*lp_role_fn)(const lp_elf_image *image, const char *path);

/* Whether blocks that this caller asked for are counted here: not those of the libraries for which `role_of` does not say
 * LP_SLOT_ALL.  Any thread, no lock. */
int lp_preloaded_counts(const void *caller);

/* Tell the shim where to report, and note the libraries; nothing where the program was not started under it. */
void lp_preloaded_begin(lp_role_fn role_of);
/* Note libraries that were loaded since. */
void lp_preloaded_refresh(lp_role_fn role_of);
void lp_preloaded_end(void);

/* The shim's function for one that it forwards to, NULL for others. */
void *lp_preloaded_instead_of(const void *function);

#endif
#endif
