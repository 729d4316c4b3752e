/* How long a block of glibc's malloc is, by the words around it. */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/chunks.h"

enum { HEAD = 1, BLOCK = 2, NEXT = 9 };

static uint64_t bytes_of(uint64_t head, uint64_t next) {
    _Alignas(16) uint64_t word[12] = {[HEAD] = head, [NEXT] = next};
    return lp_chunk_bytes((uintptr_t)&word[BLOCK]);
}

static void test_a_size_is_believed_that_the_next_block_bears_out(void) {
    CHECK(bytes_of(64 | 1, 48 | 1) == 56 && bytes_of(64, 32 | 1) == 56 && bytes_of(64 | 5, 4096 | 5) == 56);
    CHECK(bytes_of(64 | 1, 48) == 0);                           /* this one is free */
    CHECK(bytes_of(64 | 1, 1) == 0 && bytes_of(64 | 1, 40 | 1) == 0);
    CHECK(bytes_of(16 | 1, 48 | 1) == 0 && bytes_of(72 | 1, 48 | 1) == 0 && bytes_of(0, 48 | 1) == 0);
    CHECK(bytes_of(4096 | 2, 0) == 4080);                       /* mapped for itself */
    CHECK(bytes_of(UINT64_MAX - 15, 48 | 1) == 0);
}

static void test_other_addresses_are_no_blocks(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t head = page - 64 + 16;                             /* the next head would lie on the second page */
    CHECK(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0);
    memcpy(two + 56, &head, sizeof(head));
    CHECK(lp_chunk_bytes((uintptr_t)two + 64) == 0);
    CHECK(lp_chunk_bytes((uintptr_t)two + 72) == 0 && lp_chunk_bytes((uintptr_t)two + page + 16) == 0);
    CHECK(lp_chunk_bytes(0) == 0 && lp_chunk_bytes(16) == 0);
    munmap(two, 2 * page);
}

int main(void) {
    test_a_size_is_believed_that_the_next_block_bears_out();
    test_other_addresses_are_no_blocks();
    return 0;
}
