/* Live counts by site, and scans of the stamps, as Python objects. */
#include "python/api/methods.h"

#include "base/rawmem.h"          // lp_raw_free
#include "ledger/alive.h"         // lp_alive_now
#include "ledger/epoch.h"         // lp_step_now
#include "ledger/ledger.h"        // lp_ledger_line
#include "ledger/scan.h"
#include "python/compat/heap.h"          // lp_heap_init
#include "python/heap/found_types.h"
#include "python/heap/leaves.h"  // lp_leaves_find
#include "ledger/site_series.h"
#include "python/values/convert.h"       // lp_raise
#include "python/births/hooks.h"         // lp_hooks_verify
#include "python/values/rows.h"          // lp_rows_new

/* ---- series ---- */

static PyObject *mod_series_state(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_series_state state = lp_series_get_state();
    const lp_hooks_status *status = lp_hooks_get_status();
    return lp_rows_new(LP_ROWS_SERIES_STATE, "IIIIIKOI", state.first_step, state.width, state.closed, state.open_steps,
                       state.row_count == 0 ? 0 : state.row_count - 1, (unsigned long long)state.overflow_sites,
                       status->active && status->sees_deaths ? Py_True : Py_False, status->exact_since);
}

static PyObject *mod_series_begin_at(PyObject *module, PyObject *arg) {
    (void)module;
    unsigned long step = PyLong_AsUnsignedLong(arg);
    if (step == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    lp_series_begin_at(step > UINT32_MAX ? UINT32_MAX : (uint32_t)step);
    Py_RETURN_NONE;
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
    return lp_rows_new(LP_ROWS_SITE_SERIES, "IIINNNN", (unsigned int)row->site, row->live, row->births, rises,
                       numbers_of(spans, count, offsetof(lp_series_span, low)),
                       numbers_of(spans, count, offsetof(lp_series_span, high)),
                       numbers_of(spans, count, offsetof(lp_series_span, births)));
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

static PyObject *mod_line_series(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    unsigned int site;
    if (!PyArg_ParseTuple(args, "sI:line_series", &name, &site)) {
        return NULL;
    }
    int medium = lp_medium_find(name);
    if (medium < 0 || site > LP_SITE_MAX) {
        return lp_raise("bad_argument", "unknown medium %s, or %u is not the number of a site.", name, site);
    }
    uint32_t line = lp_ledger_line((lp_medium)medium, lp_site_base(site));
    int at = line >= LP_LINES_MAX ? -1 : lp_series_find(LP_ALIVE_SITES + line);
    if (at < 0) {
        Py_RETURN_NONE;
    }
    lp_series_row row = lp_series_get_row((uint32_t)at);
    row.site = site;
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

/* Steals the value, which may be NULL with an exception set; 0 or -1. */
static int put_site(PyObject *dict, lp_site_id site, PyObject *value) {
    PyObject *key = value == NULL ? NULL : PyLong_FromUnsignedLong(site);
    int result = key == NULL ? -1 : PyDict_SetItem(dict, key, value);
    Py_XDECREF(key);
    Py_XDECREF(value);
    return result;
}

static PyObject *mod_live_counts(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_hooks_verify();
    PyObject *result = PyDict_New();
    for (lp_site_id site = 1; result != NULL && site < lp_site_count() + LP_SITE_FIRST; site++) {
        if (lp_alive_now(site) == 0) {
            continue;
        }
        if (put_site(result, site, PyLong_FromUnsignedLong(lp_alive_now(site))) < 0) {
            Py_CLEAR(result);
        }
    }
    return result;
}

static void count_live(const lp_site_id *sites, uint32_t *live, uint32_t count) {
    for (lp_site_id site = 1; site < lp_site_count() + LP_SITE_FIRST; site++) {
        uint32_t now = lp_alive_now(site);
        lp_site_id base = now == 0 ? 0 : lp_site_base(site);
        for (uint32_t i = 0; now != 0 && i < count; i++) {
            live[i] += sites[i] == base ? now : 0;
        }
    }
}

static PyObject *mod_live_of(PyObject *module, PyObject *arg) {
    (void)module;
    uint32_t count = 0;
    lp_hooks_verify();
    lp_site_id *sites = lp_sites_from_sequence(arg, &count);
    uint32_t *live = sites == NULL ? NULL : lp_raw_calloc((size_t)count + 1, sizeof(*live));
    PyObject *result = sites == NULL ? NULL : live == NULL ? PyErr_NoMemory() : PyDict_New();
    if (result != NULL) {
        count_live(sites, live, count);
    }
    for (uint32_t i = 0; result != NULL && i < count; i++) {
        if (put_site(result, sites[i], PyLong_FromUnsignedLong(live[i])) < 0) {
            Py_CLEAR(result);
        }
    }
    lp_raw_free(live);
    lp_raw_free(sites);
    return result;
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
        PyObject *row = lp_rows_new(LP_ROWS_SURVIVORS, "IIIK", (unsigned int)rows[i].site, rows[i].first_step,
                                    rows[i].last_step, (unsigned long long)rows[i].count);
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
    PyObject *list = rows_to_list(rows, count);
    lp_raw_free(rows);
    return lp_rows_new(LP_ROWS_SCAN, "IIN", lp_scan_begun_step(), lp_step_now, list);
}

static PyObject *leaves_to_dict(const lp_leaves *leaves, size_t count) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < count; i++) {
        if (!leaves[i].is_other && leaves[i].count == 0) {
            continue;
        }
        PyObject *bytes = leaves[i].is_other ? Py_NewRef(Py_None)
                                             : PyFloat_FromDouble((double)leaves[i].bytes / (double)leaves[i].count);
        if (put_site(dict, leaves[i].site, bytes) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

static PyObject *mod_scan_leaf_bytes(PyObject *module, PyObject *arg) {
    (void)module;
    lp_leaves *leaves = NULL;
    size_t count = 0;
    unsigned long since = PyLong_AsUnsignedLong(arg);
    if (PyErr_Occurred()) {
        return NULL;
    }
    lp_status status = lp_leaves_find((uint32_t)since, &leaves, &count);
    PyObject *dict = status == LP_OK ? leaves_to_dict(leaves, count) : raise_scan_failed(status);
    lp_raw_free(leaves);
    return dict;
}

static PyObject *found_types_to_list(const lp_found_type *found, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *type = found[i].name == NULL ? Py_NewRef(Py_None) : PyUnicode_FromString(found[i].name);
        PyObject *row = lp_rows_new(LP_ROWS_FOUND_TYPE, "INKK", (unsigned int)found[i].site, type,
                                    (unsigned long long)found[i].count, (unsigned long long)found[i].bytes);
        if (row == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

static PyObject *mod_scan_types(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_found_type *found = NULL;
    size_t count = 0;
    if (lp_heap_init() < 0) {
        return NULL;
    }
    lp_status status = lp_found_types(&found, &count);
    PyObject *list = status == LP_OK ? found_types_to_list(found, count) : raise_scan_failed(status);
    lp_found_types_free(found, count);
    return list;
}

static PyObject *mod_scan_end(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_scan_end();
    Py_RETURN_NONE;
}

PyMethodDef lp_alive_methods[] = {
    {"series_state", mod_series_state, METH_NOARGS,
     PyDoc_STR("series_state($module, /)\n--\n\n"
               "Which spans of steps the series of the sites have.")},
    {"series_begin_at", mod_series_begin_at, METH_O,
     PyDoc_STR("series_begin_at($module, step, /)\n--\n\n"
               "After so many steps the spans are of one step again.")},
    {"site_series", mod_site_series, METH_O,
     PyDoc_STR("site_series($module, site, /)\n--\n\n"
               "The SiteSeries of a site, or None.")},
    {"line_series", mod_line_series, METH_VARARGS,
     PyDoc_STR("line_series($module, medium, site, /)\n--\n\n"
               "The SiteSeries of the native blocks of a line, or None.")},
    {"series_rising", mod_series_rising, METH_VARARGS,
     PyDoc_STR("series_rising($module, since_step, min_rises, /)\n--\n\n"
               "[SiteSeries] of the sites whose floor rose at least so often since a step.")},
    {"live_counts", mod_live_counts, METH_NOARGS,
     PyDoc_STR("live_counts($module, /)\n--\n\n"
               "{site: live objects born there since the hooks}, now.")},
    {"live_of", mod_live_of, METH_O,
     PyDoc_STR("live_of($module, sites, /)\n--\n\n"
               "{base site: live objects born there since the hooks}, of these, now.")},
    {"scan_begin", mod_scan_begin, METH_O,
     PyDoc_STR("scan_begin($module, sites, /)\n--\n\n"
               "Ask who is alive of these sites.")},
    {"scan_slice", mod_scan_slice, METH_O,
     PyDoc_STR("scan_slice($module, budget_ns, /)\n--\n\n"
               "Go on for about so long; True when the scan is complete.")},
    {"scan_result", mod_scan_result, METH_NOARGS,
     PyDoc_STR("scan_result($module, /)\n--\n\n"
               "The Scan: survivors by site and step of birth.")},
    {"scan_leaf_bytes", mod_scan_leaf_bytes, METH_O,
     PyDoc_STR("scan_leaf_bytes($module, since, /)\n--\n\n"
               "{site: mean bytes of a survivor} of births in step ``since`` or later; None of a site that has more "
               "than floats, ints, texts, bytes and tuples "
               "of these.")},
    {"scan_types", mod_scan_types, METH_NOARGS,
     PyDoc_STR("scan_types($module, /)\n--\n\n"
               "[FoundType]: the types and sizes of the survivors of each site.")},
    {"scan_end", mod_scan_end, METH_NOARGS,
     PyDoc_STR("scan_end($module, /)\n--\n\n"
               "Give the memory of the scan back.")},
    {NULL, NULL, 0, NULL},
};
