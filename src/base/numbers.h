/* Numbers of this folder. */
#ifndef LP_BASE_NUMBERS_H
#define LP_BASE_NUMBERS_H

/* Blocks in free lists from which on they are walked at the last mark of a span only: a walk of so many takes as long
 * as the rest of a mark.  40,000 tuples take 4 ms.  Bounds work. */
#define LP_HOOKS_RECYCLED 512

/* Bytes after which the rest of a long way to the next sample is drawn again: a call of the sampler in so many is lost
 * in what they cost, and a thread that allocates at all comes to them. */
#define LP_SAMPLING_STRETCH ((int64_t)1 << 18)

/* Counters by address, which say that no sample is there: one in 64 is taken where 1,000 samples live. */
#define LP_SAMPLING_FILTER_LG 16u
/* Addresses of one counter: a line of the cache, so that blocks side by side have counters side by side, and those of a
 * loop stay in the first cache.  Hashed one by one, they cost 1 % of a loop of 2 million blocks a second. */
#define LP_SAMPLING_GRAIN_LG 6u
/* Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4). */
#define LP_HASH_FACTOR UINT64_C(0x9E3779B97F4A7C15)
#define LP_HASH_BITS 64u
/* A second odd factor with bits in the whole word, where two words are hashed (the finalizer of MurmurHash3). */
#define LP_HASH_MIX UINT64_C(0xff51afd7ed558ccd)

/* Pages that the kernel is asked about at once, of a map, and of one that is filled from its beginning on: a MiB, behind
 * which there are none where it has none.  A page costs 10 ns, a call 2 microseconds. */
#define LP_PAGES_ASKED 4096
#define LP_PAGES_OF_FILLED 256
/* Of what the shim and the core know of each other: a shim of another version is left alone, as if it were not there. */
#define LP_PRELOAD_VERSION 2u

/* Entries of the map of pages that are read at once: 4 KiB of them on the stack. */
#define LP_PAGES_READ 512
/* Bits of an entry: the page is in memory, or in swap. */
#define LP_PAGES_FILLED (UINT64_C(3) << 62)

#endif
