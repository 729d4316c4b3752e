/* cuda_memory: what the CUDA hooks know beyond the ledger. */
#include "python/api/methods.h"

#include "native/cuda_memory.h"  // lp_cuda_segments

static PyObject *sum_to_dict(const lp_cuda_sum *sum) {
    return Py_BuildValue("{sKsKsK}", "live_bytes", (unsigned long long)sum->live_bytes, "peak_bytes",
                         (unsigned long long)sum->peak_bytes, "live_count", (unsigned long long)sum->live_count);
}

static int add_segments(PyObject *segments, int device) {
    lp_cuda_sum sum;
    lp_cuda_segments(device, &sum);
    if (sum.peak_bytes == 0) {
        return 0;
    }
    PyObject *key = PyLong_FromLong(device), *value = sum_to_dict(&sum);
    int failed = key == NULL || value == NULL || PyDict_SetItem(segments, key, value) < 0;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

static PyObject *last_oom(void) {
    lp_cuda_oom oom;
    lp_cuda_last_oom(&oom);
    if (oom.count == 0) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("{sKsLsKsKsi}", "count", (unsigned long long)oom.count, "wanted_bytes",
                         (long long)oom.wanted_bytes, "allocated_bytes", (unsigned long long)oom.allocated_bytes,
                         "reserved_bytes", (unsigned long long)oom.reserved_bytes, "device", (int)oom.device);
}

static PyObject *cuda_memory(PyObject *module, PyObject *noargs) {
    lp_cuda_sum registered;
    PyObject *segments = PyDict_New(), *oom = last_oom(), *pinned = NULL;
    (void)module, (void)noargs;
    lp_cuda_registered(&registered);
    pinned = sum_to_dict(&registered);
    for (int device = 0; segments != NULL && device < LP_CUDA_DEVICES; device++) {
        if (add_segments(segments, device) < 0) {
            Py_CLEAR(segments);
        }
    }
    if (segments == NULL || oom == NULL || pinned == NULL) {
        Py_XDECREF(segments);
        Py_XDECREF(oom);
        Py_XDECREF(pinned);
        return NULL;
    }
    return Py_BuildValue("{sNsNsKsNsK}", "segments", segments, "registered", pinned, "malloc_bytes",
                         (unsigned long long)lp_cuda_malloc_bytes(), "oom", oom, "beyond",
                         (unsigned long long)lp_cuda_beyond_count());
}

PyMethodDef lp_cuda_methods[] = {
    {"cuda_memory", cuda_memory, METH_NOARGS,
     "cuda_memory($module, /)\n--\n\n"
     "{segments: {device: {live_bytes, peak_bytes, live_count}}, registered: the same of pinned memory of the "
     "program's own, "
     "malloc_bytes: of pinned blocks that are malloc's, "
     "oom: {count, wanted_bytes, allocated_bytes, reserved_bytes, device} of the last report or None, beyond: events "
     "of devices from 16 on}."},
    {NULL, NULL, 0, NULL},
};
