/* The CUDA and pinned hooks on libraries that stand for torch's and for the CUDA runtime (tests/ext), which
 * test_c.py builds: blocks against a reference count, delayed frees, address reuse, threads, failures. */
#include "harness.h"

#ifdef __linux__

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "ledger/epoch.h"
#include "ledger/ledger.h"
#include "native/cuda_memory.h"
#include "native/native.h"

enum { DEVICES = 4, THREADS = 8, EVENTS = 100000 };

/* ---- the libraries ---- */

static void *(*sa_alloc)(int device, int pool, size_t bytes);
static void (*sa_free)(void *made, int delayed);
static void *(*sa_address)(const void *made);
static size_t (*sa_bytes)(const void *made);
static void (*sa_poll)(int device);
static void (*sa_empty_cache)(int device);
static void (*sa_totals)(int device, size_t *out_allocated, size_t *out_reserved);
static void (*sa_replay)(void **made, int count);
static void *(*sa_uncached)(int device, size_t bytes, int is_async);
static int (*sa_free_uncached)(void *address, int is_async);
static void (*sa_report)(uintptr_t address, int64_t bytes, int type, int index);
static void *(*sa_random)(int threads, uint64_t events, uint64_t seed, size_t *out_bytes, size_t *out_count);
static void (*sa_end_random)(void *made);
static void *(*old_alloc)(int device, int pool, size_t bytes);
static void (*old_free)(void *made, int delayed);
static void (*rt_set_capacity)(int device, size_t bytes);
static size_t (*rt_used)(int device);
static void (*rt_fail)(int count);
static void (*rt_refuse_registers)(int on);
static int (*rt_last_error)(void);
static void *(*ph_alloc)(size_t bytes, int old);
static void (*ph_free)(void *made);
static void (*ph_empty_cache)(void);
static size_t (*ph_bytes)(void *made);
static int (*ph_register)(void *address, size_t bytes);
static int (*ph_unregister)(void *address);
static void *(*ph_alloc_raw)(size_t bytes);
static int (*ph_free_raw)(void *address);
static int (*user_register)(void *address, size_t bytes);
static int (*user_unregister)(void *address);

static const char *folder;

static void *open_library(const char *name) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s.so", folder, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(handle != NULL);
    return handle;
}

#define FIND(variable, handle, name) CHECK((*(void **)&(variable) = dlsym(handle, name)) != NULL)

static void open_all(void) {
    void *cuda = open_library("libc10_cuda_standin"), *old = open_library("libc10_cuda_old");
    void *runtime = open_library("libcudart_standin"), *host = open_library("libtorch_cuda_standin");
    void *user = open_library("libtorch_python_standin");
    FIND(sa_alloc, cuda, "standin_alloc");
    FIND(sa_free, cuda, "standin_free");
    FIND(sa_address, cuda, "standin_address");
    FIND(sa_bytes, cuda, "standin_bytes");
    FIND(sa_poll, cuda, "standin_poll");
    FIND(sa_empty_cache, cuda, "standin_empty_cache");
    FIND(sa_totals, cuda, "standin_totals");
    FIND(sa_replay, cuda, "standin_replay");
    FIND(sa_uncached, cuda, "standin_uncached");
    FIND(sa_free_uncached, cuda, "standin_free_uncached");
    FIND(sa_report, cuda, "standin_report");
    FIND(sa_random, cuda, "standin_random");
    FIND(sa_end_random, cuda, "standin_end_random");
    FIND(old_alloc, old, "standin_alloc");
    FIND(old_free, old, "standin_free");
    FIND(rt_set_capacity, runtime, "standin_set_capacity");
    FIND(rt_used, runtime, "standin_used");
    FIND(rt_fail, runtime, "standin_fail");
    FIND(rt_refuse_registers, runtime, "standin_refuse_registers");
    FIND(rt_last_error, runtime, "cudaGetLastError");
    FIND(ph_alloc, host, "pinned_alloc");
    FIND(ph_free, host, "pinned_free");
    FIND(ph_empty_cache, host, "pinned_empty_cache");
    FIND(ph_bytes, host, "pinned_bytes");
    FIND(ph_register, host, "pinned_register");
    FIND(ph_unregister, host, "pinned_unregister");
    FIND(ph_alloc_raw, host, "pinned_alloc_raw");
    FIND(ph_free_raw, host, "pinned_free_raw");
    FIND(user_register, user, "pinned_register");
    FIND(user_unregister, user, "pinned_unregister");
}

