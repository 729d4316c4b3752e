/* Layouts of torch's storages and autograd nodes. Learnt places are kept for the process; nothing is read
 * unproved. */
#include "python/layouts/torch.h"

#include <string.h>

#include "base/base.h"               // LP_ASSERT_GIL
#include "process/chunks.h"          // lp_chunk_with_header
#include "process/mappings.h"        // lp_peek_words
#include "python/compat/lookups.h"   // lp_lookup_base
#include "python/layouts/numbers.h"  // LP_TORCH_PART_WORDS

static int is_pointer(uint64_t word) { return word != 0 && word % sizeof(void *) == 0; }

/* ---- storages ---- */

/* StorageImpl: vtable, counts, data, deleter, context, device, bytes. */
enum {
    STORAGE_COUNTS = 1,
    STORAGE_DATA = 2,
    STORAGE_CONTEXT = 4,
    STORAGE_DEVICE = 5,
    STORAGE_BYTES = 6,
    STORAGE_WORDS = 8
};

int lp_torch_read_storage(uint64_t address, lp_torch_storage *out) {
    uint64_t word[STORAGE_WORDS];
    if (!lp_peek_words(address, word, STORAGE_WORDS)) {
        return 0;
    }
    *out = (lp_torch_storage){
        .users = word[STORAGE_COUNTS] & UINT32_MAX,
        .data = word[STORAGE_DATA],
        .context = word[STORAGE_CONTEXT],
        .bytes = word[STORAGE_BYTES],
        .device = (uint8_t)word[STORAGE_DEVICE],
        .device_index = (uint8_t)(word[STORAGE_DEVICE] >> 8),
    };
    return 1;
}

/* The context of lent memory is {data, std::function}. */
int lp_torch_read_captured(const lp_torch_storage *storage, uint64_t out_words[LP_TORCH_CAPTURED_WORDS]) {
    uint64_t context[1 + LP_TORCH_CAPTURED_WORDS];
    if (storage->data == 0 || storage->context == storage->data ||
        !lp_peek_words(storage->context, context, 1 + LP_TORCH_CAPTURED_WORDS) || context[0] != storage->data) {
        return 0;
    }
    memcpy(out_words, &context[1], LP_TORCH_CAPTURED_WORDS * sizeof(*out_words));
    return 1;
}

/* ---- tensors ---- */

/* TensorImpl: vtable, counts, storage, metadata of autograd and others, which are its own, counter of versions. */
enum {
    TENSOR_COUNTS = 1,
    TENSOR_STORAGE = 2,
    TENSOR_AUTOGRAD = 3,
    TENSOR_EXTRA = 4,
    TENSOR_VERSION = 5,
    TENSOR_WORDS = 6
};

/* A chunk that is counted by its owners, of which this is the only one. */
static uint64_t chunk_of_one(uint64_t address) {
    uint64_t word[TENSOR_COUNTS + 1];
    int is_counted = is_pointer(address) && lp_peek_words(address, word, TENSOR_COUNTS + 1);
    return is_counted && (word[TENSOR_COUNTS] & UINT32_MAX) == 1 ? lp_chunk_with_header(address) : 0;
}

uint64_t lp_torch_tensor_bytes(uint64_t tensor, uint64_t storage) {
    uint64_t word[TENSOR_WORDS];
    if (tensor == 0 || !lp_peek_words(tensor, word, TENSOR_WORDS) || word[TENSOR_STORAGE] != storage) {
        return 0;
    }
    uint64_t bytes = lp_chunk_with_header(tensor);
    return bytes == 0 ? 0
                      : bytes + lp_chunk_with_header(word[TENSOR_AUTOGRAD]) + lp_chunk_with_header(word[TENSOR_EXTRA]) +
                            chunk_of_one(word[TENSOR_VERSION]) + chunk_of_one(storage);
}

size_t lp_torch_read_autograd(uint64_t tensor, uint64_t out_words[LP_TORCH_META_WORDS]) {
    uint64_t word[TENSOR_WORDS];
    int is_read = tensor != 0 && lp_peek_words(tensor, word, TENSOR_WORDS) && is_pointer(word[TENSOR_AUTOGRAD]) &&
                  lp_peek_words(word[TENSOR_AUTOGRAD], out_words, LP_TORCH_META_WORDS);
    return is_read ? LP_TORCH_META_WORDS : 0;
}

/* ---- parts of a tensor ---- */

