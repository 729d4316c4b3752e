/* Layouts of numpy's arrays, rows and descriptors, the same in 1.x and 2.x. An array is checked before its items
 * are read. */
#include "python/layouts/numpy.h"

#include <string.h>

#include "python/compat/heap.h"  // lp_heap_looks_alive

/* NPY_MAXDIMS of 2.x; 1.x has 32. */
#define MOST_DIMENSIONS 64

/* PyArrayObject_fields of numpy/ndarraytypes.h, the same since 1.7. */
typedef struct array {
    PyObject_HEAD char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base, *descr;
    int flags;
    PyObject *weakreflist;
} array;

/* PyVoidScalarObject of numpy/arrayscalars.h. */
typedef struct record {
    PyObject_VAR_HEAD char *data;
    PyObject *descr;
    int flags;
    PyObject *base;
} record;

/* PyArray_ArrayDescr: what an item of a field repeats. */
typedef struct subarray {
    PyObject *base, *shape;
} subarray;

/* The beginning of PyArray_Descr: to `type_num` the same in 1.x and 2.x. */
typedef struct descriptor {
    PyObject_HEAD PyTypeObject *typeobj;
    char kind, type, byteorder, flags;   /* flags: of 1.x */
    int type_num;
} descriptor;

typedef struct descriptor_1 {
    descriptor head;
    int elsize, alignment;
    subarray *subarray;
    PyObject *fields, *names;
} descriptor_1;

typedef struct descriptor_2 {
    descriptor head;
    uint64_t flags;
    Py_ssize_t elsize, alignment;
    PyObject *metadata;
    Py_hash_t hash;
    void *reserved[2];
    subarray *subarray;
    PyObject *fields, *names;
} descriptor_2;

enum {
    OWN_DATA = 4,
    C_CONTIGUOUS = 1,
    F_CONTIGUOUS = 2,
    HAS_OBJECTS = 1 /* of a descriptor */,
    VOID = 20 /* a type_num */
};

/* ---- where in an item its objects lie ---- */

#define MOST_RUNS 64
#define MOST_NESTED 8

/* `count` references side by side, so far from the beginning of an item. */
typedef struct run {
    Py_ssize_t offset, count;
} run;

typedef struct runs {
    run run[MOST_RUNS];
    uint32_t count;
} runs;

/* What 1.x and 2.x tell of a descriptor of records or subarrays; fields: a dict, or NULL. */
typedef struct parts {
    Py_ssize_t bytes;
    const subarray *repeated;
    PyObject *fields;
    int has_objects;
} parts;

static parts parts_of(PyObject *descr) {
    const descriptor_1 *one = (const descriptor_1 *)descr;
    const descriptor_2 *two = (const descriptor_2 *)descr;
    size_t bytes = (size_t)Py_TYPE(descr)->tp_basicsize;
    parts p = {0};
    if (one->head.type_num != VOID) {
        return p;   /* new types may be laid out in another way */
    }
    if (bytes >= sizeof(*two)) {
        p = (parts){two->elsize, two->subarray, two->fields, (two->flags & HAS_OBJECTS) != 0};
    } else if (bytes >= sizeof(*one)) {
        p = (parts){one->elsize, one->subarray, one->fields, (one->head.flags & HAS_OBJECTS) != 0};
    }
    if (p.fields != NULL && !(lp_heap_looks_alive(p.fields) && PyDict_CheckExact(p.fields))) {
        p.fields = NULL;
    }
    return p;
}

static void add_run(runs *r, Py_ssize_t offset, Py_ssize_t count) {
    run *last = r->count == 0 ? NULL : &r->run[r->count - 1];
    if (last != NULL && last->offset + last->count * (Py_ssize_t)sizeof(PyObject *) == offset) {
        last->count += count;
    } else if (r->count < MOST_RUNS && count > 0) {
        r->run[r->count++] = (run){offset, count};
    }
}