/* ---- what the ledger says ---- */

static lp_totals totals_of(int device) {
    lp_totals totals;
    lp_ledger_totals((lp_medium)(LP_MEDIUM_CUDA0 + device), &totals);
    return totals;
}

static int is_clean(lp_medium medium) {
    lp_totals t;
    lp_ledger_totals(medium, &t);
    return t.unmatched_count == 0 && t.overwritten_count == 0 && t.dropped_count == 0;
}

static int canary_answer;

static int canary(lp_medium medium, uint64_t bytes) {
    if (canary_answer != 0) {
        return canary_answer;
    }
    if (medium == LP_MEDIUM_PINNED) {
        static char memory[8192];
        CHECK(lp_cuda_answer_for(memory));
        int failed = user_register(memory, bytes) != 0 || user_unregister(memory) != 0;
        CHECK(lp_cuda_answer_for(NULL));
        return failed;
    }
    void *made = sa_alloc(0, 0, bytes);
    if (made == NULL) {
        return -1;
    }
    sa_free(made, 0);
    return 0;
}

/* The canary of the fallback: no block comes by the profiler. */
static int uncached_canary(lp_medium medium, uint64_t bytes) {
    (void)medium;
    void *made = sa_uncached(0, bytes, 1);
    return made == NULL ? -1 : sa_free_uncached(made, 1);
}

static void install(void) {
    lp_ledger_reset();
    CHECK(lp_native_install(LP_MEDIUM_CUDA0, NULL, canary) == LP_OK);
    CHECK(strstr(lp_native_mechanism(LP_MEDIUM_CUDA0), "reportMemoryUsageToProfiler") != NULL);
    CHECK(totals_of(0).add_count == 0);
}

/* ---- tests ---- */

static void test_the_caching_allocator(void) {
    install();
    size_t allocated, reserved, older;
    lp_cuda_sum segments;
    sa_totals(0, &allocated, &older); /* the canary's */
    void *a = sa_alloc(0, 0, 1000), *b = sa_alloc(2, 0, 70000), *c = sa_alloc(0, 1, 3 << 20);
    CHECK(totals_of(0).live_count == 2 && totals_of(0).live_bytes == 1024 + (3 << 20));
    CHECK(totals_of(2).live_count == 1 && totals_of(2).live_bytes == 70144);
    lp_cuda_segments(2, &segments);
    sa_totals(2, &allocated, &reserved);
    CHECK(segments.live_bytes == reserved && segments.live_count == 1 && allocated == 70144);
    /* a delayed free is dead at once; its address is not used again before the stream has passed */
    void *address = sa_address(a);
    sa_free(a, 1);
    CHECK(totals_of(0).live_count == 1);
    void *d = sa_alloc(0, 0, 1000);
    CHECK(sa_address(d) != address);
    sa_poll(0);
    void *e = sa_alloc(0, 0, 1000);
    CHECK(sa_address(e) == address && totals_of(0).live_count == 3);
    sa_free(b, 0), sa_free(c, 0), sa_free(d, 0), sa_free(e, 0);
    sa_empty_cache(0);
    lp_cuda_segments(0, &segments);
    sa_totals(0, &allocated, &reserved);
    CHECK(segments.live_bytes == reserved - older && segments.peak_bytes == segments.live_bytes + (3 << 20));
    for (int device = 0; device < DEVICES; device++) {
        CHECK(totals_of(device).live_bytes == 0 && is_clean((lp_medium)(LP_MEDIUM_CUDA0 + device)));
    }
    lp_native_uninstall();
}

static void test_the_older_mangling(void) {
    install();
    void *made = old_alloc(3, 0, 4096);
    CHECK(totals_of(3).live_bytes == 4096);
    old_free(made, 0);
    CHECK(totals_of(3).live_bytes == 0 && is_clean(LP_MEDIUM_CUDA0 + 3));
    lp_native_uninstall();
}

