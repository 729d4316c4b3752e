/* Rows of results as named tuples: each kind is a type of leakprobe._core with its fields' names.
 *
 * They are tuples to all who unpack or index them, and read by name.  The garbage collector does not track them: what
 * they hold is numbers, texts and lists, in no circle.  100,000 blocks took 321 ns each to make and 54 to free, as plain
 * tuples 308 and 44 (Python 3.11): no row is hot enough to go without its names. */
#ifndef LP_ROWS_H
#define LP_ROWS_H

#include "python/values/cpython.h"  // Python.h

typedef enum lp_rows_kind {
    LP_ROWS_FRAME,
    LP_ROWS_BIRTH,
    LP_ROWS_STEP_RANGE,
    LP_ROWS_GAP,
    LP_ROWS_COHORT,
    LP_ROWS_CENSUS_GROUP,
    LP_ROWS_CONTAINER,
    LP_ROWS_BLOCK_GROUP,
    LP_ROWS_BLOCK,
    LP_ROWS_EVENT,
    LP_ROWS_EVENTS,
    LP_ROWS_TENSOR_BLOCK,
    LP_ROWS_RESOURCE_COUNTS,
    LP_ROWS_LEDGER_ROW,
    LP_ROWS_LEDGER_DIFF,
    LP_ROWS_TYPE_TALLY,
    LP_ROWS_SITE_TALLY,
    LP_ROWS_GRAPH_GROUP,
    LP_ROWS_RETAINED_TYPE,
    LP_ROWS_GRAPH_NODE,
    LP_ROWS_HOLDER_TALLY,
    LP_ROWS_GRAPH_TAKEN,
    LP_ROWS_PAGES,
    LP_ROWS_SERIES_STATE,
    LP_ROWS_SITE_SERIES,
    LP_ROWS_BACKING,
    LP_ROWS_SURVIVORS,
    LP_ROWS_FOUND_TYPE,
    LP_ROWS_SCAN,
    LP_ROWS_CONFIRMED,
    LP_ROWS_CONFIRMATION,
    LP_ROWS_MEDIUM,
    LP_ROWS_MEMORY_ACCOUNT,
    LP_ROWS_KIND_COUNT
} lp_rows_kind;

/* Bits of a TensorBlock; constants of the module. */
enum {
    LP_TENSOR_HAS_GRAPH = 1 << 0,
    LP_TENSOR_IS_GRAD = 1 << 1,
    LP_TENSOR_IS_SAVED = 1 << 2,
    LP_TENSOR_IS_INNER = 1 << 3
};

/* Add the types, and the constants that rows speak in, to the module; 0 or -1. */
int lp_rows_init(PyObject *module);

/* A new row, its items by a format like Py_BuildValue()'s: K uint64_t (unsigned long long), L (long long), I (unsigned
 * int), s (UTF-8), O (new reference taken), N (reference stolen, also in failure).  NULL with an exception set, also if
 * an object is NULL. */
PyObject *lp_rows_new(lp_rows_kind kind, const char *format, ...);

#endif
