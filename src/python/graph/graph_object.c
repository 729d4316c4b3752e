/* Between a frozen graph and its object or file. What comes from a file is checked before it is used. */
#include "python/graph/graph_object.h"

#include <string.h>

#include "base/rawmem.h"      // lp_raw_malloc
#include "python/values/convert.h"   // lp_raise
#include "python/graph/numbers.h"   // LP_NAMED_STEPS
#include "python/graph/path_out.h"  // lp_set_steal

/* ---- out ---- */

static int add_array(PyObject *dict, const char *name, const void *array, size_t count, size_t element_bytes) {
    return lp_set_steal(dict, name, PyBytes_FromStringAndSize(array, (Py_ssize_t)(count * element_bytes)));
}

static PyObject *groups_to_list(const lp_frozen *f) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; i < f->group_count && list != NULL; i++) {
        const lp_frozen_group *group = &f->group_of[i];
        if (lp_append_steal(list, Py_BuildValue("[III]", (unsigned)group->type, (unsigned)group->site,
                                                (unsigned)group->medium)) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *types_to_list(const lp_frozen *f) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; i < f->type_count && list != NULL; i++) {
        if (lp_append_steal(list, lp_text_to_str(f->type_name[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

PyObject *lp_graph_parts(PyObject *op, PyObject *unused) {
    const lp_frozen *f = &((lp_graph_object *)op)->frozen;
    size_t nodes = f->graph.node_count;
    PyObject *dict = PyDict_New();
    (void)unused;
    if (dict == NULL || add_array(dict, "row", f->graph.row, nodes + 1, 4) < 0 ||
        add_array(dict, "edge", f->graph.edge, f->graph.edge_count, 4) < 0 ||
        add_array(dict, "flag", f->graph.flag, nodes, 1) < 0 || add_array(dict, "address", f->address, nodes, 8) < 0 ||
        add_array(dict, "bytes", f->bytes, nodes, 8) < 0 || add_array(dict, "group", f->group, nodes, 4) < 0 ||
        add_array(dict, "root", f->root, f->root_count, 4) < 0 || lp_set_steal(dict, "groups", groups_to_list(f)) < 0 ||
        lp_set_steal(dict, "types", types_to_list(f)) < 0 ||
        lp_set_steal(dict, "named", PyLong_FromUnsignedLong(f->named_count)) < 0 ||
        lp_set_steal(dict, "alive", PyLong_FromUnsignedLong(f->alive_count)) < 0) {
        Py_XDECREF(dict);
        return NULL;
    }
    return dict;
}

/* ---- in ---- */

static int bad(const char *what) {
    PyErr_Clear();   /* of a number that is none */
    lp_raise("bad_graph", "the graph in the file is damaged: %s", what);
    return -1;
}

/* A copy of the array under a name; NULL with an exception set.  count is given, or found if it is SIZE_MAX. */
static void *read_array(PyObject *parts, const char *name, size_t element_bytes, size_t *inout_count) {
    PyObject *bytes = PyDict_GetItemString(parts, name);
    if (bytes == NULL || !PyBytes_Check(bytes)) {
        bad(name);
        return NULL;
    }
    size_t size = (size_t)PyBytes_GET_SIZE(bytes);
    if (size % element_bytes != 0 || size / element_bytes > UINT32_MAX - 2 ||
        (*inout_count != SIZE_MAX && *inout_count != size / element_bytes)) {
        bad(name);
        return NULL;
    }
    *inout_count = size / element_bytes;
    void *array = lp_raw_malloc(size + element_bytes);
    if (array == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(array, PyBytes_AS_STRING(bytes), size);
    return array;
}

static int read_arrays(PyObject *parts, lp_frozen *f) {
    size_t rows = SIZE_MAX, edges = SIZE_MAX, roots = SIZE_MAX, nodes;
    if ((f->graph.row = read_array(parts, "row", 4, &rows)) == NULL ||
        (f->graph.edge = read_array(parts, "edge", 4, &edges)) == NULL ||
        (f->root = read_array(parts, "root", 4, &roots)) == NULL) {
        return -1;
    }
    if (rows == 0) {
        return bad("row");
    }
    nodes = rows - 1;
    f->graph.node_count = f->graph.row_count = f->graph.node_capacity = (uint32_t)nodes;
    f->graph.edge_count = f->graph.edge_capacity = (uint32_t)edges;
    f->root_count = (uint32_t)roots;
    return (f->graph.flag = read_array(parts, "flag", 1, &nodes)) == NULL ||
                   (f->address = read_array(parts, "address", 8, &nodes)) == NULL ||
                   (f->bytes = read_array(parts, "bytes", 8, &nodes)) == NULL ||
                   (f->group = read_array(parts, "group", 4, &nodes)) == NULL
               ? -1
               : 0;
}

static int read_types(PyObject *list, lp_frozen *f) {
    size_t count = (size_t)PyList_GET_SIZE(list);
    f->type_name = lp_raw_calloc(count + 1, sizeof(*f->type_name));
    if (f->type_name == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; f->type_count < count; f->type_count++) {
        PyObject *item = PyList_GET_ITEM(list, (Py_ssize_t)f->type_count);
        const char *text = PyUnicode_Check(item) ? PyUnicode_AsUTF8(item) : NULL;
        char *copy = text == NULL ? NULL : lp_raw_malloc(strlen(text) + 1);
        if (copy == NULL) {
            return bad("types");
        }
        memcpy(copy, text, strlen(text) + 1);
        f->type_name[f->type_count] = copy;
    }
    return 0;
}

static int read_groups(PyObject *list, lp_frozen *f) {
    size_t count = (size_t)PyList_GET_SIZE(list);
    f->group_of = lp_raw_calloc(count + 1, sizeof(*f->group_of));
    if (f->group_of == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; f->group_count < count; f->group_count++) {
        lp_frozen_group *group = &f->group_of[f->group_count];
        PyObject *item = PySequence_Tuple(PyList_GET_ITEM(list, (Py_ssize_t)f->group_count));
        int ok = item != NULL && PyArg_ParseTuple(item, "III", &group->type, &group->site, &group->medium);
        Py_XDECREF(item);
        if (!ok) {
            return bad("groups");
        }
    }
    return 0;
}

static int read_number(PyObject *parts, const char *name, uint32_t *out) {
    PyObject *number = PyDict_GetItemString(parts, name);
    unsigned long value = number != NULL && PyLong_Check(number) ? PyLong_AsUnsignedLong(number) : ULONG_MAX;
    *out = (uint32_t)value;
    return value > UINT32_MAX ? bad(name) : 0;
}

static int read_parts(PyObject *parts, lp_frozen *f) {
    PyObject *types = PyDict_GetItemString(parts, "types"), *groups = PyDict_GetItemString(parts, "groups");
    if (types == NULL || groups == NULL || !PyList_Check(types) || !PyList_Check(groups)) {
        return bad("types and groups must be lists");
    }
    if (read_arrays(parts, f) < 0 || read_types(types, f) < 0 || read_groups(groups, f) < 0 ||
        read_number(parts, "named", &f->named_count) < 0 || read_number(parts, "alive", &f->alive_count) < 0) {
        return -1;
    }
    lp_status status = lp_frozen_finish(f);
    if (status == LP_BAD_INPUT) {
        return bad("its numbers do not fit together");
    }
    if (status != LP_OK) {
        lp_raise_status(status, "reading a graph");
        return -1;
    }
    for (uint32_t node = 0; node < f->graph.node_count; node++) {
        f->group_of[f->group[node]].count++;
        f->group_of[f->group[node]].bytes += f->bytes[node];
    }
    return 0;
}

PyObject *lp_graph_load(PyObject *module, PyObject *parts) {
    (void)module;
    if (!PyDict_Check(parts)) {
        return lp_raise("bad_argument", "graph_load() takes a dict, not %.80s", Py_TYPE(parts)->tp_name);
    }
    lp_graph_object *self = lp_graph_object_new();
    if (self != NULL && read_parts(parts, &self->frozen) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* ---- names ---- */

#define MOST_RETAINING 256
#define MOST_HOLDERS 2048

static lp_element the_elements[LP_PATH_MOST_NODES];   /* the GIL protects them */

/* What is named: nodes of a frozen graph, by those of the walk that it was made of. */
typedef struct naming {
    const lp_trace *trace;
    const lp_frozen *frozen;
    const uint32_t *old;   /* node => its number in the walk */
    PyObject *dict;
    uint32_t steps;        /* that may still be gone up beyond LP_PATH_MOST_NODES */
} naming;

/* Nodes of the way from the root to `at`; 0 once the ways of long paths took too many steps together. */
static uint32_t length_of(naming *n, uint32_t at) {
    const uint32_t *parent = n->frozen->parent;
    uint32_t count = 1;
    for (; parent[at] != at && parent[at] != LP_NODE_NONE; at = parent[at]) {
        if (++count > LP_PATH_MOST_NODES) {
            if (n->steps == 0) {
                return 0;
            }
            n->steps--;
        }
    }
    return count;
}

/* Both ends of the way from the root to `at`, in nodes of the walk; their number. */
static uint32_t get_chain(const naming *n, uint32_t at, uint32_t all, uint32_t *chain) {
    uint32_t count = all < LP_PATH_MOST_NODES ? all : LP_PATH_MOST_NODES, left_out = all - count, first = count >> 1;
    for (uint32_t i = all; i-- > 0; at = n->frozen->parent[at]) {
        if (i < first || i >= first + left_out) {
            chain[i < first ? i : i - left_out] = n->old[at];
        }
    }
    return count;
}

/* What stands before a path that begins with no name. */
static PyObject *above_root(const lp_trace *trace, uint32_t root) {
    int is_garbage = trace->paths.parent[root] == LP_NODE_NONE && lp_walk_is_object(trace->walk, root);
    return is_garbage                              ? lp_element_to_dict("garbage", "garbage", "")
           : lp_walk_has_owners(trace->walk, root) ? lp_element_to_dict("held outside Python", "outside", "")
                                                   : lp_element_to_dict("owner not seen", "unseen", "");
}

static int append_path(const naming *n, uint32_t at, uint32_t all, PyObject *list) {
    const lp_walk *walk = n->trace->walk;
    uint32_t chain[LP_PATH_MOST_NODES], count = get_chain(n, at, all, chain);
    int is_extra = n->old[at] >= walk->graph.node_count;   /* a buffer that is no node of the walk */
    uint32_t written = lp_names_path(walk, chain, count - (uint32_t)is_extra, 0, the_elements, LP_PATH_MOST_NODES);
    if (written > 0 && strcmp(the_elements[0].edge, "root") == 0 &&
        lp_append_steal(list, above_root(n->trace, chain[0])) < 0) {
        return -1;
    }
    if (lp_path_append(list, the_elements, written, all - count) < 0) {
        return -1;
    }
    return is_extra ? lp_append_steal(list, lp_element_to_dict("buffer", "buffer", "buffer")) : 0;
}

static PyObject *path_of(const naming *n, uint32_t at, uint32_t all) {
    LP_ASSERT_GIL();
    PyObject *list = PyList_New(0);
    if (list != NULL && append_path(n, at, all, list) < 0) {
        Py_CLEAR(list);
    }
    return list;
}

static int name_node(naming *n, uint32_t node) {
    PyObject *key = PyLong_FromUnsignedLong(node);
    int done = key == NULL ? -1 : PyDict_Contains(n->dict, key);
    uint32_t length = done == 0 ? length_of(n, node) : 0;
    if (length > 0) {
        PyObject *path = path_of(n, node, length);
        done = path == NULL ? -1 : PyDict_SetItem(n->dict, key, path);
        Py_XDECREF(path);
    }
    Py_XDECREF(key);
    return done;
}

/* For each group, the row of the holder with most of it; then the rows with most bytes. */
static void choose_rows(const lp_frozen_tally *rows, uint32_t count, uint32_t *best, uint32_t groups) {
    memset(best, 0xff, groups * sizeof(*best));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *of = &best[rows[i].group];
        if (*of == LP_NODE_NONE || rows[i].count > rows[*of].count) {
            *of = i;
        }
    }
}

static int name_holders(naming *n) {
    const lp_frozen *f = n->frozen;
    lp_frozen_tally *rows;
    uint32_t count;
    if (lp_frozen_tally_by_holder(f, NULL, &rows, &count) != LP_OK) {
        PyErr_NoMemory();
        return -1;
    }
    uint32_t *best = lp_raw_malloc(((size_t)f->group_count + 1) * sizeof(*best));
    int failed = best == NULL ? -1 : 0;
    if (failed) {
        PyErr_NoMemory();
    } else {
        choose_rows(rows, count, best, f->group_count);
    }
    for (uint32_t i = 0; i < f->group_count && failed == 0; i++) {
        failed = best[i] == LP_NODE_NONE ? 0 : name_node(n, rows[best[i]].holder) < 0 ? -1 : 0;
    }
    for (uint32_t i = 0, named = 0; i < count && failed == 0 && named < MOST_HOLDERS; i++) {
        if (rows[i].count >= 8) {
            named++;
            failed = name_node(n, rows[i].holder) < 0 ? -1 : 0;
        }
    }
    lp_raw_free(best);
    lp_raw_free(rows);
    return failed;
}

PyObject *lp_graph_names(const lp_trace *trace, const lp_frozen *f, const uint32_t *old) {
    uint32_t node[MOST_RETAINING], count = lp_frozen_largest(f, MOST_RETAINING, node);
    naming n = {trace, f, old, PyDict_New(), LP_NAMED_STEPS};
    int failed = n.dict == NULL ? -1 : 0;
    for (uint32_t i = 0; i < count && failed == 0; i++) {
        failed = name_node(&n, node[i]) < 0 ? -1 : 0;
    }
    if (failed == 0) {
        failed = name_holders(&n);
    }
    if (failed < 0) {
        Py_CLEAR(n.dict);
    }
    return n.dict;
}
