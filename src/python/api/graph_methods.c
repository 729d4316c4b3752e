/* _core.Graph: a frozen object graph, and what may be asked of it. */
#include "python/api/methods.h"

#include <string.h>

#include "analysis/arrange.h"
#include "base/clock.h"          // lp_clock_ns
#include "base/rawmem.h"         // lp_raw_malloc
#include "python/births/hooks.h"          // lp_hooks_verify
#include "python/values/convert.h"      // lp_raise
#include "python/graph/freeze.h"
#include "python/graph/graph_object.h"
#include "python/graph/path_out.h"     // lp_append_steal
#include "python/values/rows.h"         // lp_rows_new
#include "python/values/state.h"  // lp_state

#define TORCH_BUDGET 10000000
#define DOMINATORS_NODE_BYTES 110  /* frozen, and what the search for dominators takes beside, without the walk */

static lp_trace the_trace;

static lp_frozen *frozen_of(PyObject *op) { return &((lp_graph_object *)op)->frozen; }

static void graph_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    lp_frozen_fini(frozen_of(op));
    PyObject_Free(op);
    Py_DECREF(type);
}

/* ---- questions ---- */

static PyObject *name_of_type(const lp_frozen *f, uint32_t type) {
    return f->type_name[type][0] == 0 ? Py_NewRef(Py_None) : lp_text_to_str(f->type_name[type]);
}

