/* The ledger of native blocks, seen from Python. */
#include "python/api/methods.h"

#include "base/rawmem.h"     // lp_raw_free, lp_raw_overhead_bytes, lp_raw_fail_after
#include "ledger/epoch.h"    // lp_epoch_steps
#include "ledger/ledger.h"   // lp_ledger_*
#include "python/values/convert.h"  // lp_raise
#include "python/values/rows.h"     // lp_rows_new

static PyObject *totals_to_dict(const lp_totals *t) {
    return Py_BuildValue("{sKsKsKsKsKsKsK}", "live_bytes", (unsigned long long)t->live_bytes, "peak_bytes",
                         (unsigned long long)t->peak_bytes, "recent_peak_bytes",
                         (unsigned long long)t->recent_peak_bytes, "live_count", (unsigned long long)t->live_count,
                         "unmatched", (unsigned long long)t->unmatched_count, "overwritten",
                         (unsigned long long)t->overwritten_count, "dropped", (unsigned long long)t->dropped_count);
}

static int add_totals(PyObject *result, int medium) {
    lp_totals totals;
    lp_ledger_totals((lp_medium)medium, &totals);
    if (totals.add_count == 0 && totals.dropped_count == 0 && totals.unmatched_count == 0) {
        return 0;
    }
    PyObject *row = totals_to_dict(&totals);
    if (row == NULL) {
        return -1;
    }
    int failed = PyDict_SetItemString(result, lp_medium_name((lp_medium)medium), row);
    Py_DECREF(row);
    return failed;
}

static PyObject *ledger_sizes(PyObject *self, PyObject *unused) {
    (void)self;
    (void)unused;
    return PyLong_FromUnsignedLongLong(lp_ledger_size_count());
}

static PyObject *ledger_totals(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    PyObject *result = PyDict_New();
    for (int m = 0; result != NULL && m < LP_MEDIUM_COUNT; m++) {
        if (add_totals(result, m) < 0) {
            Py_CLEAR(result);
        }
    }
    return result;
}

static PyObject *group_to_row(const lp_group *g) {
    return lp_rows_new(LP_ROWS_BLOCK_GROUP, "sIKKKKIII", lp_medium_name((lp_medium)g->medium), (unsigned)g->site,
                       (unsigned long long)g->count, (unsigned long long)g->bytes, (unsigned long long)g->window_count,
                       (unsigned long long)g->window_bytes, (unsigned)g->window_steps, (unsigned)g->first_step,
                       (unsigned)g->last_step);
}

static PyObject *groups_to_list(const lp_group *groups, size_t count, unsigned min_steps) {
    PyObject *result = PyList_New(0);
    for (size_t i = 0; result != NULL && i < count; i++) {
        if (groups[i].window_steps < min_steps) {
            continue;
        }
        PyObject *row = group_to_row(&groups[i]);
        if (row == NULL || PyList_Append(result, row) < 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(row);
    }
    return result;
}

static PyObject *ledger_groups(PyObject *self, PyObject *args) {
    (void)self;
    unsigned first, last, min_steps;
    if (!PyArg_ParseTuple(args, "III:ledger_groups", &first, &last, &min_steps)) {
        return NULL;
    }
    lp_group *groups;
    size_t count;
    lp_status status = lp_ledger_groups(first, last, &groups, &count);
    if (status != LP_OK) {
        return lp_raise_status(status, "grouping the native blocks");
    }
    PyObject *result = groups_to_list(groups, count, min_steps);
    lp_raw_free(groups);
    return result;
}

static PyObject *ledger_series(PyObject *self, PyObject *args) {
    (void)self;
    const char *name;
    unsigned site;
    if (!PyArg_ParseTuple(args, "sI:ledger_series", &name, &site)) {
        return NULL;
    }
    int medium = lp_medium_find(name);
    if (medium < 0) {
        return lp_raise("bad_argument", "unknown medium %s", name);
    }
    lp_cohort *cohorts;
    size_t count;
    lp_status status = lp_ledger_series((lp_medium)medium, site, &cohorts, &count);
    if (status != LP_OK) {
        return lp_raise_status(status, "reading the cohorts of a site");
    }
    PyObject *result = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; result != NULL && i < count; i++) {
        PyObject *row = lp_rows_new(LP_ROWS_COHORT, "IKK", (unsigned)cohorts[i].step,
                                    (unsigned long long)cohorts[i].count, (unsigned long long)cohorts[i].bytes);
        if (row == NULL) {
            Py_CLEAR(result);
        } else {
            PyList_SET_ITEM(result, (Py_ssize_t)i, row);
        }
    }
    lp_raw_free(cohorts);
    return result;
}

static PyObject *ledger_blocks(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_block *blocks;
    size_t count;
    lp_status status = lp_ledger_copy(&blocks, &count);
    if (status != LP_OK) {
        return lp_raise_status(status, "copying the native blocks");
    }
    PyObject *result = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; result != NULL && i < count; i++) {
        const lp_block *b = &blocks[i];
        PyObject *row =
            lp_rows_new(LP_ROWS_BLOCK, "KKsII", (unsigned long long)b->address, (unsigned long long)b->bytes,
                        lp_medium_name((lp_medium)b->medium), (unsigned)b->site, (unsigned)b->step);
        if (row == NULL) {
            Py_CLEAR(result);
        } else {
            PyList_SET_ITEM(result, (Py_ssize_t)i, row);
        }
    }
    lp_raw_free(blocks);
    return result;
}

