/* Ranks of the locks that a thread holds. They only rise, which is what keeps two threads from waiting for each
 * other. */
#include "base/lock.h"

#ifdef LEAKPROBE_DEBUG
/* Ranks this thread holds, as bits: a lock may only be taken above all of them. */
static _Thread_local unsigned held_ranks;
#endif

void lp_lock_take(lp_lock *lock) {
    LP_ASSERT((held_ranks >> lock->rank) == 0);
    pthread_mutex_lock(&lock->mutex);
#ifdef LEAKPROBE_DEBUG
    held_ranks |= 1u << lock->rank;
#endif
}

void lp_lock_release(lp_lock *lock) {
#ifdef LEAKPROBE_DEBUG
    held_ranks &= ~(1u << lock->rank);
#endif
    pthread_mutex_unlock(&lock->mutex);
}

void lp_lock_reset_in_child(lp_lock *lock) {
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock->mutex = fresh;
#ifdef LEAKPROBE_DEBUG
    held_ranks = 0;
#endif
}
