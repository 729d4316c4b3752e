#include "python/owners_torch.h"

#include <string.h>

#include "base/clock.h"     // lp_clock_ns
#include "base/rawmem.h"    // lp_raw_realloc
#include "ledger/site.h"    // LP_SITE_SELF
#include "python/owners_torch_lent.h"  // lp_torch_read_lender
#include "python/owners_torch_more.h"  // lp_torch_read_more
#include "python/owners_torch_views.h"  // lp_views_order

#define MOST_SAVED 24

/* Getters of one autograd type; all borrowed from the type. */
typedef struct node_type {
    PyObject *saved[MOST_SAVED];
    uint32_t saved_count;
    PyObject *next_functions, *variable, *metadata;
} node_type;

/* What is looked up once per phase. */
typedef struct lp_torch_names {
    PyObject *grad, *grad_fn, *base, *nbytes, *data_ptr, *retains_grad, *hooks, *untyped_storage, *is_meta,
        *accumulate_hooks;   /* of TensorBase, borrowed */
    PyObject *is_cow;                 /* torch._C._is_cow_tensor, borrowed, or NULL */
    PyTypeObject *exact[3];           /* types whose getters run no foreign code */
    PyObject *guard;                  /* owned: DisableTorchFunction */
    int is_anomaly;
    lp_map lent;                      /* storages whose memory Python lent */
    lp_map type_number;               /* autograd type => index in type + 1 */
    node_type *type;
    uint32_t type_count, type_capacity;
    uint32_t *work;
    uint32_t work_head, work_tail, work_capacity, taken;
} lp_torch_names;

/* ---- looking up ---- */

PyObject *lp_torch_module_attribute(const char *module, const char *name) {
    PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
    return found != NULL && PyModule_Check(found) ? PyDict_GetItemString(PyModule_GetDict(found), name) : NULL;
}

