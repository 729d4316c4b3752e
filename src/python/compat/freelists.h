/* CPython's free lists of the home interpreter: recycled objects, which no allocator sees. */
#ifndef LP_COMPAT_FREELISTS_H
#define LP_COMPAT_FREELISTS_H

#include "python/compat/compat.h"  // Python.h

/* Free lists of lists and dicts are arrays with a counter, which can't be told to stay empty. */
#define LP_HAS_ARRAY_FREELISTS (PY_VERSION_HEX < 0x030D0000)
/* All free lists are of one kind, and each can be told to stay empty. */
#define LP_HAS_GENERIC_FREELISTS (PY_VERSION_HEX >= 0x030E0000)

/* 1 if the lists are where the headers say.  If not, they stay in use: objects of all types that
 * have one may be recycled.  The first call must come before the lists are closed. */
int lp_freelists_are_known(void);

/* Empty the lists that can be closed, and close them; again after each full collection, which
 * opens them.  No Python code runs. */
void lp_freelists_close(void);
/* 1 as long as nobody opened them, or if they can't be closed. */
int lp_freelists_are_closed(void);
void lp_freelists_open(void);

/* Visit each block of a list that could be closed, and is not: of objects that are dead, and not freed. */
void lp_freelists_each_block(void (*visit)(const void *block));

/* Visit each block of the one list that stays in use while the others are closed, and whose blocks the object allocator
 * made: tables of dicts, before 3.13. */
void lp_freelists_each_table(void (*visit)(const void *block));

/* Blocks that lie in free lists now: allocated, but nobody's. */
int64_t lp_freelists_count(void);

#if LP_HAS_ARRAY_FREELISTS
typedef struct lp_array_freelist {
    PyObject **item;
    int *count;
} lp_array_freelist;

lp_array_freelist lp_freelists_of_lists(void);
lp_array_freelist lp_freelists_of_dicts(void);

/* Py_TRASHCAN_BEGIN and END as functions, without the calls where nothing is to be done. */
#if PY_VERSION_HEX < 0x030C0000
#define LP_TRASH_NESTING(tstate) ((tstate)->trash_delete_nesting)
#define LP_TRASH_LATER(tstate) ((tstate)->trash_delete_later)
#define LP_TRASH_LEVEL 50
#else
#define LP_TRASH_NESTING(tstate) ((tstate)->trash.delete_nesting)
#define LP_TRASH_LATER(tstate) ((tstate)->trash.delete_later)
#define LP_TRASH_LEVEL 50
#endif

/* 1 if op was put aside, to be freed when the nesting is less deep. */
static inline int lp_trash_enter(PyThreadState *tstate, PyObject *op) {
    if (LP_LIKELY(LP_TRASH_NESTING(tstate) < LP_TRASH_LEVEL)) {
        LP_TRASH_NESTING(tstate)++;
        return 0;
    }
    PyObject_GC_UnTrack(op);
    return _PyTrash_begin(tstate, op);
}

static inline void lp_trash_leave(PyThreadState *tstate) {
    if (LP_LIKELY(LP_TRASH_LATER(tstate) == NULL)) {
        LP_TRASH_NESTING(tstate)--;
    } else {
        _PyTrash_end(tstate);
    }
}
#endif

#endif
