/* Makes every object come from the allocator while the allocator hook serves.
 *
 * Floats and tuples: their free lists are emptied and closed.  Lists and dicts on 3.10 to
 * 3.12: a wrapped tp_dealloc frees what the original put on its list.  A full collection
 * opens the closed lists again: an entry in gc.callbacks closes them. */
#ifndef LP_FREELISTS_H
#define LP_FREELISTS_H

#include "python/compat/compat.h"  // Python.h

/* 0, or -1 with an exception set and nothing changed.  GIL. */
int lp_freelists_neutralise(void);
/* The free lists as they were before.  GIL. */
void lp_freelists_restore(void);
/* 1 if somebody had opened the lists, so that objects may have been recycled; they are closed again. */
int lp_freelists_were_opened(void);

#endif
