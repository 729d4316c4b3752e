/* A size rule for each type, then a formula for each object. Never __sizeof__: that would run foreign code. */
#include "python/heap/sizes.h"

#include <string.h>

#include "python/compat/cdata.h"    // lp_cdata_blocks
#include "python/compat/heap.h"     // blocks behind objects
#include "python/compat/lookups.h"  // lp_lookup_is_named
#include "python/compat/streams.h"  // lp_streams_array_blocks

/* A length beyond any block: the type uses the place of ob_size for something else. */
#define ABSURD_LENGTH ((Py_ssize_t)1 << 40)

/* For types whose type object is not exported. */
static int is_kind_of(const PyTypeObject *type, const char *name) {
    while (type != NULL && (type->tp_flags & Py_TPFLAGS_HEAPTYPE) && !lp_lookup_is_named(type, name)) {
        type = type->tp_base;
    }
    return type != NULL && lp_lookup_is_named(type, name);
}

static lp_size_kind kind_by_flags(unsigned long flags) {
    static const struct {
        unsigned long flag;
        lp_size_kind kind;
    } kinds[] = {
        {Py_TPFLAGS_LIST_SUBCLASS, LP_SIZE_LIST},      {Py_TPFLAGS_UNICODE_SUBCLASS, LP_SIZE_STR},
        {Py_TPFLAGS_LONG_SUBCLASS, LP_SIZE_INT},       {Py_TPFLAGS_TYPE_SUBCLASS, LP_SIZE_TYPE},
        {Py_TPFLAGS_BASE_EXC_SUBCLASS, LP_SIZE_FIXED},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (flags & kinds[i].flag) {
            return kinds[i].kind;
        }
    }
    return LP_SIZE_VAR;
}

static lp_size_kind kind_of(PyTypeObject *type) {
    if (lp_heap_is_dict_type(type)) {
        return PyType_IsSubtype(type, &PyODict_Type) ? LP_SIZE_ODICT : LP_SIZE_DICT;
    }
    if (PyType_IsSubtype(type, &PySet_Type) || PyType_IsSubtype(type, &PyFrozenSet_Type)) {
        return LP_SIZE_SET;
    }
    if (PyType_IsSubtype(type, &PyByteArray_Type)) {
        return LP_SIZE_BYTEARRAY;
    }
    if (is_kind_of(type, "collections.deque")) {
        return LP_SIZE_DEQUE;
    }
    if (is_kind_of(type, "array.array")) {
        return LP_SIZE_ARRAY;
    }
    if (lp_heap_is_frame_like(type)) {
        return LP_SIZE_FRAME;
    }
    if (lp_cdata_is_type(type)) {
        return LP_SIZE_CDATA;
    }
    lp_size_kind kind = kind_by_flags(type->tp_flags);
    return kind == LP_SIZE_VAR && type->tp_itemsize == 0 ? LP_SIZE_FIXED : kind;
}

lp_size_rule lp_size_rule_of(PyTypeObject *type) {
    lp_size_rule rule = {0};
    rule.kind = (uint8_t)kind_of(type);
    rule.base_bytes = (uint32_t)(lp_presize(type) + (size_t)type->tp_basicsize);
    rule.item_bytes = (uint32_t)type->tp_itemsize;
    rule.has_values = (uint8_t)lp_heap_has_values(type);
    if (rule.kind == LP_SIZE_STR || rule.kind == LP_SIZE_INT) {
        /* The formula has the base type's part; a subclass adds fields behind it. */
        PyTypeObject *base = rule.kind == LP_SIZE_STR ? &PyUnicode_Type : &PyLong_Type;
        rule.base_bytes -= (uint32_t)base->tp_basicsize;
    }
    return rule;
}

static uint64_t items_bytes(PyObject *op, const lp_size_rule *rule) {
    Py_ssize_t count = Py_SIZE(op);
    count = count < 0 ? -count : count;
    return count > ABSURD_LENGTH ? 0 : (uint64_t)count * rule->item_bytes;
}

