/* _core.trace(): arguments in, a dict of holders out. */
#include "python/values/convert.h"   // lp_raise

#include <string.h>

#include "base/rawmem.h"           // lp_raw_calloc
#include "ledger/medium.h"         // lp_medium_find
#include "python/compat/heap.h"    // lp_heap_growth
#include "python/graph/cycles.h"
#include "python/births/hooks.h"          // lp_hooks_verify
#include "python/api/methods.h"
#include "python/graph/holder_out.h"
#include "python/graph/path_out.h"
#include "python/values/rows.h"           // lp_rows_new
#include "python/owners/owned.h"    // lp_owned_collect
#include "python/owners/torch_changes.h"  // lp_torch_await_changes
#include "python/graph/trace.h"
#include "python/graph/views.h"

#define DEFAULT_TORCH_BUDGET 20000

/* ---- arguments ---- */

static int read_object_groups(PyObject *list, lp_traced_group *out) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        unsigned long long type_id;
        unsigned int site;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "KI;object_groups: (type_id, base_site) expected", &type_id,
                              &site)) {
            return -1;
        }
        out[i] = (lp_traced_group){.type = (PyTypeObject *)(uintptr_t)type_id, .site = site};
    }
    return 0;
}

static int read_block_groups(PyObject *list, lp_traced_group *out) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        const char *name;
        unsigned int site;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "sI;block_groups: (medium_name, base_site) expected", &name,
                              &site)) {
            return -1;
        }
        int medium = lp_medium_find(name);
        if (medium < 0) {
            lp_raise("bad_argument", "block_groups: unknown medium '%.40s'", name);
            return -1;
        }
        out[i] = (lp_traced_group){.medium = (uint32_t)medium, .site = site};
    }
    return 0;
}

typedef struct arguments {
    PyObject *object_groups, *block_groups, *autograd_marks;
    unsigned int first_step, last_step, node_budget, torch_budget;
    int torch, older, by_keeper;
} arguments;

static int read_arguments(PyObject *args, PyObject *keywords, arguments *out) {
    static char *names[] = {"object_groups", "block_groups",   "first_step", "last_step", "torch", "node_budget",
                            "torch_budget",  "autograd_marks", "older",      "by_keeper", NULL};
    *out = (arguments){.torch = 1, .torch_budget = DEFAULT_TORCH_BUDGET};
    return PyArg_ParseTupleAndKeywords(args, keywords, "O!O!II|$pIIO!pp:trace", names, &PyList_Type,
                                       &out->object_groups, &PyList_Type, &out->block_groups, &out->first_step,
                                       &out->last_step, &out->torch, &out->node_budget, &out->torch_budget,
                                       &PyList_Type, &out->autograd_marks, &out->older, &out->by_keeper)
               ? 0
               : -1;
}

/* Both arrays are one piece of memory, which the caller frees by `number`. */
static int read_autograd_marks(PyObject *list, lp_autograd_marks *out) {
    Py_ssize_t count = list == NULL ? 0 : PyList_GET_SIZE(list);
    uint64_t *number = count == 0 ? NULL : lp_raw_malloc((size_t)count * (sizeof(uint64_t) + sizeof(uint32_t)));
    uint32_t *step = (uint32_t *)(number + count);
    *out = (lp_autograd_marks){number, step, number == NULL ? 0 : (uint32_t)count};
    if (count != 0 && number == NULL) {
        return PyErr_NoMemory(), -1;
    }
    for (uint32_t i = 0; i < out->count; i++) {
        unsigned long long value;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "KI;autograd_marks: (number, step) expected", &value,
                              &step[i])) {
            return -1;
        }
        number[i] = value;
    }
    return 0;
}

/* ---- paths ---- */

static lp_element the_elements[LP_PATH_MOST_NODES];   /* too large for the stack; the GIL protects it */

