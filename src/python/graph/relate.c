/* The name of one reference, from dict keys, slots and members. Reads the holder; calls nothing of it. */
#include "python/graph/relate.h"

#include <stdio.h>
#include <string.h>
#include <structmember.h>                  // PyMemberDef, T_OBJECT

#include "python/compat/lookups.h"  // lp_lookup_base
#include "python/compat/heap.h"            // lp_heap_traverse
#include "python/compat/heap_names.h"      // lp_heap_value_name
#include "python/layouts/numpy.h"           // lp_numpy_base

/* ---- late edges ---- */

static int relate_late(const lp_walk *walk, uint32_t source, uint32_t target, lp_text_out *name,
                       const char **out_edge) {
    static const char saved[] = "_saved_";
    const lp_late_edge *edge = lp_graph_first_late(&walk->graph, source);
    const lp_late_edge *end = walk->graph.late + walk->graph.late_count;
    for (; edge != NULL && edge < end && edge->source == source; edge++) {
        if (edge->target != target) {
            continue;
        }
        *out_edge = strcmp(edge->label, "_base") == 0 && edge->order == LP_ORDER_ALIAS ? "alias" : edge->label;
        if (strcmp(edge->label, "next_functions") == 0) {
            lp_text_add(name, ".next_functions[%u][0]", (unsigned int)edge->order);
        } else if (strncmp(edge->label, saved, sizeof(saved) - 1) == 0) {
            *out_edge = "saved";
            lp_text_add(name, strcmp(edge->label, "_saved_tensors") == 0 ? ".%s[%u]" : ".%s", edge->label,
                        (unsigned int)edge->order);
        } else if (strcmp(edge->label, "buffer") == 0) {
            *out_edge = edge->order == LP_ORDER_VIEW ? "part" : "buffer";
            lp_text_add(name, "buffer");
        } else {
            lp_text_add(name, ".%s", edge->label);
        }
        return 1;
    }
    return 0;
}

/* ---- order of traversal ---- */

typedef struct counter {
    const PyObject *target;
    int64_t at, found;
} counter;

static int count_until(PyObject *op, void *counter_) {
    counter *c = counter_;
    if (op == c->target) {
        c->found = c->at;
        return 1;
    }
    c->at++;
    return 0;
}

static int64_t position(PyObject *source, PyObject *target) {
    counter c = {target, 0, -1};
    lp_heap_traverse(source, count_until, &c);
    return c.found;
}

static void add_index(lp_text_out *name, int64_t index, int as_pattern) {
    if (as_pattern || index < 0) {
        lp_text_add(name, "[*]");
    } else {
        lp_text_add(name, "[%lld]", (long long)index);
    }
}

/* ---- containers ---- */

static int relate_sequence(PyObject *source, PyObject *target, int as_pattern, lp_text_out *name) {
    PyObject **item;
    Py_ssize_t count, i = 0;
    if (PyList_Check(source)) {
        item = ((PyListObject *)source)->ob_item;
        count = PyList_GET_SIZE(source);
    } else {
        item = ((PyTupleObject *)source)->ob_item;
        count = PyTuple_GET_SIZE(source);
    }
    if (as_pattern && count > LP_KEYS_TOLD_APART) {
        add_index(name, -1, 1);
        return 1;
    }
    while (i < count && item[i] != target) {
        i++;
    }
    if (i == count) {
        return 0;
    }
    add_index(name, i, as_pattern);
    return 1;
}

/* A defaultdict: its factory follows the dict. */
static int has_default_factory(PyObject *source) {
    return !PyDict_CheckExact(source) && lp_lookup_base(Py_TYPE(source), "collections.defaultdict") != NULL &&
           *(PyObject **)((char *)source + PyDict_Type.tp_basicsize) != NULL;
}

static int relate_dict(PyObject *source, PyObject *target, int as_pattern, lp_text_out *name, const char **out_edge) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    *out_edge = has_default_factory(source) ? "default dict entry" : "item";
    if (as_pattern && PyDict_GET_SIZE(source) > LP_KEYS_TOLD_APART) {
        lp_text_add(name, "[*]");
        return 1;
    }
    while (PyDict_Next(source, &at, &key, &value)) {
        if (value == target) {
            if (as_pattern && !PyUnicode_CheckExact(key)) {
                lp_text_add(name, "[*]");
                return 1;
            }
            lp_text_add(name, "[");
            lp_text_add_key(name, key, LP_KEY_DEPTH);
            lp_text_add(name, "]");
            return 1;
        }
        if (key == target) {
            *out_edge = "key";
            lp_text_add(name, "key ");
            lp_text_add_key(name, as_pattern ? Py_None : key, LP_KEY_DEPTH);
            return 1;
        }
    }
    return 0;
}

/* ---- attributes ---- */

