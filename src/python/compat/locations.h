/* The line of an instruction, read from its code object's table of locations.
 *
 * PyCode_Addr2Line() reads the table from its begin for each instruction, which takes a long module the square of its
 * length. Here a reader goes on from where it was: instructions that are asked for in their order take one pass.
 * The tables' formats: Objects/lnotab_notes.txt (3.10), Objects/locations.md (3.11 and later) of CPython. */
#ifndef LP_LOCATIONS_H
#define LP_LOCATIONS_H

#include <Python.h>
#include <stdint.h>

typedef struct lp_locations {
    const PyCodeObject *code;      /* borrowed; NULL: none yet */
    const unsigned char *at, *end; /* of its table: the next entry */
    int first, past;               /* bytes of instructions that the last entry is about: first <= offset < past */
    int computed, line;            /* line: -1 where it has none */
} lp_locations;

/* The line of the instruction at a byte offset, that of the definition where this is negative; -1 if it has none. */
int lp_locations_line(lp_locations *table, const PyCodeObject *code, int offset);

#endif
