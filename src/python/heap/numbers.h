/* Numbers of this folder that decide what is an object, a lost one, or garbage; and that bound work. */
#ifndef LP_HEAP_NUMBERS_H
#define LP_HEAP_NUMBERS_H

/* Blocks and objects are aligned to this (CPython, Include/internal/pycore_obmalloc.h). */
#define LP_OBJECT_ALIGN 16u
/* Bytes that may lie before an object in its block: 0, a collector's head, that and one more. */
#define LP_PRESIZE_MOST 32u
/* No lost object has a count that is larger, what is immortal has: a fourth of what 32 bits hold. */
#define LP_LOST_COUNT_MOST (UINT32_MAX / 4)
/* Nor so many bytes: 1 TiB, more than a machine has. */
#define LP_LOST_BYTES_MOST ((uint64_t)1 << 40)
/* Bytes of an array object that must be readable before its head is read; that of numpy 1 and 2 has 96. */
#define LP_ARRAY_HEAD_BYTES 128u

/* Words of a block that are looked at for arrays that hold themselves, and of all blocks together.  Bounds work. */
#define LP_LOST_WORDS 4096u
#define LP_LOST_WORDS_IN_ALL (1u << 22)
/* Pages of stamps that the kernel is asked of at once.  Bounds work. */
#define LP_STAMP_PAGES 16u
/* Places of one site at which its leaves are looked at: each is a miss of the cache.  Bounds work. */
#define LP_LEAVES_LOOKED_AT 1024u
/* Other objects of a site that are no growth: the iterator of a loop over what the line makes. */
#define LP_LEAVES_OTHERS 1u
/* Parts of a record, and records in records, that are looked at: a row of a table has fewer.  Bounds work. */
#define LP_RECORD_PARTS 32u
#define LP_RECORD_DEPTH 3u
/* A slice of a scan that is never cut short: 1,000 s. */
#define LP_WHOLE_NS UINT64_C(1000000000000)

/* Types that are looked up by their address, a power of two, and room for those of the first walk. */
#define LP_KINDS_CACHE 1024u
#define LP_KINDS_FIRST 256u

/* Nodes of a graph whose memory is kept for the next walk. */
#define LP_KEPT_NODES (1u << 21)
/* Edges for each of these nodes whose memory is kept too: heaps have some three. */
#define LP_KEPT_EDGES 4u
/* Nodes below which the pages of an index cost more to map again than they take. */
#define LP_INDEX_NODES (1u << 19)
/* Nodes between two looks at the budget of bytes, a power of two. */
#define LP_BUDGET_NODES 4096u
/* Bytes of a node in the index of a walk, an estimate: it depends on how the heap lies. */
#define LP_INDEX_NODE_BYTES 16u
/* Blocks that a walk may begin with: half of what its nodes' numbers allow. */
#define LP_WALK_BLOCKS (UINT32_MAX / 2)

/* Of what a scan found of a site all of the first are looked at, and of the rest one for so many: each is a miss of the
 * cache, 0.1 us.  Of two million that is 65,000, and a type's share is known to a few percent.  Bounds work. */
#define LP_FOUND_ALL_OF_THE_FIRST 2048u
#define LP_FOUND_ONE_OF 32u
/* Rows that there is room for at first. */
#define LP_FOUND_ROOM 256u

/* Frames of exceptions that are being handled, outermost first: as many as calls can be nested without
 * sys.setrecursionlimit().  Each is compared with those before.  Bounds work. */
#define LP_UNWOUND_FRAMES 1000u

#endif
