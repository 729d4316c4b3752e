/* Shallow sizes by formula: the object's block with its presize, and the blocks that are
 * its own (list array, dict table and values, set table, deque blocks, instance values).
 *
 * In bytes as asked of the allocator.  No Python code runs: no __sizeof__.  Objects in
 * static memory (built-in types) count 0.  Buffers of tensors and arrays are other nodes. */
#ifndef LP_SIZES_H
#define LP_SIZES_H

#include "python/compat/compat.h"  // PyObject

#include "base/base.h"      // uint64_t

typedef enum lp_size_kind {
    LP_SIZE_FIXED,
    LP_SIZE_VAR,
    LP_SIZE_LIST,
    LP_SIZE_DICT,
    LP_SIZE_ODICT,
    LP_SIZE_SET,
    LP_SIZE_BYTEARRAY,
    LP_SIZE_ARRAY,
    LP_SIZE_DEQUE,
    LP_SIZE_STR,
    LP_SIZE_INT,
    LP_SIZE_TYPE,
    LP_SIZE_FRAME,
    LP_SIZE_CDATA
} lp_size_kind;

/* How to measure the instances of one type; made once per type, then used per object. */
typedef struct lp_size_rule {
    uint32_t base_bytes;   /* presize and tp_basicsize */
    uint32_t item_bytes;
    uint8_t kind;          /* lp_size_kind */
    uint8_t has_values;    /* attribute values without a dict are counted too */
} lp_size_rule;

lp_size_rule lp_size_rule_of(PyTypeObject *type);
uint64_t lp_size_by_rule(PyObject *op, const lp_size_rule *rule);

/* 1 for list, dict, set, deque, bytearray, array.array and their subclasses: what grows when it holds more. */
static inline int lp_size_is_container(const lp_size_rule *rule) {
    return rule->kind >= LP_SIZE_LIST && rule->kind <= LP_SIZE_DEQUE;
}
/* 1 for bytearray and array.array.  One that is older than the watch, and has not grown in it, has no site. */
static inline int lp_size_is_buffer(const lp_size_rule *rule) {
    return rule->kind == LP_SIZE_BYTEARRAY || rule->kind == LP_SIZE_ARRAY;
}
/* Items in such a container. */
uint64_t lp_size_length(PyObject *op, const lp_size_rule *rule);

/* Bytes that a list, dict, set or deque takes for its items, beside what it takes when empty; 0 of another. */
uint64_t lp_size_of_table(PyObject *op);

/* How many blocks of Python's allocator an object takes: its own, and those of its contents. */
uint64_t lp_size_blocks(PyObject *op, const lp_size_rule *rule);

static inline uint64_t lp_size_of(PyObject *op) {
    lp_size_rule rule = lp_size_rule_of(Py_TYPE(op));
    return lp_size_by_rule(op, &rule);
}

#endif