static void add_item(runs *r, PyObject *descr, Py_ssize_t offset, int depth);

/* A descriptor has the metatype of all descriptors' types. */
static int is_field(PyObject *field, PyObject *descr) {
    return PyTuple_CheckExact(field) && PyTuple_GET_SIZE(field) > 1 && PyLong_CheckExact(PyTuple_GET_ITEM(field, 1)) &&
           Py_TYPE(Py_TYPE(PyTuple_GET_ITEM(field, 0))) == Py_TYPE(Py_TYPE(descr));
}

/* name => (descriptor, offset), or (descriptor, offset, title), and title => the same. */
static void add_fields(runs *r, PyObject *descr, PyObject *fields, Py_ssize_t offset, int depth) {
    PyObject *key, *field;
    Py_ssize_t at = 0;
    while (PyDict_Next(fields, &at, &key, &field)) {
        if (is_field(field, descr) && !(PyTuple_GET_SIZE(field) > 2 && PyTuple_GET_ITEM(field, 2) == key)) {
            add_item(r, PyTuple_GET_ITEM(field, 0), offset + PyLong_AsSsize_t(PyTuple_GET_ITEM(field, 1)), depth);
        }
    }
}

/* A field that has several items of one kind. */
static void add_repeated(runs *r, const parts *p, Py_ssize_t offset, int depth) {
    PyObject *base = p->repeated->base;
    int is_object = ((const descriptor *)base)->kind == 'O';
    Py_ssize_t each = is_object ? (Py_ssize_t)sizeof(PyObject *) : parts_of(base).bytes;
    for (Py_ssize_t at = 0; each > 0 && at + each <= p->bytes && r->count < MOST_RUNS; at += each) {
        add_item(r, base, offset + at, depth);
    }
}

/* An item by its descriptor, or one part of it. */
static void add_item(runs *r, PyObject *descr, Py_ssize_t offset, int depth) {
    if (((const descriptor *)descr)->kind == 'O') {
        add_run(r, offset, 1);
        return;
    }
    parts p = depth < MOST_NESTED ? parts_of(descr) : (parts){0};
    if (p.has_objects && p.repeated != NULL) {
        add_repeated(r, &p, offset, depth + 1);
    } else if (p.has_objects && p.fields != NULL) {
        add_fields(r, descr, p.fields, offset, depth + 1);
    }
}

/* Fields of packed records may lie anywhere. */
static int visit_item(const runs *r, const char *item, visitproc visit, void *arg) {
    for (uint32_t i = 0; i < r->count; i++) {
        for (Py_ssize_t k = 0; k < r->run[i].count; k++) {
            PyObject *op;
            memcpy(&op, item + r->run[i].offset + k * (Py_ssize_t)sizeof(op), sizeof(op));
            Py_VISIT(op);
        }
    }
    return 0;
}

/* ---- arrays ---- */

/* The objects in the items of an array that owns them; 0 if there are none. */
static int owned_items(const array *a, runs *out) {
    out->count = 0;
    if (a->descr != NULL && a->data != NULL && (a->flags & OWN_DATA)) {
        add_item(out, a->descr, 0, 0);
    }
    for (int i = 0; i < a->nd; i++) {
        if (a->dimensions[i] <= 0) {
            return 0;
        }
    }
    return out->count > 0 && a->nd <= MOST_DIMENSIONS;
}

/* The last dimension fastest; number: of the item in work. */
static int visit_items(const array *a, const runs *r, Py_ssize_t *number, visitproc visit, void *arg) {
    Py_ssize_t index[MOST_DIMENSIONS] = {0};
    const char *item = a->data;
    for (*number = 0;; ++*number) {
        int result = visit_item(r, item, visit, arg), axis = a->nd - 1;
        if (result != 0) {
            return result;
        }
        while (axis >= 0 && ++index[axis] == a->dimensions[axis]) {
            item -= (a->dimensions[axis] - 1) * a->strides[axis];
            index[axis--] = 0;
        }
        if (axis < 0) {
            return 0;
        }
        item += a->strides[axis];
    }
}

