/* Finds and patches import slots of loaded objects, and puts them back.
 *
 *   set      symbols that are patched together, in objects whose file name begins with one of `objects`, or in
 *            all for which `role` says so
 *   object   a loaded library that matched; looked at once, and never unloaded from then on, but for a set of
 *            all objects: the slots of these are touched only while a handle or the loader's lock keeps them
 *   patch    one slot of one object: what it held, and which trampoline it holds now
 *
 * A trampoline can't see through which slot it was called, so each distinct original function has a
 * trampoline of its own; `originals[i]` is what trampoline i calls, set once and never changed.  A
 * trampoline stays callable for ever: other tools may have kept its address.
 *
 * A slot is put back only while it still holds our trampoline.  If another tool has layered itself over
 * us, the slot is its own: our trampoline stays below as a pass-through, and patching again leaves it so.
 * Slots that lead to a preloaded shim of ours are left alone by a set of all objects: the shim sees those calls.
 *
 * Functions here are called with the GIL held, one at a time; writes to slots are made under one lock
 * (LP_RANK_SLOTS), trampolines run on any thread at any time. */
#ifndef LP_ELF_SLOTS_H
#define LP_ELF_SLOTS_H

#ifdef __linux__

#include <stdatomic.h>

#include "base/base.h"         // lp_status
#include "native/elf_image.h"  // lp_elf_image
#include "native/numbers.h"    // LP_SLOT_COPIES

typedef struct lp_slot_target {
    const char *symbol;
    void *trampolines[LP_SLOT_COPIES];
    _Atomic(void *) *originals;
} lp_slot_target;

/* What a set of all objects does with one of them. */
typedef enum lp_slot_role { LP_SLOT_NOTHING, LP_SLOT_DEATHS, LP_SLOT_ALL } lp_slot_role;

typedef struct lp_slot_object {
    lp_elf_image image;
    char *path;
    uintptr_t relro_start, relro_end;
    uintptr_t start, end;      /* of its segments: known even when it is unloaded */
    int is_bound_now;
    int is_doubtful;           /* it may have been unloaded and loaded again since the last scan */
} lp_slot_object;

typedef struct lp_slot_patch {
    _Atomic(void *) *slot;
    void *original;            /* what the slot held: put back by lp_slots_unpatch() */
    void *symbol_address;      /* what the loader would bind it to */
    void *trampoline;          /* NULL while the slot is not ours */
    uint16_t target, object;
} lp_slot_patch;

typedef struct lp_slot_set {
    const char *const *objects;        /* NULL-terminated; NULL: all, as `role` says */
    lp_slot_role (*role)(const lp_elf_image *image, const char *path);
    const lp_slot_target *targets;
    size_t target_count;
    size_t birth_count;                /* so many, the first ones, are left alone in objects of role LP_SLOT_DEATHS */
    lp_slot_object *found_objects;
    size_t object_count, object_capacity;
    lp_slot_patch *patches;
    size_t patch_count, patch_capacity;
    uint64_t scanned_adds;             /* lp_slots_loaded_count() of the last scan */
    uint64_t scanned_subs;             /* and how many objects had been unloaded by then */
    int is_full;                       /* there were more objects, slots or copies than there is room for */
} lp_slot_set;

/* How many objects the process has loaded so far; 0 if the loader does not tell. */
uint64_t lp_slots_loaded_count(void);

/* 1 for what no set of all objects touches: the loader, which runs before and below everything, the kernel's own
 * object, and this library. */
int lp_slots_leave_alone(const lp_elf_image *image, const char *path);

/* Look at the objects that were loaded since the last scan and patch what they import.  Slots that lost
 * our trampoline to the loader's lazy binding are patched again, but for a set of all objects.  Returns how many
 * slots lead to us. */
size_t lp_slots_patch(lp_slot_set *set);

/* Put back every slot that still holds our trampoline; returns how many are left below another tool. */
size_t lp_slots_unpatch(lp_slot_set *set);

/* Around fork: no page of slots is left writable in the child. */
void lp_slots_before_fork(void);
void lp_slots_after_fork_in_parent(void);
void lp_slots_reset_in_child(void);

#endif
#endif
