/* Keeps a few objects over the end of a walk and asks their __sizeof__ then. Only types written in C are asked. */
#include "python/owners/owned.h"

#include <string.h>

#include "base/rawmem.h"    // lp_raw_calloc
#include "python/values/convert.h"  // lp_set_steal
#include "python/heap/sizes.h"   // lp_size_rule_of

/* ---- which types can tell ---- */

/* 1 for a function that is no Python code: of a type in C, or of a compiled module. */
static int is_compiled(PyObject *function) {
    if (Py_IS_TYPE(function, &PyMethodDescr_Type)) {
        return ((PyDescrObject *)function)->d_type != &PyBaseObject_Type;
    }
    PyObject *name = PyUnicode_FromString("__call__");
    PyObject *call = name == NULL ? NULL : PyType_Type.tp_getattro((PyObject *)Py_TYPE(function), name);
    int is_c = call != NULL && Py_IS_TYPE(call, &PyWrapperDescr_Type) && !PyFunction_Check(function);
    PyErr_Clear();
    Py_XDECREF(call);
    Py_XDECREF(name);
    return is_c;
}

/* Buffers of tensors and arrays are blocks of their own; those of streams are objects. */
static int is_known_otherwise(lp_walk *walk, PyTypeObject *type) {
    int kind = lp_kinds_get(&walk->kinds, type).kind;
    lp_size_rule rule = lp_size_rule_of(type);
    return (kind != LP_KIND_LEAF && kind != LP_KIND_PLAIN) || strncmp(type->tp_name, "_io.", strlen("_io.")) == 0 ||
           (rule.kind != LP_SIZE_FIXED && rule.kind != LP_SIZE_VAR);
}

static int can_tell(lp_walk *walk, PyTypeObject *type) {
    if (is_known_otherwise(walk, type)) {
        return 0;
    }
    PyObject *name = PyUnicode_FromString("__sizeof__");
    PyObject *function = name == NULL ? NULL : PyType_Type.tp_getattro((PyObject *)type, name);
    int can = function != NULL && is_compiled(function);
    PyErr_Clear();
    Py_XDECREF(function);
    Py_XDECREF(name);
    return can;
}

/* ---- members ---- */

static lp_owned_group *find_group(lp_owned *owned, uint32_t group) {
    for (uint32_t i = 0; i < owned->count; i++) {
        if (owned->group[i].group == group) {
            return &owned->group[i];
        }
    }
    return NULL;
}

/* Groups whose type lives, by a member of it, and can tell. */
static void find_groups(lp_owned *owned, const lp_torch *torch) {
    lp_walk *walk = torch->walk;
    const lp_walk_request *request = walk->request;
    for (uint32_t i = 0; i < walk->grown_count; i++) {
        const lp_grown *grown = &walk->grown[i];
        if (grown->group >= request->group_count || request->group[grown->group].type == NULL ||
            !lp_walk_is_object(walk, grown->node)) {
            continue;
        }
        lp_owned_group *known = find_group(owned, grown->group);
        if (known == NULL) {
            PyTypeObject *type = Py_TYPE(lp_walk_object(walk, grown->node));
            known = &owned->group[owned->count++];
            *known =
                (lp_owned_group){.group = grown->group,
                                 .count = can_tell(walk, type) ? 0 : LP_OWNED_SAMPLES,
                                 .told = torch->owned != NULL ? torch->owned[grown->group] : (lp_torch_owned){0, 0},
                                 .type_id = (uintptr_t)type,
                                 .site = request->group[grown->group].site};
        }
        if (known->count < LP_OWNED_SAMPLES) {
            known->object[known->count++] = Py_NewRef(lp_walk_object(walk, grown->node));
        }
    }
}

void lp_owned_collect(lp_owned *owned, const lp_torch *torch) {
    LP_ASSERT_GIL();
    *owned = (lp_owned){lp_raw_calloc((size_t)torch->walk->request->group_count + 1, sizeof(*owned->group)), 0};
    if (owned->group != NULL) {
        find_groups(owned, torch);
    }
}

/* Bytes beyond those of the formula; 0 if the object does not say. */
static uint64_t ask(PyObject *op) {
    PyObject *size = PyObject_CallMethod(op, "__sizeof__", NULL);
    unsigned long long bytes = size != NULL && PyLong_Check(size) ? PyLong_AsUnsignedLongLong(size) : 0;
    int is_wrong = PyErr_Occurred() != NULL;
    uint64_t known = lp_size_of(op);
    PyErr_Clear();
    Py_XDECREF(size);
    return is_wrong || bytes < known ? 0 : bytes - known;
}

/* Bytes of one, on average. */
static double mean_of(const lp_owned_group *group) {
    uint64_t bytes = 0;
    if (group->told.count != 0) {
        return (double)group->told.bytes / group->told.count;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        bytes += ask(group->object[i]);
    }
    return (double)bytes / group->count;
}

static PyObject *row_of(const lp_owned_group *group) {
    return Py_BuildValue("(KIdO)", (unsigned long long)group->type_id, (unsigned int)group->site, mean_of(group),
                         group->told.count != 0 ? Py_True : Py_False);
}

PyObject *lp_owned_ask(lp_owned *owned) {
    PyObject *rows = PyList_New(0);
    for (uint32_t i = 0; rows != NULL && i < owned->count; i++) {
        if ((owned->group[i].object[0] != NULL || owned->group[i].told.count != 0) &&
            lp_append_steal(rows, row_of(&owned->group[i])) < 0) {
            Py_CLEAR(rows);
        }
    }
    return rows;
}

void lp_owned_release(lp_owned *owned) {
    for (uint32_t i = 0; i < owned->count; i++) {
        for (uint32_t k = 0; k < LP_OWNED_SAMPLES; k++) {
            Py_XDECREF(owned->group[i].object[k]);
        }
    }
    lp_raw_free(owned->group);
    *owned = (lp_owned){NULL, 0};
}
