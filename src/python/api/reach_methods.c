/* _core.Reach: what objects reach, and which of its pages another process has copied. */
#include "python/api/methods.h"

#include "python/compat/heap.h"  // lp_heap_init
#include "python/values/convert.h"      // lp_raise_status
#include "python/heap/heapwalk.h"     // lp_walk_keep_nodes
#include "python/heap/reach.h"
#include "python/values/rows.h"         // lp_rows_new
#include "python/values/state.h"  // lp_state

typedef struct reach_object {
    PyObject_HEAD lp_reach reach;
} reach_object;

static void reach_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    lp_reach_fini(&((reach_object *)op)->reach);
    PyObject_Free(op);
    Py_DECREF(type);
}

static PyObject *reach_add(PyObject *op, PyObject *root) {
    uint32_t number;
    lp_status status = lp_reach_add(&((reach_object *)op)->reach, root, &number);
    return status != LP_OK ? lp_raise_status(status, "walking what an object reaches")
                           : PyLong_FromUnsignedLong(number);
}

static PyObject *reach_finish(PyObject *op, PyObject *unused) {
    (void)unused;
    lp_reach_finish(&((reach_object *)op)->reach);
    Py_RETURN_NONE;
}

static lp_region *region_at(PyObject *op, unsigned number) {
    lp_reach *reach = &((reach_object *)op)->reach;
    if (number < reach->region_count) {
        return reach->region[number];
    }
    lp_raise("bad_argument", "there is no region %u", number);
    return NULL;
}

static PyObject *types_to_list(const lp_region *region) {
    PyObject *list = PyList_New(region->type_count);
    for (uint32_t i = 0; list != NULL && i < region->type_count; i++) {
        const lp_region_type *type = &region->type[i];
        PyObject *row = lp_rows_new(LP_ROWS_TYPE_TALLY, "sKK", type->name != NULL ? type->name : "?",
                                    (unsigned long long)type->count, (unsigned long long)type->bytes);
        if (row == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, row);
    }
    return list;
}

static PyObject *reach_region(PyObject *op, PyObject *arg) {
    unsigned long number = PyLong_AsUnsignedLong(arg);
    const lp_region *region = PyErr_Occurred() ? NULL : region_at(op, (unsigned)number);
    PyObject *types = region == NULL ? NULL : types_to_list(region);
    if (types == NULL) {
        return NULL;
    }
    return Py_BuildValue("{sKsKsKsnsN}", "count", (unsigned long long)region->count, "bytes",
                         (unsigned long long)region->bytes, "array_bytes", (unsigned long long)region->array_bytes,
                         "pages", (Py_ssize_t)region->page_count, "types", types);
}

static PyObject *kinds_to_list(const lp_page_counts *counts, uint32_t type_count) {
    PyObject *list = PyList_New(type_count);
    for (uint32_t i = 0; list != NULL && i < type_count; i++) {
        PyObject *row = lp_rows_new(LP_ROWS_PAGES, "KK", (unsigned long long)counts->pages_of[i],
                                    (unsigned long long)counts->private_of[i]);
        if (row == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, row);
    }
    return list;
}

static PyObject *reach_copied(PyObject *op, PyObject *args) {
    unsigned number;
    int pid;
    lp_page_counts counts;
    if (!PyArg_ParseTuple(args, "Ii:copied", &number, &pid)) {
        return NULL;
    }
    const lp_region *region = region_at(op, number);
    if (region == NULL) {
        return NULL;
    }
    if (lp_pagemap_count(pid, region->page, region->page_count, &counts) != LP_OK) {
        Py_RETURN_NONE;
    }
    PyObject *types = kinds_to_list(&counts, region->type_count);
    if (types == NULL) {
        return NULL;
    }
    return Py_BuildValue("{sKsKsKsKsKsN}", "pages", (unsigned long long)counts.pages, "present",
                         (unsigned long long)counts.present, "private", (unsigned long long)counts.private_pages,
                         "tracked_pages", (unsigned long long)counts.pages_of[LP_REGION_TRACKED], "tracked_private",
                         (unsigned long long)counts.private_of[LP_REGION_TRACKED], "types", types);
}

static PyObject *reach_pages_with(PyObject *op, PyObject *args) {
    unsigned number;
    unsigned long long kinds;
    if (!PyArg_ParseTuple(args, "IK:pages_with", &number, &kinds)) {
        return NULL;
    }
    const lp_region *region = region_at(op, number);
    return region == NULL ? NULL : PyLong_FromUnsignedLongLong(lp_pages_with(region->page, region->page_count, kinds));
}

static PyMethodDef reach_type_methods[] = {
    {"add", reach_add, METH_O,
     "add($self, obj, /)\n--\n\n"
     "The number of the region of what obj reaches and no region before it did."},
    {"finish", reach_finish, METH_NOARGS,
     "finish($self, /)\n--\n\n"
     "No more regions; memory of the walk is given back."},
    {"region", reach_region, METH_O,
     "region($self, number, /)\n--\n\n"
     "{count, bytes, array_bytes, pages, types: [TypeTally]}."},
    {"copied", reach_copied, METH_VARARGS,
     "copied($self, number, pid, /)\n--\n\n"
     "{pages, present, private, tracked_pages, tracked_private, types: [Pages]} as a "
     "forked process has the region, or None if it can't be read."},
    {"pages_with", reach_pages_with, METH_VARARGS,
     "pages_with($self, number, kinds, /)\n--\n\n"
     "Pages with a type of these bits on them."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reach_slots[] = {
    {Py_tp_doc, "What objects reach, with the pages of their reference counts."},
    {Py_tp_dealloc, reach_dealloc},
    {Py_tp_methods, reach_type_methods},
    {0, NULL},
};

static PyType_Spec reach_spec = {
    .name = "leakprobe._core.Reach",
    .basicsize = sizeof(reach_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = reach_slots,
};

int lp_reach_type_init(PyObject *module) { return lp_add_type(module, &reach_spec, &lp_state.types.reach); }

static PyObject *reach_new(PyObject *self, PyObject *arg) {
    (void)self;
    unsigned long long limit = PyLong_AsUnsignedLongLong(arg);
    if (PyErr_Occurred() || lp_kinds_init() < 0 || lp_heap_init() < 0) {
        return NULL;
    }
    reach_object *op = PyObject_New(reach_object, lp_state.types.reach);
    if (op == NULL) {
        return NULL;
    }
    lp_status status = lp_reach_init(&op->reach, limit);
    if (status != LP_OK) {
        Py_DECREF(op);
        return lp_raise_status(status, "walking what an object reaches");
    }
    return (PyObject *)op;
}

static PyObject *keep_walks(PyObject *self, PyObject *arg) {
    (void)self;
    unsigned long nodes = PyLong_AsUnsignedLong(arg);
    if (PyErr_Occurred()) {
        return NULL;
    }
    lp_walk_keep_nodes = nodes < UINT32_MAX ? (uint32_t)nodes : UINT32_MAX;
    Py_RETURN_NONE;
}

PyMethodDef lp_reach_methods[] = {
    {"keep_walks", keep_walks, METH_O,
     "keep_walks($module, nodes, /)\n--\n\n"
     "Memory of walks of the heap with more nodes is given back at once."},
    {"reach_new", reach_new, METH_O,
     "reach_new($module, most, /)\n--\n\n"
     "A Reach of at most so many objects, 0 for no limit."},
    {NULL, NULL, 0, NULL},
};