static void test_devices_are_read_from_two_bytes(void) {
    install();
    sa_report(0x1000, 512, 1, 15);
    sa_report(0x2000, 512, 1, 16);
    sa_report(0x3000, 512, 1, -1);
    sa_report(0x4000, 512, 12, 0);
    sa_report(0x5000, 512, 0, -1);
    CHECK(totals_of(15).live_bytes == 512 && totals_of(0).add_count == 0 && lp_cuda_beyond_count() == 2);
    lp_native_uninstall();
}

static void test_checkpoints_of_pools_end_in_the_right_state(void) {
    install();
    void *made[6];
    for (int i = 0; i < 6; i++) {
        made[i] = sa_alloc(1, 2, 2000);
    }
    sa_replay(made, 6);
    CHECK(totals_of(1).live_count == 3 && totals_of(1).live_bytes == 3 * 2048);
    for (int i = 0; i < 6; i += 2) {
        sa_free(made[i], 0);
    }
    CHECK(totals_of(1).live_count == 0 && is_clean(LP_MEDIUM_CUDA0 + 1));
    lp_native_uninstall();
}

static void test_out_of_memory_sets_a_flag(void) {
    install();
    lp_cuda_oom oom;
    lp_cuda_last_oom(&oom);
    CHECK(oom.count == 0);
    void *kept = sa_alloc(1, 0, 3 << 20);
    rt_set_capacity(1, rt_used(1) + (1 << 20));
    CHECK(sa_alloc(1, 0, 5 << 20) == NULL);
    lp_cuda_last_oom(&oom);
    CHECK(oom.count == 1 && oom.wanted_bytes == 5 << 20 && oom.device == 1);
    CHECK(oom.allocated_bytes == 3 << 20 && oom.reserved_bytes >= oom.allocated_bytes);
    CHECK(totals_of(1).live_count == 1);
    rt_set_capacity(1, SIZE_MAX);
    sa_free(kept, 0);
    lp_native_uninstall();
    lp_cuda_last_oom(&oom);
    CHECK(oom.count == 0);
}

static void test_eight_threads_agree_with_the_reference(void) {
    size_t bytes[DEVICES] = {0}, count[DEVICES] = {0};
    install();
    void *kept = sa_random(THREADS, EVENTS, 42, bytes, count);
    for (int device = 0; device < DEVICES; device++) {
        size_t allocated, reserved;
        sa_totals(device, &allocated, &reserved);
        lp_totals t = totals_of(device);
        CHECK(count[device] > 0 && t.live_bytes == bytes[device] && t.live_count == count[device]);
        CHECK(t.live_bytes == allocated);
        CHECK(t.add_count - t.remove_count == count[device]);
        CHECK(is_clean((lp_medium)(LP_MEDIUM_CUDA0 + device)));
        fprintf(stderr, "cuda:%d: %zu blocks, %zu bytes alive after %llu births, as counted\n", device, count[device],
                bytes[device], (unsigned long long)t.add_count);
    }
    CHECK(lp_ledger_is_valid());
    sa_end_random(kept);
    for (int device = 0; device < DEVICES; device++) {
        CHECK(totals_of(device).live_count == 0 && totals_of(device).live_bytes == 0);
    }
    lp_native_uninstall();
}

static _Atomic int done;

static void *churn(void *argument) {
    uint64_t seed = (uintptr_t)argument;
    while (!done) {
        size_t bytes[DEVICES] = {0}, count[DEVICES] = {0};
        sa_end_random(sa_random(1, 200, ++seed, bytes, count));
        ph_free(ph_alloc(5000, 0));
    }
    return NULL;
}

static void test_threads_run_while_hooks_come_and_go(void) {
    pthread_t threads[4];
    lp_ledger_reset();
    done = 0;
    for (uintptr_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 7)) == 0);
    }
    for (int i = 0; i < 1000; i++) {
        canary_answer = i % 2 == 0 ? LP_NATIVE_WAIT : 0;
        CHECK(lp_native_install(LP_MEDIUM_CUDA0, NULL, canary) == LP_OK);
        CHECK(lp_native_install(LP_MEDIUM_PINNED, NULL, canary) == LP_OK);
        CHECK(lp_native_is_waiting(LP_MEDIUM_CUDA0) == (i % 2 == 0));
        canary_answer = 0;
        CHECK(lp_native_verify(LP_MEDIUM_CUDA0, canary) == LP_OK && !lp_native_is_waiting(LP_MEDIUM_CUDA0));
        CHECK(lp_native_verify(LP_MEDIUM_PINNED, canary) == LP_OK);
        lp_native_uninstall();
    }
    done = 1;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    ph_empty_cache();
    CHECK(lp_ledger_is_valid());
}

