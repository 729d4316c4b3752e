/* Interned texts: file and function names, kept for the life of the process. */
#ifndef LP_TEXTS_H
#define LP_TEXTS_H

/* The one copy of a text; "" when out of memory.  The caller holds the lock of the sites. */
const char *lp_texts_intern_lock_held(const char *text);
/* The text if it was interned before, else "". */
const char *lp_texts_find_lock_held(const char *text);

#endif
