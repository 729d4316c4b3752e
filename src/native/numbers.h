/* Numbers of this folder: what bounds work and tables. */
#ifndef LP_NATIVE_NUMBERS_H
#define LP_NATIVE_NUMBERS_H

/* Copies of one library in a process that are told apart. */
#define LP_SLOT_COPIES 4

/* Objects and slots of a set beyond these are left alone, and the set says that it is full: torch with all its CUDA
 * libraries has 70 objects, a notebook with every package of a data scientist 600, of 12 slots each. */
#define LP_SLOT_OBJECTS 4096u
#define LP_SLOT_PATCHES 65535u
#define LP_SLOT_ROOM 64u
/* Slots of one object: three kinds of relocation for each of up to 16 names, and tables of functions. */
#define LP_SLOT_FOUND 128u
#define LP_SLOT_TARGETS 16u

/* Files of /dev/shm made between two listings: as many as a listing tells apart. */
#define LP_NAMES_MOST 8192u

/* Samples of the allocating functions that are kept; a site that grows has a few hundred. */
#define LP_HEAP_SAMPLES_LG 16u
/* A counter that has come so far stays: it could be lowered once too often. */
#define LP_HEAP_FILTER_MOST 250u

/* Libraries whose blocks are not sampled under the shim: the loader, the core, the interpreter and its library, numpy's,
 * torch's two, an allocator that is preloaded; twice that. */
#define LP_PRELOAD_RANGES 16u

/* The alignment of blocks. */
#define LP_HEAP_ALIGN_LG 4u
/* xorshift64 (G. Marsaglia, "Xorshift RNGs", 2003) with its usual shifts, and 53 bits of a double's fraction. */
#define LP_HEAP_SHIFT_A 13u
#define LP_HEAP_SHIFT_B 7u
#define LP_HEAP_SHIFT_C 17u
#define LP_HEAP_FRACTION 53u

#endif
