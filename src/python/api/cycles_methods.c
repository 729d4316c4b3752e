/* _core.find_cycles(), why() and retained_size(): arguments in, dicts out. */
#include "python/values/convert.h"   // lp_raise

#include <string.h>

#include "base/rawmem.h"           // lp_raw_malloc
#include "python/compat/heap.h"    // lp_heap_init
#include "python/graph/cycles.h"
#include "python/births/hooks.h"            // lp_hooks_verify
#include "python/api/methods.h"
#include "python/graph/path_out.h"
#include "python/graph/retention.h"
#include "python/values/rows.h"             // lp_rows_new
#include "python/heap/sizes.h"            // lp_size_of
#include "python/values/type_names.h"     // lp_type_name_copy

#define TORCH_BUDGET 10000000      /* autograd nodes: all of them */

static lp_element the_elements[LP_PATH_MOST_NODES];   /* the GIL protects them */
static lp_trace the_trace;

/* ---- tallies ---- */

typedef struct tally {
    uint64_t key;              /* a type's address, or a site + 1 */
    uint64_t count, bytes;
} tally;

typedef struct tallies {
    lp_map number;             /* key => index + 1 */
    tally *of;
    uint32_t count, capacity;
} tallies;

static void tally_clear(tallies *t) {
    lp_map_clear(&t->number);
    t->count = 0;
}

static void tally_fini(tallies *t) {
    lp_map_fini(&t->number);
    lp_raw_free(t->of);
}

