/* Live counts by site, and scans of the stamps, as Python objects. */
#include "python/methods.h"

#include "base/rawmem.h"          // lp_raw_free
#include "ledger/alive.h"         // lp_alive_now
#include "ledger/backing.h"       // lp_backing_at
#include "ledger/epoch.h"         // lp_step_now
#include "ledger/scan.h"
#include "ledger/site_series.h"
#include "python/convert.h"       // lp_raise
#include "python/hooks.h"         // lp_hooks_verify

/* ---- types, made on first use for the life of the process ---- */

static PyStructSequence_Field state_fields[] = {
    {"first_step", "the first step of the first span"},
    {"width", "steps in a span that is closed"},
    {"closed", "spans that are closed; at most one more is open"},
    {"open_steps", "marks in the open span"},
    {"rows", "sites with a row"},
    {"overflow_sites", "sites beyond those, which share one row"},
    {"sees_deaths", "whether live counts are exact"},
    {"exact_since", "since which step they are"},
    {NULL, NULL},
};
static PyStructSequence_Desc state_desc = {"leakprobe._core.SeriesState", "Which spans of steps the series have.",
                                           state_fields, 8};

static PyStructSequence_Field series_fields[] = {
    {"site", "the site that counts are kept under"},
    {"live", "as of the last mark"},
    {"births", "in all"},
    {"rises", "how often the floor rose, or None where it was not asked for"},
    {"low", "per span, the lowest live count at a mark"},
    {"high", "per span, the highest"},
    {"born", "per span, births in it"},
    {NULL, NULL},
};
static PyStructSequence_Desc series_desc = {"leakprobe._core.SiteSeries", "Live counts of one site over the run.",
                                            series_fields, 7};

static PyStructSequence_Field scan_fields[] = {
    {"begun_step", "births before this step are counted"},
    {"as_of_step", "those that were alive in this one"},
    {"rows", "(site, first_step, last_step, count)"},
    {NULL, NULL},
};
static PyStructSequence_Desc scan_desc = {"leakprobe._core.Scan", "Who is alive of the sites that were asked for.",
                                          scan_fields, 3};

static PyTypeObject *state_type, *series_type, *scan_type;

/* A new instance whose items are taken over; NULL with an exception set if one of them is NULL. */
static PyObject *make(PyTypeObject **type, PyStructSequence_Desc *desc, PyObject **items) {
    if (*type == NULL) {
        *type = PyStructSequence_NewType(desc);
    }
    PyObject *result = *type == NULL ? NULL : PyStructSequence_New(*type);
    int is_whole = result != NULL;
    for (int i = 0; i < desc->n_in_sequence; i++) {
        is_whole = is_whole && items[i] != NULL;
        if (result == NULL) {
            Py_XDECREF(items[i]);
        } else {
            PyStructSequence_SetItem(result, i, items[i]);
        }
    }
    if (!is_whole) {
        Py_CLEAR(result);
    }
    return result;
}

/* ---- series ---- */

static PyObject *mod_series_state(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_series_state state = lp_series_get_state();
    const lp_hooks_status *status = lp_hooks_get_status();
    PyObject *items[] = {
        PyLong_FromUnsignedLong(state.first_step),
        PyLong_FromUnsignedLong(state.width),
        PyLong_FromUnsignedLong(state.closed),
        PyLong_FromUnsignedLong(state.open_steps),
        PyLong_FromUnsignedLong(state.row_count == 0 ? 0 : state.row_count - 1),
        PyLong_FromUnsignedLongLong(state.overflow_sites),
        PyBool_FromLong(status->active && status->sees_deaths),
        PyLong_FromUnsignedLong(status->exact_since),
    };
    return make(&state_type, &state_desc, items);
}