static PyObject *path_to_list(lp_trace *trace, const lp_bucket *bucket) {
    LP_ASSERT_GIL();
    uint32_t node[LP_PATH_MOST_NODES];
    uint32_t root = bucket->top == LP_NODE_NONE ? LP_NODE_NONE : lp_trace_root_of(trace, bucket->sample);
    PyObject *list = PyList_New(0);
    if (list == NULL) {
        return NULL;
    }
    if (lp_path_append_outside(list, trace, root, (lp_trace_kind)bucket->kind) < 0) {
        Py_DECREF(list);
        return NULL;
    }
    uint32_t count = 1;
    node[0] = bucket->sample;
    if (root != LP_NODE_NONE) {
        count = lp_paths_get(&trace->paths, bucket->sample, node, LP_PATH_MOST_NODES);
    }
    count = lp_names_path(trace->walk, node, count, 0, the_elements, LP_PATH_MOST_NODES);
    if (lp_path_append_bases(list, trace->walk, the_elements, count) < 0) {
        Py_DECREF(list);
        return NULL;
    }
    return list;
}

static lp_cycles the_cycles;   /* of the trace in work, if it met garbage; the GIL protects it */

static const lp_cycle *cycle_of(lp_trace *trace, const lp_bucket *bucket) {
    LP_ASSERT_GIL();
    uint32_t root = bucket->kind == LP_TRACE_GARBAGE && bucket->top != LP_NODE_NONE
                        ? lp_trace_root_of(trace, bucket->sample)
                        : LP_NODE_NONE;
    return root == LP_NODE_NONE || the_cycles.trace == NULL ? NULL : lp_cycles_of(&the_cycles, root);
}

/* The cycle, through the edge that the collector lacks if it can't free it. */
static PyObject *cycle_to_list(const lp_trace *trace, const lp_cycle *cycle) {
    uint32_t node[LP_TRACE_MOST_ELEMENTS * 4], nodes = trace->walk->graph.node_count;
    uint32_t *scratch = cycle == NULL ? NULL : lp_raw_malloc((size_t)nodes * sizeof(*scratch));
    if (scratch == NULL) {
        return cycle == NULL ? Py_NewRef(Py_None) : PyErr_NoMemory();
    }
    memset(scratch, LP_NODE_NONE_BYTE, (size_t)nodes * sizeof(*scratch));
    uint32_t count = lp_cycles_path(&the_cycles, cycle, scratch, node, LP_TRACE_MOST_ELEMENTS * 4);
    lp_raw_free(scratch);
    if (count == 0) {
        return Py_NewRef(Py_None);
    }
    PyObject *list = PyList_New(0);
    count = lp_names_path(trace->walk, node, count, 0, the_elements, LP_PATH_MOST_NODES);
    if (list != NULL && lp_path_append_bases(list, trace->walk, the_elements, count) < 0) {
        Py_CLEAR(list);
    }
    return list;
}

static PyObject *is_collectable(const lp_cycle *cycle) {
    return cycle == NULL ? Py_NewRef(Py_None) : PyBool_FromLong(cycle->collectable);
}

/* ---- members ---- */

static PyObject *member_to_dict(const lp_trace *trace, uint32_t from, uint32_t to) {
    const lp_traced_group *group = &trace->walk->request->group[trace->cell[from].group];
    uint64_t count = 0, bytes = 0;
    lp_site_id deep = 0;
    char type[LP_NAME_BYTES] = "";
    PyObject *series = PyList_New(0);
    for (uint32_t i = from; i < to && series != NULL; i++) {
        const lp_trace_cell *cell = &trace->cell[i];
        count += cell->count;
        bytes += cell->bytes;
        deep = cell->deep_site != 0 ? cell->deep_site : deep;
        PyObject *row = lp_rows_new(LP_ROWS_COHORT, "IKK", cell->step, (unsigned long long)cell->count,
                                    (unsigned long long)cell->bytes);
        if (lp_append_steal(series, row) < 0) {
            Py_CLEAR(series);
        }
    }
    if (series == NULL) {
        return NULL;
    }
    if (group->type != NULL) {
        lp_names_type_of(group->type, type, sizeof(type));
    }
    return Py_BuildValue(
        "{s:N,s:K,s:s,s:I,s:I,s:K,s:K,s:N}", "type", group->type == NULL ? Py_NewRef(Py_None) : lp_text_to_str(type),
        "type_id", (unsigned long long)(uintptr_t)group->type, "medium",
        group->type != NULL ? "python" : lp_medium_name((lp_medium)group->medium), "site", group->site, "deep_site",
        deep, "count", (unsigned long long)count, "bytes", (unsigned long long)bytes, "series", series);
}

