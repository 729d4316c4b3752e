/* Numbers of this folder that are neither a law of the kernel's nor seen by a user: what bounds work. */
#ifndef LP_PROCESS_NUMBERS_H
#define LP_PROCESS_NUMBERS_H

/* Unit of st_blocks, whatever the file system: stat(2). */
#define LP_STAT_BLOCK_BYTES 512u

/* Segments of shared memory beyond this are not told apart: a process may map 65,530 ranges (vm.max_map_count),
 * and each new one is looked for among the known, which takes 8 ms for so many. */
#define LP_SEGMENTS_MOST 8192u
#define LP_SEGMENTS_ROOM 64u

/* "/proc/self/fd/" and a number, or the beginning of what it leads to. */
#define LP_SHORT_PATH 64u

/* A line of a table of /proc: a path of PATH_MAX bytes, and what stands before it.  No buffer of malloc's, which would
 * be sampled as the program's. */
#define LP_PROC_LINE 4224u

/* The first page of a file of /proc: smaps_rollup and status have half of it. */
#define LP_PROC_TEXT 4096u

/* How a segment is known to this process, each a bit: by a shared mapping, a descriptor, a name in /dev/shm that a file
 * of this user has had since the time given, or by the kernel, which says that this process made it (System V). */
enum { LP_SEGMENT_MAPPED = 1, LP_SEGMENT_OPEN = 2, LP_SEGMENT_NAMED = 4, LP_SEGMENT_MADE = 8 };

/* PROCMAP_QUERY of linux/fs.h (6.11), and what is asked for: the next mapping that is shared (8) and has a file (32), from
 * an address on (16). */
#define LP_MAP_QUERY 17
#define LP_MAP_WANTED (8u | 16u | 32u)

/* A block takes up to this share more than was asked for.  glibc: headers of 16 bytes, and the page that ends a mapping
 * of 128 KiB and more, measured as 2 % of what loops of tensors keep; between two powers of two jemalloc has 4 classes
 * of sizes, tcmalloc and mimalloc have 8, so that a block just above a class takes a fourth or an eighth more. */
#define LP_ROUNDING_GLIBC 0.02
#define LP_ROUNDING_JEMALLOC 0.25
#define LP_ROUNDING_TCMALLOC 0.125
#define LP_ROUNDING_MIMALLOC 0.125

/* malloc/malloc.c of glibc: the low bits of the size before a block; and what addresses have. */
#define LP_CHUNK_PREVIOUS_IN_USE 1u
#define LP_CHUNK_MAPPED 2u
#define LP_CHUNK_FLAGS 7u
#define LP_CHUNK_ADDRESS_BITS 47

#endif