static uint64_t type_bytes(PyObject *op, const lp_size_rule *rule) {
    if (!(((PyTypeObject *)op)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return 0;
    }
    return rule->base_bytes + items_bytes(op, rule) + lp_heap_type_blocks(op);
}

static uint64_t beyond_base(PyObject *op, const lp_size_rule *rule) {
    switch ((lp_size_kind)rule->kind) {
    case LP_SIZE_VAR:
        return items_bytes(op, rule);
    case LP_SIZE_LIST:
        return lp_heap_list_blocks(op);
    case LP_SIZE_DICT:
        return lp_heap_dict_blocks(op);
    case LP_SIZE_ODICT:
        return lp_heap_dict_blocks(op) + lp_heap_odict_blocks(op);
    case LP_SIZE_SET:
        return lp_heap_set_blocks(op);
    case LP_SIZE_BYTEARRAY:
        return lp_heap_bytearray_blocks(op);
    case LP_SIZE_ARRAY:
        return lp_streams_array_blocks(op);
    case LP_SIZE_DEQUE:
        return lp_heap_deque_blocks(op);
    case LP_SIZE_INT:
        return lp_heap_int_bytes(op);
    case LP_SIZE_FRAME:
        return lp_heap_frame_slots(op);
    case LP_SIZE_STR:
        return lp_heap_str_bytes(op);
    case LP_SIZE_CDATA:
        return lp_cdata_blocks(op);
    default:
        return 0;
    }
}

uint64_t lp_size_by_rule(PyObject *op, const lp_size_rule *rule) {
    if (rule->kind == LP_SIZE_TYPE) {
        return type_bytes(op, rule);
    }
    uint64_t bytes = rule->base_bytes + beyond_base(op, rule);
    return rule->has_values ? bytes + lp_heap_values_bytes(op) : bytes;
}

/* Those beside the object's own; a table and its values count as one. */
static uint64_t blocks_beyond(PyObject *op, const lp_size_rule *rule) {
    switch ((lp_size_kind)rule->kind) {
    case LP_SIZE_ODICT:
        return (uint64_t)((PyDictObject *)op)->ma_used + 2;
    case LP_SIZE_DEQUE:
        return lp_heap_deque_block_count(op);
    case LP_SIZE_LIST:
    case LP_SIZE_DICT:
    case LP_SIZE_SET:
    case LP_SIZE_ARRAY:
    case LP_SIZE_BYTEARRAY:
    case LP_SIZE_CDATA:
        return beyond_base(op, rule) != 0;
    default:
        return 0;
    }
}

/* Shared by the whole interpreter: -5 to 256, to 1,024 since 3.15.  Since 3.12 they can be told by never dying. */
static int is_small_int(PyObject *op) {
    int overflow;
    long value = PyLong_AsLongAndOverflow(op, &overflow);
    return lp_is_immortal(op) || (overflow == 0 && value >= -5 && value <= 256);
}

uint64_t lp_size_of_table(PyObject *op) {
    lp_size_rule rule = lp_size_rule_of(Py_TYPE(op));
    int has_table = lp_size_is_container(&rule) && !lp_size_is_buffer(&rule);
    return has_table ? lp_size_by_rule(op, &rule) - rule.base_bytes : 0;
}

uint64_t lp_size_blocks(PyObject *op, const lp_size_rule *rule) {
    if (rule->kind == LP_SIZE_INT && PyLong_CheckExact(op) && is_small_int(op)) {
        return 0;
    }
    if (rule->kind == LP_SIZE_TYPE) {
        return ((PyTypeObject *)op)->tp_flags & Py_TPFLAGS_HEAPTYPE ? 3 : 0;   /* with its keys and its name */
    }
    uint64_t values = rule->has_values && lp_heap_values_are_apart() && lp_heap_values_bytes(op) != 0;
    return 1 + values + blocks_beyond(op, rule);
}

uint64_t lp_size_length(PyObject *op, const lp_size_rule *rule) {
    switch ((lp_size_kind)rule->kind) {
    case LP_SIZE_DICT:
    case LP_SIZE_ODICT:
        return (uint64_t)((PyDictObject *)op)->ma_used;
    case LP_SIZE_SET:
        return (uint64_t)((PySetObject *)op)->used;
    case LP_SIZE_LIST:
    case LP_SIZE_DEQUE:
    case LP_SIZE_ARRAY:
    case LP_SIZE_BYTEARRAY:
        return (uint64_t)Py_SIZE(op);
    default:
        return 0;
    }
}
