/* Reads relocations of an image that may be odd or hostile: every read is inside a readable segment. */
#include "native/elf_image.h"

#ifdef __linux__

#include <string.h>

#if defined(__x86_64__)
#define KIND_ABS64 R_X86_64_64
#define KIND_GLOB_DAT R_X86_64_GLOB_DAT
#define KIND_JUMP_SLOT R_X86_64_JUMP_SLOT
#elif defined(__aarch64__)
#define KIND_ABS64 R_AARCH64_ABS64
#define KIND_GLOB_DAT R_AARCH64_GLOB_DAT
#define KIND_JUMP_SLOT R_AARCH64_JUMP_SLOT
#else
#define KIND_ABS64 UINT32_MAX
#define KIND_GLOB_DAT UINT32_MAX
#define KIND_JUMP_SLOT UINT32_MAX
#endif

/* Bytes that may be read; bytes is 0 where a table is missing or lies outside. */
typedef struct span {
    const unsigned char *start;
    size_t bytes;
} span;

typedef struct tables {
    span dynamic, symbols, strings, rela, jmprel;
    int bound_now;
} tables;

typedef struct search {
    const lp_elf_image *image;
    const tables *tables;
    const char *const *names;
    size_t *lengths;
    size_t name_count;
    lp_elf_slot *slots;
    size_t max, count;
    int is_full;
} search;

#define NAME_MAX_COUNT 16

/* The rest of the segment that holds `address` and has all of `flags`; empty if none does. */
static span segment_from(const lp_elf_image *image, uintptr_t address, uint32_t flags) {
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t start = image->base + header->p_vaddr;
        if (header->p_type != PT_LOAD || (header->p_flags & flags) != flags) {
            continue;
        }
        if (address >= start && address - start < header->p_memsz) {
            return (span){(const unsigned char *)address, header->p_memsz - (address - start)};
        }
    }
    return (span){NULL, 0};
}

/* A table of the dynamic section: glibc has made most addresses absolute, others are offsets. */
static span table_at(const lp_elf_image *image, uint64_t value, uint64_t bytes) {
    span found = segment_from(image, (uintptr_t)value, PF_R);
    if (found.bytes == 0) {
        found = segment_from(image, image->base + (uintptr_t)value, PF_R);
    }
    if (bytes < found.bytes) {
        found.bytes = bytes;
    }
    return found;
}

static span find_dynamic(const lp_elf_image *image) {
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        if (header->p_type == PT_DYNAMIC) {
            span found = segment_from(image, image->base + header->p_vaddr, PF_R);
            if (header->p_memsz < found.bytes) {
                found.bytes = header->p_memsz;
            }
            return found;
        }
    }
    return (span){NULL, 0};
}

/* The value of the last entry with `tag`, or `otherwise`. */
static uint64_t dynamic_value(span dynamic, int64_t tag, uint64_t otherwise) {
    ElfW(Dyn) entry;
    for (size_t at = 0; dynamic.bytes - at >= sizeof(entry); at += sizeof(entry)) {
        memcpy(&entry, dynamic.start + at, sizeof(entry));
        if (entry.d_tag == DT_NULL) {
            break;
        }
        if (entry.d_tag == tag) {
            otherwise = entry.d_un.d_val;
        }
    }
    return otherwise;
}

static lp_status read_tables(const lp_elf_image *image, tables *out) {
    memset(out, 0, sizeof(*out));
    out->dynamic = find_dynamic(image);
    span dynamic = out->dynamic;
    if (dynamic.bytes == 0) {
        return LP_BAD_INPUT;
    }
    uint64_t flags = dynamic_value(dynamic, DT_FLAGS, 0), flags_1 = dynamic_value(dynamic, DT_FLAGS_1, 0);
    out->bound_now = (flags & DF_BIND_NOW) != 0 || (flags_1 & DF_1_NOW) != 0 ||
                     dynamic_value(dynamic, DT_BIND_NOW, UINT64_MAX) != UINT64_MAX;
    if (dynamic_value(dynamic, DT_SYMENT, sizeof(ElfW(Sym))) != sizeof(ElfW(Sym)) ||
        dynamic_value(dynamic, DT_RELAENT, sizeof(ElfW(Rela))) != sizeof(ElfW(Rela))) {
        return LP_BAD_INPUT;
    }
    out->symbols = table_at(image, dynamic_value(dynamic, DT_SYMTAB, 0), UINT64_MAX);
    out->strings = table_at(image, dynamic_value(dynamic, DT_STRTAB, 0), dynamic_value(dynamic, DT_STRSZ, 0));
    out->rela = table_at(image, dynamic_value(dynamic, DT_RELA, 0), dynamic_value(dynamic, DT_RELASZ, 0));
    if (dynamic_value(dynamic, DT_PLTREL, DT_RELA) == DT_RELA) {
        out->jmprel = table_at(image, dynamic_value(dynamic, DT_JMPREL, 0), dynamic_value(dynamic, DT_PLTRELSZ, 0));
    }
    return out->symbols.bytes == 0 || out->strings.bytes == 0 ? LP_BAD_INPUT : LP_OK;
}

