/* Other tools beside leakprobe, as simple as they come: an allocator hook that is put back without a look at
 * what is on top, as tracemalloc and memray do, and on 3.13+ a tracer that takes the one slot. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define HAS_TRACER (PY_VERSION_HEX >= 0x030D0000)

typedef struct layer {
    PyMemAllocatorEx below;
    PyMemAllocatorDomain domain;
    long calls;
} layer;

static layer layers[2] = {{.domain = PYMEM_DOMAIN_OBJ}, {.domain = PYMEM_DOMAIN_MEM}};
static long created;
static size_t margin; /* bytes behind each block */

static void *layer_malloc(void *ctx, size_t bytes) {
    layer *l = ctx;
    l->calls++;
    return l->below.malloc(l->below.ctx, bytes + margin);
}

static void *layer_calloc(void *ctx, size_t count, size_t bytes) {
    layer *l = ctx;
    l->calls++;
    return l->below.calloc(l->below.ctx, 1, count * bytes + margin);
}

static void *layer_realloc(void *ctx, void *block, size_t bytes) {
    layer *l = ctx;
    l->calls++;
    return l->below.realloc(l->below.ctx, block, bytes + margin);
}

static void layer_free(void *ctx, void *block) {
    layer *l = ctx;
    l->below.free(l->below.ctx, block);
}

static PyObject *widen(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    margin = 8;
    Py_RETURN_NONE;
}

static PyObject *push(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    for (int i = 0; i < 2; i++) {
        PyMemAllocatorEx ours = {&layers[i], layer_malloc, layer_calloc, layer_realloc, layer_free};
        PyMem_GetAllocator(layers[i].domain, &layers[i].below);
        PyMem_SetAllocator(layers[i].domain, &ours);
    }
    Py_RETURN_NONE;
}

static PyObject *pop(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    for (int i = 0; i < 2; i++) {
        PyMem_SetAllocator(layers[i].domain, &layers[i].below);
    }
    Py_RETURN_NONE;
}

/* (what malloc of objects is now, what lies below the layer, the tracer), as addresses. */
static PyObject *tops(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    PyMemAllocatorEx now;
    void *tracer = NULL;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &now);
#if HAS_TRACER
    void *data;
    tracer = (void *)PyRefTracer_GetTracer(&data);
#endif
    void *below = now.malloc == layer_malloc ? (void *)layers[0].below.malloc : NULL;
    return Py_BuildValue("NNN", PyLong_FromVoidPtr((void *)now.malloc), PyLong_FromVoidPtr(below),
                         PyLong_FromVoidPtr(tracer));
}

/* All that a process should have as it was: the allocators of three domains with their contexts, and the tracer. */
static PyObject *state(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};
    void *tracer = NULL, *data = NULL;
    PyMemAllocatorEx now[3];
    PyObjectArenaAllocator arenas;
    for (int i = 0; i < 3; i++) {
        PyMem_GetAllocator(domains[i], &now[i]);
    }
    PyObject_GetArenaAllocator(&arenas);
#if HAS_TRACER
    tracer = (void *)PyRefTracer_GetTracer(&data);
#endif
    return Py_BuildValue("y#y#nnnn", (char *)now, (Py_ssize_t)sizeof(now), (char *)&arenas, (Py_ssize_t)sizeof(arenas),
                         (Py_ssize_t)tracer, (Py_ssize_t)data, (Py_ssize_t)PyList_Type.tp_dealloc,
                         (Py_ssize_t)PyDict_Type.tp_dealloc);
}

static PyObject *calls(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return Py_BuildValue("lll", layers[0].calls, layers[1].calls, created);
}

#if HAS_TRACER
static PyRefTracer tracer_found;
static void *data_found;

static int on_event(PyObject *op, PyRefTracerEvent event, void *data) {
    (void)op, (void)data;
    created += event == PyRefTracer_CREATE;
    return 0;
}

static PyObject *take_slot(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    tracer_found = PyRefTracer_GetTracer(&data_found);
    return PyRefTracer_SetTracer(on_event, NULL) < 0 ? NULL : Py_NewRef(Py_None);
}

/* Put back what was found there (true), or nothing as tracemalloc does. */
static PyObject *give_slot(PyObject *self, PyObject *restore) {
    (void)self;
    int found = PyObject_IsTrue(restore);
    return PyRefTracer_SetTracer(found ? tracer_found : NULL, found ? data_found : NULL) < 0 ? NULL
                                                                                             : Py_NewRef(Py_None);
}
#endif

static PyMethodDef methods[] = {
    {"widen", widen, METH_NOARGS, NULL},
    {"push", push, METH_NOARGS, NULL},
    {"pop", pop, METH_NOARGS, NULL},
    {"tops", tops, METH_NOARGS, NULL},
    {"state", state, METH_NOARGS, NULL},
    {"calls", calls, METH_NOARGS, NULL},
#if HAS_TRACER
    {"take_slot", take_slot, METH_NOARGS, NULL},
    {"give_slot", give_slot, METH_O, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT, .m_name = "python_layer", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_python_layer(void) { return PyModule_Create(&module); }
