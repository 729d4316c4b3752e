/* Numbers of this folder. */
#ifndef LP_LAYOUTS_NUMBERS_H
#define LP_LAYOUTS_NUMBERS_H

/* Words of a sparse tensor that are read where malloc does not say how many it has: its parts come last, and of torch 2.13 it
 * has 27. */
#define LP_TORCH_PART_WORDS 32

/* Words of a tensor's metadata of autograd: vtable, a name of 4 words, gradient, function; all of it has 20 and more. */
#define LP_TORCH_META_WORDS 12

#endif
