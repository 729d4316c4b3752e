/* Paths as lists of dicts. Each builds whole or not at all, with an exception set. */
#include "python/graph/path_out.h"

#include <stdio.h>

#include "python/values/convert.h"  // lp_text_to_str

#define KEEP_LAST 10

PyObject *lp_element_to_dict(const char *text, const char *edge, const char *type) {
    PyObject *none = type[0] == 0 ? Py_NewRef(Py_None) : lp_text_to_str(type);
    return none == NULL ? NULL
                        : Py_BuildValue("{s:N,s:N,s:N}", "text", lp_text_to_str(text), "edge", lp_text_to_str(edge),
                                        "type", none);
}

/* Names of a type and of what it derives from; by type, not by a name that a program may use too. */
static PyObject *bases_of(const lp_walk *walk, uint32_t node) {
    int is_object = node < walk->graph.node_count && lp_walk_is_object(walk, node);
    PyObject *mro = is_object ? Py_TYPE(lp_walk_object(walk, node))->tp_mro : NULL, *list = PyList_New(0);
    char name[LP_NAME_BYTES];
    for (Py_ssize_t i = 0; list != NULL && mro != NULL && i + 1 < PyTuple_GET_SIZE(mro); i++) {
        lp_names_type_of((PyTypeObject *)PyTuple_GET_ITEM(mro, i), name, sizeof(name));
        if (lp_append_steal(list, lp_text_to_str(name)) < 0) {
            Py_CLEAR(list);
        }
    }
    PyObject *tuple = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return tuple;
}

static PyObject *element_to_dict(const lp_walk *walk, const lp_element *element) {
    PyObject *dict = lp_element_to_dict(element->text, element->edge, element->type);
    if (dict != NULL && walk != NULL && lp_set_steal(dict, "bases", bases_of(walk, element->node)) < 0) {
        Py_CLEAR(dict);
    }
    return dict;
}

static int append_more(PyObject *list, uint32_t left_out) {
    char text[64];
    snprintf(text, sizeof(text), "... %u more ...", (unsigned int)left_out);
    return lp_append_steal(list, lp_element_to_dict(text, "more", ""));
}

/* left_out: nodes without an element, behind the first half of the others. */
static int append(PyObject *list, const lp_walk *walk, const lp_element *elements, uint32_t count, uint32_t left_out) {
    uint32_t first = LP_TRACE_MOST_ELEMENTS - KEEP_LAST - 1;
    for (uint32_t i = 0; i < count; i++) {
        if (count > LP_TRACE_MOST_ELEMENTS && i == first) {
            if (append_more(list, count - first - KEEP_LAST + left_out) < 0) {
                return -1;
            }
            i = count - KEEP_LAST;
        }
        if (lp_append_steal(list, element_to_dict(walk, &elements[i])) < 0) {
            return -1;
        }
    }
    return 0;
}

int lp_path_append_bases(PyObject *list, const lp_walk *walk, const lp_element *elements, uint32_t count) {
    return append(list, walk, elements, count, 0);
}

int lp_path_append(PyObject *list, const lp_element *elements, uint32_t count, uint32_t left_out) {
    return append(list, NULL, elements, count, left_out);
}

int lp_path_append_outside(PyObject *list, const lp_trace *trace, uint32_t root, lp_trace_kind kind) {
    static const struct {
        const char *text, *edge;
    } known[] = {
        [LP_TRACE_UNSEEN] = {"owner not seen", "unseen"},
        [LP_TRACE_ATEXIT] = {"callbacks of atexit", "atexit"},
        [LP_TRACE_SIGNALS] = {"handlers of signals", "signal"},
        [LP_TRACE_INTERPRETER] = {"state of the interpreter", "interpreter"},
    };
    char text[LP_NAME_BYTES] = "held outside Python";
    if (kind == LP_TRACE_HELD || kind == LP_TRACE_GARBAGE) {
        return 0;
    }
    if (known[kind].text != NULL) {
        return lp_append_steal(list, lp_element_to_dict(known[kind].text, known[kind].edge, ""));
    }
    if (root != LP_NODE_NONE && trace->refs != NULL && trace->refs[root] > 0) {
        int is_kept = (trace->walk->graph.flag[root] & LP_NODE_KEPT) != 0;
        long long all = (long long)Py_REFCNT(lp_walk_object(trace->walk, root)) - is_kept;
        snprintf(text, sizeof(text), "held outside Python (%lld reference%s of %lld unexplained)",
                 (long long)trace->refs[root], trace->refs[root] == 1 ? "" : "s", all);
    }
    return lp_append_steal(list, lp_element_to_dict(text, "outside", ""));
}
