/* Owns nothing. Reads the words around a block as the kernel copies them, and never asks malloc, which trusts what it
 * is given. */
#include "process/chunks.h"

#include "process/mappings.h"  // lp_peek_words
#include "process/numbers.h"   // LP_CHUNK_*

#define WORD ((uint64_t)sizeof(uint64_t))
#define ALIGNMENT (WORD + WORD)

/* Two words and two links; more than any machine has. */
static int is_size(uint64_t bytes) {
    return bytes >= ALIGNMENT + ALIGNMENT && bytes % ALIGNMENT == 0 && bytes >> LP_CHUNK_ADDRESS_BITS == 0;
}

uint64_t lp_chunk_bytes(uint64_t block) {
    uint64_t head, next, bytes;
    if (block % ALIGNMENT != 0 || !lp_peek_words(block - WORD, &head, 1)) {
        return 0;
    }
    bytes = head & ~(uint64_t)LP_CHUNK_FLAGS;
    if (!is_size(bytes)) {
        return 0;
    }
    if (head & LP_CHUNK_MAPPED) {
        return bytes - ALIGNMENT;
    }
    int is_used = lp_peek_words(block - WORD + bytes, &next, 1) && (next & LP_CHUNK_PREVIOUS_IN_USE);
    return is_used && is_size(next & ~(uint64_t)LP_CHUNK_FLAGS) ? bytes - WORD : 0;
}

uint64_t lp_chunk_with_header(uint64_t block) {
    uint64_t bytes = block == 0 ? 0 : lp_chunk_bytes(block);
    return bytes == 0 ? 0 : bytes + WORD;
}
