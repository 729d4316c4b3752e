/* Import slots of real libraries, which test_c.py builds: every kind, with and without RELRO, bound late or at once,
 * several copies, libraries that come later, and other tools that patch on top. */
#include "harness.h"

#ifdef __linux__

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "native/elf_slots.h"

#define COPIES LP_SLOT_COPIES
typedef int (*make_fn)(int);

static _Atomic(void *) originals[COPIES];
static int calls[COPIES];

#define TRAMPOLINE(copy)                                                                                               \
    static int trampoline_##copy(int x) {                                                                              \
        calls[copy]++;                                                                                                 \
        return ((make_fn)atomic_load(&originals[copy]))(x);                                                            \
    }
TRAMPOLINE(0)
TRAMPOLINE(1)
TRAMPOLINE(2)
TRAMPOLINE(3)

static const lp_slot_target target = {
    "lpt_make", {(void *)trampoline_0, (void *)trampoline_1, (void *)trampoline_2, (void *)trampoline_3}, originals};

static const char *folder;

typedef struct importer {
    const char *name;
    int number;          /* of the provider that it is linked with */
    make_fn call, by_variable;
    int (*by_table)(int x, int i);
} importer;

static void *open_library(const char *name) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s.so", folder, name);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
    }
    return handle;
}

static void load(importer *imp) {
    void *handle = open_library(imp->name);
    CHECK(handle != NULL);
    imp->call = (make_fn)dlsym(handle, "imp_call");
    imp->by_variable = (make_fn)dlsym(handle, "imp_by_variable");
    imp->by_table = (int (*)(int, int))dlsym(handle, "imp_by_table");
}

static int all_calls(void) { return calls[0] + calls[1] + calls[2] + calls[3]; }

/* How many of the three ways come by a trampoline; each must give the right answer. */
static int ways_seen(const importer *imp) {
    int before = all_calls();
    CHECK(imp->call(1) == 1 + imp->number);
    CHECK(imp->by_variable(2) == 2 + imp->number);
    CHECK(imp->by_table(3, 1) == 3 + imp->number);
    CHECK(imp->by_table(3, 0) == -3);
    return all_calls() - before;
}

/* The permissions of a page as /proc has them. */
static void permissions(const void *address, char out[5]) {
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long first, end;
    char line[1024], found[8];
    strcpy(out, "none");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        if (sscanf(line, "%lx-%lx %7s", &first, &end, found) == 3 && (uintptr_t)address >= first &&
            (uintptr_t)address < end) {
            memcpy(out, found, 4);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

enum { LIBRARIES = 5 };
static importer first[LIBRARIES] = {{.name = "libimp_lazy", .number = 100},
                                    {.name = "libimp_now", .number = 100},
                                    {.name = "libimp_got", .number = 100},
                                    {.name = "libimp_norelro", .number = 100},
                                    {.name = "libimp_lazy_norelro", .number = 100}};
static const char *const objects[] = {"libimp_", NULL};
static lp_slot_set set = {.objects = objects, .targets = &target, .target_count = 1};

static void count_pages(const char *wanted, int *out_count) {
    *out_count = 0;
    for (size_t i = 0; i < set.patch_count; i++) {
        char now[5];
        permissions((void *)set.patches[i].slot, now);
        *out_count += strncmp(now, wanted, 2) == 0;
    }
}

static void test_every_kind_is_patched_and_put_back(void) {
    void *values[LP_SLOT_PATCHES];
    int read_only, writable, again;
    for (int i = 0; i < LIBRARIES; i++) {
        load(&first[i]);
        CHECK(ways_seen(&first[i]) == 0);
    }
    CHECK(lp_slots_patch(&set) == set.patch_count && set.patch_count == 3 * LIBRARIES && !set.is_full);
    count_pages("r-", &read_only);
    count_pages("rw", &writable);
    /* Constants of three libraries, calls of two: what RELRO covers is as it was. */
    CHECK(read_only > 0 && writable > 0 && read_only + writable == (int)set.patch_count);
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < LIBRARIES; i++) {
            CHECK(ways_seen(&first[i]) == 3);
        }
        CHECK(lp_slots_unpatch(&set) == 0);
        count_pages("r-", &again);
        CHECK(again == read_only);
        for (size_t i = 0; i < set.patch_count; i++) {
            values[i] = round == 0 ? atomic_load(set.patches[i].slot) : values[i];
            CHECK(values[i] == atomic_load(set.patches[i].slot) ||
                  !set.found_objects[set.patches[i].object].is_bound_now);
        }
        for (int i = 0; i < LIBRARIES; i++) {
            CHECK(ways_seen(&first[i]) == 0);
        }
        CHECK(lp_slots_patch(&set) == set.patch_count);
        count_pages("r-", &again);
        CHECK(again == read_only);
    }
}

