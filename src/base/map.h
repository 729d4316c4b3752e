/* Hash table of 64-bit keys (never 0) => 32-bit values; open addressing, grows at 3/5. */
#ifndef LP_MAP_H
#define LP_MAP_H

#include "base/base.h"

typedef struct lp_map {
    uint64_t *key;    /* 0: free slot */
    uint32_t *value;
    size_t capacity;  /* a power of two, or 0 */
    size_t count;
} lp_map;

/* The slot of a key, made with value 0 if it is new; NULL when out of memory.
 * Valid until the next lp_map_put(). */
uint32_t *lp_map_put(lp_map *map, uint64_t key, int *out_is_new);
/* The value of a key, or `missing`. */
uint32_t lp_map_get(const lp_map *map, uint64_t key, uint32_t missing);
/* Forget all keys, keep the memory. */
void lp_map_clear(lp_map *map);
void lp_map_fini(lp_map *map);

/* Two numbers of 32 bits as one key. */
static inline uint64_t lp_map_pair(uint32_t high, uint32_t low) { return (uint64_t)high << 32 | low; }

/* A well mixed hash of a 64-bit number. */
static inline uint64_t lp_map_mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

/* FNV-1a of one more byte, and of a text's bytes; it begins with LP_MAP_HASH_BASIS. */
#define LP_MAP_HASH_BASIS UINT64_C(0xcbf29ce484222325)
static inline uint64_t lp_map_hash_byte(uint64_t hash, uint8_t byte) { return (hash ^ byte) * 0x100000001b3u; }

static inline uint64_t lp_map_hash_more(uint64_t hash, const char *text) {
    for (; *text != 0; text++) {
        hash = lp_map_hash_byte(hash, (uint8_t)*text);
    }
    return hash;
}

/* A hash of a text, never 0. */
static inline uint64_t lp_map_hash_text(const char *text) {
    uint64_t hash = lp_map_hash_more(LP_MAP_HASH_BASIS, text);
    return hash == 0 ? 1 : hash;
}

#endif
