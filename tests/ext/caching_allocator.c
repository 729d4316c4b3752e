/* Stands for libc10_cuda: a caching allocator that calls the profiler's entry points as torch's does, through
 * import slots, with the lock of the device held.  Built as libc10_cuda_standin.so.
 *
 * Blocks are multiples of 512 bytes, cut from segments of cudaMalloc and kept for reuse, last freed first: an
 * address comes back soon.  A delayed free is reported at once, its memory is used again only after standin_poll(). */
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef OLD_MANGLING
#define REPORT _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE
#define REPORT_OOM _ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE
#else
#define REPORT _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define REPORT_OOM _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#endif
/* A device as a whole word: the two bytes, and garbage above them, as real builds leave it. */
void REPORT(void *block, int64_t bytes, size_t allocated, size_t reserved, uint64_t device);
void REPORT_OOM(int64_t bytes, size_t allocated, size_t reserved, uint64_t device);
int cudaMalloc(void **out, size_t bytes);
int cudaFree(void *block);
typedef struct CUstream_st *stream_t;
int cudaMallocAsync(void **out, size_t bytes, stream_t stream);
int cudaFreeAsync(void *block, stream_t stream);
int cudaSetDevice(int device);

enum { DEVICES = 4, POOLS = 3, ROUND = 512, SEGMENT = 2 << 20, CLASSES = 48 };

typedef struct block {
    struct block *next;
    char *address;
    size_t bytes;
    int device, pool;
    int owns_segment;      /* taken whole from cudaMalloc: standin_empty_cache() can give it back */
} block;

typedef struct device_state {
    pthread_mutex_t lock;
    block *cached[POOLS][CLASSES];
    block *waiting;
    char *piece[POOLS];    /* the rest of a segment that is being cut up */
    size_t piece_bytes[POOLS];
    size_t allocated, reserved;
} device_state;

static device_state states[DEVICES] = {{.lock = PTHREAD_MUTEX_INITIALIZER},
                                       {.lock = PTHREAD_MUTEX_INITIALIZER},
                                       {.lock = PTHREAD_MUTEX_INITIALIZER},
                                       {.lock = PTHREAD_MUTEX_INITIALIZER}};

static uint64_t device_word(int device) { return UINT64_C(0xDEADBEEF12340000) | (uint64_t)(uint8_t)device << 8 | 1; }

static int class_of(size_t bytes) {
    int c = 0;
    for (size_t most = ROUND; most < bytes; most *= 2) {
        c++;
    }
    return c;
}

static block *pop_cached(device_state *state, int pool, size_t bytes) {
    for (block **at = &state->cached[pool][class_of(bytes)]; *at != NULL; at = &(*at)->next) {
        if ((*at)->bytes == bytes) {
            block *found = *at;
            *at = found->next;
            return found;
        }
    }
    return NULL;
}

static block *new_block(char *address, size_t bytes, int device, int pool, int owns) {
    block *made = malloc(sizeof(*made));
    *made = (block){NULL, address, bytes, device, pool, owns};
    return made;
}

static block *take_from_runtime(device_state *state, int device, int pool, size_t bytes) {
    void *address = NULL;
    cudaSetDevice(device);
    if (bytes > SEGMENT / 2) {
        if (cudaMalloc(&address, bytes) != 0) {
            return NULL;
        }
        state->reserved += bytes;
        return new_block(address, bytes, device, pool, 1);
    }
    if (state->piece_bytes[pool] < bytes) {
        if (cudaMalloc(&address, SEGMENT) != 0) {
            return NULL;
        }
        state->reserved += SEGMENT;
        state->piece[pool] = address;
        state->piece_bytes[pool] = SEGMENT;
    }
    block *made = new_block(state->piece[pool], bytes, device, pool, 0);
    state->piece[pool] += bytes;
    state->piece_bytes[pool] -= bytes;
    return made;
}

