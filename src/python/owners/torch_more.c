#include "python/owners/torch_more.h"

#include <string.h>

#include "base/rawmem.h"                // lp_raw_free
#include "process/mappings.h"           // lp_peek_words
#include "python/compat/heap_names.h"  // lp_heap_instance_dict

#define LONG_NODE_WORDS 160
#define METADATA_WORDS 8   /* {vtable, ..., dict} */
#define MOST_HOOKS 32

/* ---- memory of autograd nodes ---- */

/* Functions written in Python have a structure of their own. */
static int is_python_function(PyObject *op) { return lp_kinds_has_base(Py_TYPE(op), "torch._C._FunctionBase"); }

/* 1 if the words at an address are a node: it points back to its wrapper, which proves it. */
static int is_node_at(uint64_t address, PyObject *op, uint64_t *out_words) {
    if (address <= UINT16_MAX || (address & 7) != 0 || !lp_peek_words(address, out_words, LP_TORCH_NODE_WORDS)) {
        return 0;
    }
    for (int i = 2; i < LP_TORCH_NODE_WORDS; i++) {
        if (out_words[i] == (uint64_t)(uintptr_t)op) {
            return 1;
        }
    }
    return 0;
}

/* The node of a function written in Python: its pointer is one of the last words of the wrapper. */
static uint64_t find_python_node(PyObject *op, uint64_t *out_words) {
    LP_ASSERT_GIL();
    static size_t known_place;   /* the GIL protects it */
    const uint64_t *word = (const uint64_t *)op;
    if (known_place != 0 && is_node_at(word[known_place], op, out_words)) {
        return word[known_place];
    }
    PyTypeObject *base = Py_TYPE(op);
    while (base != NULL && strcmp(base->tp_name, "torch._C._FunctionBase") != 0) {
        base = base->tp_base;
    }
    for (size_t i = base == NULL ? 0 : (size_t)base->tp_basicsize / sizeof(*word); i-- > 2;) {
        if (is_node_at(word[i], op, out_words)) {
            known_place = i;
            return word[i];
        }
    }
    return 0;
}

/* PyObject_HEAD, pointer to the node. */
static uint64_t node_of_wrapper(const PyObject *op) {
    return Py_TYPE(op)->tp_basicsize < (Py_ssize_t)(3 * sizeof(uint64_t)) ? 0 : ((const uint64_t *)op)[2];
}

uint64_t lp_torch_read_node(PyObject *op, uint64_t *out_words) {
    if (is_python_function(op)) {
        return find_python_node(op, out_words);
    }
    uint64_t node = node_of_wrapper(op);
    return is_node_at(node, op, out_words) ? node : 0;
}

/* A dict that the walk knows, or LP_NODE_NONE. */
static uint32_t known_dict(const lp_walk *walk, uint64_t word) {
    if (word == 0 || (word & 7) != 0) {
        return LP_NODE_NONE;
    }
    uint32_t node = lp_walk_find(walk, (void *)(uintptr_t)word);
    return node != LP_NODE_NONE && lp_walk_is_object(walk, node) && PyDict_Check(lp_walk_object(walk, node))
               ? node
               : LP_NODE_NONE;
}

/* ---- metadata ---- */

static size_t metadata_word;   /* of a node: points to its metadata; 0: not known.  The GIL protects it */

/* The word of a node that its first metadata changed from null. */
static size_t find_changed_word(const uint64_t *before, const uint64_t *after, const PyObject *dict) {
    uint64_t held[METADATA_WORDS];
    for (size_t i = 2; i < LP_TORCH_NODE_WORDS; i++) {
        int is_new = before[i] == 0 && (after[i] & 7) == 0 && lp_peek_words(after[i], held, METADATA_WORDS);
        for (size_t k = 1; is_new && k < METADATA_WORDS; k++) {
            if (held[k] == (uint64_t)(uintptr_t)dict) {
                return i;
            }
        }
    }
    return 0;
}

/* Learn the word from a node of our own, whose metadata is made before our eyes.  It does not point back to its wrapper. */
static void learn_metadata_word(void) {
    LP_ASSERT_GIL();
    PyObject *functions = lp_torch_module_attribute("torch._C", "_functions");
    PyObject *type = functions != NULL && PyModule_Check(functions)
                         ? PyDict_GetItemString(PyModule_GetDict(functions), "UndefinedGrad")
                         : NULL;
    PyObject *op = type == NULL ? NULL : PyObject_CallNoArgs(type);
    uint64_t before[LP_TORCH_NODE_WORDS], after[LP_TORCH_NODE_WORDS], node = op == NULL ? 0 : node_of_wrapper(op);
    if (node != 0 && lp_peek_words(node, before, LP_TORCH_NODE_WORDS)) {
        PyObject *dict = PyObject_GetAttrString(op, "metadata");
        if (dict != NULL && lp_peek_words(node, after, LP_TORCH_NODE_WORDS)) {
            metadata_word = find_changed_word(before, after, dict);
        }
        Py_XDECREF(dict);
    }
    Py_XDECREF(op);
    PyErr_Clear();
}

