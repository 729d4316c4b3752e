/* Owns the samples under one lock, and a filter that is read without it: a free that is not sampled costs one
 * load. */
#include "native/samples.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"        // lp_lock
#include "base/probing.h"     // lp_probing_fills
#include "base/rawmem.h"      // lp_raw_calloc
#include "ledger/epoch.h"     // lp_step_now
#include "native/capture.h"   // lp_capture_caller
#include "native/numbers.h"   // LP_HEAP_SAMPLES_LG

#define MOST_SAMPLES ((size_t)1 << LP_HEAP_SAMPLES_LG)
#define TABLE_LG (LP_HEAP_SAMPLES_LG + 1)
#define TABLE_SLOTS ((size_t)1 << TABLE_LG)
#define FILTER_SLOTS ((size_t)1 << LP_HEAP_FILTER_LG)

static struct {
    lp_lock lock;
    /* Protected by the lock.  table: address => sample, open addressing, linear probing, backward-shift deletion. */
    lp_sample *table;
    lp_samples_counts counts;
    /* Read without it. */
    _Atomic int is_on;
    _Atomic uint64_t mean;
    /* Samples by the hash of their address: most frees learn from one load that theirs is none. */
    _Atomic uint8_t filter[FILTER_SLOTS];
} state = {.lock = LP_LOCK_INIT(LP_RANK_SAMPLES)};

/* Of each thread.  `inside`: a hook of ours runs, or a fork. */
static __thread struct {
    int64_t left;
    uint64_t random;
    int inside;
} mine;

static uint64_t hash_of(uint64_t address) { return (address >> LP_HEAP_ALIGN_LG) * LP_HEAP_HASH; }

static _Atomic uint8_t *filter_of(uint64_t address) {
    return &state.filter[hash_of(address) >> (LP_HEAP_WORD - LP_HEAP_FILTER_LG)];
}

/* ---- chance ---- */

/* Uniform in (0, 1]. */
static double chance(void) {
    uint64_t x = mine.random != 0 ? mine.random : hash_of((uint64_t)(uintptr_t)&mine) | 1;
    x ^= x << LP_HEAP_SHIFT_A;
    x ^= x >> LP_HEAP_SHIFT_B;
    x ^= x << LP_HEAP_SHIFT_C;
    mine.random = x;
    return (double)((x >> (LP_HEAP_WORD - LP_HEAP_FRACTION)) + 1) / (double)((uint64_t)1 << LP_HEAP_FRACTION);
}

/* Bytes until the next sample: exponential with this mean. */
static int64_t next_distance(double mean_bytes) { return 1 + (int64_t)(-log(chance()) * mean_bytes); }

/* What a block that was taken stands for. */
static uint64_t weight_of(uint64_t bytes, double mean_bytes) {
    return (uint64_t)((double)bytes / -expm1(-(double)bytes / mean_bytes));
}

/* ---- the table; the lock is held ---- */

static size_t home(uint64_t address) { return (size_t)(hash_of(address) >> (LP_HEAP_WORD - TABLE_LG)); }

static size_t find(uint64_t address) {
    size_t at = home(address);
    while (state.table[at].address != 0 && state.table[at].address != address) {
        at = (at + 1) & (TABLE_SLOTS - 1);
    }
    return at;
}

static void remove_at(size_t hole) {
    size_t mask = TABLE_SLOTS - 1;
    for (size_t at = (hole + 1) & mask; state.table[at].address != 0; at = (at + 1) & mask) {
        if (lp_probing_fills(at, home(state.table[at].address), hole, mask)) {
            state.table[hole] = state.table[at];
            hole = at;
        }
    }
    state.table[hole].address = 0;
    state.counts.live--;
}

static void count_up(uint64_t address) {
    _Atomic uint8_t *counter = filter_of(address);
    if (atomic_load_explicit(counter, memory_order_relaxed) < LP_HEAP_FILTER_MOST) {
        atomic_fetch_add(counter, 1);
    }
}

static void count_down(uint64_t address) {
    _Atomic uint8_t *counter = filter_of(address);
    if (atomic_load_explicit(counter, memory_order_relaxed) < LP_HEAP_FILTER_MOST) {
        atomic_fetch_sub(counter, 1);
    }
}

static int take_out(uint64_t address) {
    size_t at = state.table == NULL ? 0 : find(address);
    if (state.table == NULL || state.table[at].address == 0) {
        return 0;
    }
    remove_at(at);
    count_down(address);
    return 1;
}

static void put_in(const lp_sample *sample) {
    if (state.table == NULL || state.counts.live == MOST_SAMPLES) {
        state.counts.dropped++;
        return;
    }
    state.counts.missed_deaths += (uint64_t)take_out(sample->address);
    state.table[find(sample->address)] = *sample;
    state.counts.live++;
    state.counts.taken++;
    count_up(sample->address);
}