static void empty_cache_lock_held(device_state *state) {
    for (int pool = 0; pool < POOLS; pool++) {
        for (int c = 0; c < CLASSES; c++) {
            for (block **at = &state->cached[pool][c]; *at != NULL;) {
                block *found = *at;
                if (!found->owns_segment) {
                    at = &found->next;
                    continue;
                }
                *at = found->next;
                state->reserved -= found->bytes;
                cudaFree(found->address);
                free(found);
            }
        }
    }
}

static block *alloc_lock_held(device_state *state, int device, int pool, size_t bytes) {
    size_t rounded = (bytes + ROUND - 1) / ROUND * ROUND;
    block *made = pop_cached(state, pool, rounded);
    if (made == NULL) {
        made = take_from_runtime(state, device, pool, rounded);
    }
    if (made == NULL) {
        empty_cache_lock_held(state);
        made = take_from_runtime(state, device, pool, rounded);
    }
    if (made == NULL) {
        REPORT_OOM((int64_t)bytes, state->allocated, state->reserved, device_word(device));
        return NULL;
    }
    state->allocated += rounded;
    REPORT(made->address, (int64_t)rounded, state->allocated, state->reserved, device_word(device));
    return made;
}

static void cache_lock_held(device_state *state, block *old) {
    block **head = &state->cached[old->pool][class_of(old->bytes)];
    old->next = *head;
    *head = old;
}

static void free_lock_held(device_state *state, block *old, int delayed) {
    char *address = old->address;
    size_t bytes = old->bytes;
    state->allocated -= bytes;
    if (delayed) {
        old->next = state->waiting;
        state->waiting = old;
    } else {
        cache_lock_held(state, old);
    }
    REPORT(address, -(int64_t)bytes, state->allocated, state->reserved, device_word(old->device));
}

/* A block of so many bytes, rounded up, of a pool (0: the common one); NULL when out of memory. */
void *standin_alloc(int device, int pool, size_t bytes) {
    pthread_mutex_lock(&states[device].lock);
    block *made = alloc_lock_held(&states[device], device, pool, bytes);
    pthread_mutex_unlock(&states[device].lock);
    return made;
}

/* delayed: a stream uses it still, as after record_stream(). */
void standin_free(void *made, int delayed) {
    block *old = made;
    device_state *state = &states[old->device];
    pthread_mutex_lock(&state->lock);
    free_lock_held(state, old, delayed);
    pthread_mutex_unlock(&state->lock);
}

void *standin_address(const void *made) { return ((const block *)made)->address; }
size_t standin_bytes(const void *made) { return ((const block *)made)->bytes; }

/* The streams have passed: what waits may be used again. */
void standin_poll(int device) {
    device_state *state = &states[device];
    pthread_mutex_lock(&state->lock);
    while (state->waiting != NULL) {
        block *old = state->waiting;
        state->waiting = old->next;
        cache_lock_held(state, old);
    }
    pthread_mutex_unlock(&state->lock);
}

void standin_empty_cache(int device) {
    pthread_mutex_lock(&states[device].lock);
    empty_cache_lock_held(&states[device]);
    pthread_mutex_unlock(&states[device].lock);
}

void standin_totals(int device, size_t *out_allocated, size_t *out_reserved) {
    pthread_mutex_lock(&states[device].lock);
    *out_allocated = states[device].allocated;
    *out_reserved = states[device].reserved;
    pthread_mutex_unlock(&states[device].lock);
}

/* A pool's blocks are freed and made again without anyone asking, as torch's cudagraph trees do when they go back
 * to a checkpoint: `count` of them, of which every second one stays. */
void standin_replay(void **made, int count) {
    device_state *state = &states[((block *)made[0])->device];
    pthread_mutex_lock(&state->lock);
    for (int i = 0; i < count; i++) {
        free_lock_held(state, made[i], 0);
    }
    for (int i = count - 1; i >= 0; i--) {
        block *old = made[i];
        made[i] = alloc_lock_held(state, old->device, old->pool, old->bytes);
    }
    for (int i = 1; i < count; i += 2) {
        free_lock_held(state, made[i], 0);
        made[i] = NULL;
    }
    pthread_mutex_unlock(&state->lock);
}

