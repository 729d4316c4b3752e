/* Owns the patched slots of each set, under one lock. What a slot held is known before it leads to us, and is put back only
 * while it still does. */
#include "native/elf_slots.h"

#ifdef __linux__

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h" // lp_lock
#include "base/preload.h" // lp_preload_serves
#include "base/rawmem.h" // lp_raw_malloc

/* Held around each window in which a page of slots is writable. */
static lp_lock slots_lock = LP_LOCK_INIT(LP_RANK_SLOTS);

/* How many objects the loader has loaded and unloaded; 0 if it does not tell. */
typedef struct loader_counts {
    uint64_t adds, subs;
} loader_counts;

static int read_counts(struct dl_phdr_info *info, size_t size, void *out) {
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
        *(loader_counts *)out = (loader_counts){info->dlpi_adds, info->dlpi_subs};
    }
    return 1;
}

static loader_counts count_loaded(void) {
    loader_counts counts = {0, 0};
    dl_iterate_phdr(read_counts, &counts);
    return counts;
}

uint64_t lp_slots_loaded_count(void) { return count_loaded().adds; }

int lp_slots_leave_alone(const lp_elf_image *image, const char *path) {
    static const char *const names[] = {"ld-", "ld.so", "linux-"};
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            return 1;
        }
    }
    return lp_elf_contains(image, (const void *)&slots_lock);
}

static int is_everywhere(const lp_slot_set *set) { return set->objects == NULL; }