static int relate_named(PyObject *dict, PyObject *target, int as_pattern, lp_text_out *name) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    if (as_pattern && PyDict_GET_SIZE(dict) > LP_NAMES_TOLD_APART) {
        lp_text_add(name, ".*");
        return 1;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (value == target || key == target) {
            lp_text_add(name, ".");
            if (PyUnicode_Check(key)) {
                lp_text_add_str(name, key, LP_NAME_WIDTH);
            } else {
                lp_text_add_key(name, key, 1);
            }
            return 1;
        }
    }
    return 0;
}

int lp_relate_has_slots(const PyTypeObject *type) {
    return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && ((const PyHeapTypeObject *)type)->ht_slots != NULL;
}

/* Slots and members of C structs, by their offset; a slot is a member that a class of Python asked for. */
static int relate_member(PyObject *source, PyObject *target, lp_text_out *name, const char **out_edge) {
    for (PyTypeObject *type = Py_TYPE(source); type != NULL; type = type->tp_base) {
        for (PyMemberDef *member = type->tp_members; member != NULL && member->name != NULL; member++) {
            if ((member->type == T_OBJECT || member->type == T_OBJECT_EX) && member->offset > 0 &&
                *(PyObject **)((char *)source + member->offset) == target) {
                lp_text_add(name, ".%.80s", member->name);
                *out_edge = lp_relate_has_slots(type) ? "slot" : "attribute";
                return 1;
            }
        }
    }
    return 0;
}

static int relate_function(PyObject *source, PyObject *target, lp_text_out *name) {
    PyFunctionObject *function = (PyFunctionObject *)source;
    const char *text = NULL;
    text = function->func_defaults == target ? ".__defaults__" : text;
    text = function->func_kwdefaults == target ? ".__kwdefaults__" : text;
    text = function->func_annotations == target ? ".__annotations__" : text;
    text = function->func_code == target ? ".__code__" : text;
    if (text != NULL) {
        lp_text_add(name, "%s", text);
    }
    return text != NULL;
}

static int relate_exception(PyObject *source, PyObject *target, lp_text_out *name) {
    const PyBaseExceptionObject *error = (const PyBaseExceptionObject *)source;
    const char *text = NULL;
    text = error->args == target ? ".args" : text;
    text = error->traceback == target ? ".__traceback__" : text;
    text = error->context == target ? ".__context__" : text;
    text = error->cause == target ? ".__cause__" : text;
    if (text != NULL) {
        lp_text_add(name, "%s", text);
    }
    return text != NULL;
}

static int relate_frame(const lp_running_frame *frame, PyObject *target, lp_text_out *name, const char **out_edge) {
    for (uint32_t i = 0; i < frame->local_count; i++) {
        if (lp_frames_slot_object(frame->slot[i]) == target) {
            *out_edge = "local";
            lp_text_add_str(name, lp_frames_local_name(frame->code, i), LP_NAME_WIDTH);
            return 1;
        }
    }
    *out_edge = frame->globals == target ? "globals" : frame->locals == target ? "locals" : "stack";
    lp_text_add(name, "%s",
                frame->globals == target || frame->locals == target ? ""
                : frame->function == target                         ? "function"
                                                                    : "value in use");
    return 1;
}

/* ---- carriers ---- */

static PyObject *free_variable(PyObject *function, PyObject *cell) {
    PyObject *closure = ((PyFunctionObject *)function)->func_closure;
    PyCodeObject *code = (PyCodeObject *)((PyFunctionObject *)function)->func_code;
    for (Py_ssize_t i = 0; closure != NULL && i < PyTuple_GET_SIZE(closure); i++) {
        if (PyTuple_GET_ITEM(closure, i) == cell) {
            uint32_t count = 0;
            while (lp_frames_local_name(code, count) != NULL) {
                count++;
            }
            Py_ssize_t free_count = PyTuple_GET_SIZE(closure);
            return count >= (uint32_t)free_count
                       ? lp_frames_local_name(code, count - (uint32_t)free_count + (uint32_t)i)
                       : NULL;
        }
    }
    return NULL;
}

/* A cell between a function or frame and a value: the name of the variable. */
static int relate_cell(const lp_walk *walk, uint32_t owner, PyObject *cell, lp_text_out *name, const char **out_edge) {
    *out_edge = "closure";
    if (owner == LP_NODE_NONE) {
        lp_text_add(name, "cell contents");
        return 1;
    }
    if (!lp_walk_is_object(walk, owner)) {
        return relate_frame(&walk->frame[owner - walk->block_count], cell, name, out_edge);
    }
    PyObject *op = lp_walk_object(walk, owner);
    PyObject *variable = PyFunction_Check(op) ? free_variable(op, cell) : NULL;
    if (variable != NULL) {
        lp_text_add_str(name, variable, LP_NAME_WIDTH);
    } else {
        lp_text_add(name, "cell contents");
    }
    return 1;
}

