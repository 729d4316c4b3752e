/* Objects that the collector does not track and that nothing in reach refers to: lost ones, and
 * those that only C code keeps.
 *
 * They are found where deaths are seen, among the blocks that were born since the hooks; and, for arrays that hold
 * themselves, in numpy's blocks of the ledger. */
#ifndef LP_UNTRACKED_H
#define LP_UNTRACKED_H

#include "python/heap/heapwalk.h"

/* Which of them: a bytes object may be a part of another object that is lost too (lp_heap_has_part()),
 * so that these come when the others, and what they refer to, are known. */
typedef enum lp_untracked_round { LP_UNTRACKED_OTHERS, LP_UNTRACKED_BYTES, LP_UNTRACKED_ROUNDS } lp_untracked_round;

/* Whether a walk looks for them: it then visits all stamps. */
extern int lp_untracked_are_wanted;

/* Visit each untracked object of the round in a live block of which is_known(arg, address) is 0.  An object
 * is told by its type, which must be known.  visit returns nonzero to stop. */
void lp_untracked_each(lp_untracked_round round, int (*is_known)(void *arg, uintptr_t address),
                       int (*visit)(PyObject *, void *arg), void *arg);

/* Of the block that starts in a granule of a shadow, where a birth is stamped: 1 if an object that is known
 * lies in it; and the live object in it that is not known, or NULL. */
int lp_untracked_has_known(uintptr_t start, int is_small, int (*is_known)(void *arg, uintptr_t address), void *arg);
PyObject *lp_untracked_object(uintptr_t start, int is_small, int (*is_known)(void *arg, uintptr_t address), void *arg);
/* The live object in such a block, tracked or not, or NULL.  pre: lp_heap_begin_walk(). */
PyObject *lp_untracked_or_not(uintptr_t start, int is_small);

/* Add such objects to a walk that is closed otherwise, and what they refer to. */
lp_status lp_untracked_add(lp_walk *walk);

#endif
