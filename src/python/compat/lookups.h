/* What modules and types have, found without calling anything of theirs.  All is borrowed. */
#ifndef LP_LOOKUPS_H
#define LP_LOOKUPS_H

#include "python/values/cpython.h"  // PyObject

/* Of a module that is imported already; NULL if there is no such thing. */
PyObject *lp_lookup_attribute(const char *module, const char *name);
/* A descriptor of a type or of its bases, unbound; NULL if there is none. */
PyObject *lp_lookup_descriptor(PyTypeObject *type, const char *name);
/* 1 if C code made the type under this name, which has a dot: a class of that name has another layout. */
int lp_lookup_is_named(const PyTypeObject *type, const char *tp_name);
/* The type or the first of its bases that C code knows as tp_name; NULL if there is none. */
PyTypeObject *lp_lookup_base(PyTypeObject *type, const char *tp_name);

#endif