static int matches(const lp_slot_set *set, const struct dl_phdr_info *info) {
    if (is_everywhere(set)) {
        lp_elf_image image = {info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
        return set->role(&image, info->dlpi_name) != LP_SLOT_NOTHING;
    }
    const char *path = info->dlpi_name;
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    for (const char *const *prefix = set->objects; *prefix != NULL; prefix++) {
        if (strncmp(name, *prefix, strlen(*prefix)) == 0) {
            return 1;
        }
    }
    return 0;
}

static lp_slot_object *find_object(const lp_slot_set *set, uintptr_t base, const char *path) {
    for (size_t i = 0; i < set->object_count; i++) {
        if (set->found_objects[i].image.base == base && strcmp(set->found_objects[i].path, path) == 0) {
            return &set->found_objects[i];
        }
    }
    return NULL;
}

/* 1 if the object, at the address of one that was unloaded, is laid out as that was, so that its slots lie there. */
static int is_like(const lp_slot_object *known, const struct dl_phdr_info *info) {
    lp_elf_image image = {info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
    uintptr_t start, end;
    lp_elf_range(&image, &start, &end);
    return image.headers == known->image.headers && image.header_count == known->image.header_count &&
           start == known->start && end == known->end;
}

/* 1 if nothing is to be noted of the object. */
static int is_known(const lp_slot_set *set, const struct dl_phdr_info *info) {
    lp_slot_object *known = find_object(set, info->dlpi_addr, info->dlpi_name);
    if (known == NULL || !is_everywhere(set) || info->dlpi_subs == set->scanned_subs) {
        return known != NULL;
    }
    known->is_doubtful = is_like(known, info);
    if (!known->is_doubtful) {
        known->path[0] = '\0', known->image.base = UINTPTR_MAX; /* it is gone: its patches are of nobody */
    }
    return known->is_doubtful;
}

/* Room for one more, or 0. */
static int has_room(void **array, size_t count, size_t *capacity, size_t most, size_t each) {
    if (count < *capacity) {
        return 1;
    }
    void *more = count >= most ? NULL : lp_raw_realloc(*array, (*capacity + LP_SLOT_ROOM) * each);
    if (more == NULL) {
        return 0;
    }
    *array = more;
    *capacity += LP_SLOT_ROOM;
    return 1;
}

static int has_object_room(lp_slot_set *set) {
    return has_room((void **)&set->found_objects, set->object_count, &set->object_capacity, LP_SLOT_OBJECTS,
                    sizeof(*set->found_objects));
}

static int has_patch_room(lp_slot_set *set) {
    return has_room((void **)&set->patches, set->patch_count, &set->patch_capacity, LP_SLOT_PATCHES,
                    sizeof(*set->patches));
}

/* Runs under a lock of the loader: only takes notes. */
static int note_object(struct dl_phdr_info *info, size_t size, void *argument) {
    lp_slot_set *set = argument;
    (void)size;
    if (!matches(set, info) || is_known(set, info)) {
        return 0;
    }
    size_t length = strlen(info->dlpi_name) + 1;
    char *path = has_object_room(set) ? lp_raw_malloc(length) : NULL;
    if (path == NULL) {
        set->is_full = 1;
        return 1;
    }
    memcpy(path, info->dlpi_name, length);
    lp_slot_object *object = &set->found_objects[set->object_count++];
    memset(object, 0, sizeof(*object));
    object->image = (lp_elf_image){info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
    object->path = path;
    return 0;
}

/* A handle of the object, which is never unloaded from now on, but for a set of all; NULL if it has gone meanwhile.
 * dlopen() waits for a dlopen() of another thread, so the object's relocations are complete. */
static void *pin(const lp_slot_set *set, const lp_slot_object *object) {
    int flags = RTLD_LAZY | RTLD_NOLOAD | (is_everywhere(set) ? 0 : RTLD_NODELETE);
    void *handle = dlopen(*object->path == '\0' ? NULL : object->path, flags);
    struct link_map *map = NULL;
    if (handle != NULL && (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map->l_addr != object->image.base)) {
        dlclose(handle);
        return NULL;
    }
    return handle;
}

static void add_patches(lp_slot_set *set, size_t index, void *handle) {
    lp_slot_object *object = &set->found_objects[index];
    lp_elf_slot found[LP_SLOT_FOUND];
    int only_deaths = is_everywhere(set) && set->role(&object->image, object->path) == LP_SLOT_DEATHS;
    const char *names[LP_SLOT_TARGETS];
    size_t count = 0;
    for (size_t i = 0; i < set->target_count; i++) {
        names[i] = set->targets[i].symbol;
    }
    if (lp_elf_find_slots(&object->image, names, set->target_count, found, LP_SLOT_FOUND, &count) == LP_FULL) {
        set->is_full = 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (only_deaths && found[i].name < set->birth_count) {
            continue;
        }
        if (!has_patch_room(set)) {
            set->is_full = 1;
            return;
        }
        /* the loader's own order: global scope, then the object and what it needs */
        const char *symbol = names[found[i].name];
        void *address = dlsym(RTLD_DEFAULT, symbol);
        lp_slot_patch *patch = &set->patches[set->patch_count++];
        memset(patch, 0, sizeof(*patch));
        patch->slot = (_Atomic(void *) *)found[i].slot;
        patch->symbol_address = address != NULL ? address : dlsym(handle, symbol);
        patch->target = (uint16_t)found[i].name;
        patch->object = (uint16_t)index;
    }
}

/* Drop the notes of an object that was unloaded before it could be pinned. */
static void drop_object(lp_slot_set *set, size_t index) {
    lp_raw_free(set->found_objects[index].path);
    set->found_objects[index] = set->found_objects[--set->object_count];
}

/* The function behind a slot's value.  A slot that is not bound yet leads to the lazy resolver, a stub in
 * its own object; to call that as the original would bind the slot behind our back. */
static void *function_behind(const lp_slot_object *object, const lp_slot_patch *patch, void *value) {
    Dl_info info;
    if (object->is_bound_now || !lp_elf_contains(&object->image, value)) {
        return value;
    }
    if (dladdr(value, &info) != 0 && info.dli_saddr == value) {
        return value;
    }
    return patch->symbol_address;
}

static int is_trampoline(const lp_slot_target *target, const void *value) {
    for (size_t i = 0; i < LP_SLOT_COPIES; i++) {
        if (target->trampolines[i] == value) {
            return 1;
        }
    }
    return 0;
}

/* The trampoline that calls `function`; NULL if all are taken by others. */
static void *trampoline_for(const lp_slot_target *target, void *function) {
    for (size_t i = 0; i < LP_SLOT_COPIES; i++) {
        void *taken = atomic_load(&target->originals[i]);
        if (taken == NULL) {
            atomic_store(&target->originals[i], function);
            taken = function;
        }
        if (taken == function) {
            return target->trampolines[i];
        }
    }
    return NULL;
}

/* Store `desired` if the slot still holds `expected`; 1 if it did. */
static int exchange(const lp_slot_object *object, _Atomic(void *) *slot, void *expected, void *desired) {
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t page = (uintptr_t)slot & ~(page_bytes - 1);
    int is_read_only = page >= object->relro_start && page < object->relro_end, done = 0;
    lp_lock_take(&slots_lock);
    if (!is_read_only || mprotect((void *)page, page_bytes, PROT_READ | PROT_WRITE) == 0) {
        done = atomic_compare_exchange_strong(slot, &expected, desired);
        /* a page with lazily bound slots must stay writable, so only the loader's own choice is restored */
        if (is_read_only) {
            (void)mprotect((void *)page, page_bytes, PROT_READ);
        }
    }
    lp_lock_release(&slots_lock);
    return done;
}

/* 1 if calls through the slot reach our trampoline, as far as can be known. */
static int patch_slot(lp_slot_set *set, lp_slot_patch *patch) {
    const lp_slot_object *object = &set->found_objects[patch->object];
    const lp_slot_target *target = &set->targets[patch->target];
    void *value = atomic_load(patch->slot);
    if (value == NULL || is_trampoline(target, value)) {
        return value != NULL;
    }
    /* another tool's function over ours: it calls us, and to patch over it would make a ring */
    if (patch->trampoline != NULL && value != patch->original && value != patch->symbol_address) {
        return 1;
    }
    void *function = function_behind(object, patch, value);
    if (is_everywhere(set) && lp_preload_serves(target->symbol, function)) {
        return 0;
    }
    void *trampoline = function == NULL ? NULL : trampoline_for(target, function);
    if (trampoline == NULL) {
        set->is_full |= function != NULL;
        return 0;
    }
    if (!exchange(object, patch->slot, value, trampoline)) {
        return 0;
    }
    patch->original = value;
    patch->trampoline = trampoline;
    return 1;
}

/* While a handle keeps their object. */
static void patch_from(lp_slot_set *set, size_t first) {
    for (size_t i = first; i < set->patch_count; i++) {
        (void)patch_slot(set, &set->patches[i]);
    }
}

/* What was loaded again where it had been has slots that the loader has filled since. */
static void patch_doubtful(lp_slot_set *set) {
    for (size_t i = 0; i < set->object_count; i++) {
        void *handle = set->found_objects[i].is_doubtful ? pin(set, &set->found_objects[i]) : NULL;
        set->found_objects[i].is_doubtful = 0;
        for (size_t j = 0; handle != NULL && j < set->patch_count; j++) {
            if (set->patches[j].object == i) {
                (void)patch_slot(set, &set->patches[j]);
            }
        }
        if (handle != NULL) {
            dlclose(handle);
        }
    }
}

static void scan(lp_slot_set *set) {
    loader_counts counts = count_loaded();
    if (counts.adds != 0 && counts.adds == set->scanned_adds) {
        return;
    }
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), i = set->object_count;
    dl_iterate_phdr(note_object, set);
    patch_doubtful(set);
    while (i < set->object_count) {
        lp_slot_object *object = &set->found_objects[i];
        void *handle = pin(set, object);
        if (handle == NULL) {
            drop_object(set, i);
            continue;
        }
        lp_elf_range(&object->image, &object->start, &object->end);
        object->is_bound_now = lp_elf_is_bound_now(&object->image);
        lp_elf_relro(&object->image, page_bytes, &object->relro_start, &object->relro_end);
        size_t first = set->patch_count;
        add_patches(set, i, handle);
        patch_from(set, is_everywhere(set) ? first : set->patch_count);
        dlclose(handle);
        i++;
    }
    set->scanned_adds = counts.adds, set->scanned_subs = counts.subs;
}

size_t lp_slots_patch(lp_slot_set *set) {
    LP_ASSERT_GIL();
    size_t count = 0;
    scan(set);
    if (is_everywhere(set)) {
        return set->patch_count;
    }
    for (size_t i = 0; i < set->patch_count; i++) {
        count += (size_t)patch_slot(set, &set->patches[i]);
    }
    return count;
}

/* 1 if the slot is still below another tool. */
static size_t put_back(lp_slot_set *set, lp_slot_patch *patch) {
    if (patch->trampoline == NULL) {
        return 0;
    }
    void *value = atomic_load(patch->slot);
    if (value == patch->trampoline) {
        (void)exchange(&set->found_objects[patch->object], patch->slot, value, patch->original);
        value = atomic_load(patch->slot);
    }
    if (value == patch->original || value == patch->symbol_address) {
        patch->trampoline = NULL;
    }
    return patch->trampoline != NULL;
}

typedef struct unpatching {
    lp_slot_set *set;
    size_t left;
} unpatching;

/* Runs under the loader's lock: the object is there, and no other function of the loader may be called. */
static int put_back_object(struct dl_phdr_info *info, size_t size, void *argument) {
    unpatching *u = argument;
    (void)size;
    const lp_slot_object *object = find_object(u->set, info->dlpi_addr, info->dlpi_name);
    for (size_t i = 0; object != NULL && i < u->set->patch_count; i++) {
        lp_slot_patch *patch = &u->set->patches[i];
        if (&u->set->found_objects[patch->object] == object) {
            u->left += put_back(u->set, patch);
        }
    }
    return 0;
}

/* What is unloaded took its slots along. */
static size_t unpatch_everywhere(lp_slot_set *set) {
    unpatching u = {set, 0};
    dl_iterate_phdr(put_back_object, &u);
    while (set->object_count > 0) {
        lp_raw_free(set->found_objects[--set->object_count].path);
    }
    lp_raw_free(set->found_objects);
    lp_raw_free(set->patches);
    set->found_objects = NULL;
    set->patches = NULL;
    set->object_capacity = set->patch_count = set->patch_capacity = 0;
    set->scanned_adds = 0;
    set->is_full = 0;
    return u.left;
}

size_t lp_slots_unpatch(lp_slot_set *set) {
    LP_ASSERT_GIL();
    size_t left = 0;
    if (is_everywhere(set)) {
        return unpatch_everywhere(set);
    }
    for (size_t i = 0; i < set->patch_count; i++) {
        left += put_back(set, &set->patches[i]);
    }
    return left;
}

void lp_slots_before_fork(void) { lp_lock_take(&slots_lock); }

void lp_slots_after_fork_in_parent(void) { lp_lock_release(&slots_lock); }

void lp_slots_reset_in_child(void) { lp_lock_reset_in_child(&slots_lock); }

#endif
