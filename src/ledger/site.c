/* Data model: sites[id] => a run of frame ids in `stacks`; an index by the hash of the raw frames (and the base of a
 * child), and one by the text of the frames, which finds the site that counts are kept under.  A site with a frame whose
 * code has died keeps its text; when all its frames have code again, it is found by their ids and gets its new ones. */
#include "ledger/site.h"

#include <string.h>

#include "base/lock.h"           // lp_lock
#include "base/numbers.h"        // LP_HASH_FACTOR
#include "base/rawmem.h"         // lp_raw_map
#include "ledger/frame_table.h"  // lp_frames_*
#include "ledger/numbers.h"      // LP_SITE_CROWDED
#include "ledger/site_index.h"   // lp_site_index

typedef struct site {
    uint32_t hash;
    uint32_t stack;          /* index of the first frame id in stacks */
    lp_site_id base;         /* 0, or the site whose child this is */
    lp_site_id same;         /* the first site that reads the same, 0 until it was looked for */
    lp_site_id first_child, last_child, next_child;
    uint16_t count : 15;
    uint16_t own : 1;        /* the innermost frame is leakprobe's: callers get LP_SITE_SELF */
    uint8_t deep;            /* SHALLOW, DEEP or FULL */
    uint8_t child_count;
} site;

#define STACKS_MAX (1u << 24)

enum { SHALLOW, DEEP, FULL }; /* bits: two that are deep together are DEEP, one that is FULL beside any is not */

static lp_lock lock = LP_LOCK_INIT(LP_RANK_SITES);
static site *sites;
static uint32_t site_count = LP_SITE_FIRST;
static lp_frame_id *stacks;
static uint32_t stacks_used;
static uint64_t overflow_count;

/* What must hold between any two calls and costs nothing to see.  The lock is held. */
static int is_plausible(void) {
    return site_count >= LP_SITE_FIRST && site_count <= LP_SITE_MAX + 1 && stacks_used <= STACKS_MAX;
}

lp_status lp_site_init(const lp_site_resolver *resolver) {
    lp_lock_take(&lock);
    lp_status status = lp_frames_init_lock_held(resolver);
    if (status == LP_OK && sites == NULL) {
        sites = lp_raw_map_filled(sizeof(site) * ((size_t)LP_SITE_MAX + 1));
    }
    if (status == LP_OK && stacks == NULL) {
        stacks = lp_raw_map_filled(sizeof(lp_frame_id) * STACKS_MAX);
    }
    if (sites == NULL || stacks == NULL) {
        status = LP_NO_MEMORY;
    }
    lp_lock_release(&lock);
    return status;
}

/* The multiplications do not wait for each other: this is most of the time of a hit. */
static uint32_t hash_stack(lp_site_id base, const lp_raw_frame *frames, uint32_t count) {
    uint64_t hash = base + 1;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t mixed = ((uint64_t)(uintptr_t)frames[i].code ^ (uint64_t)frames[i].offset << 44) * LP_HASH_FACTOR;
        hash = (hash << 23 | hash >> 41) + (mixed ^ mixed >> 32);
    }
    hash *= LP_HASH_MIX;
    return (uint32_t)(hash ^ hash >> 32);
}

typedef enum match { DIFFERENT, EQUAL, DEAD } match;

/* pre: the hashes are equal.  DEAD: a frame has lost its code, so that nothing finds the site again. */
static match compare(const site *s, lp_site_id base, const lp_raw_frame *frames, uint32_t count) {
    if (s->base != base || s->count != count) {
        return DIFFERENT;
    }
    for (uint32_t i = 0; i < count; i++) {
        const lp_frame *frame = lp_frames_get(stacks[s->stack + i]);
        if (frame->code != frames[i].code || frame->offset != frames[i].offset) {
            return frame->code == NULL ? DEAD : DIFFERENT;
        }
    }
    return EQUAL;
}

/* The next frame of a site from *at on that is not leakprobe's, NULL at the end. */
static const lp_frame *next_foreign(const site *s, uint32_t *at) {
    while (*at < s->count) {
        const lp_frame *frame = lp_frames_get(stacks[s->stack + (*at)++]);
        if (!frame->own) {
            return frame;
        }
    }
    return NULL;
}

static uint32_t hash_text(lp_site_id id) {
    uint64_t hash = LP_HASH_FACTOR;
    uint32_t at = 0;
    for (const lp_frame *frame; (frame = next_foreign(&sites[id], &at)) != NULL;) {
        hash = (hash ^ (uint64_t)(uintptr_t)frame->alike ^ (uint64_t)frame->lineno << 44) * LP_HASH_MIX;
        hash = (hash ^ (uint64_t)(uintptr_t)frame->function ^ hash >> 32) * LP_HASH_MIX;
    }
    return (uint32_t)(hash ^ hash >> 29);
}