typedef struct part {
    uint64_t type, data;   /* what kind of C++ object: its vtable */
} part;

/* What a word points to, if that may be a tensor with a storage; else {0, 0}. */
static part part_at(uint64_t address) {
    uint64_t word[TENSOR_WORDS];
    lp_torch_storage storage;
    int is_read = address > UINT16_MAX && is_pointer(address) && lp_peek_words(address, word, TENSOR_WORDS) &&
                  is_pointer(word[0]) && is_pointer(word[TENSOR_STORAGE]) &&
                  lp_torch_read_storage(word[TENSOR_STORAGE], &storage) && storage.users != 0;
    return is_read ? (part){word[0], storage.data} : (part){0, 0};
}

static int count_type(const part *parts, size_t count, uint64_t type) {
    int found = 0;
    for (size_t i = 0; i < count; i++) {
        found += parts[i].type == type;
    }
    return found;
}

void lp_torch_each_part(uint64_t tensor, void (*visit)(void *arg, uint64_t data), void *arg) {
    uint64_t word[LP_TORCH_PART_WORDS];
    part parts[LP_TORCH_PART_WORDS] = {{0, 0}};
    size_t bytes = tensor == 0 ? 0 : (size_t)lp_chunk_bytes(tensor), count = bytes / sizeof(*word);
    count = count == 0 || count > LP_TORCH_PART_WORDS ? LP_TORCH_PART_WORDS : count;
    if (tensor == 0 || !lp_peek_words(tensor, word, count)) {
        return;
    }
    for (size_t i = TENSOR_WORDS; i < count; i++) {
        parts[i] = part_at(word[i]);
    }
    for (size_t i = TENSOR_WORDS; i < count; i++) { /* parts are two at least, of one type */
        if (parts[i].type != 0 && count_type(parts, count, parts[i].type) > 1) {
            visit(arg, parts[i].data);
        }
    }
}

/* ---- nodes ---- */

#define FUNCTION_BASE "torch._C._FunctionBase" /* of functions written in Python, which have a structure of their own */
#define FIRST_WORD 2 /* of a node, after its vtable and its counts */

/* 1 if the words at an address are a node: it points back to its wrapper, which proves it. */
static int is_node_at(uint64_t address, PyObject *op, uint64_t *out_words) {
    if (address <= UINT16_MAX || !is_pointer(address) || !lp_peek_words(address, out_words, LP_TORCH_NODE_WORDS)) {
        return 0;
    }
    for (int i = FIRST_WORD; i < LP_TORCH_NODE_WORDS; i++) {
        if (out_words[i] == (uint64_t)(uintptr_t)op) {
            return 1;
        }
    }
    return 0;
}

/* The node of a function written in Python: its pointer is one of the last words of the wrapper. */
static uint64_t find_python_node(PyObject *op, const PyTypeObject *base, uint64_t *out_words) {
    LP_ASSERT_GIL();
    static size_t known_place; /* the GIL protects it */
    const uint64_t *word = (const uint64_t *)op;
    if (known_place != 0 && is_node_at(word[known_place], op, out_words)) {
        return word[known_place];
    }
    for (size_t i = (size_t)base->tp_basicsize / sizeof(*word); i-- > sizeof(PyObject) / sizeof(*word);) {
        if (is_node_at(word[i], op, out_words)) {
            known_place = i;
            return word[i];
        }
    }
    return 0;
}

/* PyObject_HEAD, pointer to the node. */
static uint64_t node_of_wrapper(const PyObject *op) {
    size_t place = sizeof(PyObject) / sizeof(uint64_t);
    return Py_TYPE(op)->tp_basicsize < (Py_ssize_t)((place + 1) * sizeof(uint64_t)) ? 0 : ((const uint64_t *)op)[place];
}

uint64_t lp_torch_read_node(PyObject *op, uint64_t *out_words) {
    const PyTypeObject *base = lp_lookup_base(Py_TYPE(op), FUNCTION_BASE);
    if (base != NULL) {
        return find_python_node(op, base, out_words);
    }
    uint64_t node = node_of_wrapper(op);
    return is_node_at(node, op, out_words) ? node : 0;
}

/* {vtable, counts: bit 63 has a wrapper, then weak, then 32 bits strong} since 2.13. */
int64_t lp_torch_node_owners(PyObject *op, int *out_holds_wrapper) {
    uint64_t word[LP_TORCH_NODE_WORDS];
    if (!lp_torch_read_node(op, word) || (word[1] >> 63) == 0) {
        *out_holds_wrapper = lp_lookup_base(Py_TYPE(op), FUNCTION_BASE) != NULL;
        return -1;
    }
    *out_holds_wrapper = 1;
    return (int64_t)(word[1] & UINT32_MAX) - 1;
}