static PyObject *members_to_list(const lp_trace *trace, uint32_t entry) {
    PyObject *list = PyList_New(0);
    uint32_t from = 0;
    while (from < trace->cell_count && trace->cell[from].entry != entry) {
        from++;
    }
    while (list != NULL && from < trace->cell_count && trace->cell[from].entry == entry) {
        uint32_t to = from;
        while (to < trace->cell_count && trace->cell[to].entry == entry &&
               trace->cell[to].group == trace->cell[from].group) {
            to++;
        }
        if (lp_append_steal(list, member_to_dict(trace, from, to)) < 0) {
            Py_CLEAR(list);
        }
        from = to;
    }
    return list;
}

/* The place in "members" of the one that the path is shown for. */
static PyObject *sample_member(const lp_trace *trace, uint32_t entry) {
    const lp_walk *walk = trace->walk;
    uint32_t sample = trace->bucket[trace->entry[entry].bucket].sample, group = LP_NODE_NONE, place = 0;
    for (uint32_t i = 0; i < walk->grown_count && group == LP_NODE_NONE; i++) {
        group = walk->grown[i].node == sample ? walk->grown[i].group : group;
    }
    uint32_t at = 0;
    while (at < trace->cell_count && trace->cell[at].entry != entry) {
        at++;
    }
    for (; at < trace->cell_count && trace->cell[at].entry == entry && trace->cell[at].group != group; at++) {
        place += at + 1 < trace->cell_count && trace->cell[at + 1].group != trace->cell[at].group;
    }
    return PyLong_FromUnsignedLong(place);
}

/* The line that last enlarged the member shown; 0 where its memory does not tell. */
static PyObject *sample_grown_site(const lp_trace *trace, const lp_bucket *bucket) {
    const lp_walk *walk = trace->walk;
    int is_object = bucket->top != LP_NODE_NONE && lp_walk_is_object(walk, bucket->sample);
    lp_stamp stamp = is_object ? lp_heap_growth(lp_walk_object(walk, bucket->sample)) : 0;
    return PyLong_FromUnsignedLong(lp_site_base(LP_STAMP_SITE(stamp)));
}

/* 1 if a tensor between the holder and the member has a graph. */
static int has_graph(const lp_trace *trace, const lp_bucket *bucket) {
    const lp_graph *graph = &trace->walk->graph;
    uint32_t node = bucket->top == LP_NODE_NONE ? LP_NODE_NONE : bucket->sample;
    while (node != LP_NODE_NONE && node != bucket->holder) {
        const lp_late_edge *edge = lp_graph_first_late(graph, node), *end = graph->late + graph->late_count;
        for (; edge != NULL && edge < end && edge->source == node; edge++) {
            if (strcmp(edge->label, "grad_fn") == 0) {
                return 1;
            }
        }
        node = trace->paths.parent[node] == node ? LP_NODE_NONE : trace->paths.parent[node];
    }
    return 0;
}

/* ---- the result ---- */