/* Memory that is not cached, and that of the other backend. */
void *standin_uncached(int device, size_t bytes, int is_async) {
    void *address = NULL;
    cudaSetDevice(device);
    return (is_async ? cudaMallocAsync(&address, bytes, NULL) : cudaMalloc(&address, bytes)) == 0 ? address : NULL;
}

int standin_free_uncached(void *address, int is_async) {
    return is_async ? cudaFreeAsync(address, NULL) : cudaFree(address);
}

void standin_report(uintptr_t address, int64_t bytes, int type, int index) {
    REPORT((void *)address, bytes, 0, 0, UINT64_C(0xABCD000000000000) | (uint64_t)(uint8_t)index << 8 | (uint8_t)type);
}

/* ---- one thread frees while another allocates under the lock ---- */

static _Atomic int holder_is_in, waiter_comes;

/* Allocates, but only once the other thread is at the lock. */
void *standin_alloc_while_waited_for(int device, size_t bytes) {
    pthread_mutex_lock(&states[device].lock);
    holder_is_in = 1;
    while (!waiter_comes) {
        sched_yield();
    }
    block *made = alloc_lock_held(&states[device], device, 0, bytes);
    holder_is_in = waiter_comes = 0;
    pthread_mutex_unlock(&states[device].lock);
    return made;
}

/* Until the other thread holds the lock. */
void standin_wait_for_holder(void) {
    while (!holder_is_in) {
        sched_yield();
    }
}

/* Frees a block, for which the lock must be waited for. */
void standin_free_while_held(void *made) {
    waiter_comes = 1;
    standin_free(made, 0);
}

/* ---- random events ---- */

typedef struct worker {
    pthread_t thread;
    uint64_t random, events;
    size_t live_bytes[DEVICES], live_count[DEVICES];
    block **kept;
    int kept_count;
} worker;

enum { MOST_KEPT = 400 };

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

static void *work(void *argument) {
    worker *own = argument;
    for (uint64_t i = 0; i < own->events; i++) {
        uint64_t dice = next_random(&own->random);
        if (own->kept_count > 0 && (own->kept_count == MOST_KEPT || dice % 2 == 0)) {
            int at = (int)(next_random(&own->random) % (uint64_t)own->kept_count);
            block *old = own->kept[at];
            own->kept[at] = own->kept[--own->kept_count];
            own->live_bytes[old->device] -= old->bytes;
            own->live_count[old->device]--;
            standin_free(old, dice % 16 == 4);
        } else {
            int device = (int)(dice / 2 % DEVICES), pool = dice % 32 == 1 ? 1 : 0;
            block *made =
                standin_alloc(device, pool, 1 + next_random(&own->random) % (dice % 64 == 3 ? 3 << 20 : 20000));
            own->kept[own->kept_count++] = made;
            own->live_bytes[device] += made->bytes;
            own->live_count[device]++;
        }
        if (dice % 97 == 0) {
            standin_poll((int)(dice / 7 % DEVICES));
        }
    }
    return NULL;
}

/* `threads` threads make and free blocks; what is alive by their own count is added to out_*[device].
 * Returns what is alive; standin_end_random() frees it. */
void *standin_random(int threads, uint64_t events, uint64_t seed, size_t *out_bytes, size_t *out_count) {
    worker *workers = calloc((size_t)threads + 1, sizeof(*workers));
    for (int i = 0; i < threads; i++) {
        workers[i].random = seed * 0x9E3779B97F4A7C15u + (uint64_t)i * 0xBF58476D1CE4E5B9u + 1;
        workers[i].events = events;
        workers[i].kept = calloc(MOST_KEPT, sizeof(*workers[i].kept));
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        for (int device = 0; device < DEVICES; device++) {
            out_bytes[device] += workers[i].live_bytes[device];
            out_count[device] += workers[i].live_count[device];
        }
    }
    return workers;
}

void standin_end_random(void *made) {
    worker *workers = made;
    for (worker *own = workers; own->kept != NULL; own++) {
        for (int i = 0; i < own->kept_count; i++) {
            standin_free(own->kept[i], 0);
        }
        free(own->kept);
    }
    free(workers);
}
