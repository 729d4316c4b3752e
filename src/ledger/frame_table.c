#include "ledger/frame_table.h"

#include <string.h>

#include "base/rawmem.h"   // lp_raw_map
#include "ledger/texts.h"  // lp_texts_intern_lock_held

/* frames[id]; id 0 is none. */
static lp_frame *frames;
static uint32_t frame_count = 1;
static lp_site_resolver resolver;

/* Open addressing over ids: one index by (code, offset), one by code giving its newest frame. */
typedef struct index {
    uint32_t *slots;
    size_t mask, used;
} index_t;

static index_t by_frame, by_code;

static size_t hash_code(const void *code) {
    uint64_t hash = (uint64_t)(uintptr_t)code * 0x9E3779B97F4A7C15ull;
    return (size_t)(hash ^ hash >> 32);
}

static size_t hash_frame(const void *code, uint32_t offset) {
    uint64_t hash = ((uint64_t)(uintptr_t)code ^ (uint64_t)offset << 40) * 0x9E3779B97F4A7C15ull;
    return (size_t)(hash ^ hash >> 32);
}

static size_t hash_of(const index_t *index, lp_frame_id id) {
    return index == &by_code ? hash_code(frames[id].code) : hash_frame(frames[id].code, frames[id].offset);
}

static int matches(const index_t *index, lp_frame_id id, const lp_raw_frame *wanted) {
    const lp_frame *frame = &frames[id];
    return frame->code == wanted->code && (index == &by_code || frame->offset == wanted->offset);
}

static int index_grow(index_t *index) {
    size_t mask = index->slots == NULL ? 1023 : index->mask * 2 + 1;
    uint32_t *slots = lp_raw_calloc(mask + 1, sizeof(uint32_t));
    if (slots == NULL) {
        return -1;
    }
    size_t used = 0;
    for (size_t i = 0; index->slots != NULL && i <= index->mask; i++) {
        lp_frame_id id = index->slots[i];
        if (id == 0 || frames[id].code == NULL) {
            continue;
        }
        size_t at = hash_of(index, id) & mask;
        while (slots[at] != 0) {
            at = (at + 1) & mask;
        }
        slots[at] = id;
        used++;
    }
    lp_raw_free(index->slots);
    *index = (index_t){slots, mask, used};
    return 0;
}

/* The slot of a frame (or code), or the empty slot where it belongs; NULL when out of memory. */
static uint32_t *index_find(index_t *index, const lp_raw_frame *wanted) {
    if ((index->slots == NULL || index->used * 2 > index->mask) && index_grow(index) != 0) {
        return NULL;
    }
    size_t at = index == &by_code ? hash_code(wanted->code) : hash_frame(wanted->code, wanted->offset);
    for (at &= index->mask; index->slots[at] != 0; at = (at + 1) & index->mask) {
        if (matches(index, index->slots[at], wanted)) {
            break;
        }
    }
    return &index->slots[at];
}

lp_status lp_frames_init_lock_held(const lp_site_resolver *given) {
    resolver = *given;
    if (frames == NULL) {
        frames = lp_raw_map(sizeof(lp_frame) * LP_FRAME_MAX);
    }
    return frames == NULL ? LP_NO_MEMORY : LP_OK;
}

const lp_frame *lp_frames_get(lp_frame_id id) {
    return &frames[id];
}

static void link_to_code(lp_frame_id id, const lp_raw_frame *wanted) {
    uint32_t *head = index_find(&by_code, wanted);
    if (head == NULL) {
        return;
    }
    by_code.used += *head == 0;
    frames[id].next = *head;
    *head = id;
}

lp_frame_id lp_frames_intern_lock_held(const lp_raw_frame *wanted) {
    uint32_t *slot = index_find(&by_frame, wanted);
    if (slot == NULL) {
        return 0;
    }
    if (*slot != 0) {
        return *slot;
    }
    if (frame_count == LP_FRAME_MAX) {
        return 0;
    }
    lp_frame_id id = frame_count++;
    frames[id] = (lp_frame){.code = wanted->code, .offset = wanted->offset};
    frames[id].own = (uint8_t)(resolver.is_own != NULL && resolver.is_own(wanted->code));
    *slot = id;
    by_frame.used++;
    link_to_code(id, wanted);
    return id;
}

void lp_frames_decode_lock_held(lp_frame_id id) {
    lp_frame *frame = &frames[id];
    if (frame->filename != NULL || frame->code == NULL) {
        return;
    }
    char filename[1024] = "", function[256] = "";
    uint32_t lineno = 0;
    resolver.decode(frame->code, frame->offset, filename, sizeof(filename), function, sizeof(function), &lineno);
    frame->filename = lp_texts_intern_lock_held(filename);
    frame->function = lp_texts_intern_lock_held(function);
    frame->lineno = lineno;
}

int lp_frames_code_dies_lock_held(const void *code) {
    lp_raw_frame wanted = {code, 0};
    uint32_t *head = index_find(&by_code, &wanted);
    if (head == NULL || *head == 0) {
        return 0;
    }
    for (lp_frame_id id = *head; id != 0; id = frames[id].next) {
        lp_frames_decode_lock_held(id);
        frames[id].code = NULL;
    }
    return 1;
}
