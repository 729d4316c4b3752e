/* Paths in words, with carriers folded into their owners. No user code runs, nothing is repr()ed. */
#include "python/graph/edge_names.h"

#include <stdio.h>
#include <string.h>

#include "base/rawmem.h"                // lp_raw_free
#include "ledger/medium.h"              // lp_medium_name
#include "python/compat/lookups.h"  // lp_lookup_base
#include "python/compat/heap.h"         // lp_heap_looks_alive
#include "python/compat/heap_locals.h"  // lp_frames_qualname
#include "python/compat/heap_names.h"   // lp_heap_instance_dict
#include "python/graph/relate.h"              // lp_relate
#include "python/heap/sizes.h"               // lp_size_length
#include "python/values/type_names.h"          // lp_type_name_copy

/* ---- what a node is ---- */

void lp_names_type_of(PyTypeObject *type, char *out_text, size_t bytes) {
    char *name = lp_type_name_copy(type);
    snprintf(out_text, bytes, "%s", name == NULL ? "" : name);
    lp_raw_free(name);
}

void lp_names_type(const lp_walk *walk, uint32_t node, char *out_text, size_t bytes) {
    out_text[0] = 0;
    if (node < walk->block_count) {
        snprintf(out_text, bytes, "buffer");
    } else if (!lp_walk_is_object(walk, node)) {
        snprintf(out_text, bytes, "frame");
    } else {
        lp_names_type_of(Py_TYPE(lp_walk_object(walk, node)), out_text, bytes);
    }
}

static const char *short_type(PyObject *op) {
    const char *name = strrchr(Py_TYPE(op)->tp_name, '.');
    return name == NULL ? Py_TYPE(op)->tp_name : name + 1;
}

/* The most a deque may hold, or -1: its own getter, which runs no user code. */
static int64_t deque_bound(PyObject *op) {
    PyTypeObject *type = lp_lookup_base(Py_TYPE(op), "collections.deque");
    PyObject *getter = type == NULL || type->tp_dict == NULL ? NULL : PyDict_GetItemString(type->tp_dict, "maxlen");
    if (getter == NULL || Py_TYPE(getter)->tp_descr_get == NULL) {
        return -1;
    }
    PyObject *value = Py_TYPE(getter)->tp_descr_get(getter, op, (PyObject *)Py_TYPE(op));
    int64_t bound = value != NULL && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    PyErr_Clear();
    return bound;
}

void lp_names_length(const lp_walk *walk, uint32_t node, int64_t *out_length, int64_t *out_bound) {
    *out_length = *out_bound = -1;
    if (!lp_walk_is_object(walk, node)) {
        return;
    }
    PyObject *op = lp_walk_object(walk, node);
    lp_size_rule rule = lp_size_rule_of(Py_TYPE(op));
    if (lp_size_is_container(&rule)) {
        *out_length = (int64_t)lp_size_length(op, &rule);
        *out_bound = rule.kind == LP_SIZE_DEQUE ? deque_bound(op) : -1;
    } else if (PyTuple_Check(op)) {
        *out_length = PyTuple_GET_SIZE(op);
    } else if (lp_relate_is_lru_cache(Py_TYPE(op))) {
        Py_ssize_t maxsize;
        PyObject *dict = lp_relate_lru_dict(op, &maxsize);
        *out_length = dict == NULL ? -1 : PyDict_GET_SIZE(dict);
        *out_bound = maxsize;
    }
}

/* 1 for a type of C code without attributes of Python, of static storage or made at run time (the standard library's
 * types move from the one to the other): a queue, a table, a memo. */
static int is_plain_extension(const PyTypeObject *type) {
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return 1;
    }
    for (const PyTypeObject *base = type; base != NULL; base = base->tp_base) {
        if (lp_relate_has_slots(base)) {
            return 0;
        }
    }
    return type->tp_dictoffset == 0;
}

int lp_names_is_container(const lp_walk *walk, uint32_t node) {
    int64_t length, bound;
    if (!lp_walk_is_object(walk, node)) {
        return 0;
    }
    PyObject *op = lp_walk_object(walk, node);
    if (lp_relate_is_lru_cache(Py_TYPE(op))) {
        return 1;
    }
    lp_names_length(walk, node, &length, &bound);
    if (length >= 0 || lp_lookup_base(Py_TYPE(op), "numpy.ndarray") != NULL) {
        return 1;
    }
    return is_plain_extension(Py_TYPE(op)) && !PyModule_Check(op) && !PyType_Check(op) && !PyFunction_Check(op) &&
           !PyMethod_Check(op) && !PyCell_Check(op) && lp_heap_instance_dict(op) == NULL;
}

