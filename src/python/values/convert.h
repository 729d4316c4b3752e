/* The edge between the core's status codes and Python's exceptions. */
#ifndef LP_CONVERT_H
#define LP_CONVERT_H

#include "python/values/cpython.h"  // Python.h

#include "base/base.h"      // lp_status
#include "ledger/site.h"    // lp_frame_text

/* Set leakprobe.errors.LeakprobeError with a stable .code; always returns NULL. */
PyObject *lp_raise(const char *code, const char *format, ...);
/* The same for a failed status; NULL. */
PyObject *lp_raise_status(lp_status status, const char *doing);

/* Make a type for the life of the process, unless *type has it already, and add it to the module
 * (NULL: to none); 0 or -1. */
int lp_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type);

/* A new str from UTF-8, undecodable bytes replaced. */
PyObject *lp_text_to_str(const char *text);
/* Add value to dict under key, or to list, and let go of it; 0 or -1. */
int lp_set_steal(PyObject *dict, const char *key, PyObject *value);
int lp_append_steal(PyObject *list, PyObject *value);
/* New Frame(filename, lineno, function). */
PyObject *lp_frame_to_row(const lp_frame_text *frame);

/* The sites of a sequence of their numbers, each as lp_site_base() gives it; freed with lp_raw_free().  NULL with an
 * exception set. */
lp_site_id *lp_sites_from_sequence(PyObject *sequence, uint32_t *out_count);

#endif