static PyObject *entry_to_dict(lp_trace *trace, uint32_t i) {
    static const char *const kinds[] = {[LP_TRACE_HELD] = "held",       [LP_TRACE_OUTSIDE] = "outside",
                                        [LP_TRACE_GARBAGE] = "garbage", [LP_TRACE_LOST] = "lost",
                                        [LP_TRACE_UNSEEN] = "unseen",   [LP_TRACE_ATEXIT] = "outside",
                                        [LP_TRACE_SIGNALS] = "outside", [LP_TRACE_INTERPRETER] = "outside"};
    const lp_trace_entry *entry = &trace->entry[i];
    const lp_bucket *bucket = &trace->bucket[entry->bucket];
    PyObject *dict = PyDict_New();
    if (dict == NULL || lp_set_steal(dict, "kind", PyUnicode_FromString(kinds[bucket->kind])) < 0 ||
        lp_set_steal(dict, "path", path_to_list(trace, bucket)) < 0 ||
        lp_set_steal(dict, "holder", lp_holder_to_dict(trace, bucket, the_elements)) < 0 ||
        lp_set_steal(dict, "members", members_to_list(trace, i)) < 0 ||
        lp_set_steal(dict, "cycle", cycle_to_list(trace, cycle_of(trace, bucket))) < 0 ||
        lp_set_steal(dict, "collectable", is_collectable(cycle_of(trace, bucket))) < 0 ||
        lp_set_steal(dict, "has_graph", PyBool_FromLong(has_graph(trace, bucket))) < 0 ||
        lp_set_steal(dict, "sample", sample_member(trace, i)) < 0 ||
        lp_set_steal(dict, "grown_site", sample_grown_site(trace, bucket)) < 0 ||
        lp_set_steal(dict, "address", PyLong_FromUnsignedLongLong(trace->walk->address[bucket->sample])) < 0 ||
        lp_set_steal(dict, "view", lp_view_to_dict(trace, bucket)) < 0 ||
        lp_set_steal(dict, "holder_count", PyLong_FromUnsignedLong(entry->bucket_count)) < 0) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *result_to_dict(lp_trace *trace) {
    PyObject *holders = PyList_New(0);
    for (uint32_t i = 0; i < trace->entry_count && holders != NULL; i++) {
        if (lp_append_steal(holders, entry_to_dict(trace, i)) < 0) {
            Py_CLEAR(holders);
        }
    }
    if (holders == NULL) {
        return NULL;
    }
    const lp_graph *graph = &trace->walk->graph;
    const lp_torch *torch = &trace->torch;
    int complete =
        !trace->walk->request->torch || trace->walk->torch_count == 0 || (torch->is_complete && torch->why_not == NULL);
    return Py_BuildValue("{s:I,s:K,s:K,s:K,s:K,s:I,s:N,s:z,s:N,s:{s:K,s:K}}", "nodes", graph->node_count, "edges",
                         (unsigned long long)graph->edge_count + graph->late_count, "raw_ns",
                         (unsigned long long)trace->walk->raw_ns, "torch_ns", (unsigned long long)torch->ns, "skipped",
                         (unsigned long long)trace->walk->skipped_count, "wrappers", torch->wrapper_count, "complete",
                         PyBool_FromLong(complete), "why_not", torch->why_not, "holders", holders, "rest", "count",
                         (unsigned long long)trace->rest_count, "bytes", (unsigned long long)trace->rest_bytes);
}

PyObject *lp_trace_raise(lp_status status, const lp_walk_request *request) {
    if (status == LP_LIMIT && request->byte_budget != 0) {
        return lp_raise("graph_limit",
                        "the object graph takes more memory than the limit of %llu bytes: give a larger max_bytes, "
                        "or none",
                        (unsigned long long)request->byte_budget);
    }
    if (status == LP_LIMIT) {
        return lp_raise("graph_limit",
                        "the object graph has more nodes than the limit of %u: give a larger node_budget, or 0",
                        request->node_budget != 0 ? request->node_budget : UINT32_MAX - 2);
    }
    if (status == LP_UNSUPPORTED) {
        return lp_raise("gc_running",
                        "a trace can't be taken while the garbage collector is running: call it from outside "
                        "of gc callbacks and finalizers");
    }
    return lp_raise_status(status, "tracing the object graph");
}

int lp_trace_runs;   /* the GIL protects it */

int lp_trace_begin(int torch) {
    LP_ASSERT_GIL();
    if (torch) {
        lp_torch_await_changes();
    }
    if (lp_trace_runs) {
        lp_raise("already_active", "a trace is being taken already");
        return -1;
    }
    if (lp_kinds_init() < 0 || lp_heap_init() < 0) {
        return -1;
    }
    lp_trace_runs = 1;
    return PyGC_Disable();
}

void lp_trace_end(int collects) {
    LP_ASSERT_GIL();
    lp_trace_runs = 0;
    if (collects) {
        PyGC_Enable();
    }
}

static PyObject *run(const lp_walk_request *request, const arguments *given) {
    static lp_trace trace;
    PyObject *result = NULL;
    lp_owned owned = {NULL, 0};
    lp_status status = lp_trace_run(&trace, request, given->torch_budget);
    if (status == LP_OK && trace.components.count > 0) {
        status = lp_cycles_judge(&the_cycles, &trace);
    }
    if (status == LP_OK) {
        lp_owned_collect(&owned, &trace.torch);
        result = result_to_dict(&trace);
    }
    lp_cycles_forget(&the_cycles);
    lp_trace_release(&trace);
    lp_walk_give_back(trace.walk);  // a watch's walks are far apart: at rest it keeps none of their memory
    if (result != NULL && lp_set_steal(result, "owned", lp_owned_ask(&owned)) < 0) {
        Py_CLEAR(result);
    }
    lp_owned_release(&owned);
    return status == LP_OK ? result : lp_trace_raise(status, request);
}

static PyObject *mod_trace(PyObject *module, PyObject *args, PyObject *keywords) {
    arguments given;
    (void)module;
    if (read_arguments(args, keywords, &given) < 0) {
        return NULL;
    }
    int collects = lp_trace_begin(given.torch);
    if (collects < 0) {
        return NULL;
    }
    Py_ssize_t objects = PyList_GET_SIZE(given.object_groups), blocks = PyList_GET_SIZE(given.block_groups);
    lp_traced_group *groups = lp_raw_calloc((size_t)(objects + blocks) + 1, sizeof(*groups));
    lp_autograd_marks marks = {0};
    PyObject *result = groups == NULL ? lp_raise_status(LP_NO_MEMORY, "tracing the object graph") : NULL;
    lp_hooks_verify();
    if (groups != NULL && read_object_groups(given.object_groups, groups) == 0 &&
        read_block_groups(given.block_groups, groups + objects) == 0 &&
        read_autograd_marks(given.autograd_marks, &marks) == 0) {
        groups[objects + blocks] = (lp_traced_group){.medium = LP_MEDIUM_NATIVE};
        lp_walk_request request = {
            .group = groups,
            .group_count = (uint32_t)(objects + blocks) + (marks.count > 0),
            .first_step = given.first_step,
            .last_step = given.last_step,
            .node_budget = given.node_budget,
            .torch = given.torch,
            .older = given.older,
            .by_keeper = given.by_keeper,
            .autograd_marks = marks,
            .autograd_group = (uint32_t)(objects + blocks),
            .by_thread = 1,
        };
        result = run(&request, &given);
    }
    lp_raw_free((void *)marks.number);
    lp_raw_free(groups);
    lp_trace_end(collects);
    return result;
}

PyDoc_STRVAR(
    trace_doc,
    "trace($module, object_groups, block_groups, first_step, last_step, *, torch=True, node_budget=0, "
    "torch_budget=20000, autograd_marks=[], older=False, by_keeper=False)\n--\n\n"
    "Who keeps the members of these groups that were born in steps first_step to last_step.\n\n"
    "object_groups: list of (type_id, base site); block_groups: list of (medium name, base site).\n"
    "autograd_marks: list of (torch's next number for an autograd node, the step that the mark began), both rising:\n"
    "with it, autograd nodes born in these steps are members too, of medium \"native\" and site 0.  older: so are\n"
    "containers from before the hooks that a group's line enlarged last, as if born in step 0.  by_keeper: members\n"
    "are told by the step of the oldest object above them that was born in these steps.\n"
    "Errors: LeakprobeError \"graph_limit\", \"gc_running\", \"already_active\".");

PyMethodDef lp_trace_methods[] = {
    {"trace", (PyCFunction)(void (*)(void))mod_trace, METH_VARARGS | METH_KEYWORDS, trace_doc},
    {NULL, NULL, 0, NULL},
};