/* 1 if the words are a vector, {begin, end, end of room}, of at most so many bytes. */
static int is_vector(const uint64_t *word, uint64_t most_bytes) {
    return is_pointer(word[0]) && word[1] > word[0] && word[2] >= word[1] && word[1] - word[0] <= most_bytes;
}

/* An edge is {pointer to the node, number of the input}, with a count of owners before 2.10. */
uint64_t lp_torch_edges_of(const uint64_t *word) {
    enum { MOST_BYTES = 4096, EDGE_BYTES = 16, COUNTED_EDGE_BYTES = 24 };
    for (int i = FIRST_WORD; i + 2 < LP_TORCH_NODE_WORDS; i++) {
        uint64_t bytes = word[i + 1] - word[i];
        if (is_vector(&word[i], MOST_BYTES) && word[i] % EDGE_BYTES == 0 &&
            (bytes % EDGE_BYTES == 0 || bytes % COUNTED_EDGE_BYTES == 0)) {
            return word[i];
        }
    }
    return 0;
}

/* ---- metadata ---- */

#define METADATA_WORDS 8 /* {vtable, ..., dict} */

static size_t metadata_word; /* of a node: points to its metadata; 0: not known.  The GIL protects it */

/* The word of a node that its first metadata changed from null. */
static size_t find_changed_word(const uint64_t *before, const uint64_t *after, const PyObject *dict) {
    uint64_t held[METADATA_WORDS];
    for (size_t i = FIRST_WORD; i < LP_TORCH_NODE_WORDS; i++) {
        int is_new = before[i] == 0 && is_pointer(after[i]) && lp_peek_words(after[i], held, METADATA_WORDS);
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
    PyObject *functions = lp_lookup_attribute("torch._C", "_functions");
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

#define MOST_HOOKS 32

/* A vector of pointers to hooks: {vtable, dict, ...} each. */
static void visit_vector(uint64_t begin, size_t count, void (*visit)(void *arg, uint64_t dict), void *arg) {
    uint64_t element[MOST_HOOKS], hook[2];
    if (!lp_peek_words(begin, element, count)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_pointer(element[i]) && lp_peek_words(element[i], hook, 2) && hook[0] != 0 && is_pointer(hook[1])) {
            visit(arg, hook[1]);
        }
    }
}

void lp_torch_each_hook(const uint64_t *word, void (*visit)(void *arg, uint64_t dict), void *arg) {
    for (int i = FIRST_WORD; i + 2 < LP_TORCH_NODE_WORDS; i++) {
        uint64_t bytes = word[i + 1] - word[i];
        if (is_vector(&word[i], MOST_HOOKS * sizeof(uint64_t)) && bytes % sizeof(uint64_t) == 0) {
            visit_vector(word[i], (size_t)bytes / sizeof(uint64_t), visit, arg);
        }
    }
}

/* ---- hooks of saved tensors ---- */

#define LONG_NODE_WORDS 160
enum { PACK = 1, UNPACK = 2, SAVED_WORDS = 4 }; /* {vtable, pack hook, unpack hook, packed object} */

/* As many words of the node as there are, up to LONG_NODE_WORDS; how many. */
static size_t read_long_node(PyObject *op, uint64_t *out_words) {
    uint64_t address = lp_torch_read_node(op, out_words);
    size_t count = address == 0 ? 0 : LONG_NODE_WORDS;
    while (count > LP_TORCH_NODE_WORDS && !lp_peek_words(address, out_words, count)) {
        count /= 2;
    }
    return count;
}

void lp_torch_each_saved_hook(PyObject *op, void (*visit)(void *arg, uint64_t pack, uint64_t unpack), void *arg) {
    uint64_t word[LONG_NODE_WORDS], saved[SAVED_WORDS];
    size_t count = read_long_node(op, word);
    for (size_t i = FIRST_WORD; i < count; i++) {
        if (is_pointer(word[i]) && lp_peek_words(word[i], saved, SAVED_WORDS) && is_pointer(saved[UNPACK]) &&
            saved[PACK] % sizeof(void *) == 0) {
            visit(arg, saved[PACK], saved[UNPACK]);
        }
    }
}
