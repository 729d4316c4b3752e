/* Owns counters by line; the ledger's lock is held. A line keeps its number for the life of the process. */
#include "ledger/lines.h"

/* Where a key lies, or the free slot where it belongs: at most half of the slots are taken. */
static uint32_t slot_of(const lp_lines *lines, uint32_t key) {
    uint32_t i = key % LP_LINES_SLOTS;
    while (lines->slots[i] != 0 && lines->key[lines->slots[i] - 1u] != key) {
        i = (i + 1) % LP_LINES_SLOTS;
    }
    return i;
}

uint32_t lp_lines_find(const lp_lines *lines, uint32_t key) {
    uint32_t number = lines->slots[slot_of(lines, key)];
    return number == 0 ? (uint32_t)LP_LINES_NONE : number - 1;
}

uint32_t lp_lines_make(lp_lines *lines, uint32_t key) {
    uint32_t slot = slot_of(lines, key);
    if (lines->slots[slot] == 0) {
        if (lines->count == LP_LINES_MAX) {
            return LP_LINES_NONE;
        }
        lines->key[lines->count] = key;
        lines->slots[slot] = (uint16_t)++lines->count;
    }
    return lines->slots[slot] - 1u;
}