static int tally_add(tallies *t, uint64_t key, uint64_t bytes) {
    uint32_t *number = lp_map_put(&t->number, key, NULL);
    tally *of = lp_walk_reserve(t->of, t->count, &t->capacity, sizeof(*of));
    if (number == NULL || of == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    t->of = of;
    if (*number == 0) {
        of[t->count] = (tally){.key = key};
        *number = ++t->count;
    }
    of[*number - 1].count++;
    of[*number - 1].bytes += bytes;
    return 0;
}

static PyObject *tally_key(uint64_t key, int is_type) {
    if (!is_type) {
        return PyLong_FromUnsignedLongLong(key - 1);
    }
    char *name = lp_type_name_copy((PyTypeObject *)(uintptr_t)key);
    PyObject *text = name == NULL ? PyErr_NoMemory() : lp_text_to_str(name);
    lp_raw_free(name);
    return text;
}

/* List of TypeTally or SiteTally. */
static PyObject *tally_to_list(const tallies *t, int is_type) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; i < t->count && list != NULL; i++) {
        const tally *of = &t->of[i];
        PyObject *row =
            lp_rows_new(is_type ? LP_ROWS_TYPE_TALLY : LP_ROWS_SITE_TALLY, "NKK", tally_key(of->key, is_type),
                        (unsigned long long)of->count, (unsigned long long)of->bytes);
        if (lp_append_steal(list, row) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* ---- cycles ---- */

typedef struct output {
    const lp_cycles *cycles;
    tallies types, sites;
    uint32_t *scratch;
} output;

static int tally_node(output *o, uint32_t node) {
    const lp_walk *walk = o->cycles->trace->walk;
    if (node < walk->block_count) {
        const lp_block *block = &walk->block[node];
        return tally_add(&o->sites, (uint64_t)lp_site_base(block->site) + 1, block->bytes);
    }
    if (!lp_walk_is_object(walk, node) || (walk->graph.flag[node] & LP_NODE_MADE)) {
        return 0;
    }
    PyObject *op = lp_walk_object(walk, node);
    uint64_t bytes = lp_size_of(op);
    lp_site_id site = lp_site_base(LP_STAMP_SITE(lp_birth_stamp(op)));
    if (site != LP_SITE_UNKNOWN && tally_add(&o->sites, (uint64_t)site + 1, bytes) < 0) {
        return -1;
    }
    return tally_add(&o->types, (uintptr_t)Py_TYPE(op), bytes);
}

static PyObject *bytes_to_dict(const uint64_t *bytes) {
    PyObject *dict = PyDict_New();
    for (int medium = 0; medium < LP_MEDIUM_COUNT && dict != NULL; medium++) {
        if (bytes[medium] != 0 &&
            lp_set_steal(dict, lp_medium_name((lp_medium)medium), PyLong_FromUnsignedLongLong(bytes[medium])) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

static PyObject *cycle_path(output *o, const lp_cycle *cycle) {
    uint32_t node[LP_PATH_MOST_NODES];
    PyObject *list = PyList_New(0);
    if (list == NULL) {
        return NULL;
    }
    uint32_t count = lp_cycles_path(o->cycles, cycle, o->scratch, node, LP_PATH_MOST_NODES);
    count = lp_names_path(o->cycles->trace->walk, node, count, 0, the_elements, LP_PATH_MOST_NODES);
    if (lp_path_append(list, the_elements, count, 0) < 0) {
        Py_CLEAR(list);
    }
    return list;
}

/* The edge that the collector lacks, or None. */
static PyObject *lacking_edge(output *o, const lp_cycle *cycle) {
    uint32_t node[2] = {cycle->source, cycle->target};
    if (cycle->source == LP_NODE_NONE ||
        lp_names_path(o->cycles->trace->walk, node, 2, 0, the_elements, LP_PATH_MOST_NODES) != 2) {
        return Py_NewRef(Py_None);
    }
    return Py_BuildValue("{s:N,s:N,s:N,s:N}", "source", lp_text_to_str(the_elements[0].type), "text",
                         lp_text_to_str(the_elements[1].text), "edge", lp_text_to_str(the_elements[1].edge), "type",
                         lp_text_to_str(the_elements[1].type));
}

static PyObject *held_by(const lp_cycle *cycle) {
    return cycle->held_by == LP_NODE_NONE ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(cycle->held_by);
}

static PyObject *cycle_to_dict(output *o, const lp_cycle *cycle) {
    PyObject *dict = PyDict_New();
    tally_clear(&o->types);
    tally_clear(&o->sites);
    for (uint32_t i = cycle->from; i < cycle->to && dict != NULL; i++) {
        if (tally_node(o, o->cycles->node[i]) < 0) {
            Py_CLEAR(dict);
        }
    }
    if (dict == NULL || lp_set_steal(dict, "path", cycle_path(o, cycle)) < 0 ||
        lp_set_steal(dict, "members", PyLong_FromUnsignedLong(cycle->members)) < 0 ||
        lp_set_steal(dict, "tracked", PyLong_FromUnsignedLong(cycle->tracked)) < 0 ||
        lp_set_steal(dict, "objects", tally_to_list(&o->types, 1)) < 0 ||
        lp_set_steal(dict, "bytes", bytes_to_dict(cycle->bytes)) < 0 ||
        lp_set_steal(dict, "collectable", PyBool_FromLong(cycle->collectable)) < 0 ||
        lp_set_steal(dict, "lacks", lacking_edge(o, cycle)) < 0 || lp_set_steal(dict, "held_by", held_by(cycle)) < 0 ||
        lp_set_steal(dict, "sites", tally_to_list(&o->sites, 0)) < 0) {
        Py_CLEAR(dict);
    }
    return dict;
}

/* What paths are searched with; 0, or -1 with an exception set. */
static int make_scratch(output *o) {
    size_t nodes = o->cycles->trace->walk->graph.node_count;
    o->scratch = lp_raw_malloc((nodes + 1) * sizeof(*o->scratch));
    if (o->scratch == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    memset(o->scratch, LP_NODE_NONE_BYTE, nodes * sizeof(*o->scratch));
    return 0;
}

PyObject *lp_cycles_to_list(const lp_cycles *cycles) {
    output o = {.cycles = cycles};
    PyObject *list = PyList_New(0);
    if (cycles->count > 0 && list != NULL && make_scratch(&o) < 0) {
        Py_CLEAR(list);
    }
    for (uint32_t i = 0; i < cycles->count && list != NULL; i++) {
        if (lp_append_steal(list, cycle_to_dict(&o, &cycles->cycle[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    lp_raw_free(o.scratch);
    tally_fini(&o.types);
    tally_fini(&o.sites);
    return list;
}

/* ---- their sum ---- */

/* wanted: a medium, a family of media, or "" for all of the host's. */
static uint64_t bytes_of_part(const lp_cycle *cycle, const char *wanted) {
    uint64_t bytes = 0;
    for (int medium = 0; medium < LP_MEDIUM_COUNT; medium++) {
        int family = medium < LP_MEDIUM_CUDA0 ? medium : LP_MEDIUM_CUDA0;
        int is_part = wanted[0] == 0 ? family != LP_MEDIUM_CUDA0
                                     : strcmp(lp_medium_name((lp_medium)medium), wanted) == 0 ||
                                           strcmp(lp_media[family].name, wanted) == 0;
        bytes += is_part ? cycle->bytes[medium] : 0;
    }
    return bytes;
}

static PyObject *path_or_none(const lp_cycles *cycles, const lp_cycle *cycle) {
    output o = {.cycles = cycles};
    PyObject *path = cycle == NULL ? PyList_New(0) : make_scratch(&o) < 0 ? NULL : cycle_path(&o, cycle);
    lp_raw_free(o.scratch);
    return path;
}

/* One path is named: a million of them would take more memory than their cycles. */
static PyObject *total_to_dict(const lp_cycles *cycles, const char *wanted) {
    const lp_cycle *largest = NULL;
    uint64_t bytes = 0, most = 0;
    unsigned int count = 0;
    for (uint32_t i = 0; i < cycles->count; i++) {
        uint64_t part = cycles->cycle[i].collectable ? bytes_of_part(&cycles->cycle[i], wanted) : 0;
        bytes += part;
        count += part > 0;
        if (part > most) {
            most = part;
            largest = &cycles->cycle[i];
        }
    }
    PyObject *path = path_or_none(cycles, largest);
    return path == NULL
               ? NULL
               : Py_BuildValue("{s:K,s:I,s:N}", "bytes", (unsigned long long)bytes, "count", count, "path", path);
}

static PyObject *all_to_list(const lp_cycles *cycles, const char *unused) {
    (void)unused;
    return lp_cycles_to_list(cycles);
}

/* What make() makes of the garbage of now; what: its argument. */
static PyObject *with_cycles(lp_walk_request *request, PyObject *(*make)(const lp_cycles *, const char *),
                             const char *what) {
    lp_cycles cycles;
    PyObject *result = NULL;
    int collects = lp_trace_begin(request->torch);
    if (collects < 0) {
        return NULL;
    }
    lp_hooks_verify();
    lp_status status = lp_cycles_find(&cycles, &the_trace, request, TORCH_BUDGET);
    if (status == LP_OK) {
        result = make(&cycles, what);
    } else {
        lp_trace_raise(status, request);
    }
    lp_cycles_release(&cycles);
    lp_trace_end(collects);
    return result;
}

static PyObject *mod_collectable(PyObject *module, PyObject *medium) {
    lp_walk_request request = {.torch = 1};
    (void)module;
    const char *wanted = PyUnicode_Check(medium) ? PyUnicode_AsUTF8(medium) : NULL;
    if (wanted == NULL) {
        PyErr_Clear();
        return lp_raise("bad_argument", "collectable() takes the name of a medium");
    }
    return with_cycles(&request, total_to_dict, wanted);
}

PyDoc_STRVAR(collectable_doc,
             "What a collection would free of a medium, a family of them, or (\"\") of the host's: bytes, count of\n"
             "cycles, and the path of the largest.  Errors: as of find_cycles().");

static PyObject *mod_find_cycles(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"torch", "node_budget", "max_bytes", NULL};
    int torch = 1;
    unsigned int node_budget = 0;
    unsigned long long max_bytes = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|pIK:find_cycles", names, &torch, &node_budget, &max_bytes)) {
        return NULL;
    }
    lp_walk_request request = {.torch = torch, .node_budget = node_budget, .byte_budget = max_bytes};
    return with_cycles(&request, all_to_list, NULL);
}

PyDoc_STRVAR(find_cycles_doc,
             "All garbage that only a collection would free, or that the collector cannot free, by cycle.\n\n"
             "Collects and changes nothing.  A list of dicts: path, members, tracked, objects, bytes, collectable,\n"
             "lacks, held_by, sites.  Errors: LeakprobeError \"graph_limit\", \"gc_running\", \"already_active\".");

/* ---- why ---- */

static PyObject *found_path_to_list(const lp_retention *r, const lp_found_path *path) {
    uint32_t node[LP_PATH_MOST_NODES];
    char text[96];
    PyObject *list = PyList_New(0);
    if (list == NULL) {
        return NULL;
    }
    if (path->outside) {
        long long known = (long long)r->trace->refs[path->first] - (path->first == r->object ? r->own : 0);
        PyOS_snprintf(text, sizeof(text), "held outside Python (%lld reference%s unexplained)", known,
                      known == 1 ? "" : "s");
        if (lp_append_steal(list, lp_element_to_dict(text, "outside", "")) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    uint32_t left_out, count = lp_retention_get(r, path, node, LP_PATH_MOST_NODES, &left_out);
    count = lp_names_path(r->trace->walk, node, count, 0, the_elements, LP_PATH_MOST_NODES);
    if (lp_path_append(list, the_elements, count, left_out) < 0) {
        Py_CLEAR(list);
    }
    return list;
}

static PyObject *paths_to_list(const lp_retention *r, unsigned int most) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; i < r->count && i < most && list != NULL; i++) {
        if (lp_append_steal(list, found_path_to_list(r, &r->path[i])) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* 0, or -1 with an exception set if there is no answer for such an object. */
static int check_object(PyObject *op) {
    if (PyWeakref_CheckProxy(op) && ((PyWeakReference *)op)->wr_object == Py_None) {
        lp_raise("dead_object", "the object behind this weakref proxy is dead: nothing keeps it");
        return -1;
    }
    if (PyLong_Check(op) || op == Py_None || op == Py_Ellipsis || op == Py_NotImplemented ||
        (PyUnicode_CheckExact(op) && PyUnicode_CHECK_INTERNED(op))) {
        lp_raise("shared_object",
                 "this %.40s may be shared by the whole interpreter, so that no one place keeps it: ask for "
                 "the object that holds it",
                 Py_TYPE(op)->tp_name);
        return -1;
    }
    if (PyType_Check(op) && !(((PyTypeObject *)op)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        lp_raise("shared_object", "the built-in type %.80s is in static memory and is never freed",
                 ((PyTypeObject *)op)->tp_name);
        return -1;
    }
    return 0;
}

static PyObject *raise_only_call(const lp_retention *r, PyObject *op) {
    if (!r->is_in_graph || r->reverse.row == NULL || r->reverse.row[r->object] == r->reverse.row[r->object + 1]) {
        return lp_raise("only_this_call", "only this call keeps the %.80s: there is no other reference to it",
                        Py_TYPE(op)->tp_name);
    }
    return lp_raise("only_this_call",
                    "only this call keeps the %.80s: what refers to it is garbage itself, or belongs to leakprobe; "
                    "see find_cycles()",
                    Py_TYPE(op)->tp_name);
}

/* The limit, if there is an argument at `at`; 0, or -1 with an exception set. */
static int read_max_bytes(PyObject *const *args, Py_ssize_t count, Py_ssize_t at, lp_walk_request *request) {
    request->byte_budget = count > at ? PyLong_AsUnsignedLongLong(args[at]) : 0;
    return request->byte_budget == UINT64_MAX && PyErr_Occurred() ? -1 : 0;
}

static PyObject *mod_why(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    lp_walk_request request = {.torch = 1};
    lp_retention r;
    PyObject *result = NULL;
    (void)module;
    long most = count >= 2 ? PyLong_AsLong(args[1]) : 8;
    if (count < 1 || count > 3 || (most == -1 && PyErr_Occurred()) || read_max_bytes(args, count, 2, &request) < 0) {
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError, "why(obj, most=8, max_bytes=0, /): an object and numbers expected");
        return NULL;
    }
    if (most < 1 || most > LP_RETENTION_MOST) {
        return lp_raise("bad_argument", "most must be 1 to %d, not %ld", LP_RETENTION_MOST, most);
    }
    int collects = check_object(args[0]) < 0 ? -1 : lp_trace_begin(request.torch);
    if (collects < 0) {
        return NULL;
    }
    lp_status status = lp_retention_paths(&r, &the_trace, &request, args[0], TORCH_BUDGET);
    if (status != LP_OK) {
        lp_trace_raise(status, &request);
    } else {
        result = r.count == 0 ? raise_only_call(&r, args[0]) : paths_to_list(&r, (unsigned int)most);
    }
    lp_retention_release(&r);
    lp_trace_end(collects);
    return result;
}

PyDoc_STRVAR(why_doc, "What keeps obj alive besides this call: lists of elements {text, edge, type}, roots first.\n\n"
                      "Errors: LeakprobeError \"only_this_call\", \"shared_object\", \"dead_object\", \"gc_running\", "
                      "\"already_active\".");

static PyObject *mod_retained_size(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    lp_walk_request request = {.torch = 1};
    uint64_t bytes;
    (void)module;
    if (count < 1 || count > 2 || read_max_bytes(args, count, 1, &request) < 0) {
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError, "retained_size(obj, max_bytes=0, /): an object and a number expected");
        return NULL;
    }
    PyObject *op = args[0];
    int collects = check_object(op) < 0 ? -1 : lp_trace_begin(request.torch);
    if (collects < 0) {
        return NULL;
    }
    lp_status status = lp_retention_size(&the_trace, &request, op, TORCH_BUDGET, &bytes);
    lp_trace_release(&the_trace);
    lp_trace_end(collects);
    return status == LP_OK ? PyLong_FromUnsignedLongLong(bytes) : lp_trace_raise(status, &request);
}

PyDoc_STRVAR(retained_size_doc,
             "Bytes that would be freed if obj went: the object and all that only it leads to, buffers included.");

PyMethodDef lp_cycles_methods[] = {
    {"why", (PyCFunction)(void (*)(void))mod_why, METH_FASTCALL, why_doc},
    {"retained_size", (PyCFunction)(void (*)(void))mod_retained_size, METH_FASTCALL, retained_size_doc},
    {"find_cycles", (PyCFunction)(void (*)(void))mod_find_cycles, METH_VARARGS | METH_KEYWORDS, find_cycles_doc},
    {"collectable", mod_collectable, METH_O, collectable_doc},
    {NULL, NULL, 0, NULL},
};
