/* Numbers of this folder that decide which sites are asked about; and that bound memory. */
#ifndef LP_LEDGER_NUMBERS_H
#define LP_LEDGER_NUMBERS_H

/* Spans that the run is seen in; once they are full, each is made of two.  A site is asked about where its floor rose
 * from span to span, so they must be many more than the events that a verdict takes. */
#define LP_SERIES_SPANS 64
#define LP_SERIES_JOINED 2
/* Sites that have a row; later ones share row 0.  12 bytes a span and 29 a row: 6.5 MB when all are in use. */
#define LP_SERIES_ROWS 8192
/* Sites that share a row with another one, whose site it has.  Bounds memory. */
#define LP_SERIES_MORE 65536
/* A row that is new decodes its site's lines: so many at once.  Bounds work. */
#define LP_SERIES_NEW_ROWS 64

/* Blocks above this are noted as records of their line: those that pymalloc leaves to malloc.  Physical. */
#define LP_BACKING_LARGE_BYTES 512
/* Sites with a large block; while all of them grow, later ones find no room, which is a note.  Their table has twice
 * as many slots. */
#define LP_BACKING_SITES 4096
#define LP_BACKING_SLOTS (2 * LP_BACKING_SITES)
/* A full table drops a site that has set no record for so many times the span of its records: a dict whose size
 * doubles sets its next one after about once the span, twice of it where there were two.  Derived, doubled. */
#define LP_BACKING_PATIENCE 4
/* Fibonacci hashing of 32 bits (Knuth, The Art of Computer Programming, volume 3, 6.4): the upper half. */
#define LP_BACKING_HASH_FACTOR 0x9E3779B1u
#define LP_BACKING_HASH_SHIFT 16

/* Sites from which on a new one is of its innermost frame alone: a program that imports transformers, lightning,
 * torch._dynamo and pandas used up all numbers, and 46,288 births had none.  Of torch._dynamo alone there are 241,000
 * pairs of a line and its caller, of 85,000 lines.  The last quarter is for what comes after: the loop.  Bounds
 * memory. */
#define LP_SITE_CROWDED (LP_SITE_MAX / 4 * 3)

/* Open addressing: a table is made anew where two thirds of it are in use, and then at most half of it is.  A slot is
 * looked for twice on the average, and takes 6 to 12 bytes a site; half and a quarter took 8 to 32. */
#define LP_INDEX_SLOTS_LEAST ((size_t)4096)
#define LP_INDEX_IS_FULL(used, slots) ((used) * 3 > (slots) * 2)
#define LP_INDEX_IS_ROOMY(used, slots) ((used) * 2 <= (slots))
/* An index of frames that is made anew looks at every frame, so it has at least a slot for so many. */
#define LP_FRAMES_A_SLOT 4

/* The list of births that are not counted yet, a power of two: 127 of them.  Its eight lines of the cache stay in the
 * first one, and emptying it costs little beside 127 births; 2,048 bytes were no faster. */
#define LP_ALIVE_PENDING_BYTES 512u

#endif
