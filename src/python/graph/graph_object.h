/* A frozen graph as an object, as numbers for a file, and the names in it. */
#ifndef LP_GRAPH_OBJECT_H
#define LP_GRAPH_OBJECT_H

#include "analysis/frozen.h"
#include "python/graph/trace.h"

typedef struct lp_graph_object {
    PyObject_HEAD lp_frozen frozen;
    uint64_t walk_ns, freeze_ns, cycles_ns;
} lp_graph_object;

/* An empty one, or NULL with an exception set. */
lp_graph_object *lp_graph_object_new(void);

/* Methods: Graph.parts() and graph_load(parts). */
PyObject *lp_graph_parts(PyObject *graph, PyObject *unused);
PyObject *lp_graph_load(PyObject *module, PyObject *parts);

/* {node: path} of the nodes that retain most and of those that hold most of a group, while the objects
 * of the trace are there.  Elements as in why().  old: node => its number in the walk. */
PyObject *lp_graph_names(const lp_trace *trace, const lp_frozen *frozen, const uint32_t *old);

#endif
