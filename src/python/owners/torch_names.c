/* What the phase asks torch for, looked up once, under DisableTorchFunction from open to close. */
#include "python/owners/torch_parts.h"

#include <string.h>

#include "base/rawmem.h"            // lp_raw_free
#include "python/compat/lookups.h"  // lp_lookup_descriptor

static int call_guard(PyObject *guard, const char *method) {
    PyObject *result = strcmp(method, "__enter__") == 0
                           ? PyObject_CallMethod(guard, method, NULL)
                           : PyObject_CallMethod(guard, method, "OOO", Py_None, Py_None, Py_None);
    Py_XDECREF(result);
    if (result == NULL) {
        PyErr_Clear();
        return -1;
    }
    return 0;
}

int lp_torch_open_names(lp_torch_names *names) {
    PyTypeObject *base = (PyTypeObject *)lp_lookup_attribute("torch._C", "TensorBase");
    base = base != NULL ? base : (PyTypeObject *)lp_lookup_attribute("torch._C", "_TensorBase");
    PyObject *guard_type = lp_lookup_attribute("torch._C", "DisableTorchFunction");
    if (base == NULL || !PyType_Check(base) || guard_type == NULL) {
        return -1;
    }
    names->grad = lp_lookup_descriptor(base, "grad");
    names->grad_fn = lp_lookup_descriptor(base, "grad_fn");
    names->base = lp_lookup_descriptor(base, "_base");
    names->nbytes = lp_lookup_descriptor(base, "nbytes");
    names->data_ptr = lp_lookup_descriptor(base, "data_ptr");
    names->retains_grad = lp_lookup_descriptor(base, "retains_grad");
    names->hooks = lp_lookup_descriptor(base, "_backward_hooks");
    names->untyped_storage = lp_lookup_descriptor(base, "untyped_storage");
    names->is_meta = lp_lookup_descriptor(base, "is_meta");
    names->accumulate_hooks = lp_lookup_descriptor(base, "_post_accumulate_grad_hooks");
    names->requires_grad = lp_lookup_descriptor(base, "requires_grad");
    names->version = lp_lookup_descriptor(base, "_version");
    names->cdata = lp_lookup_descriptor(base, "_cdata");
    names->exact[0] = base;
    names->exact[1] = (PyTypeObject *)lp_lookup_attribute("torch", "Tensor");
    names->exact[LP_TORCH_EXACT - 1] = (PyTypeObject *)lp_lookup_attribute("torch.nn.parameter", "Parameter");
    if (names->grad == NULL || names->grad_fn == NULL || names->base == NULL || names->data_ptr == NULL) {
        return -1;
    }
    names->use_count = lp_lookup_descriptor(base, "_use_count");
    /* Before 2.10 the wrapper had one word more: whether the reference to the tensor is borrowed. */
    names->tensors_are_coupled = base->tp_basicsize <= (Py_ssize_t)(LP_TORCH_WRAPPER_WORDS * sizeof(void *));
    lp_storage_find_calls(&names->storage);
    PyObject *is_anomaly = lp_lookup_attribute("torch._C", "is_anomaly_enabled");
    PyObject *answer = is_anomaly == NULL ? NULL : PyObject_CallNoArgs(is_anomaly);
    names->is_cow = lp_lookup_attribute("torch._C", "_is_cow_tensor");
    names->is_anomaly = answer == Py_True;
    Py_XDECREF(answer);
    names->guard = PyObject_CallNoArgs(guard_type);
    PyErr_Clear();
    if (names->guard == NULL || call_guard(names->guard, "__enter__") < 0) {
        Py_CLEAR(names->guard);
        return -1;
    }
    return 0;
}

void lp_torch_close_names(lp_torch_names *names) {
    if (names->guard != NULL) {
        call_guard(names->guard, "__exit__");
        Py_CLEAR(names->guard);
    }
    lp_map_fini(&names->type_number);
    lp_raw_free(names->type);
    lp_raw_free(names->work);
}

PyObject *lp_torch_get(PyObject *getter, PyObject *op) {
    if (getter == NULL || Py_TYPE(getter)->tp_descr_get == NULL) {
        return NULL;
    }
    PyObject *value = Py_TYPE(getter)->tp_descr_get(getter, op, (PyObject *)Py_TYPE(op));
    if (value == NULL) {
        PyErr_Clear();
    } else if (value == Py_None) {
        Py_CLEAR(value);
    }
    return value;
}

static uint64_t as_number(PyObject *value_stolen) {
    PyObject *value = value_stolen;
    uint64_t number = value != NULL && PyLong_Check(value) ? (uint64_t)PyLong_AsUnsignedLongLongMask(value) : 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return number;
}

uint64_t lp_torch_get_number(PyObject *getter, PyObject *op) { return as_number(lp_torch_get(getter, op)); }

uint64_t lp_torch_call_for_number(PyObject *callable, PyObject *argument) {
    return callable == NULL ? 0 : as_number(PyObject_CallOneArg(callable, argument));
}

int lp_torch_is_exact(const lp_torch_names *names, const PyTypeObject *type) {
    for (int i = 0; i < LP_TORCH_EXACT; i++) {
        if (type == names->exact[i]) {
            return 1;
        }
    }
    return 0;
}