static PyObject *graph_groups(PyObject *op, PyObject *unused) {
    const lp_frozen *f = frozen_of(op);
    PyObject *list = PyList_New(0);
    (void)unused;
    for (uint32_t i = 0; i < f->group_count && list != NULL; i++) {
        const lp_frozen_group *group = &f->group_of[i];
        PyObject *row = lp_rows_new(LP_ROWS_GRAPH_GROUP, "sNIKK", lp_medium_name((lp_medium)group->medium),
                                    name_of_type(f, group->type), (unsigned)group->site,
                                    (unsigned long long)group->count, (unsigned long long)group->bytes);
        if (lp_append_steal(list, row) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static int check_analysed(const lp_frozen *f) {
    if (f->retained == NULL) {
        lp_raise("bad_argument", "this graph was taken without analysis");
        return -1;
    }
    return 0;
}

static PyObject *graph_retained_by_type(PyObject *op, PyObject *unused) {
    const lp_frozen *f = frozen_of(op);
    (void)unused;
    if (check_analysed(f) < 0) {
        return NULL;
    }
    uint64_t *bytes = lp_raw_malloc(((size_t)f->type_count + 1) * sizeof(*bytes));
    if (bytes == NULL || lp_frozen_retained_by_type(f, bytes) != LP_OK) {
        lp_raw_free(bytes);
        return PyErr_NoMemory();
    }
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; i < f->type_count && list != NULL; i++) {
        if (lp_append_steal(
                list, lp_rows_new(LP_ROWS_RETAINED_TYPE, "NK", name_of_type(f, i), (unsigned long long)bytes[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    lp_raw_free(bytes);
    return list;
}

static PyObject *graph_largest(PyObject *op, PyObject *number) {
    const lp_frozen *f = frozen_of(op);
    long most = PyLong_AsLong(number);
    if (check_analysed(f) < 0 || (most == -1 && PyErr_Occurred())) {
        return NULL;
    }
    most = most<0 ? 0 : most>(long) f->graph.node_count ? (long)f->graph.node_count : most;
    uint32_t *node = lp_raw_malloc(((size_t)most + 1) * sizeof(*node));
    if (node == NULL) {
        return PyErr_NoMemory();
    }
    uint32_t count = lp_frozen_largest(f, (uint32_t)most, node);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; i < count && list != NULL; i++) {
        if (lp_append_steal(list, PyLong_FromUnsignedLong(node[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    lp_raw_free(node);
    return list;
}

/* A node number, or LP_NODE_NONE with an exception set. */
static uint32_t node_argument(const lp_frozen *f, PyObject *number) {
    unsigned long node = PyLong_AsUnsignedLong(number);
    if (PyErr_Occurred() || check_analysed(f) < 0) {
        return LP_NODE_NONE;
    }
    if (node >= f->graph.node_count) {
        lp_raise("bad_argument", "node %lu is not in this graph of %lu nodes", node,
                 (unsigned long)f->graph.node_count);
        return LP_NODE_NONE;
    }
    return (uint32_t)node;
}

static PyObject *graph_node(PyObject *op, PyObject *number) {
    const lp_frozen *f = frozen_of(op);
    uint32_t node = node_argument(f, number);
    if (node == LP_NODE_NONE) {
        return NULL;
    }
    const lp_frozen_group *group = &f->group_of[f->group[node]];
    return lp_rows_new(LP_ROWS_GRAPH_NODE, "NsIKKI", name_of_type(f, group->type),
                       lp_medium_name((lp_medium)group->medium), (unsigned)f->group[node],
                       (unsigned long long)f->bytes[node], (unsigned long long)f->retained[node],
                       (unsigned)f->idom[node]);
}

static PyObject *graph_path(PyObject *op, PyObject *number) {
    const lp_frozen *f = frozen_of(op);
    uint32_t node = node_argument(f, number);
    PyObject *list = node == LP_NODE_NONE ? NULL : PyList_New(0);
    while (list != NULL) {
        if (lp_append_steal(list, PyLong_FromUnsignedLong(node)) < 0) {
            Py_CLEAR(list);
        } else if (f->parent[node] == node || f->parent[node] == LP_NODE_NONE) {
            PyList_Reverse(list);
            break;
        }
        node = f->parent[node];
    }
    return list;
}

static PyObject *graph_referents(PyObject *op, PyObject *number) {
    const lp_frozen *f = frozen_of(op);
    uint32_t node = node_argument(f, number);
    PyObject *list = node == LP_NODE_NONE ? NULL : PyList_New(0);
    for (uint32_t i = list == NULL ? 0 : f->graph.row[node]; list != NULL && i < f->graph.row[node + 1]; i++) {
        if (lp_append_steal(list, PyLong_FromUnsignedLong(f->graph.edge[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *tallies_to_list(const lp_frozen_tally *rows, uint32_t count) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; i < count && list != NULL; i++) {
        PyObject *row = lp_rows_new(LP_ROWS_HOLDER_TALLY, "IIKK", (unsigned)rows[i].group, (unsigned)rows[i].holder,
                                    (unsigned long long)rows[i].count, (unsigned long long)rows[i].bytes);
        if (lp_append_steal(list, row) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *graph_holders(PyObject *op, PyObject *older) {
    const lp_frozen *f = frozen_of(op);
    if (older != Py_None && !PyObject_TypeCheck(older, lp_state.types.graph)) {
        return lp_raise("bad_argument", "holders() takes another Graph or None, not %.80s", Py_TYPE(older)->tp_name);
    }
    if (check_analysed(f) < 0) {
        return NULL;
    }
    lp_frozen_tally *rows;
    uint32_t count;
    lp_status status = lp_frozen_tally_by_holder(f, older == Py_None ? NULL : frozen_of(older), &rows, &count);
    if (status != LP_OK) {
        return lp_raise_status(status, "comparing two graphs");
    }
    PyObject *list = tallies_to_list(rows, count);
    lp_raw_free(rows);
    return list;
}

static PyObject *graph_info(PyObject *op, PyObject *unused) {
    const lp_graph_object *self = (lp_graph_object *)op;
    const lp_frozen *f = &self->frozen;
    (void)unused;
    return Py_BuildValue("{s:I,s:I,s:I,s:K,s:K,s:K,s:K,s:K,s:I}", "nodes", (unsigned)f->graph.node_count, "edges",
                         (unsigned)f->graph.edge_count, "roots", (unsigned)f->root_count, "bytes",
                         (unsigned long long)lp_frozen_memory(f), "walk_ns", (unsigned long long)self->walk_ns,
                         "freeze_ns", (unsigned long long)self->freeze_ns, "cycles_ns",
                         (unsigned long long)self->cycles_ns, "dominators_ns", (unsigned long long)f->dominators_ns,
                         "garbage_roots", (unsigned)(f->root_count - f->alive_count));
}

static PyMethodDef graph_type_methods[] = {
    {"groups", graph_groups, METH_NOARGS,
     "groups($self, /)\n--\n\n"
     "[GraphGroup]; a group's number is its place."},
    {"retained_by_type", graph_retained_by_type, METH_NOARGS,
     "retained_by_type($self, /)\n--\n\n"
     "[RetainedType]: what each type keeps, below the first of its type only."},
    {"largest", graph_largest, METH_O,
     "largest($self, n, /)\n--\n\n"
     "The nodes with the largest retained sizes, dominators first."},
    {"node", graph_node, METH_O,
     "node($self, i, /)\n--\n\n"
     "The GraphNode."},
    {"path", graph_path, METH_O,
     "path($self, i, /)\n--\n\n"
     "The nodes from a root to node i."},
    {"referents", graph_referents, METH_O,
     "referents($self, i, /)\n--\n\n"
     "The nodes that node i refers to, one for each reference."},
    {"holders", graph_holders, METH_O,
     "holders($self, older, /)\n--\n\n"
     "[HolderTally] of nodes that older lacks."},
    {"info", graph_info, METH_NOARGS,
     "info($self, /)\n--\n\n"
     "Counts, bytes of memory, and nanoseconds of each stage."},
    {"parts", lp_graph_parts, METH_NOARGS,
     "parts($self, /)\n--\n\n"
     "All that graph_load() needs: a dict of bytes, ints and lists."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, "The object graph at one moment.  Keeps no object alive."},
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_methods, graph_type_methods},
    {0, NULL},
};

static PyType_Spec graph_spec = {
    .name = "leakprobe._core.Graph",
    .basicsize = sizeof(lp_graph_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = graph_slots,
};

int lp_graph_type_init(PyObject *module) { return lp_add_type(module, &graph_spec, &lp_state.types.graph); }

lp_graph_object *lp_graph_object_new(void) {
    lp_graph_object *self = PyObject_New(lp_graph_object, lp_state.types.graph);
    if (self != NULL) {
        self->frozen = (lp_frozen){0};
        self->walk_ns = self->freeze_ns = self->cycles_ns = 0;
    }
    return self;
}

/* ---- to take one ---- */

static lp_status freeze(lp_cycles *cycles, lp_graph_object *self, lp_census **out_census, uint32_t **out_old) {
    uint64_t began = lp_clock_ns();
    lp_status status = lp_freeze(cycles->trace, cycles, &self->frozen, out_census);
    if (status == LP_OK && !lp_walk_fits(cycles->trace->walk, LP_TRACE_NODE_BYTES + DOMINATORS_NODE_BYTES, 8)) {
        status = LP_LIMIT;
    }
    if (status == LP_OK) {
        status = lp_frozen_arrange(&self->frozen, out_old);
    }
    self->walk_ns = cycles->walk_ns;
    self->cycles_ns = cycles->analysis_ns;
    self->freeze_ns = lp_clock_ns() - began;
    return status == LP_OK ? lp_frozen_finish(&self->frozen) : status;
}

/* Cycles and names are made while the objects are there. */
static PyObject *analysed(lp_cycles *cycles, const lp_walk_request *request, lp_graph_object *self) {
    lp_census *census = NULL;
    uint32_t *old = NULL;
    lp_status status = freeze(cycles, self, &census, &old);
    PyObject *result = NULL;
    if (status == LP_OK) {
        result = lp_rows_new(LP_ROWS_GRAPH_TAKEN, "ONNN", self, lp_cycles_to_list(cycles),
                             lp_graph_names(cycles->trace, &self->frozen, old), lp_census_wrap(census));
    } else {
        lp_census_free(census);
        lp_trace_raise(status, request);
    }
    lp_raw_free(old);
    return result;
}

static PyObject *take_analysed(const lp_walk_request *request, lp_graph_object *self) {
    lp_cycles cycles;
    PyObject *result = NULL;
    lp_status status = lp_cycles_find(&cycles, &the_trace, request, TORCH_BUDGET);
    if (status == LP_OK) {
        result = analysed(&cycles, request, self);
    } else {
        lp_trace_raise(status, request);
    }
    lp_cycles_release(&cycles);
    return result;
}

/* Nodes, rows, types and sizes: no roots, so no paths and no retained sizes. */
static PyObject *take_bare(const lp_walk_request *request, lp_graph_object *self) {
    uint64_t began = lp_clock_ns();
    lp_status status = lp_trace_open(&the_trace, request, TORCH_BUDGET);
    self->walk_ns = lp_clock_ns() - began;
    if (status == LP_OK) {
        status = lp_freeze(&the_trace, NULL, &self->frozen, NULL);
        self->freeze_ns = lp_clock_ns() - began - self->walk_ns;
    }
    lp_trace_release(&the_trace);
    return status == LP_OK ? lp_rows_new(LP_ROWS_GRAPH_TAKEN, "ONNO", self, PyList_New(0), PyDict_New(), Py_None)
                           : lp_trace_raise(status, request);
}

static PyObject *mod_graph_take(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"torch", "max_bytes", "analyse", NULL};
    int torch = 1, analyse = 1;
    unsigned long long max_bytes = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|pKp:graph_take", names, &torch, &max_bytes, &analyse)) {
        return NULL;
    }
    lp_hooks_verify();
    lp_graph_object *self = lp_graph_object_new();
    int collects = self == NULL ? -1 : lp_trace_begin(torch);
    if (collects < 0) {
        Py_XDECREF(self);
        return NULL;
    }
    lp_walk_request request = {.torch = torch, .byte_budget = max_bytes};
    PyObject *result = analyse ? take_analysed(&request, self) : take_bare(&request, self);
    lp_trace_end(collects);
    Py_DECREF(self);
    return result;
}

PyDoc_STRVAR(
    graph_take_doc,
    "graph_take($module, torch=True, max_bytes=0, analyse=True)\n--\n\n"
    "(Graph, cycles as find_cycles() gives them, {node: path}, Census) of now; paths of the nodes that hold or retain\n"
    "most; the census is of the objects of the graph, and has groups only.\n\n"
    "analyse=False: types, sizes and edges only.  Errors: LeakprobeError \"graph_limit\", \"gc_running\", "
    "\"already_active\".");

PyMethodDef lp_graph_methods[] = {
    {"graph_take", (PyCFunction)(void (*)(void))mod_graph_take, METH_VARARGS | METH_KEYWORDS, graph_take_doc},
    {"graph_load", lp_graph_load, METH_O,
     "graph_load(parts): a Graph from what parts() gave.  Errors: LeakprobeError \"bad_graph\"."},
    {NULL, NULL, 0, NULL},
};