static uint32_t hash_ids_of(const site *s) {
    uint64_t hash = s->base + 1;
    for (uint32_t i = 0; i < s->count; i++) {
        hash = (hash ^ stacks[s->stack + i]) * LP_HASH_FACTOR;
        hash ^= hash >> 29;
    }
    return (uint32_t)hash;
}

static uint32_t hash_ids(lp_site_id id) { return hash_ids_of(&sites[id]); }

static int has_its_code(lp_site_id id) {
    for (uint32_t i = 0; i < sites[id].count; i++) {
        if (lp_frames_get(stacks[sites[id].stack + i])->code == NULL) {
            return 0;
        }
    }
    return 1;
}

static uint32_t hash_frames(lp_site_id id) { return sites[id].hash; }

/* A site that got new raw frames stands in by_frames where its old ones led, too. */
static lp_site_index by_frames = {.hash_of = hash_frames, .is_kept = has_its_code}, by_text = {.hash_of = hash_text},
                     by_ids = {.hash_of = hash_ids};

static int same_text(const site *a, const site *b) {
    uint32_t at_a = 0, at_b = 0;
    const lp_frame *x, *y;
    do {
        x = next_foreign(a, &at_a);
        y = next_foreign(b, &at_b);
        if (x == NULL || y == NULL) {
            return x == y;
        }
    } while (x->alike == y->alike && x->lineno == y->lineno && x->function == y->function);
    return 0;
}

/* The first site that reads like `id`; itself if it is the first. */
static lp_site_id find_same_lock_held(lp_site_id id) {
    site *s = &sites[id];
    for (uint32_t i = 0; i < s->count; i++) {
        lp_frames_decode_lock_held(stacks[s->stack + i]);
    }
    if (lp_site_index_reserve(&by_text) != 0) {
        return id;
    }
    size_t at = hash_text(id) & by_text.mask;
    for (; by_text.slots[at] != 0; at = (at + 1) & by_text.mask) {
        if (same_text(&sites[by_text.slots[at]], s)) {
            return by_text.slots[at];
        }
    }
    by_text.slots[at] = id;
    by_text.used++;
    return id;
}

/* Intern the frames of a new site behind those of the others; 0 on success. */
static int fill_stack(site *s, const lp_raw_frame *frames, uint32_t count) {
    if (stacks_used + count > STACKS_MAX) {
        return -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        lp_frame_id id = lp_frames_intern_lock_held(&frames[i]);
        if (id == 0) {
            return -1;
        }
        stacks[stacks_used + i] = id;
    }
    s->stack = stacks_used;
    s->count = (uint16_t)count;
    s->own = lp_frames_get(stacks[stacks_used])->own;
    return 0;
}

/* The slot in by_ids of a site with the same frames, or the one where it belongs; NULL without memory. */
static uint32_t *find_by_ids(const site *s) {
    if (lp_site_index_reserve(&by_ids) != 0) {
        return NULL;
    }
    size_t at = hash_ids_of(s) & by_ids.mask;
    for (; by_ids.slots[at] != 0; at = (at + 1) & by_ids.mask) {
        const site *found = &sites[by_ids.slots[at]];
        if (found->base == s->base && found->count == s->count &&
            memcmp(&stacks[found->stack], &stacks[s->stack], s->count * sizeof(*stacks)) == 0) {
            break;
        }
    }
    return &by_ids.slots[at];
}

static void link_child(lp_site_id base, lp_site_id child) {
    site *parent = &sites[base];
    *(parent->first_child == 0 ? &parent->first_child : &sites[parent->last_child].next_child) = child;
    parent->last_child = child;
    if (++parent->child_count == UINT8_MAX) {
        __atomic_store_n(&parent->deep, FULL, __ATOMIC_RELAXED);
    }
}

static lp_site_id add_site(const site *s) {
    if (site_count > LP_SITE_MAX) {
        return LP_SITE_OVERFLOW;
    }
    lp_site_id id = site_count;
    sites[id] = *s;
    stacks_used += s->count;
    __atomic_store_n(&site_count, id + 1, __ATOMIC_RELEASE);
    if (s->base != 0) {
        link_child(s->base, id);
    }
    return id;
}

