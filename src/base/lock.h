/* A mutex with a rank.  Debug builds check that ranks only rise.
 *
 * No thread that holds one may take the GIL, call Python, torch or CUDA: a
 * native hook waits here while another thread may hold the GIL. */
#ifndef LP_LOCK_H
#define LP_LOCK_H

#include <pthread.h>

#include "base/base.h"

typedef enum lp_rank {
    LP_RANK_SLOTS = 1,
    LP_RANK_CPU_BLOCKS,
    LP_RANK_MAPPINGS,
    LP_RANK_REGISTERED,
    LP_RANK_SEGMENTS,
    LP_RANK_SAMPLES,
    LP_RANK_LEDGER,
    LP_RANK_SITES,
    LP_RANK_RAWMEM
} lp_rank;

typedef struct lp_lock {
    pthread_mutex_t mutex;
    lp_rank rank;
} lp_lock;

#define LP_LOCK_INIT(rank_) {PTHREAD_MUTEX_INITIALIZER, rank_}

void lp_lock_take(lp_lock *lock);
void lp_lock_release(lp_lock *lock);

/* After fork, in the child: the lock is free again, whoever held it. */
void lp_lock_reset_in_child(lp_lock *lock);

#endif
