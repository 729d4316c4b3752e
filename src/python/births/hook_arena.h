/* Counts the bytes that pymalloc holds in arenas, through PyObject_SetArenaAllocator.
 *
 * A few events a second.  Arenas from before the installation are not known: the count
 * is what was taken since, less what was given back since, and may fall below 0. */
#ifndef LP_HOOK_ARENA_H
#define LP_HOOK_ARENA_H

#include "python/compat/compat.h"  // Python.h

#include "base/base.h"      // int64_t

/* Chain our counter in front of the arena allocator; again does no harm.  GIL. */
void lp_hook_arena_install(void);
/* Take it out if it is still on top, else leave it as a pass-through.  GIL. */
void lp_hook_arena_uninstall(void);

int lp_hook_arena_is_active(void);
/* Arena bytes taken since the installation, less those given back. */
int64_t lp_hook_arena_bytes(void);

#endif