/* The index of a symbol's name among those asked for, or name_count. */
static size_t find_name(const search *s, uint64_t symbol_index) {
    span symbols = s->tables->symbols, strings = s->tables->strings;
    ElfW(Sym) symbol;
    if (symbol_index >= symbols.bytes / sizeof(symbol)) {
        return s->name_count;
    }
    memcpy(&symbol, symbols.start + symbol_index * sizeof(symbol), sizeof(symbol));
    if (symbol.st_name >= strings.bytes) {
        return s->name_count;
    }
    const char *text = (const char *)strings.start + symbol.st_name;
    size_t room = strings.bytes - symbol.st_name;
    for (size_t i = 0; i < s->name_count; i++) {
        if (s->lengths[i] < room && memcmp(text, s->names[i], s->lengths[i] + 1) == 0) {
            return i;
        }
    }
    return s->name_count;
}

static void add_slot(search *s, uintptr_t address, size_t name) {
    span room = segment_from(s->image, address, PF_R | PF_W);
    if (address % sizeof(void *) != 0 || room.bytes < sizeof(void *)) {
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        if (s->slots[i].slot == (void **)address) {
            return;  // some linkers count the PLT's relocations in both tables
        }
    }
    if (s->count == s->max) {
        s->is_full = 1;
        return;
    }
    s->slots[s->count++] = (lp_elf_slot){(void **)address, name};
}

static void search_table(search *s, span table) {
    ElfW(Rela) entry;
    for (size_t at = 0; table.bytes - at >= sizeof(entry); at += sizeof(entry)) {
        memcpy(&entry, table.start + at, sizeof(entry));
        uint64_t kind = ELF64_R_TYPE(entry.r_info);
        if ((kind != KIND_JUMP_SLOT && kind != KIND_GLOB_DAT && kind != KIND_ABS64) || entry.r_addend != 0) {
            continue;
        }
        size_t name = find_name(s, ELF64_R_SYM(entry.r_info));
        if (name < s->name_count) {
            add_slot(s, s->image->base + entry.r_offset, name);
        }
    }
}

lp_status lp_elf_find_slots(const lp_elf_image *image, const char *const *names, size_t name_count,
                            lp_elf_slot *out_slots, size_t max, size_t *out_count) {
    size_t lengths[NAME_MAX_COUNT];
    tables found;
    *out_count = 0;
    if (name_count > NAME_MAX_COUNT || read_tables(image, &found) != LP_OK) {
        return LP_BAD_INPUT;
    }
    for (size_t i = 0; i < name_count; i++) {
        lengths[i] = strlen(names[i]);
    }
    search s = {image, &found, names, lengths, name_count, out_slots, max, 0, 0};
    search_table(&s, found.jmprel);
    search_table(&s, found.rela);
    *out_count = s.count;
    return s.is_full ? LP_FULL : LP_OK;
}

int lp_elf_is_bound_now(const lp_elf_image *image) {
    tables found;
    (void)read_tables(image, &found);
    return found.bound_now;
}

void lp_elf_relro(const lp_elf_image *image, size_t page_bytes, uintptr_t *out_start, uintptr_t *out_end) {
    *out_start = *out_end = 0;
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        if (header->p_type == PT_GNU_RELRO) {
            uintptr_t start = image->base + header->p_vaddr;
            uintptr_t first = start & ~(page_bytes - 1), end = (start + header->p_memsz) & ~(page_bytes - 1);
            *out_start = first;
            *out_end = end > first ? end : first;
        }
    }
}

void lp_elf_range(const lp_elf_image *image, uintptr_t *out_start, uintptr_t *out_end) {
    *out_start = UINTPTR_MAX;
    *out_end = 0;
    for (size_t i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t start = image->base + header->p_vaddr, end = start + header->p_memsz;
        if (header->p_type == PT_LOAD) {
            *out_start = start < *out_start ? start : *out_start;
            *out_end = end > *out_end ? end : *out_end;
        }
    }
}

int lp_elf_contains(const lp_elf_image *image, const void *address) {
    return segment_from(image, (uintptr_t)address, 0).bytes != 0;
}

#endif
