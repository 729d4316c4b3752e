/* Owns the samples under one lock, and a filter that is read without it: a free that is not sampled costs one
 * load. */
#include "native/samples.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock.h"        // lp_lock
#include "base/probing.h"     // lp_probing_fills
#include "base/rawmem.h"      // lp_raw_calloc
#include "ledger/epoch.h"     // lp_step_now
#include "native/capture.h"   // lp_capture_caller
#include "native/numbers.h"   // LP_HEAP_SAMPLES_LG

#define MOST_SAMPLES ((size_t)1 << LP_HEAP_SAMPLES_LG)
#define TABLE_LG (LP_HEAP_SAMPLES_LG + 1)
#define TABLE_SLOTS ((size_t)1 << TABLE_LG)

static struct {
    lp_lock lock;
    /* Protected by the lock.  table: address => sample, open addressing, linear probing, backward-shift deletion. */
    lp_sample *table;
    lp_samples_counts counts;
    /* Read without it. */
    int (*_Atomic is_counted)(const void *caller);
    _Atomic int is_on;
    _Atomic int is_paused;               /* a fork is under way: nobody waits for the lock */
    _Atomic uint64_t mean, missed_in_pause, seeded_threads;
} state = {.lock = LP_LOCK_INIT(LP_RANK_SAMPLES)};

/* Samples by address: most frees learn from one load that theirs is none.  Read without the lock. */
LP_HIDDEN _Atomic uint8_t lp_samples_filter[LP_SAMPLING_FILTER_SLOTS];

/* Of each thread, where calls come through slots. */
static __thread lp_sampling of_thread;

static uint64_t hash_of(uint64_t address) { return (address >> LP_HEAP_ALIGN_LG) * LP_HASH_FACTOR; }

static _Atomic uint8_t *filter_of(uint64_t address) { return &lp_samples_filter[lp_sampling_slot(address)]; }

/* ---- chance ---- */

/* Threads that come one after another lie at one address: their number tells them apart. */
static uint64_t first_random(const lp_sampling *mine) {
    uint64_t number = atomic_fetch_add_explicit(&state.seeded_threads, 1, memory_order_relaxed);
    return (hash_of((uint64_t)(uintptr_t)mine) ^ number * LP_HASH_FACTOR) | 1;
}

/* Uniform in (0, 1]. */
static double chance(lp_sampling *mine) {
    uint64_t x = mine->random != 0 ? mine->random : first_random(mine);
    x ^= x << LP_HEAP_SHIFT_A;
    x ^= x >> LP_HEAP_SHIFT_B;
    x ^= x << LP_HEAP_SHIFT_C;
    mine->random = x;
    return (double)((x >> (LP_HASH_BITS - LP_HEAP_FRACTION)) + 1) / (double)((uint64_t)1 << LP_HEAP_FRACTION);
}

/* Bytes until the next sample: exponential with this mean. */
static int64_t next_distance(lp_sampling *mine) {
    double mean_bytes = (double)atomic_load_explicit(&state.mean, memory_order_relaxed);
    return 1 + (int64_t)(-log(chance(mine)) * mean_bytes);
}

/* A distance of which so many bytes have gone by.  An exponential one has no memory: what is left of a long one may be
 * drawn again at any point, and so none that was drawn under another mean lasts. */
static void draw(lp_sampling *mine, int64_t gone) {
    int64_t left = next_distance(mine) - gone;
    mine->goes_on = left > LP_SAMPLING_STRETCH;
    mine->left = mine->goes_on ? LP_SAMPLING_STRETCH : left;
}

static double probability(uint64_t bytes, double mean_bytes) { return -expm1(-(double)bytes / mean_bytes); }

/* ---- the table; the lock is held ---- */

static size_t home(uint64_t address) { return (size_t)(hash_of(address) >> (LP_HASH_BITS - TABLE_LG)); }

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

/* 1 with the lock held, or 0 while a fork is under way. */
static int enter(void) {
    lp_lock_take(&state.lock);
    if (LP_LIKELY(!atomic_load(&state.is_paused))) {
        return 1;
    }
    lp_lock_release(&state.lock);
    return 0;
}

/* errno stays as the allocating function has left it. */
static LP_NOINLINE int remove_sample(uint64_t address, uint64_t missed) {
    int error = errno, was_known = 0;
    if (enter()) {
        was_known = take_out(address);
        state.counts.missed_deaths += was_known ? missed : 0;
        lp_lock_release(&state.lock);
    } else {
        atomic_fetch_add(&state.missed_in_pause, 1);
    }
    errno = error;
    return was_known;
}

static void take(uint64_t address, uint64_t bytes, const void *caller) {
    if (atomic_load_explicit(&state.is_counted, memory_order_relaxed)(caller) && enter()) {
        lp_sample sample = {address, bytes != 0 ? bytes : 1, (uint64_t)(uintptr_t)caller, lp_capture_caller(caller),
                            __atomic_load_n(&lp_step_now, __ATOMIC_RELAXED)};
        put_in(&sample);
        lp_lock_release(&state.lock);
    }
}

int lp_samples_is_taken(lp_sampling *mine, uint64_t bytes) {
    if (LP_UNLIKELY(mine->random == 0)) {
        draw(mine, lp_sampling_bytes(bytes));
    }
    if (mine->left <= 0 && mine->goes_on) {
        draw(mine, -mine->left);
    }
    if (mine->left > 0) {
        return 0;
    }
    draw(mine, 0);
    return 1;
}

