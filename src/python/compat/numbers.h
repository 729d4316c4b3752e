/* Numbers of src/python/compat and src/python/births, each with its reason. */
#ifndef LP_COMPAT_NUMBERS_H
#define LP_COMPAT_NUMBERS_H

/* A code object's table of locations from 3.11 on (CPython's Objects/locations.md). The first byte of an entry has its
 * highest bit set, its kind in the next four, and how many code units it is about, less one, in the lowest three. */
#define LP_LOCATION_FIRST 0x80
#define LP_LOCATION_KIND_SHIFT 3
#define LP_LOCATION_KIND_MASK 15u
#define LP_LOCATION_UNITS_MASK 7u
#define LP_CODE_UNIT_BYTES 2u
/* Kinds: so many lines further than this one; a signed distance of lines, without columns and with them; none. */
#define LP_LOCATION_ONE_LINE 10u
#define LP_LOCATION_NO_COLUMNS 13u
#define LP_LOCATION_LONG 14u
#define LP_LOCATION_NONE 15u
/* A number has six bits a byte, the lowest first, and this one where more follow; an int has so many bits. */
#define LP_LOCATION_MORE 0x40u
#define LP_LOCATION_BITS 6u
#define LP_INT_BITS 32u
/* The same on 3.10 (Objects/lnotab_notes.txt): two bytes, the bytes of instructions and the lines, or no line. */
#define LP_LINES_ENTRY 2
#define LP_LINES_NONE (-128)

/* Of a code object's address, which is a multiple of 16: the upper 16 bits of its hash. Entries of the cache that a
 * death is compared with at once: what the compiler turns into a few vector instructions. */
#define LP_CODE_ALIGNMENT 16u
#define LP_TAG_SHIFT 48u
#define LP_TAGS_AT_ONCE 64u

/* Exceptions that one which is being handled was raised from, each in the handler of the next: what frameworks wrap
 * around an error.  A chain that grows from step to step is longer, and is what keeps its frames. */
#define LP_UNWOUND_CONTEXTS 4u

#endif
