/* Numbers of this folder that bound work. */
#ifndef LP_PYTHON_NUMBERS_H
#define LP_PYTHON_NUMBERS_H

/* Objects of one type and line that are asked what they own: those of a line are mostly alike, and each is asked by a
 * call of its own, of microseconds. */
#define LP_OWNED_SAMPLES 8u

/* Words of a holder, and of each block that it points to: structs of C libraries are smaller (an image of Pillow 13.0
 * refers to the buffer that it was made from in words 16 and 18 of 27).  Copying so many took 1.7 us. */
#define LP_OPAQUE_WORDS 64u

/* Holders of one type that are searched word by word; the rest are read where these had something.  At three
 * copies a pointer, thirty pointers each take 40 ms in all. */
#define LP_OPAQUE_HOLDERS 256u

/* A place that leads to so many lost objects is a reference: what is left over in memory has the address of one. */
#define LP_OPAQUE_LEAST 3u

#endif
