/* Numbers of this folder that decide what owns what; and that bound work. */
#ifndef LP_OWNERS_NUMBERS_H
#define LP_OWNERS_NUMBERS_H

/* Objects of one type and line that are asked what they own: those of a line are mostly alike, and each is asked by a
 * call of its own, of microseconds. */
#define LP_OWNED_SAMPLES 8u

/* Words of a holder, and of each block that it points to: structs of C libraries are smaller (an image of Pillow 13.0
 * refers to the buffer that it was made from in words 16 and 18 of 27).  Copying so many took 1.7 us. */
#define LP_OPAQUE_WORDS 64u

/* Holders of one type that are searched word by word; the rest are read where these had something.  At three
 * copies a pointer, thirty pointers each take 40 ms in all. */
#define LP_OPAQUE_HOLDERS 256u

/* A share of a block that views show is counted in these, so that sums of small ones fit a map's value. */
#define LP_VIEW_SHARES 4096u
/* Views that show half of it need what they keep. */
#define LP_VIEW_MOST (LP_VIEW_SHARES / 2)

/* Saved values of one node that are read.  Bounds memory. */
#define LP_TORCH_MOST_SAVED 24
/* Types whose getters run no foreign code: TensorBase, Tensor, Parameter. */
#define LP_TORCH_EXACT 3
/* For so long a walk lets other threads end what torch's getters must not meet, no longer than four turns of the GIL;
 * a longer backward pass is not waited for.  Looked at again after each pause. */
#define LP_TORCH_PATIENCE_NS 20000000u
#define LP_TORCH_PAUSE_NS 200000
/* Words of the wrapper of a tensor since torch 2.10. */
#define LP_TORCH_WRAPPER_WORDS 5
/* Of the late edges of a tensor that to its storage comes last. */
#define LP_ORDER_STORAGE 3

/* A place that leads to so many lost objects is a reference: what is left over in memory has the address of one. */
#define LP_OPAQUE_LEAST 3u

#endif
