/* Owns frames and their three indices; the lock of the sites is held. An id stays for life; its code is borrowed
 * and never read. */
#include "ledger/frame_table.h"

#include "base/numbers.h"  // LP_HASH_FACTOR
#include "base/rawmem.h"   // lp_raw_map
#include "ledger/numbers.h"  // LP_INDEX_IS_FULL
#include "ledger/texts.h"  // lp_texts_intern_lock_held

/* Open addressing over ids: frames that have their code by (code, offset), and by code giving
 * its newest frame; frames that have lost it by their text, giving the one that lost it last. */
typedef struct frame_index {
    uint32_t *slots;
    size_t mask, used;
} frame_index;

/* frames[id]; id 0 is none, and GONE stands in slots that a frame has left. */
#define GONE 1u
#define FILENAME_BYTES 1024
static struct {
    lp_frame *frames;
    uint32_t frame_count;
    uint32_t live_count;  /* frames that have their code */
    uint32_t code_count;  /* code objects that have frames */
    uint32_t dead_count;  /* frames that have a text and no code */
    lp_site_resolver resolver;
    frame_index by_frame, by_code, by_text;
    lp_frame last_named;  /* the code whose names were read last, and these: frames of one code come in a row */
} table = {.frame_count = GONE + 1};

static size_t hash_frame(const frame_index *index, const lp_frame *frame) {
    uint64_t key = index == &table.by_text
                       ? (uint64_t)(uintptr_t)frame->filename ^ (uint64_t)(uintptr_t)frame->function << 20 ^
                             (uint64_t)frame->lineno << 40
                       : (uint64_t)(uintptr_t)frame->code;
    key ^= index == &table.by_code ? 0 : frame->offset * LP_HASH_MIX;
    uint64_t hash = key * LP_HASH_FACTOR;
    return (size_t)(hash ^ hash >> 32);
}

static int matches(const frame_index *index, const lp_frame *frame, const lp_frame *wanted) {
    if (index == &table.by_text) {
        return frame->filename == wanted->filename && frame->function == wanted->function &&
               frame->lineno == wanted->lineno && frame->offset == wanted->offset;
    }
    return frame->code == wanted->code && (index == &table.by_code || frame->offset == wanted->offset);
}

/* The slot of a frame (or code), or the slot where it belongs. */
static uint32_t *find_slot(const frame_index *index, const lp_frame *wanted) {
    uint32_t *free_slot = NULL;
    size_t at = hash_frame(index, wanted) & index->mask;
    for (; index->slots[at] != 0; at = (at + 1) & index->mask) {
        if (index->slots[at] == GONE) {
            free_slot = free_slot == NULL ? &index->slots[at] : free_slot;
        } else if (matches(index, &table.frames[index->slots[at]], wanted)) {
            return &index->slots[at];
        }
    }
    return free_slot == NULL ? &index->slots[at] : free_slot;
}

static int is_taken(const uint32_t *slot) { return *slot > GONE; }

static void put(frame_index *index, uint32_t *slot, lp_frame_id id) {
    index->used += *slot == 0;
    if (index != &table.by_frame) {
        table.frames[id].next = is_taken(slot) ? *slot : 0;
    }
    *slot = id;
}

static int belongs_in(const frame_index *index, const lp_frame *frame) {
    return index == &table.by_text ? frame->code == NULL && *frame->filename != '\0' : frame->code != NULL;
}

static size_t entries_of(const frame_index *index) {
    return index == &table.by_frame ? table.live_count : index == &table.by_code ? table.code_count : table.dead_count;
}

/* Make the index anew from the frames that belong in it: so large that this is seldom, beside how many frames there
 * are. */
static int rebuild(frame_index *index) {
    size_t mask = LP_INDEX_SLOTS_LEAST - 1;
    while (!LP_INDEX_IS_ROOMY(entries_of(index), mask + 1) || table.frame_count / LP_FRAMES_A_SLOT > mask) {
        mask += mask + 1;
    }
    frame_index fresh = {lp_raw_calloc(mask + 1, sizeof(uint32_t)), mask, 0};
    if (fresh.slots == NULL) {
        return -1;
    }
    lp_raw_free(index->slots);
    *index = fresh;
    for (lp_frame_id id = GONE + 1; id < table.frame_count; id++) {
        if (belongs_in(index, &table.frames[id])) {
            put(index, find_slot(index, &table.frames[id]), id);
        }
    }
    return 0;
}

/* 0 if the index has room for one more. */
static int make_room(frame_index *index) {
    if (index->slots != NULL && !LP_INDEX_IS_FULL(index->used, index->mask + 1)) {
        return 0;
    }
    return rebuild(index) == 0 || (index->slots != NULL && index->used + 1 < index->mask) ? 0 : -1;
}

lp_status lp_frames_init_lock_held(const lp_site_resolver *given) {
    table.resolver = *given;
    if (table.frames == NULL) {
        table.frames = lp_raw_map_filled(sizeof(lp_frame) * LP_FRAME_MAX);
    }
    return table.frames == NULL ? LP_NO_MEMORY : LP_OK;
}

int lp_frames_has_lock_held(lp_frame_id id) { return id > GONE && id < table.frame_count; }

const lp_frame *lp_frames_get(lp_frame_id id) {
    LP_ASSERT(id > GONE);
    return &table.frames[id];
}

/* Once the table is full a frame is read only to be found: its texts would be of use to no other. */
static const char *keep_text(const char *text) {
    return table.frame_count == LP_FRAME_MAX ? lp_texts_find_lock_held(text) : lp_texts_intern_lock_held(text);
}

