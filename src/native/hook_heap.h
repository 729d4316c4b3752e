/* The allocating functions of the C library and of C++ in the import slots of all loaded libraries, for as long as
 * native growth is suspected.  What crosses no slot is not seen: a pointer from dlsym() that is called otherwise than
 * through libffi, and code that is linked statically.  Under the preloaded shim, which sees these too, only slots that
 * do not lead to it are patched. */
#ifndef LP_HOOK_HEAP_H
#define LP_HOOK_HEAP_H

#include "base/base.h"

/* Patch and sample.  `interpreter`: an address in the library of the interpreter, whose blocks other hooks count.
 * LP_UNSUPPORTED off Linux. */
lp_status lp_heap_begin(uint64_t mean_bytes, const void *interpreter);
/* Patch what was loaded since. */
void lp_heap_refresh(void);
/* The file of the library that an address lies in, as of the last scan, or NULL; asks no loader, whose lock a thread may
 * hold that waits for one of ours.  pre: GIL. */
const char *lp_heap_library_of(const void *address);
/* Put back the slots; how many are left below another tool. */
size_t lp_heap_end(void);

#endif