static void test_the_canary_waits_and_leaves_no_trace(void) {
    lp_ledger_reset();
    canary_answer = LP_NATIVE_WAIT;
    CHECK(lp_native_install(LP_MEDIUM_CUDA0, NULL, canary) == LP_OK && lp_native_is_waiting(LP_MEDIUM_CUDA0));
    void *made = sa_alloc(0, 0, 9000);
    CHECK(totals_of(0).live_count == 1);
    CHECK(lp_native_verify(LP_MEDIUM_CUDA0, canary) == LP_OK && lp_native_is_waiting(LP_MEDIUM_CUDA0));
    canary_answer = 0;
    CHECK(lp_native_verify(LP_MEDIUM_CUDA0, canary) == LP_OK && !lp_native_is_waiting(LP_MEDIUM_CUDA0));
    CHECK(totals_of(0).live_count == 1 && totals_of(0).add_count == 1);
    sa_free(made, 0);
    CHECK(totals_of(0).live_count == 0);
    lp_native_uninstall();
}

/* The hook serves from the install on, so each block of these threads must be seen to come and to go. */
static void test_nothing_is_missed_while_the_canary_waits(void) {
    pthread_t threads[4];
    lp_ledger_reset();
    canary_answer = LP_NATIVE_WAIT;
    CHECK(lp_native_install(LP_MEDIUM_CUDA0, NULL, canary) == LP_OK);
    done = 0;
    for (uintptr_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 3)) == 0);
    }
    while (totals_of(0).add_count < 20000) {
        CHECK(lp_native_verify(LP_MEDIUM_CUDA0, canary) == LP_OK);
    }
    done = 1;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int device = 0; device < DEVICES; device++) {
        CHECK(totals_of(device).live_count == 0 && is_clean((lp_medium)(LP_MEDIUM_CUDA0 + device)));
    }
    ph_empty_cache();
    canary_answer = 0;
    lp_native_uninstall();
}

/* Caching is off, or another backend serves: found out when the canary can be run at last. */
static void test_the_runtime_serves_where_nothing_is_cached(void) {
    lp_ledger_reset();
    canary_answer = LP_NATIVE_WAIT;
    CHECK(lp_native_install(LP_MEDIUM_CUDA0, NULL, canary) == LP_OK);
    canary_answer = 0;
    CHECK(lp_native_verify(LP_MEDIUM_CUDA0, uncached_canary) == LP_OK);
    CHECK(strstr(lp_native_mechanism(LP_MEDIUM_CUDA0), "cudaMallocAsync") != NULL);
    for (int is_async = 0; is_async < 2; is_async++) {
        void *made = sa_uncached(2, 4099, is_async);
        CHECK(totals_of(2).live_bytes == 4099 && totals_of(2).live_count == 1);
        rt_fail(1);
        CHECK(sa_free_uncached(made, is_async) != 0);
        CHECK(totals_of(2).live_bytes == 4099);
        CHECK(sa_free_uncached(made, is_async) == 0);
        CHECK(totals_of(2).live_count == 0 && is_clean(LP_MEDIUM_CUDA0 + 2));
        /* a device without a medium is no other one */
        uint64_t beyond = lp_cuda_beyond_count();
        made = sa_uncached(17, 4099, is_async);
        CHECK(totals_of(0).live_bytes == 0 && totals_of(15).live_bytes == 0 && lp_cuda_beyond_count() == beyond + 1);
        CHECK(sa_free_uncached(made, is_async) == 0 && is_clean(LP_MEDIUM_CUDA0));
    }
    lp_native_uninstall();
    CHECK(lp_cuda_beyond_count() == 0);
    canary_answer = -1;
    CHECK(lp_native_install(LP_MEDIUM_CUDA0, NULL, canary) == LP_NOT_FOUND);
    CHECK(lp_native_why_not(LP_MEDIUM_CUDA0) != NULL && !lp_native_is_active(LP_MEDIUM_CUDA0));
    canary_answer = 0;
}