int lp_torch_has_metadata(PyObject *op) {
    static int is_tried;
    uint64_t word[LP_TORCH_NODE_WORDS];
    if (!is_tried) {
        is_tried = 1;
        learn_metadata_word();
    }
    return metadata_word != 0 && lp_torch_read_node(op, word) && word[metadata_word] != 0;
}

/* ---- hooks ---- */

static int row_has(const lp_graph *graph, uint32_t source, uint32_t target) {
    for (uint32_t i = source < graph->row_count ? graph->row[source] : 0;
         source < graph->row_count && i < graph->row[source + 1]; i++) {
        if (graph->edge[i] == target) {
            return 1;
        }
    }
    return 0;
}

static void add_late(lp_torch *torch, lp_late_edge edge) {
    lp_status status = lp_graph_add_late(&torch->walk->graph, edge);
    if (status != LP_OK) {
        torch->walk->status = status;
    }
}

static uint64_t pair_key(uint32_t source, uint32_t target) { return (((uint64_t)source + 1) << 32) | target; }

/* A vector of pointers to hooks: {vtable, dict, ...} each. */
static void read_hook_vector(lp_torch *torch, uint32_t node, uint64_t begin, uint64_t end, lp_map *known) {
    uint64_t element[MOST_HOOKS], hook[2];
    size_t count = (size_t)(end - begin) / 8;
    if (!lp_peek_words(begin, element, count)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int is_new;
        if (element[i] == 0 || (element[i] & 7) != 0 || !lp_peek_words(element[i], hook, 2) || hook[0] == 0) {
            continue;
        }
        uint32_t dict = known_dict(torch->walk, hook[1]);
        if (dict == LP_NODE_NONE || row_has(&torch->walk->graph, node, dict)) {
            continue;
        }
        if (lp_map_put(known, pair_key(node, dict), &is_new) != NULL && is_new) {
            add_late(torch, (lp_late_edge){node, dict, "hooks", 0, LP_LATE_ONE});
        }
    }
}

static void read_hooks_of(lp_torch *torch, uint32_t node, lp_map *known) {
    uint64_t word[LP_TORCH_NODE_WORDS];
    if (!lp_torch_read_node(lp_walk_object(torch->walk, node), word)) {
        return;
    }
    for (int i = 2; i + 2 < LP_TORCH_NODE_WORDS; i++) {
        uint64_t begin = word[i], end = word[i + 1];
        if (begin != 0 && (begin & 7) == 0 && end > begin && word[i + 2] >= end && (end - begin) % 8 == 0 &&
            end - begin <= 8 * MOST_HOOKS) {
            read_hook_vector(torch, node, begin, end, known);
        }
    }
}

/* ---- hooks of saved tensors ---- */

/* A saved tensor with hooks has a {vtable, pack hook, unpack hook, packed object}; the getters give the last two. */
static void read_saved_hooks(lp_torch *torch, uint32_t node, uint64_t address, const lp_map *unpack) {
    uint64_t word[4];
    if (address == 0 || (address & 7) != 0 || !lp_peek_words(address, word, 4) || (word[2] & 7) != 0 ||
        (word[1] & 7) != 0) {
        return;
    }
    uint32_t unpack_hook = lp_walk_find(torch->walk, (void *)(uintptr_t)word[2]);
    uint32_t pack_hook = word[1] == 0 ? LP_NODE_NONE : lp_walk_find(torch->walk, (void *)(uintptr_t)word[1]);
    if (unpack_hook != LP_NODE_NONE && pack_hook != LP_NODE_NONE &&
        lp_map_get(unpack, pair_key(node, unpack_hook), 0) != 0) {
        add_late(torch, (lp_late_edge){node, pack_hook, "pack_hook", 0, LP_LATE_ONE});
    }
}

static void read_pack_hooks(lp_torch *torch, uint32_t node, const lp_map *unpack) {
    uint64_t word[LONG_NODE_WORDS];
    PyObject *op = lp_walk_object(torch->walk, node);
    uint64_t address = lp_torch_read_node(op, word);
    if (address == 0) {
        return;
    }
    size_t count = LONG_NODE_WORDS;
    while (count > LP_TORCH_NODE_WORDS && !lp_peek_words(address, word, count)) {
        count /= 2;
    }
    for (size_t i = 2; i < count; i++) {
        read_saved_hooks(torch, node, word[i], unpack);
    }
}