static PyObject *begin_peaks(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_ledger_begin_peaks();
    Py_RETURN_NONE;
}

static PyObject *ledger_holds(PyObject *self, PyObject *address) {
    (void)self;
    unsigned long long number = PyLong_AsUnsignedLongLong(address);
    if (number == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyBool_FromLong(lp_ledger_contains((const void *)(uintptr_t)number));
}

/* The events from `skipped` on as rows. */
static PyObject *events_to_list(const lp_event *events, size_t skipped, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)(count - skipped));
    for (size_t i = skipped; list != NULL && i < count; i++) {
        PyObject *row = lp_rows_new(LP_ROWS_EVENT, "KLsII", (unsigned long long)events[i].address,
                                    (long long)events[i].bytes, lp_medium_name((lp_medium)events[i].medium),
                                    (unsigned)events[i].site, (unsigned)events[i].step);
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)(i - skipped), row);
        }
    }
    return list;
}

static PyObject *ledger_events(PyObject *self, PyObject *args) {
    (void)self;
    unsigned first_step = 0;
    lp_event *events;
    size_t count, skipped = 0;
    uint64_t total = 0;
    if (!PyArg_ParseTuple(args, "|I:ledger_events", &first_step)) {
        return NULL;
    }
    lp_status status = lp_ledger_events(&events, &count, &total);
    if (status != LP_OK) {
        return lp_raise_status(status, "copying the last events");
    }
    while (skipped < count && events[skipped].step < first_step) {
        skipped++;
    }
    PyObject *list = events_to_list(events, skipped, count);
    lp_raw_free(events);
    return list == NULL ? NULL : lp_rows_new(LP_ROWS_EVENTS, "NK", list, (unsigned long long)total);
}

static PyObject *merged_epochs(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    PyObject *result = PyList_New(0);
    for (uint32_t epoch = 1; result != NULL && epoch <= lp_epoch_now; epoch++) {
        lp_epoch_range range = lp_epoch_steps(epoch);
        if (range.first_step == range.last_step) {
            continue;
        }
        PyObject *row = lp_rows_new(LP_ROWS_STEP_RANGE, "II", (unsigned)range.first_step, (unsigned)range.last_step);
        if (row == NULL || PyList_Append(result, row) < 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(row);
    }
    return result;
}

static PyObject *overhead_bytes(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromUnsignedLongLong(lp_raw_overhead_bytes());
}

#ifdef LP_FAULT_INJECTION
static PyObject *inject_faults(PyObject *self, PyObject *args) {
    long after = -1, most = LONG_MAX;
    (void)self;
    if (!PyArg_ParseTuple(args, "|ll", &after, &most)) {
        return NULL;
    }
    lp_raw_fail_after = -1;
    PyObject *counts = Py_BuildValue("(kk)", lp_raw_request_count, lp_raw_failed_count);
    lp_raw_request_count = lp_raw_failed_count = 0;
    lp_raw_fail_most = most;
    lp_raw_fail_after = after;
    return counts;
}
#endif

PyMethodDef lp_ledger_methods[] = {
    {"ledger_sizes", ledger_sizes, METH_NOARGS,
     "ledger_sizes($module, /)\n--\n\n"
     "How many different sizes native blocks have had since the start; too few where there are thousands."},
    {"ledger_totals", ledger_totals, METH_NOARGS,
     "ledger_totals($module, /)\n--\n\n"
     "{medium: {live_bytes, peak_bytes, recent_peak_bytes, live_count, unmatched, overwritten, dropped}}."},
    {"begin_peaks", begin_peaks, METH_NOARGS,
     "begin_peaks($module, /)\n--\n\n"
     "From now on recent_peak_bytes of ledger_totals() is the most that has been live since now."},
    {"ledger_holds", ledger_holds, METH_O,
     "ledger_holds($module, address, /)\n--\n\n"
     "True if a native block that is known begins at this address."},
    {"ledger_groups", ledger_groups, METH_VARARGS,
     "ledger_groups($module, first, last, min_steps, /)\n--\n\n"
     "[BlockGroup], survivors by medium and base site; the window is birth "
     "steps first to last."},
    {"ledger_series", ledger_series, METH_VARARGS,
     "ledger_series($module, medium, site, /)\n--\n\n"
     "[Cohort] of what is alive, by rising step."},
    {"ledger_blocks", ledger_blocks, METH_NOARGS,
     "ledger_blocks($module, /)\n--\n\n"
     "[Block] of all live native blocks."},
    {"ledger_events", ledger_events, METH_VARARGS,
     "ledger_events($module, first_step=0, /)\n--\n\n"
     "Events: the last births and, with negative bytes, deaths, oldest first, from a step on; and how many there "
     "were."},
    {"merged_epochs", merged_epochs, METH_NOARGS,
     "merged_epochs($module, /)\n--\n\n"
     "[StepRange] of births that are known by a range of steps only; a census counts them at the last "
     "step."},
    {"overhead_bytes", overhead_bytes, METH_NOARGS,
     "overhead_bytes($module, /)\n--\n\n"
     "Bytes that the probe's own tables take."},
#ifdef LP_FAULT_INJECTION
    {"_inject_faults", inject_faults, METH_VARARGS,
     "_inject_faults(after=-1, most): let `after` requests for the probe's own memory succeed and `most` fail then; "
     "(requests, failed) since the last call."},
#endif
    {NULL, NULL, 0, NULL},
};
