/* A type whose tp_traverse hands out what it should not: for tests of walks over such objects.
 *
 *   BadTraverse(mode)   tracked by the collector; never run the collector while one is alive */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct bad {
    PyObject_HEAD int mode;
    PyObject *good;     /* visited too: what is sound must still be found */
} bad;

static void *unmapped;                 /* a page that is not there */
static void *dead_block;               /* a block that was given back: see give_back_a_block */
static uint64_t noise[64];             /* no object */
static uint64_t fake[8];               /* a count and a type that is no type */

static PyObject *bad_pointer(int mode) {
    switch (mode) {
    case 0:
        return NULL;
    case 1:
        return (PyObject *)8;
    case 2:
        return (PyObject *)((char *)Py_None + 1);
    case 3:
        return (PyObject *)unmapped;
    case 4:
        return (PyObject *)dead_block;
    case 5:
        return (PyObject *)noise;
    case 6:
        return (PyObject *)fake;
    case 7:
        return (PyObject *)(uintptr_t)0x8000000000000010u;
    case 8:
        return (PyObject *)"no object, but text of a good length in memory that can only be read";
    default:
        return (PyObject *)(uintptr_t)-16;
    }
}

static int bad_traverse(PyObject *op, visitproc visit, void *arg) {
    bad *self = (bad *)op;
    int result = visit(bad_pointer(self->mode), arg);
    if (result != 0) {
        return result;
    }
    Py_VISIT(self->good);
    Py_VISIT(Py_TYPE(op));
    return 0;
}

static void bad_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_XDECREF(((bad *)op)->good);
    PyObject_GC_Del(op);
    Py_DECREF(type);
}

static PyObject *bad_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    int mode;
    PyObject *good = NULL;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "i|O", &mode, &good)) {
        return NULL;
    }
    bad *self = PyObject_GC_New(bad, type);
    if (self != NULL) {
        self->mode = mode;
        self->good = Py_XNewRef(good);
        PyObject_GC_Track((PyObject *)self);
    }
    return (PyObject *)self;
}

static PyType_Slot slots[] = {
    {Py_tp_new, bad_new}, {Py_tp_traverse, bad_traverse}, {Py_tp_dealloc, bad_dealloc}, {0, NULL}};

static PyType_Spec spec = {.name = "bad_traverse.BadTraverse",
                           .basicsize = sizeof(bad),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                           .slots = slots};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "bad_traverse", .m_size = 0};

/* A hole of one page between two that can't be read: larger maps, which allocators make, don't fit into it. */
static void *page_nobody_maps(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *first = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(first + page, page);
    return first + page;
}

/* glibc's own, past a sanitizer's, which forbids the look at such a block that is tested here. */
#ifdef __GLIBC__
extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);
#else
#define __libc_malloc malloc
#define __libc_free free
#endif

/* Not CPython's allocator: it hands the block out again, for an object. */
static void *give_back_a_block(void) {
    void *block = __libc_malloc(48);
    memset(block, 0xcd, 48);
    __libc_free(block);
    return block;
}

PyMODINIT_FUNC PyInit_bad_traverse(void) {
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    unmapped = page_nobody_maps();
    dead_block = give_back_a_block();
    memset(noise, 0x5a, sizeof(noise));
    fake[0] = 1;
    fake[1] = (uint64_t)(uintptr_t)noise;
    if (module == NULL || type == NULL || PyModule_AddObject(module, "BadTraverse", type) < 0) {
        return NULL;
    }
    return module;
}