/* A descriptor of a type or of its bases, unbound (borrowed). */
PyObject *lp_torch_descriptor(PyTypeObject *type, const char *name) {
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        PyObject *found = base->tp_dict == NULL ? NULL : PyDict_GetItemString(base->tp_dict, name);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

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

/* 0, or -1 when torch is not imported or is not as expected. */
static int open_names(lp_torch_names *names) {
    PyTypeObject *base = (PyTypeObject *)lp_torch_module_attribute("torch._C", "TensorBase");
    base = base != NULL ? base : (PyTypeObject *)lp_torch_module_attribute("torch._C", "_TensorBase");
    PyObject *guard_type = lp_torch_module_attribute("torch._C", "DisableTorchFunction");
    if (base == NULL || !PyType_Check(base) || guard_type == NULL) {
        return -1;
    }
    names->grad = lp_torch_descriptor(base, "grad");
    names->grad_fn = lp_torch_descriptor(base, "grad_fn");
    names->base = lp_torch_descriptor(base, "_base");
    names->nbytes = lp_torch_descriptor(base, "nbytes");
    names->data_ptr = lp_torch_descriptor(base, "data_ptr");
    names->retains_grad = lp_torch_descriptor(base, "retains_grad");
    names->hooks = lp_torch_descriptor(base, "_backward_hooks");
    names->untyped_storage = lp_torch_descriptor(base, "untyped_storage");
    names->is_meta = lp_torch_descriptor(base, "is_meta");
    names->accumulate_hooks = lp_torch_descriptor(base, "_post_accumulate_grad_hooks");
    names->exact[0] = base;
    names->exact[1] = (PyTypeObject *)lp_torch_module_attribute("torch", "Tensor");
    names->exact[2] = (PyTypeObject *)lp_torch_module_attribute("torch.nn.parameter", "Parameter");
    if (names->grad == NULL || names->grad_fn == NULL || names->base == NULL || names->data_ptr == NULL) {
        return -1;
    }
    PyObject *is_anomaly = lp_torch_module_attribute("torch._C", "is_anomaly_enabled");
    PyObject *answer = is_anomaly == NULL ? NULL : PyObject_CallNoArgs(is_anomaly);
    names->is_cow = lp_torch_module_attribute("torch._C", "_is_cow_tensor");
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

static void close_names(lp_torch_names *names) {
    if (names->guard != NULL) {
        call_guard(names->guard, "__exit__");
        Py_CLEAR(names->guard);
    }
    lp_map_fini(&names->type_number);
    lp_map_fini(&names->lent);
    lp_raw_free(names->type);
    lp_raw_free(names->work);
}

/* The value of a getter, or NULL (also for None); new reference. */
static PyObject *get(PyObject *getter, PyObject *op) {
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

/* ---- edges ---- */

static void hold(lp_torch *torch, PyObject *op_stolen, uint32_t node) {
    lp_walk *walk = torch->walk;
    if (walk->graph.flag[node] & LP_NODE_KEPT) {
        Py_DECREF(op_stolen);
        return;
    }
    PyObject **made = lp_walk_reserve(torch->made, torch->made_count, &torch->made_capacity, sizeof(*made));
    if (made == NULL) {
        Py_DECREF(op_stolen);
        walk->status = LP_NO_MEMORY;
        return;
    }
    torch->made = made;
    torch->made[torch->made_count++] = op_stolen;
    walk->graph.flag[node] |= LP_NODE_KEPT;
}

/* An edge to an object that a getter gave; returns its node. */
static uint32_t add_edge(lp_torch *torch, uint32_t source, PyObject *op_stolen, const char *label, uint32_t order,
                         lp_late_refs refs) {
    lp_walk *walk = torch->walk;
    uint32_t before = walk->graph.node_count;
    uint32_t node = lp_walk_add(walk, op_stolen, LP_NODE_MADE);
    if (node == LP_NODE_NONE) {
        Py_DECREF(op_stolen);
        return node;
    }
    if (node == before) {
        int kind = lp_kinds_get(&walk->kinds, Py_TYPE(op_stolen)).kind;
        torch->wrapper_count += kind == LP_KIND_TENSOR || kind == LP_KIND_AUTOGRAD;
    }
    if (walk->graph.flag[node] & LP_NODE_MADE) {
        hold(torch, op_stolen, node);
    } else {
        Py_DECREF(op_stolen);
    }
    lp_status status = lp_graph_add_late(&walk->graph, (lp_late_edge){source, node, label, order, refs});
    if (status != LP_OK) {
        walk->status = status;
    }
    return node;
}

/* bytes: of the tensor, 0 if not known.  A detached view has no base, but is a part of its block all the same. */
static void add_buffer(lp_torch *torch, uint32_t source, PyObject *address, uint64_t bytes) {
    lp_walk *walk = torch->walk;
    void *pointer = address == NULL || !PyLong_Check(address) ? NULL : PyLong_AsVoidPtr(address);
    if (pointer == NULL) {
        PyErr_Clear();
        return;
    }
    uint32_t block = lp_walk_find_block(walk, pointer);
    if (block != LP_NODE_NONE) {
        uint32_t order = bytes != 0 ? lp_views_order(torch, walk->address[block], bytes, walk->block[block].bytes) : 0;
        lp_graph_add_late(&walk->graph, (lp_late_edge){source, block, "buffer", order, LP_LATE_NONE});
    } else {
        lp_torch_read_lender(torch, source, &torch->names->lent);
    }
}

/* ---- tensors ---- */

static int is_exact(const lp_torch_names *names, PyTypeObject *type) {
    return type == names->exact[0] || type == names->exact[1] || type == names->exact[2];
}

static uint64_t bytes_of(const lp_torch_names *names, PyObject *op) {
    PyObject *value = is_exact(names, Py_TYPE(op)) ? get(names->nbytes, op) : NULL; /* others may dispatch to Python */
    uint64_t bytes = value != NULL && PyLong_Check(value) ? (uint64_t)PyLong_AsUnsignedLongLongMask(value) : 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return bytes;
}

/* 1 for a copy that shares its data until one of the two is written or asked for its address. */
static int is_lazy_copy(const lp_torch_names *names, PyObject *op) {
    PyObject *answer = names->is_cow == NULL ? NULL : PyObject_CallOneArg(names->is_cow, op);
    int is_lazy = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    return is_lazy;
}

static int is_true(PyObject *getter, PyObject *op) {
    PyObject *value = get(getter, op);
    int result = value == Py_True;
    Py_XDECREF(value);
    return result;
}

/* 1 for a storage of the meta device, as fake tensors have too whatever device they name: it has no memory. */
static int is_on_meta(PyObject *storage) {
    PyObject *device = PyObject_GetAttrString(storage, "device");
    PyObject *type = device == NULL ? NULL : PyObject_GetAttrString(device, "type");
    int is_meta = type != NULL && PyUnicode_Check(type) && PyUnicode_CompareWithASCIIString(type, "meta") == 0;
    Py_XDECREF(type);
    Py_XDECREF(device);
    PyErr_Clear();
    return is_meta;
}

/* Other subclasses may dispatch in data_ptr(): their storage is asked, unless it has no address, for torch warns then. */
static PyObject *storage_address(const lp_torch_names *names, PyObject *op) {
    PyObject *storage = names->untyped_storage == NULL ? NULL : PyObject_CallOneArg(names->untyped_storage, op);
    PyObject *address = NULL;
    if (storage != NULL && !is_on_meta(storage)) {
        address = PyObject_CallMethod(storage, "data_ptr", NULL);
    }
    Py_XDECREF(storage);
    return address;
}

/* Address of the data (new int), or NULL. */
static PyObject *data_address(const lp_torch_names *names, PyObject *op) {
    PyObject *address = NULL;
    if (is_lazy_copy(names, op)) {
        return NULL;
    }
    if (!is_exact(names, Py_TYPE(op))) {
        address = storage_address(names, op);
    } else if (!is_true(names->is_meta, op)) {
        address = PyObject_CallOneArg(names->data_ptr, op);
    }
    if (address == NULL) {
        PyErr_Clear();
    }
    return address;
}

/* The function keeps the dict of the tensor's hooks as well as the tensor does. */
static void read_hooks(lp_torch *torch, uint32_t node, uint32_t function, PyObject *op) {
    PyObject *hooks = get(torch->names->hooks, op);
    if (hooks == NULL) {
        return;
    }
    if (function != LP_NODE_NONE) {
        add_edge(torch, function, Py_NewRef(hooks), "hooks", 0, LP_LATE_ONE);
    }
    add_edge(torch, node, hooks, "_backward_hooks", 0, LP_LATE_NONE); /* a name for what the collector sees */
}

static void read_tensor(lp_torch *torch, uint32_t node, PyObject *op) {
    lp_torch_names *names = torch->names;
    PyObject *grad_fn = get(names->grad_fn, op);
    uint32_t function = LP_NODE_NONE;
    if (grad_fn != NULL) {
        function = add_edge(torch, node, grad_fn, "grad_fn", 0, LP_LATE_SHARED);
    }
    read_hooks(torch, node, function, op);
    /* torch warns when .grad of another non-leaf is read. */
    if (grad_fn == NULL || is_true(names->retains_grad, op)) {
        PyObject *grad = get(names->grad, op);
        if (grad != NULL) {
            add_edge(torch, node, grad, "grad", 1, LP_LATE_SHARED);
        }
    }
    /* The wrapper keeps the dict, and so does the tensor. */
    PyObject *hooks = grad_fn == NULL ? get(names->accumulate_hooks, op) : NULL;
    if (hooks != NULL) {
        add_edge(torch, node, hooks, "_post_accumulate_grad_hooks", 1, LP_LATE_ONE);
    }
    hooks = grad_fn == NULL ? get(names->hooks, op) : NULL;
    if (hooks != NULL) { /* a reference of the wrapper, which has no name */
        add_edge(torch, node, hooks, "_backward_hooks", 1, LP_LATE_NONE);
    }
    PyObject *base = get(names->base, op);
    if (base != NULL) {
        uint32_t order = lp_views_order(torch, (uintptr_t)base, bytes_of(names, op), bytes_of(names, base));
        add_edge(torch, node, base, "_base", order, LP_LATE_SHARED);
        return;
    }
    PyObject *address = data_address(names, op);
    add_buffer(torch, node, address, bytes_of(names, op));
    Py_XDECREF(address);
}

/* ---- autograd nodes ---- */

static void collect_getters(node_type *out, PyTypeObject *type) {
    PyObject *mro = type->tp_mro, *key, *value;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        Py_ssize_t at = 0;
        while (base->tp_dict != NULL && PyDict_Next(base->tp_dict, &at, &key, &value)) {
            if (strncmp(lp_kinds_ascii(key), "_raw_saved_", 11) == 0 && Py_IS_TYPE(value, &PyGetSetDescr_Type) &&
                out->saved_count < MOST_SAVED) {
                out->saved[out->saved_count++] = value;
            }
        }
    }
    out->next_functions = lp_torch_descriptor(type, "next_functions");
    out->variable = lp_torch_descriptor(type, "variable");
    out->metadata = lp_torch_descriptor(type, "metadata");
}

static const node_type *getters_of(lp_torch_names *names, PyTypeObject *type) {
    uint32_t *number = lp_map_put(&names->type_number, (uintptr_t)type, NULL);
    if (number == NULL) {
        return NULL;
    }
    if (*number == 0) {
        node_type *types = lp_walk_reserve(names->type, names->type_count, &names->type_capacity, sizeof(*types));
        if (types == NULL) {
            return NULL;
        }
        names->type = types;
        memset(&types[names->type_count], 0, sizeof(*types));
        collect_getters(&types[names->type_count], type);
        *number = ++names->type_count;
    }
    return &names->type[*number - 1];
}

/* Where the tensor was packed by a hook, the hook that unpacks it is kept too. */
static void add_unpack_hook(lp_torch *torch, uint32_t node, PyObject *saved, uint32_t order) {
    PyObject *hook = PyObject_GetAttrString(saved, "unpack_hook");
    if (hook == NULL || hook == Py_None) {
        PyErr_Clear();
        Py_XDECREF(hook);
        return;
    }
    add_edge(torch, node, hook, "unpack_hook", order, LP_LATE_ONE);
}

static void add_saved(lp_torch *torch, uint32_t node, PyObject *saved, const char *label, uint32_t order) {
    PyObject *data = PyObject_GetAttrString(saved, "data");
    if (data == NULL) {
        torch->is_complete &= !PyErr_ExceptionMatches(PyExc_AttributeError); /* no getter: none of them is seen */
        PyErr_Clear();
        torch->why_not = torch->why_not ? torch->why_not : "this torch can't show saved tensors without unpacking them";
        return;
    } else if (data == Py_None) {
        Py_DECREF(data);
        return;
    }
    int is_tensor = lp_kinds_get(&torch->walk->kinds, Py_TYPE(data)).kind == LP_KIND_TENSOR;
    add_edge(torch, node, data, label, order, is_tensor ? LP_LATE_SHARED : LP_LATE_ONE);
    add_unpack_hook(torch, node, saved, order);
}

static void read_saved(lp_torch *torch, uint32_t node, PyObject *op, PyObject *getter) {
    /* "_raw_saved_other" is shown as "_saved_other". */
    const char *label = ((PyGetSetDescrObject *)getter)->d_getset->name + 4;
    PyObject *value = get(getter, op);
    if (value == NULL) {
        return;
    }
    if (!PyTuple_Check(value)) {
        add_saved(torch, node, value, label, 0);
    }
    for (Py_ssize_t i = 0; PyTuple_Check(value) && i < PyTuple_GET_SIZE(value); i++) {
        if (PyTuple_GET_ITEM(value, i) != Py_None) {
            add_saved(torch, node, PyTuple_GET_ITEM(value, i), label, (uint32_t)i);
        }
    }
    Py_DECREF(value);
}

static void read_next_functions(lp_torch *torch, uint32_t node, PyObject *op, PyObject *getter) {
    PyObject *next = get(getter, op);
    if (next == NULL || !PyTuple_Check(next)) {
        Py_XDECREF(next);
        return;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(next); i++) {
        PyObject *pair = PyTuple_GET_ITEM(next, i);
        PyObject *function = PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) > 0 ? PyTuple_GET_ITEM(pair, 0) : Py_None;
        if (function != Py_None) {
            Py_INCREF(function);
            add_edge(torch, node, function, "next_functions", (uint32_t)i, LP_LATE_SHARED);
        }
    }
    Py_DECREF(next);
}

/* Reading metadata makes a dict that stays, where there is none; anomaly mode fills all. */
static int may_have_metadata(const lp_torch *torch, uint32_t node, PyObject *op) {
    if (torch->names->is_anomaly) {
        return 1;
    }
    return !(torch->walk->graph.flag[node] & LP_NODE_MADE) && LP_STAMP_SITE(lp_birth_stamp(op)) != LP_SITE_SELF &&
           lp_torch_has_metadata(op);
}

static void read_autograd_node(lp_torch *torch, uint32_t node, PyObject *op) {
    const node_type *type = getters_of(torch->names, Py_TYPE(op));
    if (type == NULL) {
        return;
    }
    read_next_functions(torch, node, op, type->next_functions);
    for (uint32_t i = 0; i < type->saved_count; i++) {
        read_saved(torch, node, op, type->saved[i]);
    }
    PyObject *variable = get(type->variable, op);
    if (variable != NULL) {
        add_edge(torch, node, variable, "variable", 0, LP_LATE_SHARED);
    }
    PyObject *metadata = may_have_metadata(torch, node, op) ? get(type->metadata, op) : NULL;
    if (metadata != NULL) {
        add_edge(torch, node, metadata, "metadata", 0, LP_LATE_ONE);
    }
}

/* ---- the phase ---- */

/* A getter may make torch drop a node and its wrapper: the function of a view that was changed in
 * place is made anew when asked for. */
static void keep(lp_torch *torch, uint32_t node) {
    if (!(torch->walk->graph.flag[node] & LP_NODE_KEPT)) {
        hold(torch, Py_NewRef(lp_walk_object(torch->walk, node)), node);
    }
}

/* What a getter lets go of may have been the last to hold a member that nothing in the graph holds. */
static void keep_grown(lp_torch *torch) {
    lp_walk *walk = torch->walk;
    for (uint32_t i = 0; i < walk->grown_count && walk->status == LP_OK; i++) {
        if (lp_walk_is_object(walk, walk->grown[i].node)) {
            keep(torch, walk->grown[i].node);
        }
    }
}

static void enqueue(lp_torch *torch, uint32_t node) {
    lp_torch_names *names = torch->names;
    if (torch->walk->graph.flag[node] & LP_NODE_JUDGED) {
        return;
    }
    uint32_t *work = lp_walk_reserve(names->work, names->work_tail, &names->work_capacity, sizeof(*work));
    if (work == NULL) {
        torch->walk->status = LP_NO_MEMORY;
        return;
    }
    names->work = work;
    names->work[names->work_tail++] = node;
    keep(torch, node);
    torch->walk->graph.flag[node] |= LP_NODE_JUDGED;
}

static void read_node(lp_torch *torch, uint32_t node) {
    lp_walk *walk = torch->walk;
    PyObject *op = lp_walk_object(walk, node);
    int kind = lp_kinds_get(&walk->kinds, Py_TYPE(op)).kind;
    if (kind == LP_KIND_STORAGE) {
        /* Read when all tensors are known. */
    } else if (kind == LP_KIND_TENSOR) {
        read_tensor(torch, node, op);
    } else if (torch->budget > 0) {
        torch->budget--;
        read_autograd_node(torch, node, op);
    } else {
        torch->is_complete = 0;
        torch->why_not = "the budget for autograd nodes is used up";
    }
}

static void drain(lp_torch *torch) {
    lp_torch_names *names = torch->names;
    lp_walk *walk = torch->walk;
    while (names->work_head < names->work_tail && walk->status == LP_OK) {
        read_node(torch, names->work[names->work_head++]);
        lp_walk_continue(walk);
        while (names->taken < walk->torch_count) {
            enqueue(torch, walk->torch_node[names->taken++]);
        }
    }
}

static void read_all(lp_torch *torch) {
    lp_walk *walk = torch->walk;
    uint32_t known = torch->names->taken = walk->torch_count;
    for (uint32_t i = 0; i < known && walk->status == LP_OK; i++) {
        keep(torch, walk->torch_node[i]);
    }
    for (int growing = 1; growing >= 0; growing--) {
        for (uint32_t i = 0; i < known && walk->status == LP_OK; i++) {
            uint32_t node = walk->torch_node[i];
            if (!growing || (walk->graph.flag[node] & LP_NODE_GROWING)) {
                enqueue(torch, node);
            }
        }
        drain(torch);
    }
    for (uint32_t i = 0; i < walk->torch_count; i++) {
        walk->graph.flag[walk->torch_node[i]] &= (uint8_t)~LP_NODE_JUDGED;
    }
}

lp_status lp_torch_take(lp_torch *torch, lp_walk *walk, uint32_t budget) {
    LP_ASSERT_GIL();
    static lp_torch_names names; /* the GIL protects it */
    uint64_t began = lp_clock_ns();
    memset(&names, 0, sizeof(names));
    *torch = (lp_torch){.walk = walk, .budget = budget, .is_complete = 1, .names = &names};
    if (walk->torch_count == 0) {
        return LP_OK;
    }
    int collects = PyGC_Disable();
    keep_grown(torch);
    if (open_names(&names) < 0) {
        torch->is_complete = 0;
        torch->why_not = "this torch does not have the getters that are needed";
    } else {
        read_all(torch);
        lp_views_settle(torch);
        lp_torch_read_more(torch);
    }
    close_names(&names);
    if (collects) {
        PyGC_Enable();
    }
    torch->names = NULL;
    torch->ns = lp_clock_ns() - began;
    return walk->status;
}

void lp_torch_subtract_own(const lp_torch *torch, int64_t *refs) {
    for (uint32_t i = 0; i < torch->made_count; i++) {
        uint32_t node = lp_walk_find(torch->walk, torch->made[i]);
        if (node != LP_NODE_NONE) {
            refs[node]--;
        }
    }
    for (uint32_t i = 0; i < torch->outside_count; i++) {
        refs[torch->outside[i]]++;
    }
}

void lp_torch_release(lp_torch *torch) {
    for (uint32_t i = 0; i < torch->made_count; i++) {
        Py_DECREF(torch->made[i]);
    }
    lp_raw_free(torch->made);
    lp_raw_free(torch->outside);
    lp_map_fini(&torch->shown);
    torch->outside = NULL;
    torch->outside_count = torch->outside_capacity = 0;
    torch->made = NULL;
    torch->made_count = torch->made_capacity = 0;
}
