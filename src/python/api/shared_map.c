/* leakprobe._core.SharedMap: a file in memory, which keeps no descriptor: Python's own mmap keeps one before 3.13, and closes
 * it by its number. */
#include "python/api/methods.h"
#include "python/values/convert.h" // lp_add_type
#include "python/values/state.h" // lp_state

#ifndef _WIN32

#include <sys/mman.h>
#include <sys/stat.h>

typedef struct shared_map {
    PyObject_HEAD void *start; /* NULL: nothing is mapped */
    size_t size;
} shared_map;

static PyObject *map_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    int number;
    Py_ssize_t size;
    struct stat file;
    if (!PyArg_ParseTuple(args, "in:SharedMap", &number, &size)) {
        return NULL;
    }
    if (size <= 0 || fstat(number, &file) != 0 || file.st_size < size) {
        PyErr_SetString(PyExc_ValueError, "the file is shorter than its mapping");
        return NULL;
    }
    shared_map *self = (shared_map *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    void *start = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
    if (start == MAP_FAILED) {
        Py_DECREF(self);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    self->start = start;
    self->size = (size_t)size;
    return (PyObject *)self;
}

static int map_get_buffer(PyObject *op, Py_buffer *view, int flags) {
    shared_map *self = (shared_map *)op;
    return PyBuffer_FillInfo(view, op, self->start, (Py_ssize_t)self->size, 0, flags);
}

/* A view of it holds a reference, so that no view outlives the memory. */
static void map_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    shared_map *self = (shared_map *)op;
    if (self->start != NULL) {
        munmap(self->start, self->size);
    }
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "SharedMap(descriptor, size): the first bytes of a file, for memoryview(); the descriptor may be closed."},
    {Py_tp_new, map_new},
    {Py_tp_dealloc, map_dealloc},
    {Py_bf_getbuffer, map_get_buffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "leakprobe._core.SharedMap",
    .basicsize = sizeof(shared_map),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int lp_shared_map_init(PyObject *module) { return lp_add_type(module, &spec, &lp_state.types.shared_map); }

#else

int lp_shared_map_init(PyObject *module) {
    (void)module;
    return 0;
}

#endif
