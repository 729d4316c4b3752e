/* Numbers of the shim. */
#ifndef LP_SHIM_NUMBERS_H
#define LP_SHIM_NUMBERS_H

/* Bytes for what the loader itself allocates while it looks up the next allocator: its message of an error, a few
 * hundred.  Bounds memory. */
#define LP_SHIM_ARENA 16384u
/* The alignment that malloc promises on every 64-bit platform. */
#define LP_SHIM_ALIGN 16u

#endif
