/* Numbers of this folder. */
#ifndef LP_LEDGER_NUMBERS_H
#define LP_LEDGER_NUMBERS_H

/* The list of births that are not counted yet, a power of two: 127 of them.  Its eight lines of the cache stay in the
 * first one, and emptying it costs little beside 127 births; 2,048 bytes were no faster. */
#define LP_ALIVE_PENDING_BYTES 512u

#endif
