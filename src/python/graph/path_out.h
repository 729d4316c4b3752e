/* Named paths as lists of dicts {text, edge, type}. */
#ifndef LP_PATH_OUT_H
#define LP_PATH_OUT_H

#include "python/graph/edge_names.h"
#include "python/graph/trace.h"  // lp_trace

#define LP_PATH_MOST_NODES 512

PyObject *lp_element_to_dict(const char *text, const char *edge, const char *type);
/* Append elements; a long path loses its middle.  left_out: nodes that were left out there before. */
int lp_path_append(PyObject *list, const lp_element *elements, uint32_t count, uint32_t left_out);
/* The same with "bases" of each: names of its type and of all types that this derives from, but object. */
int lp_path_append_bases(PyObject *list, const lp_walk *walk, const lp_element *elements, uint32_t count);
/* Append the first element of the path of what no object holds, by the kind of what does; 0 or -1.
 * root: the node below it, or LP_NODE_NONE for a block that nothing refers to. */
int lp_path_append_outside(PyObject *list, const lp_trace *trace, uint32_t root, lp_trace_kind kind);

#endif