/* ---- events ---- */

static int may_be_known(uint64_t address) {
    return atomic_load_explicit(filter_of(address), memory_order_relaxed) != 0;
}

static int remove_sample(uint64_t address, uint64_t missed) {
    lp_lock_take(&state.lock);
    int was_known = take_out(address);
    state.counts.missed_deaths += was_known ? missed : 0;
    lp_lock_release(&state.lock);
    return was_known;
}

static LP_NOINLINE void take(uint64_t address, uint64_t bytes, const void *caller) {
    double mean_bytes = (double)atomic_load_explicit(&state.mean, memory_order_relaxed);
    mine.left = next_distance(mean_bytes);
    lp_sample sample = {address, weight_of(bytes, mean_bytes), (uint64_t)(uintptr_t)caller, lp_capture_caller(caller),
                        __atomic_load_n(&lp_step_now, __ATOMIC_RELAXED)};
    lp_lock_take(&state.lock);
    put_in(&sample);
    lp_lock_release(&state.lock);
}

void lp_samples_born(const void *block, uint64_t bytes, const void *caller) {
    uint64_t address = (uint64_t)(uintptr_t)block;
    if (!lp_samples_are_on() || block == NULL || mine.inside) {
        return;
    }
    mine.inside = 1;
    if (LP_UNLIKELY(may_be_known(address))) {
        (void)remove_sample(address, 1);
    }
    int64_t some = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    if (LP_UNLIKELY(mine.random == 0)) {
        mine.left = next_distance((double)atomic_load_explicit(&state.mean, memory_order_relaxed));
    }
    if (LP_LIKELY(mine.left > some)) {
        mine.left -= some;
    } else {
        take(address, bytes, caller);
    }
    mine.inside = 0;
}

int lp_samples_died(const void *block) {
    uint64_t address = (uint64_t)(uintptr_t)block;
    if (!lp_samples_are_on() || block == NULL || !may_be_known(address) || mine.inside) {
        return 0;
    }
    mine.inside = 1;
    int was_known = remove_sample(address, 0);
    mine.inside = 0;
    return was_known;
}

/* ---- on and off ---- */

int lp_samples_are_on(void) { return atomic_load_explicit(&state.is_on, memory_order_acquire); }

void lp_samples_set_mean(uint64_t mean_bytes) { atomic_store(&state.mean, mean_bytes == 0 ? 1 : mean_bytes); }

/* The lock is held. */
static void forget(void) {
    lp_raw_free(state.table);
    state.table = NULL;
    memset(&state.counts, 0, sizeof(state.counts));
    for (size_t i = 0; i < FILTER_SLOTS; i++) {
        atomic_store_explicit(&state.filter[i], 0, memory_order_relaxed);
    }
}

lp_status lp_samples_begin(uint64_t mean_bytes) {
    if (lp_samples_are_on()) {
        return LP_OK;
    }
    lp_samples_set_mean(mean_bytes);
    lp_lock_take(&state.lock);
    forget();
    state.table = lp_raw_calloc(TABLE_SLOTS, sizeof(*state.table));
    lp_status status = state.table == NULL ? LP_NO_MEMORY : LP_OK;
    lp_lock_release(&state.lock);
    atomic_store(&state.is_on, status == LP_OK);
    return status;
}

void lp_samples_end(void) {
    atomic_store(&state.is_on, 0);
    lp_lock_take(&state.lock);
    forget();
    lp_lock_release(&state.lock);
}

void lp_samples_count(lp_samples_counts *out_counts) {
    lp_lock_take(&state.lock);
    *out_counts = state.counts;
    lp_lock_release(&state.lock);
}

lp_status lp_samples_copy(lp_sample **out_samples, size_t *out_count) {
    *out_count = 0;
    *out_samples = lp_raw_malloc((MOST_SAMPLES + 1) * sizeof(**out_samples));
    if (*out_samples == NULL) {
        return LP_NO_MEMORY;
    }
    lp_lock_take(&state.lock);
    for (size_t i = 0; lp_samples_are_on() && i < TABLE_SLOTS; i++) {
        if (state.table[i].address != 0) {
            (*out_samples)[(*out_count)++] = state.table[i];
        }
    }
    lp_lock_release(&state.lock);
    return LP_OK;
}

void lp_samples_before_fork(void) {
    mine.inside = 1;
    lp_lock_take(&state.lock);
}

void lp_samples_after_fork_in_parent(void) {
    lp_lock_release(&state.lock);
    mine.inside = 0;
}

/* Its slots lead here, and nothing is taken. */
void lp_samples_reset_in_child(void) {
    lp_lock_reset_in_child(&state.lock);
    atomic_store(&state.is_on, 0);
    mine.inside = 0;
}
