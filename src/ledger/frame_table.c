#include "ledger/frame_table.h"

#include "base/rawmem.h"   // lp_raw_map
#include "ledger/texts.h"  // lp_texts_intern_lock_held

/* frames[id]; id 0 is none. */
static lp_frame *frames;
static uint32_t frame_count = 1;
static uint32_t live_count;  /* frames that have their code */
static lp_site_resolver resolver;

/* Open addressing over ids: one index by (code, offset), one by code giving its newest frame.
 * A slot whose frame has lost its code may be taken by another. */
typedef struct frame_index {
    uint32_t *slots;
    size_t mask, used;
} frame_index;

static frame_index by_frame, by_code;

static size_t hash_frame(const frame_index *index, const void *code, uint32_t offset) {
    uint64_t key = (uint64_t)(uintptr_t)code ^ (index == &by_code ? 0 : offset * 0xff51afd7ed558ccdull);
    uint64_t hash = key * 0x9E3779B97F4A7C15ull;
    return (size_t)(hash ^ hash >> 32);
}

static int matches(const frame_index *index, const lp_frame *frame, const void *code, uint32_t offset) {
    return frame->code == code && (index == &by_code || frame->offset == offset);
}

/* The slot of a frame (or code), or the slot where it belongs. */
static uint32_t *find_slot(const frame_index *index, const void *code, uint32_t offset) {
    uint32_t *free_slot = NULL;
    size_t at = hash_frame(index, code, offset) & index->mask;
    for (; index->slots[at] != 0; at = (at + 1) & index->mask) {
        const lp_frame *frame = &frames[index->slots[at]];
        if (matches(index, frame, code, offset)) {
            return &index->slots[at];
        }
        if (frame->code == NULL && free_slot == NULL) {
            free_slot = &index->slots[at];
        }
    }
    return free_slot == NULL ? &index->slots[at] : free_slot;
}

static void put(frame_index *index, uint32_t *slot, lp_frame_id id) {
    index->used += *slot == 0;
    if (index == &by_code) {
        frames[id].next = *slot != 0 && frames[*slot].code == frames[id].code ? *slot : 0;
    }
    *slot = id;
}

/* Make the index anew from the frames that have their code. */
static int rebuild(frame_index *index) {
    size_t mask = 1023;
    while ((size_t)live_count * 4 > mask) {
        mask = mask * 2 + 1;
    }
    frame_index fresh = {lp_raw_calloc(mask + 1, sizeof(uint32_t)), mask, 0};
    if (fresh.slots == NULL) {
        return -1;
    }
    lp_raw_free(index->slots);
    *index = fresh;
    for (lp_frame_id id = 1; id < frame_count; id++) {
        if (frames[id].code != NULL) {
            put(index, find_slot(index, frames[id].code, frames[id].offset), id);
        }
    }
    return 0;
}

/* 0 if the index has room for one more. */
static int make_room(frame_index *index) {
    if (index->slots != NULL && index->used * 2 <= index->mask) {
        return 0;
    }
    return rebuild(index) == 0 || (index->slots != NULL && index->used + 1 < index->mask) ? 0 : -1;
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

lp_frame_id lp_frames_intern_lock_held(const lp_raw_frame *wanted) {
    /* Both first: a frame that is not under its code would outlive it. */
    if (make_room(&by_frame) != 0 || make_room(&by_code) != 0) {
        return 0;
    }
    uint32_t *slot = find_slot(&by_frame, wanted->code, wanted->offset);
    if (*slot != 0 && matches(&by_frame, &frames[*slot], wanted->code, wanted->offset)) {
        return *slot;
    }
    if (frame_count == LP_FRAME_MAX) {
        return 0;
    }
    lp_frame_id id = frame_count;
    frames[id] = (lp_frame){.code = wanted->code, .offset = wanted->offset};
    frames[id].own = (uint8_t)(resolver.is_own != NULL && resolver.is_own(wanted->code));
    put(&by_frame, slot, id);
    put(&by_code, find_slot(&by_code, wanted->code, 0), id);
    frame_count++;
    live_count++;
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
    frame->function = lp_texts_intern_lock_held(function);
    frame->lineno = lineno;
    frame->filename = lp_texts_intern_lock_held(filename);
}

int lp_frames_code_dies_lock_held(const void *code) {
    if (by_code.slots == NULL && (frame_count == 1 || rebuild(&by_code) != 0)) {
        return 0;
    }
    lp_frame_id id = *find_slot(&by_code, code, 0);
    if (id == 0 || frames[id].code != code) {
        return 0;
    }
    for (; id != 0; id = frames[id].next) {
        lp_frames_decode_lock_held(id);
        frames[id].code = NULL;
        live_count--;
    }
    return 1;
}
