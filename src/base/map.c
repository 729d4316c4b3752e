/* The one hash table of numbers. At most three fifths full, so a search ends; a failed growth leaves the old
 * table whole. */
#include "base/map.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_calloc

static size_t find_slot(const lp_map *map, uint64_t key) {
    size_t mask = map->capacity - 1;
    size_t at = lp_map_mix(key) & mask;
    while (map->key[at] != 0 && map->key[at] != key) {
        at = (at + 1) & mask;
    }
    return at;
}

static lp_status grow(lp_map *map) {
    lp_map bigger = {.capacity = map->capacity ? map->capacity * 2 : 64, .count = map->count};
    bigger.key = lp_raw_calloc(bigger.capacity, sizeof(*bigger.key));
    bigger.value = lp_raw_malloc(bigger.capacity * sizeof(*bigger.value));
    if (bigger.key == NULL || bigger.value == NULL) {
        lp_raw_free(bigger.key);
        lp_raw_free(bigger.value);
        return LP_NO_MEMORY;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->key[i] != 0) {
            size_t at = find_slot(&bigger, map->key[i]);
            bigger.key[at] = map->key[i];
            bigger.value[at] = map->value[i];
        }
    }
    lp_map_fini(map);
    *map = bigger;
    return LP_OK;
}

uint32_t *lp_map_put(lp_map *map, uint64_t key, int *out_is_new) {
    if (map->count * 5 >= map->capacity * 3 && grow(map) != LP_OK) {
        return NULL;
    }
    size_t at = find_slot(map, key);
    int is_new = map->key[at] == 0;
    if (is_new) {
        map->key[at] = key;
        map->value[at] = 0;
        map->count++;
    }
    if (out_is_new != NULL) {
        *out_is_new = is_new;
    }
    return &map->value[at];
}

uint32_t lp_map_get(const lp_map *map, uint64_t key, uint32_t missing) {
    if (map->count == 0) {
        return missing;
    }
    size_t at = find_slot(map, key);
    return map->key[at] == 0 ? missing : map->value[at];
}

void lp_map_clear(lp_map *map) {
    if (map->count != 0) {
        memset(map->key, 0, map->capacity * sizeof(*map->key));
        map->count = 0;
    }
}

void lp_map_fini(lp_map *map) {
    lp_raw_free(map->key);
    lp_raw_free(map->value);
    *map = (lp_map){0};
}