/* The tuple or dict of a function's default arguments: the parameter's name. */
static int relate_default(PyFunctionObject *function, PyObject *source, PyObject *target, lp_text_out *name) {
    PyObject *key, *value, *parameter = NULL;
    Py_ssize_t at = 0;
    if (source == function->func_defaults) {
        Py_ssize_t count = PyTuple_GET_SIZE(source);
        while (at < count && PyTuple_GET_ITEM(source, at) != target) {
            at++;
        }
        int first = ((PyCodeObject *)function->func_code)->co_argcount - (int)count;
        int is_parameter = at < count && first + at >= 0;
        parameter =
            is_parameter ? lp_frames_local_name((PyCodeObject *)function->func_code, (uint32_t)(first + at)) : NULL;
    }
    while (source == function->func_kwdefaults && parameter == NULL && PyDict_Next(source, &at, &key, &value)) {
        parameter = value == target && PyUnicode_Check(key) ? key : NULL;
    }
    if (parameter != NULL) {
        lp_text_add(name, "default of ");
        lp_text_add_str(name, parameter, LP_NAME_WIDTH);
    }
    return parameter != NULL;
}

static int is_defaults(PyObject *function, PyObject *source) {
    return PyFunction_Check(function) && (((PyFunctionObject *)function)->func_defaults == source ||
                                          ((PyFunctionObject *)function)->func_kwdefaults == source);
}

static int relate_carrier(const lp_walk *walk, uint32_t owner, PyObject *source, PyObject *target, int as_pattern,
                          lp_text_out *name, const char **out_edge) {
    if (PyCell_Check(source)) {
        return relate_cell(walk, owner, source, name, out_edge);
    }
    PyObject *op = owner == LP_NODE_NONE || !lp_walk_is_object(walk, owner) ? NULL : lp_walk_object(walk, owner);
    if (op != NULL && is_defaults(op, source)) {
        *out_edge = "default argument";
        return relate_default((PyFunctionObject *)op, source, target, name);
    }
    if (op == NULL || !PyDict_Check(source)) {
        return 0;
    }
    if (lp_relate_is_lru_cache(Py_TYPE(op)) && lp_heap_instance_dict(op) != source) {
        *out_edge = "cache";
        lp_text_add(name, "cache entry");
        return 1;
    }
    *out_edge = PyModule_Check(op) ? "global" : PyType_Check(op) ? "class attribute" : "attribute";
    return relate_named(source, target, as_pattern, name);
}

/* ---- other objects ---- */

static int relate_object(PyObject *source, PyObject *target, int as_pattern, lp_text_out *name, const char **out_edge) {
    lp_running_frame frame;
    *out_edge = "attribute";
    PyObject *attribute = lp_heap_value_name(source, target);
    if (attribute != NULL) {
        lp_text_add(name, ".");
        lp_text_add_str(name, attribute, LP_NAME_WIDTH);
        return 1;
    }
    if (PyFunction_Check(source) && relate_function(source, target, name)) {
        return 1;
    }
    if (lp_frames_of_object(source, &frame)) {
        return relate_frame(&frame, target, name, out_edge);
    }
    if (PyWeakref_Check(source)) {
        *out_edge = "callback";
        lp_text_add(name, "weakref callback");
        return 1;
    }
    if (lp_relate_is_lru_cache(Py_TYPE(source)) && !PyFunction_Check(target)) {
        *out_edge = "cache";
        lp_text_add(name, "cache entry");
        return 1;
    }
    if (PyExceptionInstance_Check(source) && relate_exception(source, target, name)) {
        return 1;
    }
    if (PyTraceBack_Check(source) && (PyObject *)((PyTracebackObject *)source)->tb_next == target) {
        lp_text_add(name, ".tb_next");
        return 1;
    }
    if (relate_member(source, target, name, out_edge)) {
        return 1;
    }
    if ((PyObject *)Py_TYPE(source) == target) {
        *out_edge = "type";
        lp_text_add(name, ".__class__");
        return 1;
    }
    (void)as_pattern;
    return 0;
}

static int relate_array(PyObject *source, PyObject *target, int as_pattern, lp_text_out *name, const char **out_edge) {
    if (lp_numpy_base(source) == target) {
        *out_edge = "base";
        lp_text_add(name, ".base");
        return 1;
    }
    if (as_pattern && lp_numpy_keeps_as_item(source, target)) {
        *out_edge = "index";
        add_index(name, -1, 1);
        return 1;
    }
    Py_ssize_t item = lp_numpy_find_item(source, target);
    if (item >= 0) {
        *out_edge = "index";
        add_index(name, item, as_pattern);
    }
    return item >= 0;
}

