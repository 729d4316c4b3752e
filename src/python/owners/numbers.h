/* Numbers of this folder that bound work. */
#ifndef LP_PYTHON_NUMBERS_H
#define LP_PYTHON_NUMBERS_H

/* Objects of one type and line that are asked what they own: those of a line are mostly alike, and each is asked by a
 * call of its own, of microseconds. */
#define LP_OWNED_SAMPLES 8u

#endif