/* A site that by_frames does not know: one whose code has died and was made anew, or a new one. */
static lp_site_id find_or_add_site(uint32_t *slot, lp_site_id base, uint32_t hash, const lp_raw_frame *frames,
                                   uint32_t count) {
    site wanted = {.hash = hash, .base = base};
    if (fill_stack(&wanted, frames, count) != 0) {
        return LP_SITE_OVERFLOW;
    }
    uint32_t *by_ids_slot = find_by_ids(&wanted);
    lp_site_id id = by_ids_slot == NULL || *by_ids_slot == 0 ? add_site(&wanted) : *by_ids_slot;
    if (id == LP_SITE_OVERFLOW) {
        return id;
    }
    if (by_ids_slot != NULL) {
        by_ids.used += *by_ids_slot == 0;
        *by_ids_slot = id;
    }
    sites[id].hash = hash;
    by_frames.used += *slot == 0;
    *slot = id;
    return id;
}

/* The slot of a site, or the one where it belongs: an empty one, or that of an equal hash whose
 * code has died, lest code that is made and dropped over and over at one address grow a chain. */
static uint32_t *find_slot(uint32_t hash, lp_site_id base, const lp_raw_frame *frames, uint32_t count,
                           match *out_match) {
    uint32_t *dead = NULL;
    size_t at = hash & by_frames.mask;
    for (; by_frames.slots[at] != 0; at = (at + 1) & by_frames.mask) {
        const site *found = &sites[by_frames.slots[at]];
        if (found->hash == hash) {
            *out_match = compare(found, base, frames, count);
            if (*out_match == EQUAL) {
                return &by_frames.slots[at];
            }
            dead = *out_match == DEAD ? &by_frames.slots[at] : dead;
        }
    }
    *out_match = DIFFERENT;
    return dead == NULL ? &by_frames.slots[at] : dead;
}

static lp_site_id intern_lock_held(lp_site_id base, const lp_raw_frame *frames, uint32_t count) {
    LP_ASSERT(is_plausible());
    int has_room = sites != NULL && lp_site_index_reserve(&by_frames) == 0;
    if (by_frames.slots == NULL) {
        return LP_SITE_OVERFLOW;
    }
    match found;
    uint32_t hash = hash_stack(base, frames, count);
    uint32_t *slot = find_slot(hash, base, frames, count, &found);
    if (found != EQUAL && lp_site_is_crowded() && base == 0 && count > 1) {
        return intern_lock_held(base, frames, 1);
    }
    if (found != EQUAL && !has_room) {
        return LP_SITE_OVERFLOW;
    }
    lp_site_id id = found == EQUAL ? *slot : find_or_add_site(slot, base, hash, frames, count);
    return id >= LP_SITE_FIRST && sites[id].own ? LP_SITE_SELF : id;
}

lp_site_id lp_site_intern(const lp_raw_frame *frames, uint32_t count) { return lp_site_intern_child(0, frames, count); }

/* Sites never move, and are complete before site_count counts them: their fixed fields are read
 * without the lock. */
static int is_known(lp_site_id id) {
    return id >= LP_SITE_FIRST && id < __atomic_load_n(&site_count, __ATOMIC_ACQUIRE);
}

static lp_site_id same_as(lp_site_id id) { return __atomic_load_n(&sites[id].same, __ATOMIC_RELAXED); }

static unsigned deepness(lp_site_id id) { return __atomic_load_n(&sites[id].deep, __ATOMIC_RELAXED); }

lp_site_id lp_site_intern_child(lp_site_id base, const lp_raw_frame *frames, uint32_t count) {
    if (count == 0) {
        return LP_SITE_NATIVE;
    }
    base = is_known(base) ? base : 0;
    base = base != 0 && same_as(base) != 0 ? same_as(base) : base;
    lp_lock_take(&lock);
    lp_site_id id = intern_lock_held(base, frames, count < LP_SITE_DEPTH_MAX ? count : LP_SITE_DEPTH_MAX);
    if (id == LP_SITE_OVERFLOW) {
        __atomic_fetch_add(&overflow_count, 1, __ATOMIC_RELAXED);
    }
    lp_lock_release(&lock);
    return id;
}

lp_site_id lp_site_parent(lp_site_id id) { return is_known(id) && sites[id].base != 0 ? sites[id].base : id; }

lp_site_id lp_site_base(lp_site_id id) {
    if (!is_known(id)) {
        return id;
    }
    if (sites[id].base != 0) {
        id = sites[id].base;
    }
    if (LP_UNLIKELY(same_as(id) == 0)) {
        LP_ASSERT_GIL();
        lp_lock_take(&lock);
        __atomic_store_n(&sites[id].same, find_same_lock_held(id), __ATOMIC_RELAXED);
        lp_lock_release(&lock);
    }
    return same_as(id);
}

