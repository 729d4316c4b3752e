/* Owns each text once, for the life of the process; the lock of the sites is held. Equal texts are equal
 * pointers. */
#include "ledger/texts.h"

#include <string.h>

#include "base/map.h"     // lp_map_hash_text
#include "base/rawmem.h"  // lp_raw_calloc

/* Open addressing: hash of the text => the text; grows at half full. */
static struct {
    char **slots;
    size_t mask, used;
} table;

static char **find_slot(char **table, size_t table_mask, const char *text) {
    size_t i = (size_t)lp_map_mix(lp_map_hash_text(text)) & table_mask;
    while (table[i] != NULL && strcmp(table[i], text) != 0) {
        i = (i + 1) & table_mask;
    }
    return &table[i];
}

static int grow(void) {
    size_t new_mask = table.slots == NULL ? 1023 : table.mask * 2 + 1;
    char **fresh = lp_raw_calloc(new_mask + 1, sizeof(char *));
    if (fresh == NULL) {
        return -1;
    }
    for (size_t i = 0; table.slots != NULL && i <= table.mask; i++) {
        if (table.slots[i] != NULL) {
            *find_slot(fresh, new_mask, table.slots[i]) = table.slots[i];
        }
    }
    lp_raw_free(table.slots);
    table.slots = fresh;
    table.mask = new_mask;
    return 0;
}

const char *lp_texts_intern_lock_held(const char *text) {
    if ((table.slots == NULL || table.used * 2 > table.mask) && grow() != 0 &&
        (table.slots == NULL || table.used + 1 > table.mask)) {
        return "";
    }
    char **slot = find_slot(table.slots, table.mask, text);
    if (*slot == NULL) {
        size_t bytes = strlen(text) + 1;
        char *copy = lp_raw_malloc(bytes);
        if (copy == NULL) {
            return "";
        }
        memcpy(copy, text, bytes);
        *slot = copy;
        table.used++;
    }
    return *slot;
}

const char *lp_texts_find_lock_held(const char *text) {
    char **slot = table.slots == NULL ? NULL : find_slot(table.slots, table.mask, text);
    return slot == NULL || *slot == NULL ? "" : *slot;
}