static int each_item(const array *a, Py_ssize_t *number, visitproc visit, void *arg) {
    runs r;
    return owned_items(a, &r) ? visit_items(a, &r, number, visit, arg) : 0;
}

int lp_numpy_traverse(PyObject *op, visitproc visit, void *arg) {
    const array *a = (const array *)op;
    Py_ssize_t number;
    Py_VISIT(a->base);
    Py_VISIT(a->descr);
    return each_item(a, &number, visit, arg);
}

static int is_target(PyObject *op, void *target) { return op == target; }

Py_ssize_t lp_numpy_find_item(PyObject *op, PyObject *target) {
    Py_ssize_t number;
    return each_item((const array *)op, &number, is_target, target) ? number : -1;
}

PyObject *lp_numpy_record_base(PyObject *op) { return ((const record *)op)->base; }

int lp_numpy_traverse_record(PyObject *op, visitproc visit, void *arg) {
    const record *row = (const record *)op;
    runs r = {.count = 0};
    Py_VISIT(row->base);
    if (row->descr != NULL && row->data != NULL && (row->flags & OWN_DATA)) {
        add_item(&r, row->descr, 0, 0);
    }
    return visit_item(&r, row->data, visit, arg);
}

/* Where names and fields lie differs between 1.x and 2.x: they are the only dict and tuple that it points to. */
int lp_numpy_traverse_dtype(PyObject *op, visitproc visit, void *arg) {
    PyObject *const *word = (PyObject *const *)op;
    size_t count = (size_t)Py_TYPE(op)->tp_basicsize / sizeof(*word);
    for (size_t i = sizeof(PyObject) / sizeof(*word); i < count; i++) {
        if (lp_heap_looks_alive(word[i]) && (PyDict_CheckExact(word[i]) || PyTuple_CheckExact(word[i]))) {
            Py_VISIT(word[i]);
        }
    }
    return 0;
}

int lp_numpy_is_sane(PyObject *op) {
    const array *a = (const array *)op;
    uint64_t bytes = (uint64_t)a->nd * sizeof(*a->dimensions);
    if (a->nd < 0 || a->nd > MOST_DIMENSIONS || a->descr == NULL || !lp_heap_looks_alive(a->descr)) {
        return 0;
    }
    return a->nd == 0 || (lp_mappings_has(&lp_heap_mappings, a->dimensions, bytes) &&
                          lp_mappings_has(&lp_heap_mappings, a->strides, bytes));
}

PyObject *lp_numpy_base(PyObject *op) { return ((const array *)op)->base; }

const void *lp_numpy_data(PyObject *op) { return ((const array *)op)->data; }

int lp_numpy_keeps_as_item(PyObject *op, PyObject *target) {
    const array *a = (const array *)op;
    runs r;
    return owned_items(a, &r) && target != a->descr && target != a->base && Py_TYPE(op)->tp_dictoffset == 0;
}

/* Without gaps: the longest reach of a dimension is the whole. */
static uint64_t reach(const array *a) {
    uint64_t most = 0;
    for (int i = 0; i < a->nd; i++) {
        uint64_t reach = a->strides[i] > 0 ? (uint64_t)a->dimensions[i] * (uint64_t)a->strides[i] : 0;
        most = reach > most ? reach : most;
    }
    return most;
}

uint64_t lp_numpy_owned_bytes(PyObject *op) {
    const array *a = (const array *)op;
    return (a->flags & OWN_DATA) && a->data != NULL ? reach(a) : 0;
}

uint64_t lp_numpy_contiguous_bytes(PyObject *op) {
    const array *a = (const array *)op;
    return (a->flags & (C_CONTIGUOUS | F_CONTIGUOUS)) ? reach(a) : 0;
}