int lp_names_is_carrier(const lp_walk *walk, uint32_t owner, uint32_t node) {
    if (!lp_walk_is_object(walk, node)) {
        return 0;
    }
    PyObject *op = lp_walk_object(walk, node);
    if (PyCell_Check(op)) {
        return 1;
    }
    if (owner == LP_NODE_NONE || !lp_walk_is_object(walk, owner)) {
        return 0;
    }
    PyObject *holder = lp_walk_object(walk, owner);
    if (PyFunction_Check(holder)) {
        const PyFunctionObject *function = (PyFunctionObject *)holder;
        return op == function->func_closure || op == function->func_defaults || op == function->func_kwdefaults ||
               (PyDict_Check(op) && lp_heap_instance_dict(holder) == op);
    }
    if (PyFrame_Check(op)) {
        return PyGen_Check(holder) || PyCoro_CheckExact(holder) || PyAsyncGen_CheckExact(holder);
    }
    if (!PyDict_Check(op)) {
        return 0;
    }
    if (lp_relate_is_lru_cache(Py_TYPE(holder))) {
        return 1;
    }
    return PyModule_Check(holder) ? PyModule_GetDict(holder) == op
           : PyType_Check(holder) ? ((PyTypeObject *)holder)->tp_dict == op
                                  : lp_heap_instance_dict(holder) == op;
}

int lp_names_is_cache_dict(const lp_walk *walk, uint32_t owner, uint32_t node) {
    return owner != LP_NODE_NONE && owner != node && lp_walk_is_object(walk, owner) && lp_walk_is_object(walk, node) &&
           PyDict_Check(lp_walk_object(walk, node)) && lp_relate_is_lru_cache(Py_TYPE(lp_walk_object(walk, owner))) &&
           lp_heap_instance_dict(lp_walk_object(walk, owner)) != lp_walk_object(walk, node);
}

/* ---- texts ---- */

static void describe_object(const lp_walk *walk, uint32_t node, int as_pattern, lp_text_out *text) {
    PyObject *op = lp_walk_object(walk, node);
    int64_t length = -1, bound = -1;
    const char *between = text->length > 0 ? " " : "";
    if (!as_pattern) {
        lp_names_length(walk, node, &length, &bound);
    }
    int is_generator = PyGen_Check(op) || PyCoro_CheckExact(op);
    if (is_generator || PyFunction_Check(op) || PyType_Check(op)) {
        PyObject *name = is_generator           ? lp_frames_qualname(op)
                         : PyFunction_Check(op) ? ((PyFunctionObject *)op)->func_qualname
                         : (((PyTypeObject *)op)->tp_flags & Py_TPFLAGS_HEAPTYPE)
                             ? ((PyHeapTypeObject *)op)->ht_qualname
                             : NULL;
        const char *kind = is_generator ? short_type(op) : PyType_Check(op) ? "class" : "function";
        lp_text_add(text, "%s%s ", between, kind);
        lp_text_add_str(text, name, LP_FUNCTION_WIDTH);
    } else if (length < 0) {
        lp_text_add(text, "%s%.60s", between, short_type(op));
    } else if (bound >= 0) {
        lp_text_add(text, "%s(%.60s, %lld of %lld items)", between, short_type(op), (long long)length,
                    (long long)bound);
    } else {
        lp_text_add(text, "%s(%.60s, %lld item%s)", between, short_type(op), (long long)length, length == 1 ? "" : "s");
    }
}

static void describe_node(const lp_walk *walk, uint32_t node, int as_pattern, lp_text_out *text) {
    if (node < walk->block_count) {
        const lp_block *block = &walk->block[node];
        if (text->length == 0) {
            lp_text_add(text, "buffer");
        }
        if (as_pattern) {
            lp_text_add(text, " (%s)", lp_medium_name(block->medium));
        } else {
            lp_text_add(text, " (%s, %llu bytes)", lp_medium_name(block->medium), (unsigned long long)block->bytes);
        }
        return;
    }
    if (lp_walk_is_object(walk, node)) {
        describe_object(walk, node, as_pattern, text);
    }
}

