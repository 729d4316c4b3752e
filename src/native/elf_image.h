/* Reads the relocations of a loaded ELF image, and nothing else: a pure function of memory.
 *
 * image      load bias + program headers, as dl_iterate_phdr gives them
 * slot       the 8 bytes through which an image calls (or points at) an imported function:
 *            the target of a JUMP_SLOT, GLOB_DAT or ABS64 relocation, found by symbol name
 *
 * Every read lies inside a readable PT_LOAD of the image: odd tables give fewer slots, never a crash. */
#ifndef LP_ELF_IMAGE_H
#define LP_ELF_IMAGE_H

#ifdef __linux__

#include <link.h>  // ElfW

#include "base/base.h"  // lp_status

typedef struct lp_elf_image {
    uintptr_t base;                /* load bias: address in memory minus address in the file */
    const ElfW(Phdr) * headers;
    size_t header_count;
} lp_elf_image;

typedef struct lp_elf_slot {
    void **slot;
    size_t name;                   /* index into the names asked for */
} lp_elf_slot;

/* Slots of the named symbols: at most `max` are written, each once, *out_count gets their number.
 * LP_BAD_INPUT: not an image that can be read; LP_FULL: there were more than `max`. */
lp_status lp_elf_find_slots(const lp_elf_image *image, const char *const *names, size_t name_count,
                            lp_elf_slot *out_slots, size_t max, size_t *out_count);

/* 1 if the loader bound every slot of this image when it loaded it (BIND_NOW). */
int lp_elf_is_bound_now(const lp_elf_image *image);

/* The pages that the loader made read-only after relocation, rounded as it does; start == end: none. */
void lp_elf_relro(const lp_elf_image *image, size_t page_bytes, uintptr_t *out_start, uintptr_t *out_end);

/* From the first byte of its segments to behind the last. */
void lp_elf_range(const lp_elf_image *image, uintptr_t *out_start, uintptr_t *out_end);

/* 1 if the address lies in a segment of this image. */
int lp_elf_contains(const lp_elf_image *image, const void *address);

#endif
#endif
