/* The process as the kernel and malloc count it: memory, descriptors, threads, children. */
#include "python/api/methods.h"

#include "ledger/ledger.h"  // lp_ledger_totals
#include "native/cuda_memory.h"  // lp_cuda_malloc_bytes
#include "process/malloc_info.h"
#include "process/proc_memory.h"
#include "process/resources.h"
#include "python/values/rows.h"  // lp_rows_new

/* Put a number into a dict; 0, or -1 with an exception set. */
static int put(PyObject *dict, const char *key, uint64_t number) {
    PyObject *value = PyLong_FromUnsignedLongLong(number);
    int result = value == NULL ? -1 : PyDict_SetItemString(dict, key, value);
    Py_XDECREF(value);
    return result;
}

static PyObject *put_rollup(PyObject *dict, const lp_proc_memory *memory) {
    if (dict != NULL && memory->has_rollup &&
        (put(dict, "pss", memory->pss) < 0 || put(dict, "private", memory->private_bytes) < 0 ||
         put(dict, "shared", memory->shared_bytes) < 0 || put(dict, "anonymous", memory->anonymous) < 0)) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *process_memory(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_proc_memory memory;
    if (lp_proc_memory_read(1, &memory) != LP_OK) {
        return PyDict_New();
    }
    return put_rollup(Py_BuildValue("{sKsK}", "rss", (unsigned long long)memory.rss, "shared_rss",
                                    (unsigned long long)memory.shared_rss),
                      &memory);
}

static PyObject *process_memory_of(PyObject *self, PyObject *arg) {
    (void)self;
    int pid = (int)PyLong_AsLong(arg);
    lp_proc_memory memory;
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (lp_proc_rollup_of(pid, &memory) != LP_OK) {
        return PyDict_New();
    }
    return put_rollup(Py_BuildValue("{sK}", "rss", (unsigned long long)memory.rss), &memory);
}

static PyObject *malloc_info(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_malloc_info info;
    if (lp_malloc_info_read(&info) != LP_OK) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("{sssKsKsKsKsKsd}", "source", lp_malloc_info_source(), "in_use",
                         (unsigned long long)info.in_use, "mapped", (unsigned long long)info.mapped, "free",
                         (unsigned long long)info.free_bytes, "top", (unsigned long long)info.top_bytes, "probe",
                         (unsigned long long)info.probe_bytes, "rounding", info.rounding);
}

static PyObject *malloc_beyond_ledger(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    long long known = (long long)(lp_ledger_malloc_bytes() + lp_cuda_malloc_bytes());
    return PyLong_FromLongLong((long long)lp_malloc_info_in_use() - known);
}

static PyObject *malloc_why_not(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    const char *text = lp_malloc_info_why_not();
    return Py_BuildValue("s", text);
}

static PyObject *kinds_to_dict(const lp_resources *resources) {
    PyObject *dict = PyDict_New();
    for (int kind = 0; dict != NULL && kind < LP_FD_KIND_COUNT; kind++) {
        uint64_t count = resources->descriptors_by_kind[kind];
        if (count != 0 && put(dict, lp_fd_kind_name((lp_fd_kind)kind), count) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

static PyObject *resources(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_resources found;
    if (lp_resources_read(&found) != LP_OK) {
        return PyDict_New();
    }
    PyObject *kinds = kinds_to_dict(&found);
    if (kinds == NULL) {
        return NULL;
    }
    return Py_BuildValue("{sKsNsKsKsKsK}", "descriptors", (unsigned long long)found.descriptors, "descriptors_by_kind",
                         kinds, "threads", (unsigned long long)found.threads, "children",
                         (unsigned long long)found.children, "segments", (unsigned long long)found.segments,
                         "semaphores", (unsigned long long)found.semaphores);
}

static PyObject *resource_counts(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    uint64_t descriptors, threads;
    if (lp_resources_count(&descriptors, &threads) != LP_OK) {
        Py_RETURN_NONE;
    }
    return lp_rows_new(LP_ROWS_RESOURCE_COUNTS, "KK", (unsigned long long)descriptors, (unsigned long long)threads);
}

static PyObject *child_processes(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLongLong(lp_resources_children());
}

static PyObject *rss_bytes(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_proc_memory memory;
    if (lp_proc_memory_read(0, &memory) != LP_OK) {
        Py_RETURN_NONE;
    }
    return PyLong_FromUnsignedLongLong(memory.rss);
}

static PyObject *open_descriptors(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLongLong(lp_open_descriptors());
}

PyMethodDef lp_process_methods[] = {
    {"rss_bytes", rss_bytes, METH_NOARGS, "Resident bytes of this process, or None where /proc can't be read."},
    {"open_descriptors", open_descriptors, METH_NOARGS,
     "It rises with each descriptor that stays open, and costs far less than to list those in /proc: how many "
     "there are where the kernel tells it, else the number that the next one gets."},
    {"process_memory", process_memory, METH_NOARGS,
     "process_memory($module, /)\n--\n\n"
     "{rss, shared_rss, pss, private, shared, anonymous} in bytes; what the kernel does not say is left out."},
    {"process_memory_of", process_memory_of, METH_O,
     "process_memory_of($module, pid, /)\n--\n\n"
     "{rss, pss, private, shared, anonymous} of another process; {} if it can't be read."},
    {"malloc_info", malloc_info, METH_NOARGS,
     "malloc_info($module, /)\n--\n\n"
     "{in_use, mapped, free, top, probe} of glibc's malloc in bytes, or None where they can't be had."},
    {"malloc_beyond_ledger", malloc_beyond_ledger, METH_NOARGS,
     "malloc_beyond_ledger($module, /)\n--\n\n"
     "Bytes of malloc's live blocks without the probe's own and without tensor and array buffers."},
    {"malloc_why_not", malloc_why_not, METH_NOARGS,
     "malloc_why_not($module, /)\n--\n\n"
     "Why malloc_info() is None, or None."},
    {"resources", resources, METH_NOARGS,
     "resources($module, /)\n--\n\n"
     "{descriptors, descriptors_by_kind, threads, children, segments, semaphores}; {} where they can't be had."},
    {"child_processes", child_processes, METH_NOARGS, "Child processes of this process; -1 where they can't be had."},
    {"resource_counts", resource_counts, METH_NOARGS,
     "resource_counts($module, /)\n--\n\n"
     "ResourceCounts, or None; for every mark."},
    {NULL, NULL, 0, NULL},
};