static void test_a_library_that_comes_later_and_another_copy(void) {
    importer late = {.name = "libimp_b", .number = 200};
    load(&late);
    CHECK(ways_seen(&late) == 0);
    CHECK(lp_slots_patch(&set) == 3 * (LIBRARIES + 1));
    CHECK(ways_seen(&late) == 3 && ways_seen(&first[0]) == 3);
    CHECK(atomic_load(&originals[1]) != NULL && atomic_load(&originals[0]) != atomic_load(&originals[1]));
    CHECK(calls[1] == 3);
}

static make_fn below;
static int layer_calls;

static int layer(int x) {
    layer_calls++;
    return below(x);
}

static void write_slot(_Atomic(void *) *slot, void *value) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    CHECK(mprotect((void *)((uintptr_t)slot & ~(page_bytes - 1)), page_bytes, PROT_READ | PROT_WRITE) == 0);
    atomic_store(slot, value);
}

static _Atomic(void *) *slot_of_call(const importer *imp) {
    for (size_t i = 0; i < set.patch_count; i++) {
        int before = layer_calls;
        void *value = atomic_load(set.patches[i].slot);
        below = (make_fn)value;
        write_slot(set.patches[i].slot, (void *)layer);
        (void)imp->call(0);
        write_slot(set.patches[i].slot, value);
        if (layer_calls != before) {
            return set.patches[i].slot;
        }
    }
    return NULL;
}

static void test_a_tool_on_top_is_left_alone(const importer *imp) {
    _Atomic(void *) *slot = slot_of_call(imp);
    CHECK(slot != NULL);
    void *ours = atomic_load(slot);
    below = (make_fn)ours;
    write_slot(slot, (void *)layer);
    CHECK(ways_seen(imp) == 3);
    CHECK(lp_slots_unpatch(&set) == 1 && atomic_load(slot) == (void *)layer);
    CHECK(ways_seen(imp) == 1);                 /* below the layer we pass through */
    CHECK(lp_slots_patch(&set) == set.patch_count && atomic_load(slot) == (void *)layer);
    CHECK(ways_seen(imp) == 3);                 /* no ring */
    write_slot(slot, (void *)below);            /* the layer goes: ours again */
    CHECK(ways_seen(imp) == 3 && lp_slots_unpatch(&set) == 0);
    CHECK(ways_seen(imp) == 0);
    CHECK(lp_slots_patch(&set) == set.patch_count && ways_seen(imp) == 3);
}

static void test_a_tool_below_is_called(const importer *imp) {
    _Atomic(void *) *slot = slot_of_call(imp);
    CHECK(lp_slots_unpatch(&set) == 0);
    void *value = atomic_load(slot);
    below = (make_fn)dlsym(open_library("libimp_now"), "lpt_make");
    write_slot(slot, (void *)layer);
    int before = layer_calls;
    CHECK(lp_slots_patch(&set) == set.patch_count && atomic_load(slot) != (void *)layer);
    CHECK(ways_seen(imp) == 3 && layer_calls == before + 1);
    CHECK(lp_slots_unpatch(&set) == 0 && atomic_load(slot) == (void *)layer);
    write_slot(slot, value);
    CHECK(ways_seen(imp) == 0 && lp_slots_patch(&set) == set.patch_count);
}

static void test_fork_with_patched_slots(void) {
    lp_slots_before_fork();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        lp_slots_reset_in_child();
        _exit(ways_seen(&first[0]) == 3 && lp_slots_unpatch(&set) == 0 && ways_seen(&first[0]) == 0 ? 0 : 1);
    }
    lp_slots_after_fork_in_parent();
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0 && ways_seen(&first[0]) == 3);
}

/* One copy more than can be told apart: it works as it did, and the set says that it is full. */
static void test_more_copies_than_trampolines(void) {
    static importer copies[] = {
        {.name = "libimp_c", .number = 300}, {.name = "libimp_d", .number = 400}, {.name = "libimp_e", .number = 500}};
    int seen = 0;
    for (int i = 0; i < 3; i++) {
        load(&copies[i]);
        (void)lp_slots_patch(&set);
        seen += ways_seen(&copies[i]);
    }
    CHECK(set.is_full && seen < 9);
    for (int i = 0; i < LIBRARIES; i++) {
        CHECK(ways_seen(&first[i]) == 3);
    }
    CHECK(lp_slots_unpatch(&set) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(ways_seen(&copies[i]) == 0);
    }
}

int main(int count, char **arguments) {
    if (count < 2) {
        return 2;
    }
    folder = arguments[1];
    test_every_kind_is_patched_and_put_back();
    test_a_library_that_comes_later_and_another_copy();
    for (int i = 0; i < LIBRARIES; i++) {
        test_a_tool_on_top_is_left_alone(&first[i]);
        test_a_tool_below_is_called(&first[i]);
    }
    test_fork_with_patched_slots();
    test_more_copies_than_trampolines();
    return 0;
}

#else

int main(void) { return 0; }

#endif
