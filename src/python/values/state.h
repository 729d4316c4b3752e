/* What the extension keeps of Python's: its types, names and callbacks, made once for the life of the process. */
#ifndef LP_STATE_H
#define LP_STATE_H

#include "python/values/cpython.h"  // Python.h
#include "base/base.h"              // LP_HIDDEN
#include "python/values/rows.h"     // LP_ROWS_KIND_COUNT

/* The GIL protects it; NULL where something is not made yet.  In static memory and not in the module's, since hooks
 * have no module at hand: the extension serves one interpreter. */
typedef struct lp_extension_state {
    struct {
        PyTypeObject *row[LP_ROWS_KIND_COUNT];
        PyTypeObject *census, *descriptor, *graph, *kept_text, *quiet, *reach, *shared_map, *snapshot, *turn,
            *turn_holder, *watch;
    } types;
    struct {
        PyObject *module, *next_functions, *metadata; /* interned */
    } names;
    struct {
        PyObject *after_collection; /* in gc.callbacks, kept for the next start */
        PyObject *at_exit;          /* borrowed: atexit keeps it */
    } callbacks;
} lp_extension_state;

extern LP_HIDDEN lp_extension_state lp_state;

#endif
