/* Python's view of a census: _core.census() and the type _core.Census; sizes and heap totals. */
#include "python/api/methods.h"

#include <stdlib.h>

#include "base/rawmem.h"           // lp_raw_free
#include "python/heap/census.h"
#include "python/compat/heap.h"
#include "python/heap/confirm.h"
#include "python/values/convert.h"
#include "python/births/hook_arena.h"
#include "python/births/hooks.h"          // lp_hooks_verify
#include "python/values/rows.h"           // lp_rows_new
#include "python/heap/sizes.h"
#include "python/values/state.h"  // lp_state

/* A census is plain memory, so the object refers to nothing and needs no collector. */
typedef struct census_object {
    PyObject_HEAD lp_census *census;
    uint32_t first_step, last_step, min_steps;   /* the window of .groups */
} census_object;

/* Bytes of an average block in the last full census; a guess until there is one. */
static uint64_t mean_object_bytes = 64;

static PyObject *type_name(const lp_census *census, uint32_t type) {
    const char *text = census->types[type].text;
    return lp_text_to_str(text == NULL ? "?" : text);
}

static PyObject *group_to_row(const lp_census *census, const lp_census_group *group) {
    PyObject *name = type_name(census, group->type);
    if (name == NULL) {
        return NULL;
    }
    return lp_rows_new(LP_ROWS_CENSUS_GROUP, "NKIKKKKIII", name, (unsigned long long)census->types[group->type].type_id,
                       (unsigned int)group->site, (unsigned long long)group->count, (unsigned long long)group->bytes,
                       (unsigned long long)group->window_count, (unsigned long long)group->window_bytes,
                       (unsigned int)group->window_steps, (unsigned int)group->first_step,
                       (unsigned int)group->last_step);
}

/* Append and give the item away; 0, or -1 with an exception set (also for item NULL). */
static int append_steal(PyObject *list, PyObject *item) {
    int result = item == NULL ? -1 : PyList_Append(list, item);
    Py_XDECREF(item);
    return result;
}

