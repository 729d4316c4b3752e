/* The floor and a plain rival for benchmarks/hooks.py, in a small extension of their own.
 *
 *   empty   allocator functions of the obj and mem domains that only call the original
 *           (free not hooked), and on 3.13+ an empty creation callback instead
 *   table   the same, plus an open-addressing hash table: address => thread state (no
 *           stack is read), with free hooked to remove the entry */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>

static PyMemAllocatorEx original[2];
static const PyMemAllocatorDomain domains[2] = {PYMEM_DOMAIN_OBJ, PYMEM_DOMAIN_MEM};

typedef struct entry {
    uintptr_t address;
    uintptr_t site;
} entry;

static entry *table;
static size_t mask, used;

static size_t home(uintptr_t address) { return (size_t)((address >> 4) * 0x9E3779B97F4A7C15ull >> 20) & mask; }

static void table_grow(void);

static void table_add(void *block) {
    if (block == NULL) {
        return;
    }
    if (used * 2 > mask) {
        table_grow();
    }
    size_t i = home((uintptr_t)block);
    while (table[i].address != 0 && table[i].address != (uintptr_t)block) {
        i = (i + 1) & mask;
    }
    used += table[i].address == 0;
    table[i].address = (uintptr_t)block;
    table[i].site = (uintptr_t)PyThreadState_Get();
}

static void table_remove(void *block) {
    size_t i = home((uintptr_t)block);
    while (table[i].address != (uintptr_t)block) {
        if (table[i].address == 0) {
            return;
        }
        i = (i + 1) & mask;
    }
    used--;
    for (size_t next = (i + 1) & mask; table[next].address != 0; next = (next + 1) & mask) {
        size_t wanted = home(table[next].address);
        if (((next - wanted) & mask) >= ((next - i) & mask)) {
            table[i] = table[next];
            i = next;
        }
    }
    table[i].address = 0;
}

static void table_grow(void) {
    entry *old = table;
    size_t old_size = old == NULL ? 0 : mask + 1;
    mask = old_size == 0 ? 0xffff : old_size * 2 - 1;
    table = calloc(mask + 1, sizeof(entry));
    used = 0;
    for (size_t i = 0; i < old_size; i++) {
        if (old[i].address != 0) {
            table_add((void *)old[i].address);
        }
    }
    free(old);
}

static void *empty_malloc(void *ctx, size_t bytes) {
    PyMemAllocatorEx *next = ctx;
    return next->malloc(next->ctx, bytes);
}

static void *empty_calloc(void *ctx, size_t count, size_t bytes) {
    PyMemAllocatorEx *next = ctx;
    return next->calloc(next->ctx, count, bytes);
}

static void *empty_realloc(void *ctx, void *block, size_t bytes) {
    PyMemAllocatorEx *next = ctx;
    return next->realloc(next->ctx, block, bytes);
}

static void empty_free(void *ctx, void *block) {
    PyMemAllocatorEx *next = ctx;
    next->free(next->ctx, block);
}

static void *table_malloc(void *ctx, size_t bytes) {
    void *block = empty_malloc(ctx, bytes);
    table_add(block);
    return block;
}

static void *table_calloc(void *ctx, size_t count, size_t bytes) {
    void *block = empty_calloc(ctx, count, bytes);
    table_add(block);
    return block;
}

static void *table_realloc(void *ctx, void *old, size_t bytes) {
    if (old != NULL) {
        table_remove(old);
    }
    void *block = empty_realloc(ctx, old, bytes);
    table_add(block != NULL ? block : old);
    return block;
}

static void table_free(void *ctx, void *block) {
    if (block != NULL) {
        table_remove(block);
    }
    empty_free(ctx, block);
}

static PyObject *install(int with_table) {
    for (int i = 0; i < 2; i++) {
        PyMem_GetAllocator(domains[i], &original[i]);
        PyMemAllocatorEx hook = {&original[i], empty_malloc, empty_calloc, empty_realloc, empty_free};
        if (with_table) {
            hook = (PyMemAllocatorEx){&original[i], table_malloc, table_calloc, table_realloc, table_free};
        }
        PyMem_SetAllocator(domains[i], &hook);
    }
    Py_RETURN_NONE;
}

#if PY_VERSION_HEX >= 0x030D0000
static int on_event(PyObject *op, PyRefTracerEvent event, void *data) {
    (void)op, (void)event, (void)data;
    return 0;
}
#endif

static PyObject *start_empty(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
#if PY_VERSION_HEX >= 0x030D0000
    PyRefTracer_SetTracer(on_event, NULL);
    Py_RETURN_NONE;
#else
    return install(0);
#endif
}

static PyObject *start_table(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    table_grow();
    return install(1);
}

static PyObject *stop(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
#if PY_VERSION_HEX >= 0x030D0000
    PyRefTracer_SetTracer(NULL, NULL);
#endif
    for (int i = 0; i < 2; i++) {
        if (original[i].malloc != NULL) {
            PyMem_SetAllocator(domains[i], &original[i]);
            original[i].malloc = NULL;
        }
    }
    free(table);
    table = NULL;
    mask = used = 0;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"start_empty", start_empty, METH_NOARGS, "Hooks that only call the original."},
    {"start_table", start_table, METH_NOARGS, "Hooks that keep a hash table of live blocks."},
    {"stop", stop, METH_NOARGS, "Take the hooks back."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "floor", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_floor(void) { return PyModule_Create(&module); }
