/* libFuzzer: the ELF reader on an image made of the input.  First 16 bytes: where the dynamic section and the
 * read-only part lie and end, 4 bytes each; the rest is the image, a block of exactly its size. */
#include "fuzz.h"

#include "native/elf_image.h"

enum { PREFIX = 16, SLOTS_MAX = 8 };

static const char *const names[] = {"free", "posix_memalign"};

static void check_slots(const lp_elf_image *image, const uint8_t *bytes, size_t size, size_t writable_from,
                        size_t max) {
    lp_elf_slot slots[SLOTS_MAX];
    size_t count = 99;
    lp_status status = lp_elf_find_slots(image, names, 2, slots, max, &count);
    CHECK(status == LP_OK || status == LP_BAD_INPUT || status == LP_FULL);
    CHECK(count <= max && (status != LP_FULL || count == max) && (status != LP_BAD_INPUT || count == 0));
    for (size_t i = 0; i < count; i++) {
        uintptr_t at = (uintptr_t)slots[i].slot - (uintptr_t)bytes;
        CHECK(at >= writable_from && at + sizeof(void *) <= size && at % sizeof(void *) == 0 && slots[i].name < 2);
        for (size_t j = 0; j < i; j++) {
            CHECK(slots[i].slot != slots[j].slot);
        }
        *slots[i].slot = NULL;  /* a caller writes there */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size, 0};
    uint64_t dynamic = take(&in, 4), dynamic_bytes = take(&in, 4), split = take(&in, 4), relro_bytes = take(&in, 4);
    size_t rest = size > PREFIX ? size - PREFIX : 0;
    uint8_t *bytes = malloc(rest + !rest);
    CHECK(bytes != NULL);
    if (rest > 0) {
        memcpy(bytes, data + PREFIX, rest);
    }
    split = rest ? split % (rest + 1) : 0;
    const ElfW(Phdr) headers[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = split},
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = split, .p_memsz = rest - split},
        {.p_type = PT_DYNAMIC, .p_vaddr = dynamic, .p_memsz = dynamic_bytes},
        {.p_type = PT_GNU_RELRO, .p_vaddr = dynamic, .p_memsz = relro_bytes},
    };
    lp_elf_image image = {(uintptr_t)bytes, headers, 4};
    uintptr_t start, end;
    lp_elf_relro(&image, 4096, &start, &end);
    CHECK(start <= end && start % 4096 == 0 && end % 4096 == 0);
    (void)lp_elf_is_bound_now(&image);
    CHECK(rest == 0 || lp_elf_contains(&image, bytes + rest - 1));
    CHECK(!lp_elf_contains(&image, bytes + rest));
    check_slots(&image, bytes, rest, split, SLOTS_MAX);
    check_slots(&image, bytes, rest, split, 1);
    free(bytes);
    return 0;
}