static void describe_frame(const lp_walk *walk, uint32_t node, lp_element *out) {
    const lp_running_frame *frame = &walk->frame[node - walk->block_count];
    lp_text_out text = lp_text_begin(out->text, sizeof(out->text));
    lp_text_add_str(&text, frame->code->co_name, LP_FUNCTION_WIDTH);
    lp_text_add(&text, "() in ");
    PyObject *file = frame->code->co_filename;
    Py_ssize_t length = PyUnicode_GET_LENGTH(file), from = length;
    while (from > 0 && PyUnicode_READ_CHAR(file, from - 1) != '/') {
        from--;
    }
    for (; from < length; from++) {
        Py_UCS4 c = PyUnicode_READ_CHAR(file, from);
        lp_text_add(&text, "%c", c >= ' ' && c <= '~' ? (int)c : '?');
    }
    snprintf(out->edge, sizeof(out->edge), "frame");
    snprintf(out->type, sizeof(out->type), "frame");
}

static int is_frame(const lp_walk *walk, uint32_t node) {
    return node >= walk->block_count && !lp_walk_is_object(walk, node);
}

/* The root of a path; 1 if it is one with a text of its own. */
static int describe_root(const lp_walk *walk, uint32_t node, lp_element *out) {
    out->node = node;
    if (is_frame(walk, node)) {
        describe_frame(walk, node, out);
        return 1;
    }
    for (uint32_t i = 0; i < walk->module_count; i++) {
        if (walk->module[i].node == node) {
            lp_text_out text = lp_text_begin(out->text, sizeof(out->text));
            lp_text_add_str(&text, walk->module[i].name, LP_NAME_WIDTH);
            snprintf(out->edge, sizeof(out->edge), "module");
            snprintf(out->type, sizeof(out->type), "module");
            return 1;
        }
    }
    return 0;
}

/* A name that begins like an attribute needs no dot at the top of a module. */
static void describe_global(const lp_walk *walk, uint32_t root, uint32_t node, int as_pattern, lp_element *out,
                            lp_text_out *text) {
    PyObject *dict = lp_walk_object(walk, root), *key, *value;
    Py_ssize_t at = 0;
    snprintf(out->edge, sizeof(out->edge), "global");
    if (as_pattern && PyDict_GET_SIZE(dict) > LP_NAMES_TOLD_APART) {
        lp_text_add(text, "*");
        return;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (lp_walk_is_object(walk, node) && value == lp_walk_object(walk, node)) {
            lp_text_add_str(text, key, LP_NAME_WIDTH);
            return;
        }
    }
}

static int is_module_root(const lp_element *root, uint32_t node, const lp_walk *walk) {
    return root->node == node && strcmp(root->edge, "module") == 0 && PyDict_Check(lp_walk_object(walk, node));
}

uint32_t lp_names_path(const lp_walk *walk, const uint32_t *nodes, uint32_t count, int as_pattern, lp_element *out,
                       uint32_t max) {
    uint32_t written = 0, owner = LP_NODE_NONE;
    for (uint32_t i = 0; i < count && written < max; i++) {
        lp_element *element = &out[written];
        uint32_t node = nodes[i], source = i > 0 ? nodes[i - 1] : LP_NODE_NONE;
        memset(element, 0, sizeof(*element));
        if ((i == 0 || is_frame(walk, node)) && describe_root(walk, node, element)) {
            written++;
            owner = LP_NODE_NONE;
            continue;
        }
        int source_carries = i > 0 && owner != LP_NODE_NONE;
        if (i + 1 < count && lp_names_is_carrier(walk, source_carries ? owner : source, node)) {
            owner = source_carries ? owner : source;
            continue;
        }
        lp_text_out text = lp_text_begin(element->text, sizeof(element->text));
        const char *edge = "reference";
        snprintf(element->edge, sizeof(element->edge), "root");
        if (i > 0 && is_module_root(&out[0], source, walk)) {
            describe_global(walk, source, node, as_pattern, element, &text);
        } else if (i > 0) {
            lp_relate(walk, owner, source, node, as_pattern, &text, &edge);
            snprintf(element->edge, sizeof(element->edge), "%s", edge);
        }
        describe_node(walk, node, as_pattern, &text);
        lp_names_type(walk, node, element->type, sizeof(element->type));
        element->node = node;
        owner = LP_NODE_NONE;
        written++;
    }
    return written;
}
