/* Runs a job in a thread that lasts for the call. The caller waits until it is done, and then gets what arrived
 * meanwhile. */
#include "python/watch/aside.h"

#include "python/compat/compat.h"  // lp_compat_is_finalizing
#include "python/watch/first_error.h"

#define CAPSULE_NAME "leakprobe.aside"

/* On the caller's stack; the thread doesn't touch it once `done` is released. */
typedef struct call {
    lp_job job;
    void *arg;
    int result;
    lp_first_error error;
    PyThread_type_lock done;
} call;

/* Not while the caller waits: gc.disable() of another thread, meanwhile, would be undone. */
static int run_quietly(lp_job job, void *arg) {
    int collects = PyGC_Disable(), result = job(arg);
    if (collects) {
        PyGC_Enable();
    }
    return result;
}

static PyObject *run_call(PyObject *capsule, PyObject *unused) {
    call *this = PyCapsule_GetPointer(capsule, CAPSULE_NAME);
    (void)unused;
    if (this == NULL) {
        return NULL;
    }
    this->result = run_quietly(this->job, this->arg);
    lp_keep_first(&this->error);
    PyThread_release_lock(this->done);
    Py_RETURN_NONE;
}

static PyMethodDef run_call_def = {"leakprobe_aside", run_call, METH_NOARGS, NULL};

/* Python's own start_new_thread, or NULL: gevent and eventlet put one in its place that starts no thread. */
static PyObject *find_starter(void) {
    PyObject *module = PyImport_ImportModule("_thread");
    PyObject *function = module == NULL ? NULL : PyObject_GetAttrString(module, "start_new_thread");
    Py_XDECREF(module);
    if (function != NULL && !PyCFunction_Check(function)) {
        Py_CLEAR(function);
    }
    return function;
}

/* 1 if the thread has been started; no exception is set. */
static int start_thread(call *this) {
    PyObject *starter = lp_compat_is_finalizing() ? NULL : find_starter(), *started = NULL;
    PyObject *capsule = starter == NULL ? NULL : PyCapsule_New(this, CAPSULE_NAME, NULL);
    PyObject *function = capsule == NULL ? NULL : PyCFunction_New(&run_call_def, capsule);
    PyObject *no_args = function == NULL ? NULL : PyTuple_New(0);
    if (no_args != NULL) {
        started = PyObject_CallFunctionObjArgs(starter, function, no_args, NULL);
    }
    PyErr_Clear();
    int is_started = started != NULL;
    Py_XDECREF(started);
    Py_XDECREF(no_args);
    Py_XDECREF(function);
    Py_XDECREF(capsule);
    Py_XDECREF(starter);
    return is_started;
}

static int run_in_thread(call *this, int *out_result) {
    this->done = PyThread_allocate_lock();
    if (this->done == NULL) {
        return 0;
    }
    PyThread_acquire_lock(this->done, WAIT_LOCK);
    int started = start_thread(this);
    if (started) {
        Py_BEGIN_ALLOW_THREADS;
        PyThread_acquire_lock(this->done, WAIT_LOCK);
        Py_END_ALLOW_THREADS;
        *out_result = this->result;
        lp_raise_first(&this->error);
    }
    PyThread_release_lock(this->done);
    PyThread_free_lock(this->done);
    return started;
}

int lp_run_aside(lp_job job, void *arg) {
    call this = {.job = job, .arg = arg};
    int result = 0;
    return run_in_thread(&this, &result) ? result : run_quietly(job, arg);
}
