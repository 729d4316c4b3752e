/* theil_sen: the median of the slopes between all pairs of points, with an interval of ranks. */
#include "python/api/methods.h"

#include "base/rawmem.h"           // lp_raw_malloc
#include "base/slopes.h"           // lp_slopes_find
#include "python/values/convert.h" // lp_raise_status

static int read_point(PyObject *item, lp_point *out_point) {
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "expected points (x, y)");
        return -1;
    }
    return PyArg_ParseTuple(item, "dd", &out_point->x, &out_point->y) ? 0 : -1;
}

/* The points of a list, which a number's __float__ may change while it is read; NULL with an exception set. */
static lp_point *read_points(PyObject *list, size_t *out_count) {
    size_t room = (size_t)PyList_GET_SIZE(list);
    lp_point *points = lp_raw_malloc((room + 1) * sizeof(*points));
    if (points == NULL) {
        lp_raise_status(LP_NO_MEMORY, "reading points");
        return NULL;
    }
    for (*out_count = 0; *out_count < room && *out_count < (size_t)PyList_GET_SIZE(list); ++*out_count) {
        if (read_point(PyList_GET_ITEM(list, (Py_ssize_t)*out_count), &points[*out_count]) < 0) {
            lp_raw_free(points);
            return NULL;
        }
    }
    return points;
}

static PyObject *theil_sen(PyObject *module, PyObject *args) {
    PyObject *list;
    double spread;
    size_t count;
    lp_slopes slopes;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!d", &PyList_Type, &list, &spread)) {
        return NULL;
    }
    lp_point *points = read_points(list, &count);
    if (points == NULL) {
        return NULL;
    }
    lp_status status = lp_slopes_find(points, count, spread, &slopes);
    lp_raw_free(points);
    if (status == LP_UNSUPPORTED) {
        Py_RETURN_NONE;
    }
    return status != LP_OK ? lp_raise_status(status, "sorting slopes")
                           : Py_BuildValue("ddd", slopes.median, slopes.low, slopes.high);
}

PyMethodDef lp_slopes_methods[] = {
    {"theil_sen", theil_sen, METH_VARARGS,
     "theil_sen($module, points, spread, /)\n--\n\n"
     "(median, low, high) of the slopes between each two of the points [(x, y)]; low and high lie half of spread ranks "
     "beside the median; None if fewer than two pairs differ in x."},
    {NULL, NULL, 0, NULL},
};