void lp_site_set_deep(lp_site_id id) {
    if (is_known(id) && deepness(id) == SHALLOW) {
        __atomic_store_n(&sites[id].deep, DEEP, __ATOMIC_RELAXED);
    }
}

/* Site 0, of a site that was not compared yet, is never deep. */
int lp_site_is_deep(lp_site_id id) { return is_known(id) && (deepness(id) | deepness(same_as(id))) == DEEP; }

lp_site_id lp_site_first_child(lp_site_id base) {
    lp_lock_take(&lock);
    lp_site_id child = is_known(base) ? sites[base].first_child : 0;
    lp_lock_release(&lock);
    return child;
}

lp_site_id lp_site_next_child(lp_site_id child) {
    lp_lock_take(&lock);
    lp_site_id next = is_known(child) ? sites[child].next_child : 0;
    lp_lock_release(&lock);
    return next;
}

int lp_site_code_dies(const void *code) {
    lp_lock_take(&lock);
    int had_frames = lp_frames_code_dies_lock_held(code);
    lp_lock_release(&lock);
    return had_frames;
}

uint32_t lp_site_text(lp_site_id id, lp_frame_text *out_frames, uint32_t max) {
    LP_ASSERT_GIL();
    uint32_t written = 0;
    lp_lock_take(&lock);
    if (is_known(id)) {
        for (uint32_t i = 0; i < sites[id].count && written < max; i++) {
            lp_frame_id frame_id = stacks[sites[id].stack + i];
            lp_frames_decode_lock_held(frame_id);
            const lp_frame *frame = lp_frames_get(frame_id);
            if (!frame->own && frame->filename != NULL) {
                out_frames[written++] = (lp_frame_text){frame->filename, frame->function, frame->lineno};
            }
        }
    }
    lp_lock_release(&lock);
    return written;
}

/* ---- proof ---- */

static int is_site_valid(lp_site_id id) {
    const site *s = &sites[id];
    if (s->count == 0 || s->count > LP_SITE_DEPTH_MAX || s->stack + s->count > stacks_used) {
        return 0;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (!lp_frames_has_lock_held(stacks[s->stack + i])) {
            return 0;
        }
    }
    if (s->base != 0 && (!is_known(s->base) || s->base >= id || sites[s->base].base != 0)) {
        return 0;
    }
    return s->same == 0 || (is_known(s->same) && sites[s->same].same == s->same);
}

/* How many children hang below a site; UINT32_MAX for a chain that is not closed, rises not, or has another's child. */
static uint32_t count_children(lp_site_id base) {
    uint32_t count = 0;
    lp_site_id last = 0;
    for (lp_site_id child = sites[base].first_child; child != 0; child = sites[child].next_child) {
        if (!is_known(child) || child <= last || sites[child].base != base) {
            return UINT32_MAX;
        }
        last = child;
        count++;
    }
    return last == sites[base].last_child ? count : UINT32_MAX;
}

static int are_sites_valid(void) {
    uint32_t child_count = 0, linked_count = 0;
    for (lp_site_id id = LP_SITE_FIRST; id < site_count; id++) {
        if (!is_site_valid(id)) {
            return 0;
        }
        uint32_t linked = count_children(id);
        if (linked == UINT32_MAX) {
            return 0;
        }
        linked_count += linked;
        child_count += sites[id].base != 0;
    }
    return child_count == linked_count;
}

int lp_site_is_valid(void) {
    lp_lock_take(&lock);
    /* Sites that got new raw frames stand in by_frames where nothing leads any more. */
    int is_valid = lp_site_index_is_valid(&by_frames, site_count, 0) &&
                   lp_site_index_is_valid(&by_text, site_count, 1) && lp_site_index_is_valid(&by_ids, site_count, 1) &&
                   is_plausible() && are_sites_valid();
    lp_lock_release(&lock);
    return is_valid;
}

uint32_t lp_site_count(void) { return __atomic_load_n(&site_count, __ATOMIC_ACQUIRE) - LP_SITE_FIRST; }

int lp_site_is_crowded(void) { return __atomic_load_n(&site_count, __ATOMIC_ACQUIRE) > LP_SITE_CROWDED; }

uint64_t lp_site_overflow_count(void) { return __atomic_load_n(&overflow_count, __ATOMIC_RELAXED); }

void lp_site_before_fork(void) { lp_lock_take(&lock); }

void lp_site_after_fork_in_parent(void) { lp_lock_release(&lock); }

void lp_site_reset_in_child(void) { lp_lock_reset_in_child(&lock); }
