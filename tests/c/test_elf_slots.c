/* The ELF reader on images made by hand: well-formed ones, odd ones and random damage.
 * The image is a block of exactly its size, so that a sanitizer sees each read outside it. */
#include "harness.h"

#ifdef __linux__

#include <stdlib.h>
#include <string.h>

#include "base/rawmem.h"
#include "native/address_table.h"
#include "native/elf_image.h"

#if defined(__aarch64__)
#define ABS64 R_AARCH64_ABS64
#define GLOB_DAT R_AARCH64_GLOB_DAT
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define RELATIVE R_AARCH64_RELATIVE
#else
#define ABS64 R_X86_64_64
#define GLOB_DAT R_X86_64_GLOB_DAT
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define RELATIVE R_X86_64_RELATIVE
#endif

enum { DYNAMICS = 16, SYMBOLS = 5, RELAS = 6, JMPRELS = 3, GOTS = 8, STRINGS = 40 };

/* read-only part first, then the slots, as in a real image */
typedef struct image_bytes {
    ElfW(Dyn) dynamic[DYNAMICS];
    ElfW(Sym) symbols[SYMBOLS];
    ElfW(Rela) rela[RELAS], jmprel[JMPRELS];
    void *got[GOTS];
    char strings[STRINGS];
} image_bytes;

typedef struct fixture {
    image_bytes *bytes;
    ElfW(Phdr) headers[4];
    lp_elf_image image;
} fixture;

static const char *const names[] = {"free", "posix_memalign"};
/* offsets in strings: 1 free, 6 freeing, 14 posix_memalign */
static const char text[STRINGS] = "\0free\0freeing\0posix_memalign";

static ElfW(Rela) relocation(size_t got, uint64_t symbol, uint64_t kind, int64_t addend) {
    return (ElfW(Rela)){offsetof(image_bytes, got) + got * sizeof(void *), ELF64_R_INFO(symbol, kind), addend};
}

static ElfW(Dyn) * entry(fixture *f, int64_t tag) {
    for (size_t i = 0; i < DYNAMICS; i++) {
        if (f->bytes->dynamic[i].d_tag == tag) {
            return &f->bytes->dynamic[i];
        }
    }
    abort();
}

static void fill_dynamic(fixture *f, int is_absolute) {
    uintptr_t base = is_absolute ? (uintptr_t)f->bytes : 0;
    const ElfW(Dyn) dynamic[] = {
        {DT_SYMTAB, {base + offsetof(image_bytes, symbols)}},
        {DT_SYMENT, {sizeof(ElfW(Sym))}},
        {DT_STRTAB, {base + offsetof(image_bytes, strings)}},
        {DT_STRSZ, {STRINGS}},
        {DT_RELA, {base + offsetof(image_bytes, rela)}},
        {DT_RELASZ, {RELAS * sizeof(ElfW(Rela))}},
        {DT_RELAENT, {sizeof(ElfW(Rela))}},
        {DT_JMPREL, {base + offsetof(image_bytes, jmprel)}},
        {DT_PLTRELSZ, {JMPRELS * sizeof(ElfW(Rela))}},
        {DT_PLTREL, {DT_RELA}},
        {DT_FLAGS, {0}},
        {DT_FLAGS_1, {0}},
    };
    memcpy(f->bytes->dynamic, dynamic, sizeof(dynamic));
}

static void make(fixture *f, int is_absolute) {
    image_bytes *bytes = f->bytes = calloc(1, sizeof(*bytes));
    memcpy(bytes->strings, text, STRINGS);
    bytes->symbols[1].st_name = 1;
    bytes->symbols[2].st_name = 6;
    bytes->symbols[3].st_name = 14;
    bytes->jmprel[0] = relocation(0, 1, JUMP_SLOT, 0);
    bytes->jmprel[1] = relocation(1, 2, JUMP_SLOT, 0);     /* freeing: another name */
    bytes->jmprel[2] = relocation(2, 3, JUMP_SLOT, 0);
    bytes->rela[0] = relocation(3, 1, GLOB_DAT, 0);
    bytes->rela[1] = relocation(4, 1, ABS64, 0);
    bytes->rela[2] = relocation(5, 1, RELATIVE, 0);        /* another kind */
    bytes->rela[3] = relocation(6, 1, ABS64, 8);           /* not the function's address */
    bytes->rela[4] = relocation(0, 1, JUMP_SLOT, 0);       /* the PLT's again */
    bytes->rela[5] = relocation(7, 4, GLOB_DAT, 0);        /* no name */
    f->headers[0] = (ElfW(Phdr)){.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = offsetof(image_bytes, got)};
    f->headers[1] = (ElfW(Phdr)){.p_type = PT_LOAD,
                                 .p_flags = PF_R | PF_W,
                                 .p_vaddr = offsetof(image_bytes, got),
                                 .p_memsz = sizeof(*bytes) - offsetof(image_bytes, got)};
    f->headers[2] = (ElfW(Phdr)){.p_type = PT_DYNAMIC, .p_memsz = sizeof(bytes->dynamic)};
    f->headers[3] = (ElfW(Phdr)){.p_type = PT_NOTE};
    f->image = (lp_elf_image){(uintptr_t)bytes, f->headers, 4};
    fill_dynamic(f, is_absolute);
}