/* Bytes of what an array lies in: its block, or else its base; 0 if unknown. */
static uint64_t bytes_around(const lp_walk *walk, PyObject *op, PyObject *base) {
    uint32_t block = lp_walk_find_block(walk, lp_numpy_data(op));
    if (block != LP_NODE_NONE) {
        return walk->block[block].bytes;
    }
    if (PyBytes_Check(base) || PyByteArray_Check(base)) {
        return (uint64_t)Py_SIZE(base);
    }
    return lp_lookup_base(Py_TYPE(base), "numpy.ndarray") != NULL ? lp_numpy_contiguous_bytes(base) : 0;
}

/* 1 if an array without gaps is at least half of what it lies in. */
static int is_most_of(const lp_walk *walk, PyObject *op, PyObject *base) {
    uint64_t whole = bytes_around(walk, op, base);
    return whole != 0 && LP_MOST_OF_HALVES * lp_numpy_contiguous_bytes(op) >= whole;
}

/* The container kinds; 0 if source is none of them or does not hold target that way. */
static int relate_container(PyObject *source, PyObject *target, int as_pattern, lp_text_out *name,
                            const char **out_edge) {
    *out_edge = "index";
    if (PyList_Check(source) || PyTuple_Check(source)) {
        return relate_sequence(source, target, as_pattern, name);
    }
    if (lp_heap_is_dict_type(Py_TYPE(source))) {
        return relate_dict(source, target, as_pattern, name, out_edge);
    }
    if (PyAnySet_Check(source)) {
        *out_edge = "set item";
        lp_text_add(name, "item");
        return (as_pattern && PyAnySet_CheckExact(source)) || position(source, target) >= 0;
    }
    if (lp_lookup_base(Py_TYPE(source), "collections.deque") != NULL) {
        /* Where instances own their type, it is visited first. */
        int64_t at = as_pattern ? -1 : position(source, target) - (position(source, (PyObject *)Py_TYPE(source)) == 0);
        add_index(name, at, as_pattern);
        return 1;
    }
    return 0;
}

static void relate_fallback(const lp_walk *walk, uint32_t source, uint32_t target, int as_pattern, lp_text_out *name,
                            const char **out_edge) {
    PyObject *op = lp_walk_object(walk, source);
    PyObject *held = lp_walk_is_object(walk, target) ? lp_walk_object(walk, target) : NULL;
    if (lp_relate_known(op, held, name, out_edge)) {
        return;
    }
    *out_edge = "reference";
    const char *type = strrchr(Py_TYPE(op)->tp_name, '.');
    type = type == NULL ? Py_TYPE(op)->tp_name : type + 1;
    if (as_pattern) {
        lp_text_add(name, "reference of %.60s", type);
        return;
    }
    lp_text_add(name, "reference %lld of %.60s", (long long)position(op, held) + 1, type);
}

void lp_relate(const lp_walk *walk, uint32_t owner, uint32_t source, uint32_t target, int as_pattern, lp_text_out *name,
               const char **out_edge) {
    if (relate_late(walk, source, target, name, out_edge)) {
        return;
    }
    if (!lp_walk_is_object(walk, target)) {
        *out_edge = "buffer";
        lp_text_add(name, "buffer");
        return;
    }
    PyObject *held = lp_walk_object(walk, target);
    if (!lp_walk_is_object(walk, source)) {
        relate_frame(&walk->frame[source - walk->block_count], held, name, out_edge);
        return;
    }
    PyObject *op = lp_walk_object(walk, source);
    size_t before = name->length;
    if ((owner != LP_NODE_NONE || PyCell_Check(op)) &&
        relate_carrier(walk, owner, op, held, as_pattern, name, out_edge)) {
        return;
    }
    PyObject *dict = lp_heap_instance_dict(op);
    if (lp_lookup_base(Py_TYPE(op), "numpy.ndarray") != NULL && relate_array(op, held, as_pattern, name, out_edge)) {
        *out_edge = strcmp(*out_edge, "base") == 0 && is_most_of(walk, op, held) ? "alias" : *out_edge;
        return;
    }
    if (lp_lookup_base(Py_TYPE(op), "numpy.void") != NULL && lp_numpy_record_base(op) == held) {
        *out_edge = "base";
        lp_text_add(name, ".base");
        return;
    }
    if (dict == held) {
        *out_edge = "attribute";
        lp_text_add(name, ".__dict__");
        return;
    }
    if (relate_container(op, held, as_pattern, name, out_edge)) {
        return;
    }
    name->length = before;
    name->bytes[before] = 0;
    if (!relate_object(op, held, as_pattern, name, out_edge)) {
        relate_fallback(walk, source, target, as_pattern, name, out_edge);
    }
}