/* What CUDA would refuse, or what would start a device, never gets there; what the program pins does. */
static void test_the_canary_of_pinned_memory_ends_at_the_hook(void) {
    static char mine[4099];
    lp_ledger_reset();
    rt_refuse_registers(1);
    CHECK(lp_native_install(LP_MEDIUM_PINNED, NULL, canary) == LP_OK && !lp_native_is_waiting(LP_MEDIUM_PINNED));
    CHECK(rt_last_error() == 0);
    CHECK(user_register(mine, sizeof(mine)) != 0 && rt_last_error() != 0);
    rt_refuse_registers(0);
    lp_native_uninstall();
}

static void test_pinned_memory(void) {
    lp_totals t;
    lp_cuda_sum own;
    static char mine[4096], torchs[4096], numpys[4096];
    lp_ledger_reset();
    CHECK(lp_native_install(LP_MEDIUM_PINNED, NULL, canary) == LP_OK);
    void *a = ph_alloc(5000, 0), *b = ph_alloc(100, 0), *raw = ph_alloc_raw(777);
    lp_ledger_totals(LP_MEDIUM_PINNED, &t);
    CHECK(t.live_bytes == 8192 + 128 + 777 && t.live_count == 3);
    /* given back to the cache, and taken from it: no memory moves */
    ph_free(a);
    a = ph_alloc(4097, 0);
    lp_ledger_totals(LP_MEDIUM_PINNED, &t);
    CHECK(ph_bytes(a) == 8192 && t.add_count == 3 && t.remove_count == 0);
    /* what the program pins belongs to whoever made it; what torch registers is its own, unless known otherwise */
    CHECK(user_register(mine, sizeof(mine)) == 0 && ph_register(torchs, sizeof(torchs)) == 0);
    lp_ledger_add(LP_MEDIUM_NUMPY, numpys, sizeof(numpys), LP_SITE_NATIVE);
    CHECK(ph_register(numpys, sizeof(numpys)) == 0);
    lp_ledger_totals(LP_MEDIUM_PINNED, &t);
    lp_cuda_registered(&own);
    CHECK(t.live_bytes == 8192 + 128 + 777 + 4096 && own.live_bytes == 8192 && own.live_count == 2);
    CHECK(lp_cuda_malloc_bytes() == sizeof(torchs)); /* numpy's are counted as such */
    CHECK(user_unregister(mine) == 0 && ph_unregister(torchs) == 0 && ph_unregister(numpys) == 0);
    lp_cuda_registered(&own);
    lp_ledger_totals(LP_MEDIUM_NUMPY, &t);
    CHECK(lp_cuda_malloc_bytes() == 0);
    CHECK(own.live_bytes == 0 && t.live_count == 1 && lp_ledger_remove(LP_MEDIUM_NUMPY, numpys) == sizeof(numpys));
    rt_fail(1);
    CHECK(ph_free_raw(raw) != 0);
    lp_ledger_totals(LP_MEDIUM_PINNED, &t);
    CHECK(t.live_bytes == 8192 + 128 + 777);
    CHECK(ph_free_raw(raw) == 0);
    ph_free(a), ph_free(b);
    ph_empty_cache();
    lp_ledger_totals(LP_MEDIUM_PINNED, &t);
    CHECK(t.live_count == 0 && is_clean(LP_MEDIUM_PINNED));
    lp_native_uninstall();
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    folder = argv[1];
    CHECK(lp_shadow_init() == LP_OK && lp_ledger_init() == LP_OK);
    lp_epoch_reset(1);
    open_all();
    test_the_caching_allocator();
    test_the_older_mangling();
    test_devices_are_read_from_two_bytes();
    test_checkpoints_of_pools_end_in_the_right_state();
    test_out_of_memory_sets_a_flag();
    test_the_canary_waits_and_leaves_no_trace();
    test_nothing_is_missed_while_the_canary_waits();
    test_the_runtime_serves_where_nothing_is_cached();
    test_the_canary_of_pinned_memory_ends_at_the_hook();
    test_pinned_memory();
    test_eight_threads_agree_with_the_reference();
    test_threads_run_while_hooks_come_and_go();
    lp_ledger_reset();
    return 0;
}

#else

int main(void) {
    CHECK(1);
    return 0;
}

#endif