static size_t find(fixture *f, lp_elf_slot *out_slots, size_t max) {
    size_t count = 99;
    (void)lp_elf_find_slots(&f->image, names, 2, out_slots, max, &count);
    return count;
}

static size_t count_slots(fixture *f) {
    lp_elf_slot slots[GOTS];
    return find(f, slots, GOTS);
}

static void test_all_kinds_are_found_by_name(int is_absolute) {
    fixture f;
    lp_elf_slot slots[GOTS];
    make(&f, is_absolute);
    CHECK(find(&f, slots, GOTS) == 4);
    static const struct {
        size_t got, name;
    } expected[] = {{0, 0}, {2, 1}, {3, 0}, {4, 0}};
    for (size_t i = 0; i < 4; i++) {
        CHECK(slots[i].slot == &f.bytes->got[expected[i].got]);
        CHECK(slots[i].name == expected[i].name);
    }
    size_t count;
    CHECK(lp_elf_find_slots(&f.image, names, 2, slots, 2, &count) == LP_FULL && count == 2);
    free(f.bytes);
}

static void test_odd_relocations_are_left_out(void) {
    fixture f;
    make(&f, 1);
    f.bytes->jmprel[0].r_info = ELF64_R_INFO(UINT32_MAX, JUMP_SLOT);
    CHECK(count_slots(&f) == 4);                     /* rela[4] names the slot still */
    f.bytes->rela[4].r_offset += 1;                  /* not aligned */
    CHECK(count_slots(&f) == 3);
    f.bytes->rela[4].r_offset = UINT64_MAX - 7;
    CHECK(count_slots(&f) == 3);
    f.bytes->rela[4].r_offset = sizeof(image_bytes);
    CHECK(count_slots(&f) == 3);
    f.bytes->rela[4].r_offset = 0;                   /* a read-only segment */
    CHECK(count_slots(&f) == 3);
    f.bytes->symbols[1].st_name = STRINGS;
    CHECK(count_slots(&f) == 1);
    f.bytes->symbols[3].st_name = UINT32_MAX;
    CHECK(count_slots(&f) == 0);
    free(f.bytes);
}

static void test_a_name_must_end_inside_the_strings(void) {
    fixture f;
    make(&f, 1);
    memcpy(f.bytes->strings + STRINGS - 4, "free", 4);
    f.bytes->symbols[1].st_name = STRINGS - 4;
    CHECK(count_slots(&f) == 1);
    entry(&f, DT_STRSZ)->d_un.d_val = UINT64_MAX;
    CHECK(count_slots(&f) == 1);
    free(f.bytes);
}

static void test_odd_sizes_and_addresses_of_tables(void) {
    static const int64_t tags[] = {DT_SYMTAB, DT_STRTAB, DT_RELA, DT_JMPREL};
    static const uint64_t values[] = {0, 1, UINT64_MAX, UINT64_MAX / 2, sizeof(image_bytes), sizeof(image_bytes) - 1};
    fixture f;
    make(&f, 1);
    entry(&f, DT_RELASZ)->d_un.d_val = UINT64_MAX;
    entry(&f, DT_PLTRELSZ)->d_un.d_val = UINT64_MAX;
    CHECK(count_slots(&f) == 4);
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
            uint64_t kept = entry(&f, tags[i])->d_un.d_val;
            entry(&f, tags[i])->d_un.d_val = values[k];
            CHECK(count_slots(&f) <= 4);
            entry(&f, tags[i])->d_un.d_val = kept;
        }
    }
    entry(&f, DT_RELAENT)->d_un.d_val = 0;
    CHECK(count_slots(&f) == 0);
    free(f.bytes);
}

static void test_odd_dynamic_sections(void) {
    fixture f;
    make(&f, 1);
    f.headers[2].p_memsz = UINT64_MAX;               /* no DT_NULL needed: the segment ends it */
    for (size_t i = 12; i < DYNAMICS; i++) {
        f.bytes->dynamic[i].d_tag = DT_DEBUG;
    }
    CHECK(count_slots(&f) == 4);
    f.headers[2].p_memsz = sizeof(ElfW(Dyn)) - 1;
    CHECK(count_slots(&f) == 0);
    f.headers[2].p_memsz = 7 * sizeof(ElfW(Dyn)) + 5; /* cut off before DT_JMPREL */
    CHECK(count_slots(&f) == 3);
    f.headers[2].p_vaddr = UINT64_MAX - 3;
    CHECK(count_slots(&f) == 0);
    f.headers[2].p_type = PT_NULL;
    CHECK(count_slots(&f) == 0);
    f.image.header_count = 0;
    CHECK(count_slots(&f) == 0);
    free(f.bytes);
}

