/* How one object holds another: the name of a single reference. */
#ifndef LP_RELATE_H
#define LP_RELATE_H

#include "python/graph/numbers.h"  // LP_NAME_WIDTH
#include "python/heap/heapwalk.h"
#include "python/values/text_out.h"

/* Write the name of the reference from source to target (".total", "[59]", "['loss']") and the
 * word for its kind.  owner: the node before source on the path when source is its carrier, else
 * LP_NODE_NONE; then the name is the owner's (an attribute, a free variable).
 * as_pattern: positions and keys become [*]. */
void lp_relate(const lp_walk *walk, uint32_t owner, uint32_t source, uint32_t target, int as_pattern, lp_text_out *name,
               const char **out_edge);

/* 1 for a class of Python with __slots__ of its own. */
int lp_relate_has_slots(const PyTypeObject *type);
/* 1 for functools.lru_cache wrappers. */
int lp_relate_is_lru_cache(PyTypeObject *type);
/* The dict behind an lru_cache wrapper (borrowed), or NULL; its maxsize, -1 for none. */
PyObject *lp_relate_lru_dict(PyObject *op, Py_ssize_t *out_maxsize);

/* ---- between relate.c and relate_known.c ---- */

/* References of C types that have no name of their own there: 1 where the type is known. */
int lp_relate_known(PyObject *op, const PyObject *held, lp_text_out *name, const char **out_edge);

#endif