/* field: the offset of a number in a span. */
static PyObject *numbers_of(const lp_series_span *spans, uint32_t count, size_t field) {
    PyObject *tuple = PyTuple_New(count);
    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLong(*(const uint32_t *)((const char *)&spans[i] + field));
        if (number == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

static PyObject *series_of(uint32_t at, const lp_series_row *row, PyObject *rises) {
    lp_series_span spans[LP_SERIES_SPANS];
    uint32_t count = lp_series_read(at, spans);
    PyObject *items[] = {
        PyLong_FromUnsignedLong(row->site),
        PyLong_FromUnsignedLong(row->live),
        PyLong_FromUnsignedLong(row->births),
        rises,
        numbers_of(spans, count, offsetof(lp_series_span, low)),
        numbers_of(spans, count, offsetof(lp_series_span, high)),
        numbers_of(spans, count, offsetof(lp_series_span, births)),
    };
    return make(&series_type, &series_desc, items);
}

static PyObject *mod_site_series(PyObject *module, PyObject *arg) {
    (void)module;
    unsigned long site = PyLong_AsUnsignedLong(arg);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return lp_raise("bad_argument", "%R is not the number of a site.", arg);
    }
    int at = site > LP_SITE_MAX ? -1 : lp_series_find((lp_site_id)site);
    if (at < 0) {
        Py_RETURN_NONE;
    }
    lp_series_row row = lp_series_get_row((uint32_t)at);
    return series_of((uint32_t)at, &row, Py_NewRef(Py_None));
}

static PyObject *rising_to_list(const lp_series_row *rows, uint32_t count) {
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        int at = lp_series_find(rows[i].site);
        PyObject *item =
            series_of(at < 0 ? LP_SERIES_OVERFLOW_ROW : (uint32_t)at, &rows[i], PyLong_FromUnsignedLong(rows[i].rises));
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static PyObject *mod_series_rising(PyObject *module, PyObject *args) {
    (void)module;
    unsigned int since_step, min_rises;
    if (!PyArg_ParseTuple(args, "II:series_rising", &since_step, &min_rises)) {
        return NULL;
    }
    static lp_series_row rows[LP_SERIES_ROWS];   /* GIL */
    return rising_to_list(rows, lp_series_rising(since_step, min_rises, rows, LP_SERIES_ROWS));
}

static PyObject *mod_live_counts(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_hooks_verify();
    PyObject *result = PyDict_New();
    for (lp_site_id site = 1; result != NULL && site < lp_site_count() + LP_SITE_FIRST; site++) {
        if (lp_alive_now(site) == 0) {
            continue;
        }
        PyObject *key = PyLong_FromUnsignedLong(site), *value = PyLong_FromUnsignedLong(lp_alive_now(site));
        if (key == NULL || value == NULL || PyDict_SetItem(result, key, value) < 0) {
            Py_CLEAR(result);
        }
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return result;
}

/* ---- backing blocks ---- */

static PyStructSequence_Field backing_fields[] = {
    {"site", "the site that counts are kept under"},
    {"bytes", "the largest block that it ever grew"},
    {"first_bytes", "the largest of the first step with one"},
    {"first_step", "that step"},
    {"last_step", "the last one in which it grew a block larger than all before"},
    {"record_steps", "how many such steps there were"},
    {NULL, NULL},
};
static PyStructSequence_Desc backing_desc = {"leakprobe._core.Backing", "The largest block that a site grew.",
                                             backing_fields, 6};
static PyTypeObject *backing_type;

/* Records of one line that the interpreter ran as several instructions. */
static void join_backing(lp_backing *to, const lp_backing *more) {
    to->first_bytes = more->first_step < to->first_step ? more->first_bytes : to->first_bytes;
    to->first_step = more->first_step < to->first_step ? more->first_step : to->first_step;
    to->last_step = more->last_step > to->last_step ? more->last_step : to->last_step;
    to->bytes = more->bytes > to->bytes ? more->bytes : to->bytes;
    to->record_steps += more->record_steps;
}

/* One record a line: how many there are.  Few lines grow large blocks: no table. */
static uint32_t join_backings(lp_backing *joined) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < lp_backing_count(); i++) {
        lp_backing backing = lp_backing_at(i);
        uint32_t at = 0;
        backing.site = lp_site_base(backing.site);
        while (at < count && joined[at].site != backing.site) {
            at++;
        }
        if (at == count) {
            joined[count++] = backing;
        } else {
            join_backing(&joined[at], &backing);
        }
    }
    return count;
}

static PyObject *backing_to_row(const lp_backing *backing) {
    PyObject *items[] = {
        PyLong_FromUnsignedLong(backing->site),
        PyLong_FromUnsignedLongLong(backing->bytes),
        PyLong_FromUnsignedLongLong(backing->first_bytes),
        PyLong_FromUnsignedLong(backing->first_step),
        PyLong_FromUnsignedLong(backing->last_step),
        PyLong_FromUnsignedLong(backing->record_steps),
    };
    return make(&backing_type, &backing_desc, items);
}

static PyObject *mod_backing_records(PyObject *module, PyObject *args) {
    (void)module;
    unsigned int since_step, min_steps;
    if (!PyArg_ParseTuple(args, "II:backing_records", &since_step, &min_steps)) {
        return NULL;
    }
    static lp_backing joined[LP_BACKING_SITES];   /* GIL */
    uint32_t count = join_backings(joined);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        if (joined[i].last_step < since_step || joined[i].record_steps < min_steps) {
            continue;
        }
        PyObject *row = backing_to_row(&joined[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

/* ---- scans ---- */

static PyObject *mod_scan_begin(PyObject *module, PyObject *arg) {
    (void)module;
    uint32_t count = 0;
    if (!lp_hooks_get_status()->active) {
        return lp_raise("not_active", "leakprobe is not active in this process; call start() first.");
    }
    lp_site_id *sites = lp_sites_from_sequence(arg, &count);
    if (sites == NULL) {
        return NULL;
    }
    lp_status status = lp_scan_begin(sites, count);
    lp_raw_free(sites);
    return status == LP_OK ? Py_NewRef(Py_None) : lp_raise_status(status, "beginning a scan");
}

static PyObject *raise_scan_failed(int status) {
    if (status == LP_NOT_FOUND) {
        return lp_raise("no_scan", "no scan is under way, or it is not complete: call scan_begin(), and scan_slice() "
                                   "until it returns True.");
    }
    if (status == LP_LIMIT) {
        return lp_raise("scan_too_long", "the scan was spread over more than 1,000 steps; begin it again, with larger "
                                         "slices.");
    }
    return lp_raise_status((lp_status)status, "scanning the stamps");
}

static PyObject *mod_scan_slice(PyObject *module, PyObject *arg) {
    (void)module;
    unsigned long long budget_ns = PyLong_AsUnsignedLongLong(arg);
    if (PyErr_Occurred()) {
        return NULL;
    }
    int status = lp_scan_slice(budget_ns);
    return status < 0 ? raise_scan_failed(status) : PyBool_FromLong(status);
}

static PyObject *rows_to_list(const lp_scan_row *rows, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = Py_BuildValue("IIIK", rows[i].site, rows[i].first_step, rows[i].last_step,
                                      (unsigned long long)rows[i].count);
        if (row == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

static PyObject *mod_scan_result(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_scan_row *rows = NULL;
    size_t count = 0;
    lp_hooks_verify();
    lp_status status = lp_scan_rows(&rows, &count);
    if (status != LP_OK) {
        return raise_scan_failed(status);
    }
    PyObject *items[] = {
        PyLong_FromUnsignedLong(lp_scan_begun_step()),
        PyLong_FromUnsignedLong(lp_step_now),
        rows_to_list(rows, count),
    };
    lp_raw_free(rows);
    return make(&scan_type, &scan_desc, items);
}

static PyObject *mod_scan_end(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_scan_end();
    Py_RETURN_NONE;
}

PyMethodDef lp_alive_methods[] = {
    {"series_state", mod_series_state, METH_NOARGS, PyDoc_STR("Which spans the series of the sites have.")},
    {"site_series", mod_site_series, METH_O, PyDoc_STR("The series of a site; None if it has none.")},
    {"series_rising", mod_series_rising, METH_VARARGS,
     PyDoc_STR("series_rising(since_step, min_rises): series of the sites whose floor rose so often since a step.  The "
               "floor at a span is the lowest live count from it on.")},
    {"live_counts", mod_live_counts, METH_NOARGS, PyDoc_STR("{site: live objects born there since the hooks}, now.")},
    {"backing_records", mod_backing_records, METH_VARARGS,
     PyDoc_STR(
         "backing_records(since_step, min_steps): sites that grew a block of more than 512 bytes, larger than all "
         "before,\nin at least so many steps, and since a step: backing blocks of containers, objects that are "
         "resized.")},
    {"scan_begin", mod_scan_begin, METH_O, PyDoc_STR("scan_begin(sites): ask who is alive of them.")},
    {"scan_slice", mod_scan_slice, METH_O,
     PyDoc_STR("scan_slice(budget_ns): go on for so long; True when the scan is complete.")},
    {"scan_result", mod_scan_result, METH_NOARGS,
     PyDoc_STR("Survivors by site and step of birth, of births before the scan began, alive now.")},
    {"scan_end", mod_scan_end, METH_NOARGS, PyDoc_STR("Give the memory of the scan back.")},
    {NULL, NULL, 0, NULL},
};