static void read_all_pack_hooks(lp_torch *torch) {
    const lp_graph *graph = &torch->walk->graph;
    uint32_t known = graph->late_count, last = LP_NODE_NONE;
    lp_map unpack = {0};
    for (uint32_t i = 0; i < known; i++) {
        uint32_t *slot = strcmp(graph->late[i].label, "unpack_hook") != 0
                             ? NULL
                             : lp_map_put(&unpack, pair_key(graph->late[i].source, graph->late[i].target), NULL);
        if (slot != NULL) {
            *slot = 1;
        }
    }
    for (uint32_t i = 0; i < known && unpack.count > 0; i++) {
        uint32_t source = graph->late[i].source;
        /* The edges of one node follow each other: it is read once. */
        if (strcmp(graph->late[i].label, "unpack_hook") == 0 && source != last) {
            read_pack_hooks(torch, source, &unpack);
            last = source;
        }
    }
    lp_map_fini(&unpack);
}

static int kind_of(lp_torch *torch, uint32_t node) {
    return lp_kinds_get(&torch->walk->kinds, Py_TYPE(lp_walk_object(torch->walk, node))).kind;
}

static void read_all_hooks(lp_torch *torch) {
    const lp_graph *graph = &torch->walk->graph;
    lp_map known = {0};
    for (uint32_t i = 0; i < graph->late_count; i++) {
        if (graph->late[i].refs == LP_LATE_ONE) {
            lp_map_put(&known, pair_key(graph->late[i].source, graph->late[i].target), NULL);
        }
    }
    for (uint32_t i = 0; i < torch->walk->torch_count && torch->walk->status == LP_OK; i++) {
        uint32_t node = torch->walk->torch_node[i];
        if (kind_of(torch, node) == LP_KIND_AUTOGRAD) {
            read_hooks_of(torch, node, &known);
        }
    }
    lp_map_fini(&known);
}

/* ---- storages ---- */

/* The number that a call gives, or 0. */
uint64_t lp_torch_call_for_number(PyObject *callable, PyObject *argument) {
    PyObject *value = callable == NULL ? NULL : PyObject_CallOneArg(callable, argument);
    uint64_t number = value != NULL && PyLong_Check(value) ? (uint64_t)PyLong_AsUnsignedLongLongMask(value) : 0;
    Py_XDECREF(value);
    PyErr_Clear();
    return number;
}

static uint64_t storage_impl(PyObject *storage) {
    PyObject *cdata = PyObject_GetAttrString(storage, "_cdata");
    uint64_t address = cdata != NULL && PyLong_Check(cdata) ? (uint64_t)PyLong_AsUnsignedLongLongMask(cdata) : 0;
    Py_XDECREF(cdata);
    PyErr_Clear();
    return address;
}

/* Storages matter as objects only where they have attributes. */
static uint32_t find_storages(lp_torch *torch, lp_map *out_node_of) {
    for (uint32_t i = 0; i < torch->walk->torch_count; i++) {
        uint32_t node = torch->walk->torch_node[i];
        PyObject *op = lp_walk_object(torch->walk, node);
        uint64_t address = kind_of(torch, node) == LP_KIND_STORAGE && lp_heap_has_attributes(op) ? storage_impl(op) : 0;
        uint32_t *slot = address == 0 ? NULL : lp_map_put(out_node_of, address, NULL);
        if (slot != NULL) {
            *slot = node;
        }
    }
    return (uint32_t)out_node_of->count;
}

static void read_storages(lp_torch *torch) {
    PyObject *address_of = lp_torch_module_attribute("torch._C", "_storage_address");
    PyObject *has_storage = lp_torch_module_attribute("torch._C", "_has_storage");
    lp_map node_of = {0};
    if (address_of == NULL || find_storages(torch, &node_of) == 0) {
        lp_map_fini(&node_of);
        return;
    }
    for (uint32_t i = 0; i < torch->walk->torch_count; i++) {
        uint32_t node = torch->walk->torch_node[i];
        PyObject *op = lp_walk_object(torch->walk, node);
        if (kind_of(torch, node) != LP_KIND_TENSOR ||
            (has_storage != NULL && lp_torch_call_for_number(has_storage, op) == 0)) {
            continue;
        }
        uint64_t address = lp_torch_call_for_number(address_of, op);
        uint32_t storage = address == 0 ? LP_NODE_NONE : lp_map_get(&node_of, address, LP_NODE_NONE);
        if (storage != LP_NODE_NONE) {
            add_late(torch, (lp_late_edge){node, storage, "untyped_storage()", 3, LP_LATE_SHARED});
        }
    }
    lp_map_fini(&node_of);
}

/* ---- owners beyond Python ---- */

/* What is known of the owners of one node. */
typedef struct owners {
    uint32_t known;          /* late edges that stand for an owner */
    uint32_t first;          /* the first of them */
    int is_row_edge;         /* the reference they stand for is in a row already */
} owners;

