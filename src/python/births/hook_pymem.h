/* Hooks of CPython's object and memory allocators: stamp each block at its start, and erase the stamp
 * of an object's block as it is freed.
 *
 * A hook keeps the context of the allocator it wraps, so a struct read half old, half new is still right.
 * Once installed, a hook leaves the chain only from the top; below somebody else's it stays
 * as a pass-through, and serves again when it is made active.  All of it: GIL held. */
#ifndef LP_HOOK_PYMEM_H
#define LP_HOOK_PYMEM_H

#include "python/compat/compat.h"  // Python.h

typedef enum lp_pymem_domain { LP_PYMEM_OBJ, LP_PYMEM_MEM } lp_pymem_domain;

typedef enum lp_pymem_place {
    LP_PYMEM_ABSENT,    /* allocations do not come by */
    LP_PYMEM_ON_TOP,
    LP_PYMEM_BENEATH,   /* somebody wrapped the hook: still reached */
    LP_PYMEM_SHIFTED    /* reached, but callers get another address than the hook sees */
} lp_pymem_place;

/* Allocates a block and frees it, unless the hook is on top.  A hook on top that sees deaths only goes. */
lp_pymem_place lp_hook_pymem_place(lp_pymem_domain domain);
/* Wrap the allocator of now.  pre: the place is LP_PYMEM_ABSENT. */
void lp_hook_pymem_install(lp_pymem_domain domain);
/* Wrap the object allocator to see deaths only: another mechanism sees births.
 * pre: lp_hook_pymem_deaths_place() is LP_PYMEM_ABSENT. */
void lp_hook_pymem_install_deaths(void);
/* Births are stamped, by this hook or another one: note large blocks that are resized too. */
void lp_hook_pymem_note_large(int wanted);
/* Where another mechanism sees births: note large blocks that are made too, at the price of a call each object. */
void lp_hook_pymem_follow_large(int wanted);
/* Where the hook lies for blocks of objects that are freed; makes one and frees it, unless it is on top. */
lp_pymem_place lp_hook_pymem_deaths_place(void);
/* 1 if an object's block that is freed comes by the hook, at the address where its stamp is. */
int lp_hook_pymem_sees_deaths(void);
void lp_hook_pymem_uninstall(lp_pymem_domain domain);
/* Stamp, or pass through. */
void lp_hook_pymem_set_active(lp_pymem_domain domain, int active);

/* Why the allocator should not be wrapped now: the code of an error, or NULL.  *out_text says
 * what to do.  Imports _tracemalloc. */
const char *lp_hook_pymem_why_not(const char **out_text);

#endif
