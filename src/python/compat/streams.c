/* Layouts of BytesIO, StringIO and array. Each is proved by an object of our own, or left alone. */
#include "python/compat/streams.h"

/* Of Modules/_io/bytesio.c, 3.10 to 3.15. */
typedef struct bytes_stream {
    PyObject_HEAD PyObject *buf;
} bytes_stream;

/* Of Modules/_io/stringio.c.  parts: two lists (3.10, 3.11), a writer (3.12, 3.13), a pointer to one (since 3.14);
 * a writer begins with its str. */
typedef struct text_stream {
    PyObject_HEAD Py_UCS4 *buf;
    Py_ssize_t pos, string_size;
    size_t buf_size;
    int state;
    void *parts[2];
} text_stream;

enum { TEXT_ACCUMULATING = 2 };

/* Of Modules/arraymodule.c. */
typedef struct array_descr {
    char typecode;
    int itemsize;
} array_descr;

typedef struct plain_array {
    PyObject_VAR_HEAD char *ob_item;
    Py_ssize_t allocated;
    const array_descr *ob_descr;
} plain_array;

traverseproc lp_streams_bytes_traverse, lp_streams_text_traverse;

static int traverse_text(const text_stream *text, visitproc visit, void *arg) {
#if LP_HAS_WRITER_POINTER
    PyObject *const *writer = text->parts[0];
    PyObject *part[2] = {writer == NULL ? NULL : writer[0], NULL};
#else
    PyObject *part[2] = {text->parts[0], LP_HAS_ACCUMULATOR ? text->parts[1] : NULL};
#endif
    for (int i = 0; i < 2; i++) {
        int result = part[i] == NULL ? 0 : visit(part[i], arg);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

int lp_streams_traverse(PyObject *op, visitproc visit, void *arg) {
    if (Py_TYPE(op)->tp_traverse == lp_streams_bytes_traverse) {
        PyObject *buf = ((bytes_stream *)op)->buf;
        return buf == NULL ? 0 : visit(buf, arg);
    }
    const text_stream *text = (const text_stream *)op;
    return text->state == TEXT_ACCUMULATING ? traverse_text(text, visit, arg) : 0;
}

uint64_t lp_streams_array_blocks(PyObject *op) {
    const plain_array *array = (const plain_array *)op;
    return array->ob_descr == NULL ? 0 : (uint64_t)array->allocated * (uint64_t)array->ob_descr->itemsize;
}

const void *lp_streams_array_items(PyObject *op) { return ((const plain_array *)op)->ob_item; }

/* ---- start ---- */

static int is_expected(PyObject *op, void *arg) {
    PyObject **expected = arg;
    *expected = PyUnicode_Check(op) || PyList_Check(op) || op == *expected ? NULL : *expected;
    return 0;
}

static int is_one(PyObject *op, void *arg) { return op == arg; }

/* 1 if the stream's own tp_traverse visits it, as since 3.13: it would be counted twice. */
static int is_shown(PyObject *op, void *stream) { return Py_TYPE((PyObject *)stream)->tp_traverse(stream, is_one, op); }

/* A BytesIO that was made of a bytes object keeps that object. */
static int knows_bytes(PyObject *module) {
    PyObject *data = PyBytes_FromString("leakprobe");
    PyObject *stream = data == NULL ? NULL : PyObject_CallMethod(module, "BytesIO", "O", data);
    if (stream != NULL && ((bytes_stream *)stream)->buf == data && !is_shown(data, stream)) {
        lp_streams_bytes_traverse = Py_TYPE(stream)->tp_traverse;
    }
    Py_XDECREF(data);
    Py_XDECREF(stream);
    return stream == NULL ? -1 : 0;
}

/* Three characters were written: the sizes say so, and the state is the one that a new stream begins with. */
static int knows_text(PyObject *module) {
    PyObject *stream = PyObject_CallMethod(module, "StringIO", NULL), *expected = Py_None;
    PyObject *done = stream == NULL ? NULL : PyObject_CallMethod(stream, "write", "s", "abc");
    const text_stream *text = (const text_stream *)stream;
    if (done != NULL && text->pos == 3 && text->string_size == 3 && text->state == TEXT_ACCUMULATING) {
        traverse_text(text, is_expected, &expected);
        int is_hidden = expected == NULL && !traverse_text(text, is_shown, stream);
        lp_streams_text_traverse = is_hidden ? Py_TYPE(stream)->tp_traverse : NULL;
    }
    Py_XDECREF(done);
    Py_XDECREF(stream);
    return done == NULL ? -1 : 0;
}

int lp_streams_init(void) {
    PyObject *module = PyImport_ImportModule("_io");
    int result = module == NULL || knows_bytes(module) < 0 || knows_text(module) < 0 ? -1 : 0;
    Py_XDECREF(module);
    return result;
}