typedef struct counting {
    lp_torch *torch;
    lp_map number;           /* node + 1 => index in of + 1 */
    owners *of;
    uint32_t count, capacity;
    PyObject *use_count, *storage_use_count;   /* borrowed */
    int tensors_are_coupled; /* an owner beyond Python keeps the wrapper: torch 2.10 and newer */
} counting;

static int count_shared(counting *c) {
    lp_graph *graph = &c->torch->walk->graph;
    for (uint32_t i = 0; i < graph->late_count; i++) {
        lp_late_edge *edge = &graph->late[i];
        if (edge->refs != LP_LATE_SHARED) {
            continue;
        }
        uint32_t *number = lp_map_put(&c->number, (uint64_t)edge->target + 1, NULL);
        owners *of = lp_walk_reserve(c->of, c->count, &c->capacity, sizeof(*of));
        if (number == NULL || of == NULL) {
            return -1;
        }
        c->of = of;
        if (*number == 0) {
            of[c->count] = (owners){.first = i};
            *number = ++c->count;
        }
        of[*number - 1].known++;
        of[*number - 1].is_row_edge |= row_has(graph, edge->source, edge->target);
        edge->refs = LP_LATE_NONE;
    }
    return 0;
}

/* Owners of a node beyond its wrapper, or -1 if they can't be counted; whether they hold a reference to the wrapper. */
static int64_t count_owners(counting *c, uint32_t node, int *out_holds_wrapper) {
    PyObject *op = lp_walk_object(c->torch->walk, node);
    uint64_t word[LP_TORCH_NODE_WORDS];
    *out_holds_wrapper = c->tensors_are_coupled;
    switch (kind_of(c->torch, node)) {
    case LP_KIND_TENSOR:
        return c->use_count == NULL ? -1 : (int64_t)lp_torch_call_for_number(c->use_count, op) - 1;
    case LP_KIND_STORAGE: {
        PyObject *address = c->storage_use_count == NULL ? NULL : PyLong_FromUnsignedLongLong(storage_impl(op));
        int64_t count = address == NULL ? 0 : (int64_t)lp_torch_call_for_number(c->storage_use_count, address);
        Py_XDECREF(address);
        return count - 1;
    }
    default:
        *out_holds_wrapper = is_python_function(op);
        /* {vtable, counts: bit 63 has a wrapper, then weak, then 32 bits strong} since 2.13. */
        if (!lp_torch_read_node(op, word) || (word[1] >> 63) == 0) {
            return -1;
        }
        *out_holds_wrapper = 1;
        return (int64_t)(word[1] & UINT32_MAX) - 1;
    }
}

static void settle(counting *c, uint32_t node) {
    lp_torch *torch = c->torch;
    uint32_t number = lp_map_get(&c->number, (uint64_t)node + 1, 0);
    owners none = {0}, *of = number == 0 ? &none : &c->of[number - 1];
    int holds_wrapper;
    int64_t count = count_owners(c, node, &holds_wrapper);
    if (count > (int64_t)of->known) {
        uint32_t *outside =
            lp_walk_reserve(torch->outside, torch->outside_count, &torch->outside_capacity, sizeof(*outside));
        if (outside == NULL) {
            torch->walk->status = LP_NO_MEMORY;
            return;
        }
        torch->outside = outside;
        torch->outside[torch->outside_count++] = node;
    }
    if (of->known > 0 && count != 0 && holds_wrapper && !of->is_row_edge) {
        torch->walk->graph.late[of->first].refs = LP_LATE_ONE;
    }
}

/* Turn shared edges into what they stand for: one reference to the wrapper, or none. */
static void settle_all(lp_torch *torch) {
    PyTypeObject *base = (PyTypeObject *)lp_torch_module_attribute("torch._C", "TensorBase");
    counting c = {.torch = torch};
    if (base != NULL) {
        c.use_count = lp_torch_descriptor(base, "_use_count");
        /* Before 2.10 the wrapper had one word more: whether the reference to the tensor is borrowed. */
        c.tensors_are_coupled = base->tp_basicsize <= (Py_ssize_t)(5 * sizeof(void *));
    }
    c.storage_use_count = lp_torch_module_attribute("torch._C", "_storage_Use_Count");
    if (count_shared(&c) == 0) {
        for (uint32_t i = 0; i < torch->walk->torch_count && torch->walk->status == LP_OK; i++) {
            settle(&c, torch->walk->torch_node[i]);
        }
    } else {
        torch->walk->status = LP_NO_MEMORY;
    }
    lp_map_fini(&c.number);
    lp_raw_free(c.of);
}

void lp_torch_read_more(lp_torch *torch) {
    read_all_hooks(torch);
    read_all_pack_hooks(torch);
    read_storages(torch);
    if (torch->walk->status == LP_OK) {
        settle_all(torch);
    }
}