static void test_relations_of_another_shape_are_no_plt(void) {
    fixture f;
    make(&f, 1);
    entry(&f, DT_PLTREL)->d_un.d_val = DT_REL;
    CHECK(count_slots(&f) == 3);
    free(f.bytes);
}

static void test_bound_now(void) {
    fixture f;
    make(&f, 0);
    CHECK(!lp_elf_is_bound_now(&f.image));
    entry(&f, DT_FLAGS)->d_un.d_val = DF_BIND_NOW;
    CHECK(lp_elf_is_bound_now(&f.image));
    entry(&f, DT_FLAGS)->d_un.d_val = 0;
    entry(&f, DT_FLAGS_1)->d_un.d_val = DF_1_NOW;
    CHECK(lp_elf_is_bound_now(&f.image));
    free(f.bytes);
}

static void check_relro(uintptr_t vaddr, uintptr_t bytes, uintptr_t first, uintptr_t last) {
    const ElfW(Phdr) header = {.p_type = PT_GNU_RELRO, .p_vaddr = vaddr, .p_memsz = bytes};
    const lp_elf_image image = {0x10000, &header, 1};
    uintptr_t start, end;
    lp_elf_relro(&image, 4096, &start, &end);
    CHECK(start == first && end == last);
}

static void test_relro_is_rounded_down_at_both_ends(void) {
    check_relro(0x1200, 0x2e00, 0x11000, 0x14000);
    check_relro(0x1200, 0x2e01, 0x11000, 0x14000);
    check_relro(0x1200, 0x2dff, 0x11000, 0x13000);
    check_relro(0x1200, 0x100, 0x11000, 0x11000);
    check_relro(0x1200, UINTPTR_MAX - 0x2000, 0x11000, 0x11000);
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void test_random_damage(void) {
    for (int round = 0; round < 20000; round++) {
        fixture f;
        make(&f, round % 2);
        unsigned char *bytes = (unsigned char *)f.bytes;
        for (uint64_t i = next_random() % 12; i > 0; i--) {
            bytes[next_random() % sizeof(image_bytes)] = (unsigned char)next_random();
        }
        lp_elf_slot slots[GOTS];
        size_t count = find(&f, slots, GOTS);
        for (size_t i = 0; i < count; i++) {
            CHECK((unsigned char *)slots[i].slot >= bytes + offsetof(image_bytes, got));
            CHECK((unsigned char *)(slots[i].slot + 1) <= bytes + sizeof(image_bytes));
        }
        (void)lp_elf_is_bound_now(&f.image);
        free(f.bytes);
    }
}

/* --- address_table --- */

enum { KEYS = 700 };

static void check_against(const lp_address_table *table, const uint64_t *model) {
    size_t count = 0;
    for (uintptr_t key = 1; key < KEYS; key++) {
        uint64_t bytes = 0;
        int found = lp_address_table_find(table, key * 16, &bytes);
        CHECK(found == (model[key] != 0) && (!found || bytes == model[key]));
        count += model[key] != 0;
    }
    CHECK(table->count == count);
}

static void test_address_table_agrees_with_a_naive_model(void) {
    lp_address_table table = {NULL, 0, 0};
    uint64_t model[KEYS] = {0};
    CHECK(lp_address_table_remove(&table, 16) == 0);
    for (int i = 0; i < 40000; i++) {
        uintptr_t key = 1 + next_random() % (KEYS - 1);
        if (next_random() % 2) {
            model[key] = 1 + next_random() % 1000;
            CHECK(lp_address_table_add(&table, key * 16, model[key]) == LP_OK);
        } else {
            CHECK(lp_address_table_remove(&table, key * 16) == (model[key] != 0));
            model[key] = 0;
        }
        if (i % 500 == 0) {
            check_against(&table, model);
        }
    }
    check_against(&table, model);
    lp_address_table_clear(&table);
    CHECK(table.count == 0);
    lp_raw_free(table.entries);
}

int main(void) {
    test_all_kinds_are_found_by_name(0);
    test_all_kinds_are_found_by_name(1);
    test_odd_relocations_are_left_out();
    test_a_name_must_end_inside_the_strings();
    test_odd_sizes_and_addresses_of_tables();
    test_odd_dynamic_sections();
    test_relations_of_another_shape_are_no_plt();
    test_bound_now();
    test_relro_is_rounded_down_at_both_ends();
    test_random_damage();
    test_address_table_agrees_with_a_naive_model();
    return 0;
}

#else

int main(void) { return 0; }

#endif
