/* instances: the live objects of some types, without a list of all that live. */
#include "python/api/methods.h"

#include "base/map.h"             // lp_map_put
#include "base/rawmem.h"          // lp_raw_realloc
#include "python/compat/heap.h"   // lp_heap_each_tracked
#include "python/values/convert.h" // lp_raise_status

typedef struct search {
    lp_map types;      /* address of a type => 1 */
    PyObject **found;  /* owned: what comes after the search may collect */
    size_t count, room;
} search;

static int add_found(search *all, PyObject *op) {
    if (all->count == all->room) {
        size_t room = all->room + all->room + 1;
        PyObject **larger = lp_raw_realloc(all->found, room * sizeof(*larger));
        if (larger == NULL) {
            return LP_NO_MEMORY;
        }
        all->found = larger;
        all->room = room;
    }
    all->found[all->count++] = Py_NewRef(op);
    return LP_OK;
}

static int visit(PyObject *op, void *search_) {
    search *all = search_;
    return lp_map_get(&all->types, (uint64_t)(uintptr_t)Py_TYPE(op), 0) == 0 ? LP_OK : add_found(all, op);
}

static lp_status note_types(search *all, PyObject *types) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++) {
        uint32_t *known = lp_map_put(&all->types, (uint64_t)(uintptr_t)PyList_GET_ITEM(types, i), NULL);
        if (known == NULL) {
            return LP_NO_MEMORY;
        }
        *known = 1;
    }
    return LP_OK;
}

/* What was found moves to a list, or is let go. */
static PyObject *take_found(search *all, lp_status status) {
    PyObject *list = status == LP_OK ? PyList_New((Py_ssize_t)all->count)
                                     : lp_raise_status(status, "looking for the instances of a class");
    for (size_t i = 0; i < all->count; i++) {
        if (list != NULL) {
            PyList_SET_ITEM(list, (Py_ssize_t)i, all->found[i]);
        } else {
            Py_DECREF(all->found[i]);
        }
    }
    lp_raw_free(all->found);
    lp_map_fini(&all->types);
    return list;
}

static PyObject *instances(PyObject *module, PyObject *types) {
    search all = {.count = 0};
    (void)module;
    if (!PyList_Check(types)) {
        return PyErr_Format(PyExc_TypeError, "expected a list of types, not %.100s", Py_TYPE(types)->tp_name);
    }
    if (lp_heap_init() < 0) {
        return NULL;
    }
    if (lp_heap_is_collecting()) {
        return lp_raise("gc_running", "the garbage collector is running: its lists can't be read now.");
    }
    lp_status status = note_types(&all, types);
    return take_found(&all, status == LP_OK ? (lp_status)lp_heap_each_tracked(visit, &all) : status);
}

PyMethodDef lp_instances_methods[] = {
    {"instances", instances, METH_O,
     "instances($module, types, /)\n--\n\n"
     "The objects that the collector tracks whose type is one of these; error \"gc_running\" while it collects."},
    {NULL, NULL, 0, NULL},
};