static PyObject *groups_to_list(const lp_census *census, const lp_census_group *groups, size_t count,
                                uint32_t min_steps) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        if (groups[i].window_steps >= min_steps && append_steal(list, group_to_row(census, &groups[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *census_get_groups(PyObject *op, void *unused) {
    (void)unused;
    census_object *self = (census_object *)op;
    lp_census_group *groups = NULL;
    size_t count = 0;
    lp_status status = lp_census_groups(self->census, self->first_step, self->last_step, &groups, &count);
    if (status != LP_OK) {
        return lp_raise_status(status, "grouping the census");
    }
    PyObject *list = groups_to_list(self->census, groups, count, self->min_steps);
    lp_raw_free(groups);
    return list;
}

static int compare_groups(const void *left, const void *right) {
    uint64_t a = ((const lp_census_group *)left)->bytes, b = ((const lp_census_group *)right)->bytes;
    return a < b ? 1 : a > b ? -1 : 0;
}

static PyObject *census_top(PyObject *op, PyObject *arg) {
    census_object *self = (census_object *)op;
    lp_census_group *groups = NULL;
    size_t count = 0;
    Py_ssize_t wanted = PyNumber_AsSsize_t(arg, PyExc_OverflowError);
    if (wanted == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (wanted < 0) {
        return lp_raise("bad_input", "Census.top(n): n must not be negative");
    }
    lp_status status = lp_census_groups(self->census, self->first_step, self->last_step, &groups, &count);
    if (status != LP_OK) {
        return lp_raise_status(status, "grouping the census");
    }
    qsort(groups, count, sizeof(*groups), compare_groups);
    PyObject *list = groups_to_list(self->census, groups, count < (size_t)wanted ? count : (size_t)wanted, 0);
    lp_raw_free(groups);
    return list;
}

static PyObject *census_series(PyObject *op, PyObject *args) {
    census_object *self = (census_object *)op;
    unsigned long long type_id;
    unsigned int site;
    lp_census_row *rows = NULL;
    size_t count = 0;
    if (!PyArg_ParseTuple(args, "KI:series", &type_id, &site)) {
        return NULL;
    }
    lp_status status = lp_census_series(self->census, type_id, site, &rows, &count);
    if (status != LP_OK) {
        return lp_raise_status(status, "reading a series of the census");
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *row = lp_rows_new(LP_ROWS_COHORT, "IKK", (unsigned int)rows[i].last_step,
                                    (unsigned long long)rows[i].count, (unsigned long long)rows[i].bytes);
        if (append_steal(list, row) < 0) {
            Py_CLEAR(list);
        }
    }
    lp_raw_free(rows);
    return list;
}

static PyObject *container_to_row(const lp_census *census, const lp_census_container *row) {
    PyObject *name = type_name(census, row->type);
    if (name == NULL) {
        return NULL;
    }
    return lp_rows_new(LP_ROWS_CONTAINER, "KNKKII", (unsigned long long)row->address, name,
                       (unsigned long long)row->length, (unsigned long long)row->bytes, (unsigned int)row->site,
                       (unsigned int)row->first_step);
}

static PyObject *census_get_containers(PyObject *op, void *unused) {
    (void)unused;
    const lp_census *census = ((census_object *)op)->census;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < census->container_count; i++) {
        if (append_steal(list, container_to_row(census, &census->containers[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *census_get_full(PyObject *op, void *unused) {
    (void)unused;
    return PyBool_FromLong(((census_object *)op)->census->full);
}

/* closure: the offset of a uint64_t in lp_census. */
static PyObject *census_get_number(PyObject *op, void *closure) {
    const char *census = (const char *)((census_object *)op)->census;
    return PyLong_FromUnsignedLongLong(*(const uint64_t *)(census + (size_t)closure));
}

#define NUMBER(name, field, doc) {name, census_get_number, NULL, doc, (void *)offsetof(lp_census, field)}

static PyGetSetDef census_getset[] = {
    {"groups", census_get_groups, NULL,
     "CensusGroup for each group with survivors from at least min_steps steps of the window.", NULL},
    {"containers", census_get_containers, NULL, "Container for each of the biggest.", NULL},
    {"full", census_get_full, NULL, "Whether untracked objects were counted too.", NULL},
    NUMBER("object_count", object_count, "Objects counted."),
    NUMBER("total_bytes", total_bytes, "Their bytes."),
    NUMBER("large_bytes", large_bytes, "Of these, in blocks over 512 bytes, which malloc serves."),
    NUMBER("blocks", blocks, "Full: blocks of Python's allocator behind what the heap refers to, leakprobe's own too."),
    NUMBER("old_count", old_count, "Objects born before the hooks; they are in no group."),
    NUMBER("old_bytes", old_bytes, "Their bytes."),
    NUMBER("bad_pointer_count", bad_pointer_count, "References that a faulty extension type made up."),
    NUMBER("dropped_count", dropped_count, "Objects in no group for want of memory."),
    NUMBER("duration_ns", duration_ns, "How long the pass stopped the program."),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef census_type_methods[] = {
    {"top", census_top, METH_O,
     "top($self, n, /)\n--\n\n"
     "The n groups with most bytes, whatever the window."},
    {"series", census_series, METH_VARARGS,
     "series($self, type_id, site, /)\n--\n\n"
     "[Cohort], by rising step."},
    {NULL, NULL, 0, NULL},
};

static void census_dealloc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    lp_census_free(((census_object *)op)->census);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyType_Slot census_slots[] = {
    {Py_tp_dealloc, census_dealloc},
    {Py_tp_getset, census_getset},
    {Py_tp_methods, census_type_methods},
    {Py_tp_doc, "Survivors by type, allocation site and birth step, from one pass over the heap."},
    {0, NULL},
};

static PyType_Spec census_spec = {
    .name = "leakprobe._core.Census",
    .basicsize = sizeof(census_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = census_slots,
};

int lp_census_type_init(PyObject *module) { return lp_add_type(module, &census_spec, &lp_state.types.census); }

static PyObject *raise_census_failed(lp_status status, const char *what) {
    if (status == LP_UNSUPPORTED) {
        return lp_raise("collecting", "a census can't be taken while the garbage collector runs, that is from a "
                                      "gc callback or a finaliser; take it after the collection");
    }
    return lp_raise_status(status, what);
}

/* Takes the census over. */
static PyObject *wrap_census(lp_census *census, uint32_t first_step, uint32_t last_step, uint32_t min_steps) {
    if (census->full && census->object_count > 0) {
        mean_object_bytes = census->total_bytes / census->object_count;
    }
    census_object *self = PyObject_New(census_object, lp_state.types.census);
    if (self == NULL) {
        lp_census_free(census);
        return NULL;
    }
    self->census = census;
    self->first_step = first_step;
    self->last_step = last_step;
    self->min_steps = min_steps;
    return (PyObject *)self;
}

PyObject *lp_census_wrap(struct lp_census *census) { return wrap_census(census, 0, UINT32_MAX, UINT32_MAX); }

static PyObject *mod_census(PyObject *module, PyObject *args) {
    int full, group_old = 0;
    unsigned int first_step, last_step, min_steps;
    lp_census *census = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "pIII|p:census", &full, &first_step, &last_step, &min_steps, &group_old) ||
        lp_heap_init() < 0) {
        return NULL;
    }
    lp_hooks_verify();
    lp_status status = lp_census_take(full, group_old, lp_state.types.census, &census);
    if (status != LP_OK) {
        return raise_census_failed(status, "taking a census");
    }
    return wrap_census(census, first_step, last_step, min_steps);
}

/* The sites of a sequence, each once; NULL with an exception set. */
static lp_confirmed *read_sites(PyObject *arg, uint32_t *out_count) {
    uint32_t count = 0;
    lp_site_id *sites = lp_sites_from_sequence(arg, &count);
    lp_confirmed *confirmed = sites == NULL ? NULL : lp_raw_calloc((size_t)count + 1, sizeof(*confirmed));
    if (sites != NULL && confirmed == NULL) {
        PyErr_NoMemory();
    }
    *out_count = 0;
    for (uint32_t i = 0; confirmed != NULL && i < count; i++) {
        uint32_t same = 0;
        while (same < *out_count && confirmed[same].site != sites[i]) {
            same++;
        }
        confirmed[same].site = sites[i];
        *out_count += same == *out_count;
    }
    lp_raw_free(sites);
    return confirmed;
}

static PyObject *confirmed_to_list(const lp_confirmed *confirmed, uint32_t count) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        const lp_confirmed *site = &confirmed[i];
        PyObject *row = lp_rows_new(LP_ROWS_CONFIRMED, "IKKK", (unsigned int)site->site, (unsigned long long)site->met,
                                    (unsigned long long)site->unreached, (unsigned long long)site->corrected);
        if (append_steal(list, row) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *mod_confirm(PyObject *module, PyObject *args) {
    unsigned int first_step, last_step, min_steps;
    uint32_t count = 0;
    PyObject *sites, *result = NULL;
    lp_census *census = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "OIII:confirm", &sites, &first_step, &last_step, &min_steps) || lp_heap_init() < 0) {
        return NULL;
    }
    lp_confirmed *confirmed = read_sites(sites, &count);
    if (confirmed == NULL) {
        return NULL;
    }
    lp_hooks_verify();
    lp_status status = lp_confirm(lp_state.types.census, confirmed, count, &census);
    if (status != LP_OK) {
        raise_census_failed(status, "confirming what is alive");
    } else {
        PyObject *list = confirmed_to_list(confirmed, count);
        PyObject *wrapped = wrap_census(census, first_step, last_step, min_steps);
        result = lp_rows_new(LP_ROWS_CONFIRMATION, "NN", wrapped, list);
    }
    lp_raw_free(confirmed);
    return result;
}

static PyObject *mod_allocated_blocks(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *function = PySys_GetObject("getallocatedblocks");   /* borrowed */
    return function == NULL ? lp_raise("internal", "sys.getallocatedblocks is gone") : PyObject_CallNoArgs(function);
}

static PyObject *mod_python_bytes(PyObject *module, PyObject *unused) {
    if (lp_hook_arena_is_active()) {
        return PyLong_FromLongLong(lp_hook_arena_bytes());
    }
    PyObject *blocks = mod_allocated_blocks(module, unused);
    if (blocks == NULL) {
        return NULL;
    }
    unsigned long long count = PyLong_AsUnsignedLongLong(blocks);
    Py_DECREF(blocks);
    if (count == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(count * mean_object_bytes);
}

/* ---- used in tests ---- */

static PyObject *mod_size_of(PyObject *module, PyObject *op) {
    (void)module;
    return PyLong_FromUnsignedLongLong(lp_size_of(op));
}

typedef struct found_list {
    PyObject *list;
    int failed;
} found_list;

static int collect_referent(PyObject *op, void *arg) {
    found_list *found = arg;
    found->failed = lp_heap_looks_alive(op) && PyList_Append(found->list, op) < 0;
    return found->failed;
}

/* Of several objects at once: a walk begins by reading which memory is mapped, too dear for each of many. */
static PyObject *mod_referents(PyObject *module, PyObject *ops) {
    (void)module;
    if (lp_heap_init() < 0) {
        return NULL;
    }
    found_list found = {PyList_New(0), 0};
    found.failed = found.list == NULL;
    lp_heap_begin_walk();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ops) && !found.failed; i++) {
        lp_heap_traverse(PyTuple_GET_ITEM(ops, i), collect_referent, &found);
    }
    if (found.failed) {
        Py_CLEAR(found.list);
    }
    return found.list;
}

static int is_same(PyObject *op, void *wanted) { return op == wanted; }

static PyObject *mod_is_enumerated(PyObject *module, PyObject *op) {
    (void)module;
    int result = lp_heap_each_tracked(is_same, op);
    return result == LP_UNSUPPORTED ? lp_raise("collecting", "the garbage collector runs")
                                    : PyBool_FromLong(result == 1);
}

static PyObject *mod_arena_hook(PyObject *module, PyObject *on) {
    (void)module;
    int install = PyObject_IsTrue(on);
    if (install < 0) {
        return NULL;
    }
    if (install) {
        lp_hook_arena_install();
    } else {
        lp_hook_arena_uninstall();
    }
    Py_RETURN_NONE;
}

PyMethodDef lp_census_methods[] = {
    {"census", mod_census, METH_VARARGS,
     "census($module, full, first_step, last_step, min_steps, group_old=False, /)\n--\n\n"
     "Survivors by type, allocation site and birth step; with group_old, objects from before the hooks too, by type,\n"
     "under site 0."},
    {"allocated_blocks", mod_allocated_blocks, METH_NOARGS,
     "allocated_blocks($module, /)\n--\n\n"
     "Blocks that pymalloc holds for Python."},
    {"confirm", mod_confirm, METH_VARARGS,
     "confirm($module, sites, first_step, last_step, min_steps, /)\n--\n\n"
     "A full census, and whether what the stamps of these sites call alive was met in it."},
    {"python_bytes", mod_python_bytes, METH_NOARGS,
     "python_bytes($module, /)\n--\n\n"
     "Arena bytes taken since the arena hook was installed; without it, allocated blocks times their mean size."},
    {"size_of", mod_size_of, METH_O,
     "size_of($module, obj, /)\n--\n\n"
     "Shallow bytes of an object with the blocks that are its own."},
    {"_referents", mod_referents, METH_VARARGS,
     "_referents($module, *objects)\n--\n\n"
     "What the objects refer to, as the census sees it."},
    {"_is_enumerated", mod_is_enumerated, METH_O,
     "_is_enumerated($module, obj, /)\n--\n\n"
     "Whether the heap walk comes by the object."},
    {"_arena_hook", mod_arena_hook, METH_O,
     "_arena_hook($module, on, /)\n--\n\n"
     "Install or take out the arena counter."},
    {NULL, NULL, 0, NULL},
};
