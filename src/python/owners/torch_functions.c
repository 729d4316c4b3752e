/* What a node of an autograd graph refers to, by torch's getters: the next ones, saved tensors, variables, metadata. */
#include "python/owners/torch_parts.h"

#include <string.h>

#include "ledger/site.h" // LP_SITE_SELF
#include "python/compat/lookups.h" // lp_lookup_descriptor
#include "python/layouts/torch.h" // lp_torch_has_metadata

static const char raw[] = "_raw", raw_saved[] = "_raw_saved_";

static void collect_getters(lp_node_getters *out, PyTypeObject *type) {
    PyObject *mro = type->tp_mro, *key, *value;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        Py_ssize_t at = 0;
        while (base->tp_dict != NULL && PyDict_Next(base->tp_dict, &at, &key, &value)) {
            if (strncmp(lp_kinds_ascii(key), raw_saved, sizeof(raw_saved) - 1) == 0 &&
                Py_IS_TYPE(value, &PyGetSetDescr_Type) && out->saved_count < LP_TORCH_MOST_SAVED) {
                out->saved[out->saved_count++] = value;
            }
        }
    }
    out->next_functions = lp_lookup_descriptor(type, "next_functions");
    out->variable = lp_lookup_descriptor(type, "variable");
    out->metadata = lp_lookup_descriptor(type, "metadata");
}

static const lp_node_getters *getters_of(lp_torch_names *names, PyTypeObject *type) {
    uint32_t *number = lp_map_put(&names->type_number, (uintptr_t)type, NULL);
    if (number == NULL) {
        return NULL;
    }
    if (*number == 0) {
        lp_node_getters *types = lp_walk_reserve(names->type, names->type_count, &names->type_capacity, sizeof(*types));
        if (types == NULL) {
            return NULL;
        }
        names->type = types;
        memset(&types[names->type_count], 0, sizeof(*types));
        collect_getters(&types[names->type_count], type);
        *number = ++names->type_count;
    }
    return &names->type[*number - 1];
}

/* Where the tensor was packed by a hook, the hook that unpacks it is kept too. */
static void add_unpack_hook(lp_torch *torch, uint32_t node, PyObject *saved, uint32_t order) {
    PyObject *hook = PyObject_GetAttrString(saved, "unpack_hook");
    if (hook == NULL || hook == Py_None) {
        PyErr_Clear();
        Py_XDECREF(hook);
        return;
    }
    lp_torch_add_edge(torch, node, hook, "unpack_hook", order, LP_LATE_ONE);
}

static void add_saved(lp_torch *torch, uint32_t node, PyObject *saved, const char *label, uint32_t order) {
    PyObject *data = PyObject_GetAttrString(saved, "data");
    if (data == NULL) {
        torch->is_complete &= !PyErr_ExceptionMatches(PyExc_AttributeError); /* no getter: none of them is seen */
        PyErr_Clear();
        torch->why_not = torch->why_not ? torch->why_not : "this torch can't show saved tensors without unpacking them";
        return;
    } else if (data == Py_None) {
        Py_DECREF(data);
        return;
    }
    int is_tensor = lp_kinds_get(&torch->walk->kinds, Py_TYPE(data)).kind == LP_KIND_TENSOR;
    lp_torch_add_edge(torch, node, data, label, order, is_tensor ? LP_LATE_SHARED : LP_LATE_ONE);
    add_unpack_hook(torch, node, saved, order);
}

static void read_saved(lp_torch *torch, uint32_t node, PyObject *op, PyObject *getter) {
    /* "_raw_saved_other" is shown as "_saved_other". */
    const char *label = ((PyGetSetDescrObject *)getter)->d_getset->name + sizeof(raw) - 1;
    PyObject *value = lp_torch_get(getter, op);
    if (value == NULL) {
        return;
    }
    if (!PyTuple_Check(value)) {
        add_saved(torch, node, value, label, 0);
    }
    for (Py_ssize_t i = 0; PyTuple_Check(value) && i < PyTuple_GET_SIZE(value); i++) {
        if (PyTuple_GET_ITEM(value, i) != Py_None) {
            add_saved(torch, node, PyTuple_GET_ITEM(value, i), label, (uint32_t)i);
        }
    }
    Py_DECREF(value);
}

static void read_next_functions(lp_torch *torch, uint32_t node, PyObject *op, PyObject *getter) {
    PyObject *next = lp_torch_get(getter, op);
    if (next == NULL || !PyTuple_Check(next)) {
        Py_XDECREF(next);
        return;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(next); i++) {
        PyObject *pair = PyTuple_GET_ITEM(next, i);
        PyObject *function = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) > 0 ? PyTuple_GET_ITEM(pair, 0) : Py_None;
        if (function != Py_None) {
            Py_INCREF(function);
            lp_torch_add_edge(torch, node, function, "next_functions", (uint32_t)i, LP_LATE_SHARED);
        }
    }
    Py_DECREF(next);
}

int lp_torch_has_variable(lp_torch *torch, PyObject *op) {
    const lp_node_getters *type = getters_of(torch->names, Py_TYPE(op));
    return type != NULL && type->variable != NULL;
}

/* Reading metadata makes a dict that stays, where there is none; anomaly mode fills all. */
static int may_have_metadata(const lp_torch *torch, uint32_t node, PyObject *op) {
    if (torch->names->is_anomaly) {
        return 1;
    }
    return !(torch->walk->graph.flag[node] & LP_NODE_MADE) && LP_STAMP_SITE(lp_birth_stamp(op)) != LP_SITE_SELF &&
           lp_torch_has_metadata(op);
}

void lp_torch_read_function(lp_torch *torch, uint32_t node) {
    PyObject *op = lp_walk_object(torch->walk, node);
    const lp_node_getters *type = getters_of(torch->names, Py_TYPE(op));
    if (type == NULL) {
        return;
    }
    read_next_functions(torch, node, op, type->next_functions);
    for (uint32_t i = 0; i < type->saved_count; i++) {
        read_saved(torch, node, op, type->saved[i]);
    }
    PyObject *variable = lp_torch_get(type->variable, op);
    if (variable != NULL) {
        lp_torch_add_edge(torch, node, variable, "variable", 0, LP_LATE_SHARED);
    }
    PyObject *metadata = may_have_metadata(torch, node, op) ? lp_torch_get(type->metadata, op) : NULL;
    if (metadata != NULL) {
        lp_torch_add_edge(torch, node, metadata, "metadata", 0, LP_LATE_ONE);
    }
}
