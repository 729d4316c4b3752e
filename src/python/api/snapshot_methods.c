/* _core.Snapshot: a frozen copy of the ledger's groups, with rows of the caller's own. */
#include "python/api/methods.h"

#include "base/rawmem.h"     // lp_raw_calloc
#include "python/values/convert.h"  // lp_raise_status
#include "python/values/rows.h"     // lp_rows_new
#include "python/values/state.h"  // lp_state
#include "snapshot/diff.h"   // lp_diff

typedef struct snapshot_object {
    PyObject_HEAD lp_snapshot snapshot;
} snapshot_object;

static void snapshot_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    lp_snapshot_fini(&((snapshot_object *)op)->snapshot);
    PyObject_Free(op);
    Py_DECREF(type);
}

static PyObject *row_to_python(const lp_row *row) {
    return lp_rows_new(LP_ROWS_LEDGER_ROW, "sKIIIKK", lp_medium_name((lp_medium)row->medium),
                       (unsigned long long)row->type_id, (unsigned)row->site, (unsigned)row->first_step,
                       (unsigned)row->last_step, (unsigned long long)row->count, (unsigned long long)row->bytes);
}

static PyObject *snapshot_rows(PyObject *op, PyObject *unused) {
    (void)unused;
    const lp_snapshot *snapshot = &((snapshot_object *)op)->snapshot;
    PyObject *result = PyList_New((Py_ssize_t)snapshot->count);
    for (size_t i = 0; result != NULL && i < snapshot->count; i++) {
        PyObject *row = row_to_python(&snapshot->rows[i]);
        if (row == NULL) {
            Py_CLEAR(result);
        } else {
            PyList_SET_ITEM(result, (Py_ssize_t)i, row);
        }
    }
    return result;
}

static PyObject *diff_to_list(const lp_diff_row *rows, size_t count) {
    PyObject *result = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; result != NULL && i < count; i++) {
        PyObject *row = lp_rows_new(LP_ROWS_LEDGER_DIFF, "sKILL", lp_medium_name((lp_medium)rows[i].medium),
                                    (unsigned long long)rows[i].type_id, (unsigned)rows[i].site,
                                    (long long)rows[i].count_diff, (long long)rows[i].size_diff);
        if (row == NULL) {
            Py_CLEAR(result);
        } else {
            PyList_SET_ITEM(result, (Py_ssize_t)i, row);
        }
    }
    return result;
}

static PyObject *snapshot_diff(PyObject *op, PyObject *older) {
    if (!PyObject_TypeCheck(older, lp_state.types.snapshot)) {
        return lp_raise("bad_argument", "diff() takes another Snapshot, not %s", Py_TYPE(older)->tp_name);
    }
    lp_diff_row *rows = NULL;
    size_t count = 0;
    lp_status status =
        lp_diff(&((snapshot_object *)older)->snapshot, &((snapshot_object *)op)->snapshot, &rows, &count);
    if (status != LP_OK) {
        return lp_raise_status(status, "comparing two snapshots");
    }
    PyObject *result = diff_to_list(rows, count);
    lp_raw_free(rows);
    return result;
}

static PyMethodDef snapshot_type_methods[] = {
    {"rows", snapshot_rows, METH_NOARGS,
     "rows($self, /)\n--\n\n"
     "[LedgerRow], sorted by medium, type and site."},
    {"diff", snapshot_diff, METH_O,
     "diff($self, older, /)\n--\n\n"
     "[LedgerDiff] of what differs."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot snapshot_slots[] = {
    {Py_tp_doc, "What was alive when it was taken, by medium, type and base site."},
    {Py_tp_dealloc, snapshot_dealloc},
    {Py_tp_methods, snapshot_type_methods},
    {0, NULL},
};

static PyType_Spec snapshot_spec = {
    .name = "leakprobe._core.Snapshot",
    .basicsize = sizeof(snapshot_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = snapshot_slots,
};

int lp_snapshot_type_init(PyObject *module) { return lp_add_type(module, &snapshot_spec, &lp_state.types.snapshot); }

static int parse_row(PyObject *item, lp_row *out_row) {
    unsigned long long type_id, count, bytes;
    unsigned site, first_step, last_step;
    if (!PyTuple_Check(item)) {
        lp_raise("bad_argument", "a row must be a tuple, not %s", Py_TYPE(item)->tp_name);
        return -1;
    }
    if (!PyArg_ParseTuple(item, "KIIIKK:row", &type_id, &site, &first_step, &last_step, &count, &bytes)) {
        return -1;
    }
    *out_row = (lp_row){.type_id = type_id,
                        .count = count,
                        .bytes = bytes,
                        .site = site,
                        .first_step = first_step,
                        .last_step = last_step,
                        .medium = LP_MEDIUM_PYTHON};
    return 0;
}

/* Rows of a list or tuple; *out_rows is freed with lp_raw_free().  0, or -1 with an exception set. */
static int parse_rows(PyObject *list, lp_row **out_rows, size_t *out_count) {
    PyObject *items = PySequence_Fast(list, "rows must be a list of tuples");
    if (items == NULL) {
        return -1;
    }
    size_t count = (size_t)PySequence_Fast_GET_SIZE(items);
    lp_row *rows = lp_raw_calloc(count + 1, sizeof(*rows));
    int failed = rows == NULL;
    if (failed) {
        lp_raise_status(LP_NO_MEMORY, "reading the rows of a snapshot");
    }
    for (size_t i = 0; !failed && i < count; i++) {
        failed = parse_row(PySequence_Fast_GET_ITEM(items, (Py_ssize_t)i), &rows[i]) < 0;
    }
    Py_DECREF(items);
    if (failed) {
        lp_raw_free(rows);
        return -1;
    }
    *out_rows = rows;
    *out_count = count;
    return 0;
}

static PyObject *snapshot_new(PyObject *module, PyObject *args) {
    PyObject *list = NULL;
    lp_row *rows = NULL;
    size_t count = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "|O:snapshot_new", &list) || (list != NULL && parse_rows(list, &rows, &count) < 0)) {
        return NULL;
    }
    lp_snapshot snapshot;
    lp_status status = lp_snapshot_take(rows, count, &snapshot);
    lp_raw_free(rows);
    if (status != LP_OK) {
        return lp_raise_status(status, "taking a snapshot");
    }
    snapshot_object *self = PyObject_New(snapshot_object, lp_state.types.snapshot);
    if (self == NULL) {
        lp_snapshot_fini(&snapshot);
        return NULL;
    }
    self->snapshot = snapshot;
    return (PyObject *)self;
}

PyMethodDef lp_snapshot_methods[] = {
    {"snapshot_new", snapshot_new, METH_VARARGS,
     "snapshot_new($module, rows=(), /)\n--\n\n"
     "Snapshot_new(rows=()): the ledger's groups and rows (type_id, site, first_step, last_step, count, bytes) of "
     "Python objects, as a Snapshot."},
    {NULL, NULL, 0, NULL},
};