void lp_samples_look(lp_sampling *mine, const void *block, uint64_t bytes, const void *caller) {
    uint64_t address = (uint64_t)(uintptr_t)block;
    int error = errno;
    if (!lp_samples_are_on() || mine->is_inside) {
        return;
    }
    if (block == NULL) {
        mine->left += lp_sampling_bytes(bytes);
        return;
    }
    mine->is_inside = 1;
    if (lp_sampling_may_know(lp_samples_filter, block)) {
        (void)remove_sample(address, 1);
    }
    if (lp_samples_is_taken(mine, bytes)) {
        take(address, bytes, caller);
    }
    mine->is_inside = 0;
    errno = error;
}

void lp_samples_born(const void *block, uint64_t bytes, const void *caller) {
    if (lp_samples_are_on()) {
        lp_sampling *mine = &of_thread;
        if (LP_UNLIKELY(lp_sampling_is_due(mine, lp_samples_filter, block, bytes))) {
            lp_samples_look(mine, block, bytes, caller);
        }
    }
}

int lp_samples_is_map(const void *block, int protection, int flags) {
    int is_memory = (flags & MAP_ANONYMOUS) != 0 && (flags & MAP_PRIVATE) != 0 && (flags & MAP_FIXED) == 0;
    return block != MAP_FAILED && is_memory && (protection & PROT_WRITE) != 0;
}

void lp_samples_mapped(const void *block, uint64_t bytes, int protection, int flags, const void *caller) {
    if (lp_samples_is_map(block, protection, flags)) {
        lp_samples_born(block, bytes, caller);
    }
}

/* Looks at nothing of the thread's: that may be gone when the loader frees the thread's memory. */
int lp_samples_died(const void *block) {
    if (LP_LIKELY(!lp_sampling_may_know(lp_samples_filter, block)) || block == NULL || !lp_samples_are_on()) {
        return 0;
    }
    return remove_sample((uint64_t)(uintptr_t)block, 0);
}

/* ---- on and off ---- */

int lp_samples_are_on(void) { return atomic_load_explicit(&state.is_on, memory_order_acquire); }

/* Drop each sample with the probability that the larger mean would not have taken it.  The lock is held. */
static lp_status thin(double mean_bytes, double raised) {
    lp_sampling own = {0};
    size_t count = 0;
    uint64_t *dropped = lp_raw_malloc((MOST_SAMPLES + 1) * sizeof(*dropped));
    if (dropped == NULL) {
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < TABLE_SLOTS; i++) {
        const lp_sample *sample = &state.table[i];
        if (sample->address != 0 &&
            chance(&own) * probability(sample->bytes, mean_bytes) > probability(sample->bytes, raised)) {
            dropped[count++] = sample->address;
        }
    }
    while (count > 0) {
        (void)take_out(dropped[--count]);
    }
    lp_raw_free(dropped);
    return LP_OK;
}

void lp_samples_raise_mean(uint64_t mean_bytes) {
    lp_lock_take(&state.lock);
    uint64_t before = atomic_load(&state.mean);
    if (mean_bytes > before && state.table != NULL && thin((double)before, (double)mean_bytes) == LP_OK) {
        atomic_store(&state.mean, mean_bytes);
    }
    lp_lock_release(&state.lock);
}

/* The lock is held. */
static void forget(void) {
    lp_raw_free(state.table);
    state.table = NULL;
    memset(&state.counts, 0, sizeof(state.counts));
    for (size_t i = 0; i < LP_SAMPLING_FILTER_SLOTS; i++) {
        atomic_store_explicit(&lp_samples_filter[i], 0, memory_order_relaxed);
    }
}

lp_status lp_samples_begin(uint64_t mean_bytes, int (*is_counted)(const void *caller)) {
    if (lp_samples_are_on()) {
        return LP_OK;
    }
    lp_lock_take(&state.lock);
    forget();
    atomic_store(&state.mean, mean_bytes == 0 ? 1 : mean_bytes);
    atomic_store(&state.is_counted, is_counted);
    atomic_store(&state.missed_in_pause, 0);
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
    out_counts->missed_deaths += atomic_load(&state.missed_in_pause);
    lp_lock_release(&state.lock);
}

lp_status lp_samples_copy(lp_sample **out_samples, size_t *out_count) {
    *out_count = 0;
    *out_samples = lp_raw_malloc((MOST_SAMPLES + 1) * sizeof(**out_samples));
    if (*out_samples == NULL) {
        return LP_NO_MEMORY;
    }
    lp_lock_take(&state.lock);
    double mean_bytes = (double)atomic_load(&state.mean);
    for (size_t i = 0; lp_samples_are_on() && i < TABLE_SLOTS; i++) {
        lp_sample sample = state.table[i];
        if (sample.address != 0) {
            sample.bytes = (uint64_t)((double)sample.bytes / probability(sample.bytes, mean_bytes));
            (*out_samples)[(*out_count)++] = sample;
        }
    }
    lp_lock_release(&state.lock);
    return LP_OK;
}

/* Who waited would wait for the whole fork, perhaps with a lock that fork() itself waits for: libc's of its streams, or one
 * that a library's own handler takes. */
void lp_samples_before_fork(void) {
    atomic_store(&state.is_paused, 1);
    lp_lock_take(&state.lock);   /* until those that are inside have left */
    lp_lock_release(&state.lock);
}

void lp_samples_after_fork_in_parent(void) { atomic_store(&state.is_paused, 0); }

/* Its slots lead here, and nothing is taken. */
void lp_samples_reset_in_child(void) {
    lp_lock_reset_in_child(&state.lock);
    atomic_store(&state.is_on, 0);
    atomic_store(&state.is_paused, 0);
    of_thread.is_inside = 0;
}
