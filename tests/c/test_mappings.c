/* Which addresses of this process can be read. */
#include "harness.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rawmem.h"
#include "process/mappings.h"

static void test_devices_are_told_from_shared_memory(void) {
    CHECK(lp_mappings_is_device("rw-s", "/dev/nvidia0") && lp_mappings_is_device("r--s", "/dev/dri/card0"));
    CHECK(lp_mappings_is_device("rw-s", "anon_inode:i915.gem") && lp_mappings_is_device("rw-s", "/sys/bus/pci/x"));
    CHECK(!lp_mappings_is_device("rw-s", "/dev/shm/torch_1") && !lp_mappings_is_device("rw-s", "/dev/zero"));
    CHECK(!lp_mappings_is_device("rw-s", "/data/file") && !lp_mappings_is_device("rw-s", ""));
    CHECK(!lp_mappings_is_device("rw-p", "/dev/zero") && !lp_mappings_is_device("r-xp", "/usr/lib/libc.so.6"));
    CHECK(!lp_mappings_is_device("", ""));
}

static void test_what_is_mapped_is_there(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    lp_mappings known = {0};
    char *private = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(mprotect(private + page, page, PROT_NONE) == 0 && munmap(shared + page, page) == 0);
    CHECK(lp_mappings_read(&known) == LP_OK);
    CHECK(lp_mappings_has(&known, private, 8) && lp_mappings_has(&known, private + 2 * page, 8));
    CHECK(lp_mappings_has(&known, shared, 8) && lp_mappings_has(&known, shared + 3 * page - 8, 8));
    CHECK(!lp_mappings_has(&known, private + page, 8) && !lp_mappings_has(&known, shared + page, 8));
    CHECK(!lp_mappings_has(&known, private + page - 8, 16) && lp_mappings_has(&known, private + page - 8, 8));
    char *later = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(lp_mappings_has(&known, later, 8));
    CHECK(!lp_mappings_has(&known, (void *)8, 8));
    uint64_t word[2];
    CHECK(lp_copy_words((uintptr_t)private, word, 2) && word[0] == 0);
    CHECK(munmap(private, page) == 0 && lp_mappings_has(&known, private, 8)); /* as old as the last reading */
    CHECK(!lp_copy_words((uintptr_t)private, word, 2));
    lp_raw_free(known.range);
}

int main(void) {
    test_devices_are_told_from_shared_memory();
    test_what_is_mapped_is_there();
    return 0;
}