/* What is generated anew has a new number in its name; one copy of the text that names have in common. */
static const char *without_numbers(const char *filename) {
    char text[FILENAME_BYTES];
    size_t length = 0;
    if (*filename != '<') {
        return filename;
    }
    for (const char *at = filename; *at != '\0'; at++) {
        int is_digit = *at >= '0' && *at <= '9';
        if (!is_digit || length == 0 || text[length - 1] != '0') {
            text[length++] = is_digit ? '0' : *at;
        }
    }
    text[length] = '\0';
    return keep_text(text);
}

static void read_names(lp_frame *frame) {
    char filename[FILENAME_BYTES] = "", function[256] = "";
    table.resolver.names(frame->code, frame->offset, filename, sizeof(filename), function, sizeof(function));
    frame->function = keep_text(function);
    frame->filename = keep_text(filename);
    frame->alike = without_numbers(frame->filename);
}

/* 0 if memory was out: read again. */
static int is_named(const lp_frame *frame) {
    return *frame->filename != '\0' && *frame->function != '\0' && *frame->alike != '\0';
}

static void decode(lp_frame *frame) {
    lp_frame *last = &table.last_named;
    frame->lineno = table.resolver.line(frame->code, frame->offset);
    if (last->code != frame->code || frame->offset == LP_SITE_NATIVE_CODE) {
        read_names(frame);
        if (frame->offset != LP_SITE_NATIVE_CODE && is_named(frame)) {
            *last = *frame;
        }
        return;
    }
    frame->filename = last->filename;
    frame->alike = last->alike;
    frame->function = last->function;
}

void lp_frames_decode_lock_held(lp_frame_id id) {
    lp_frame *frame = &table.frames[id];
    if (frame->filename == NULL && frame->code != NULL) {
        decode(frame);
    }
}

/* The id of a frame that has lost its code and reads like this one, now taken out of by_text; or 0. */
static lp_frame_id revive(lp_frame *wanted) {
    if (table.dead_count == 0 || table.by_text.slots == NULL ||
        (table.resolver.may_decode != NULL && !table.resolver.may_decode())) {
        return 0;
    }
    decode(wanted);
    uint32_t *slot = find_slot(&table.by_text, wanted);
    lp_frame_id id = is_taken(slot) ? *slot : 0;
    if (id != 0) {
        *slot = table.frames[id].next != 0 ? table.frames[id].next : GONE;
        table.dead_count--;
        table.frames[id].code = wanted->code;
    }
    return id;
}

/* 1 if the code is leakprobe's own, as a frame of it that is there already says. */
static uint8_t is_own(const lp_frame *wanted) {
    if (wanted->offset == LP_SITE_NATIVE_CODE || table.resolver.is_own == NULL) {
        return 0;
    }
    const uint32_t *same = find_slot(&table.by_code, wanted);
    return is_taken(same) ? table.frames[*same].own : (uint8_t)table.resolver.is_own(wanted->code);
}

static lp_frame_id add(const lp_frame *wanted) {
    if (table.frame_count == LP_FRAME_MAX) {
        return 0;
    }
    table.frames[table.frame_count] = *wanted;
    table.frames[table.frame_count].own = is_own(wanted);
    return table.frame_count++;
}

lp_frame_id lp_frames_intern_lock_held(const lp_raw_frame *raw) {
    /* Both first: a frame that is not under its code would outlive it. */
    if (make_room(&table.by_frame) != 0 || make_room(&table.by_code) != 0) {
        return 0;
    }
    lp_frame wanted = {.code = raw->code, .offset = raw->offset};
    uint32_t *slot = find_slot(&table.by_frame, &wanted);
    if (is_taken(slot)) {
        return *slot;
    }
    lp_frame_id id = revive(&wanted);
    id = id != 0 ? id : add(&wanted);
    if (id != 0) {
        put(&table.by_frame, slot, id);
        uint32_t *of_code = find_slot(&table.by_code, &table.frames[id]);
        table.code_count += !is_taken(of_code);
        put(&table.by_code, of_code, id);
        table.live_count++;
    }
    return id;
}

/* Take the code from a frame.  One that could not be decoded for want of memory is like no other. */
static void bury(lp_frame_id id) {
    lp_frames_decode_lock_held(id);
    int has_text = *table.frames[id].filename != '\0', has_room = make_room(&table.by_text) == 0;
    *find_slot(&table.by_frame, &table.frames[id]) = GONE;
    table.frames[id].code = NULL;
    table.live_count--;
    table.dead_count += has_text;
    if (has_text && has_room) {
        put(&table.by_text, find_slot(&table.by_text, &table.frames[id]), id);
    }
}

/* The frames of a code object in the order in which they came, which is mostly that of their instructions. */
static lp_frame_id oldest_first(lp_frame_id id) {
    lp_frame_id before = 0;
    for (lp_frame_id next; id != 0; id = next) {
        next = table.frames[id].next;
        table.frames[id].next = before;
        before = id;
    }
    return before;
}

static int bury_all(const void *code) {
    const lp_frame wanted = {.code = code};
    uint32_t *head = table.by_code.slots == NULL ? NULL : find_slot(&table.by_code, &wanted);
    if (head == NULL || !is_taken(head)) {
        return 0;
    }
    lp_frame_id id = oldest_first(*head);
    *head = GONE;
    table.code_count--;
    for (lp_frame_id next; id != 0; id = next) {
        next = table.frames[id].next;
        bury(id);
    }
    return 1;
}

int lp_frames_code_dies_lock_held(const void *code) {
    int had_frames = bury_all(code);
    if (table.last_named.code == code) {
        table.last_named.code = NULL;
    }
    if (table.resolver.forget != NULL) {
        table.resolver.forget(code);
    }
    return had_frames;
}
