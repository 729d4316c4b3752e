/* Sizes and addresses of the blocks behind objects, by each version's own formulas. Reads memory; calls nothing. */
#include "python/compat/heap_internal.h"
#include "python/compat/lookups.h"  // lp_lookup_is_named
#include "python/compat/streams.h"  // arrays

/* Two thirds of a table hold entries; the rest keeps probing short. */
#define USABLE_ENTRIES(slots) (((size_t)(slots) << 1) / 3)
#define ROUND_UP_8(n) (((size_t)(n) + 7) & ~(size_t)7)

/* ---- dicts, types and instance values ---- */

static uint64_t table_bytes(const PyDictKeysObject *keys) {
#if LP_HAS_UNICODE_TABLES
    size_t entry_bytes = DK_IS_UNICODE(keys) ? sizeof(PyDictUnicodeEntry) : sizeof(PyDictKeyEntry);
    size_t slots = (size_t)1 << keys->dk_log2_size;
    size_t index_bytes = (size_t)1 << keys->dk_log2_index_bytes;
#else
    size_t entry_bytes = 3 * sizeof(void *);
    size_t slots = (size_t)keys->dk_size;
    size_t index_bytes = slots * (slots <= 0xff ? 1 : slots <= 0xffff ? 2 : slots <= 0xffffffff ? 4 : 8);
#endif
    return sizeof(PyDictKeysObject) + index_bytes + USABLE_ENTRIES(slots) * entry_bytes;
}

#if LP_HAS_EMBEDDED_VALUES
static uint64_t values_bytes(const PyDictValues *values, const PyDictKeysObject *keys) {
    (void)keys;
    return ROUND_UP_8(values->capacity) + ((size_t)values->capacity + 1) * sizeof(PyObject *);
}
#elif LP_HAS_VALUES_POINTER
/* The byte before the values is the size of the prefix, a rounded count + 2; the count itself
 * shrinks with the first instances of a type, so an old block may be up to 7 slots larger. */
static uint64_t values_bytes(const PyDictValues *values, const PyDictKeysObject *keys) {
    size_t prefix_bytes = ((const uint8_t *)values)[-1];
    size_t count = (size_t)(keys->dk_nentries + keys->dk_usable);
    if (count + 9 < prefix_bytes) {
        count = prefix_bytes - 9;
    }
    return prefix_bytes + count * sizeof(PyObject *);
}
#else
static uint64_t values_bytes(PyObject *const *values, const PyDictKeysObject *keys) {
    (void)values;
    return USABLE_ENTRIES(keys->dk_size) * sizeof(PyObject *);
}
#endif

uint64_t lp_heap_dict_blocks(PyObject *op) {
    const PyDictObject *dict = (const PyDictObject *)op;
    uint64_t bytes = lp_heap_owns_keys(dict) ? table_bytes(dict->ma_keys) : 0;
    if (dict->ma_values == NULL) {
        return bytes;
    }
#if LP_HAS_EMBEDDED_VALUES
    if (dict->ma_values->embedded) {
        return bytes;
    }
#endif
    return bytes + values_bytes(dict->ma_values, dict->ma_keys);
}

uint64_t lp_heap_type_blocks(PyObject *op) {
    const PyHeapTypeObject *type = (const PyHeapTypeObject *)op;
    uint64_t bytes = type->ht_cached_keys == NULL ? 0 : table_bytes(type->ht_cached_keys);
#if PY_VERSION_HEX >= 0x030B0000
    if (type->_ht_tpname != NULL) {
        bytes += strlen(type->_ht_tpname) + 1;
    }
#endif
    if (type->ht_type.tp_doc != NULL) {
        bytes += strlen(type->ht_type.tp_doc) + 1;
    }
    return bytes;
}

#if LP_HAS_VALUES_POINTER
static PyDictValues *values_of(PyObject *op) {
#if PY_VERSION_HEX >= 0x030C0000
    uintptr_t tagged = ((uintptr_t *)op)[-3];
    return (tagged & 1) ? (PyDictValues *)(tagged + 1) : NULL;
#else
    return ((PyDictValues **)op)[-4];
#endif
}
#endif

int lp_heap_has_values(const PyTypeObject *type) {
#if LP_HAS_EMBEDDED_VALUES
    return (type->tp_flags & Py_TPFLAGS_INLINE_VALUES) != 0;
#elif LP_HAS_VALUES_POINTER
    return (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) && (type->tp_flags & Py_TPFLAGS_HEAPTYPE);
#else
    (void)type;
    return 0;
#endif
}

uint64_t lp_heap_values_bytes(PyObject *op) {
#if LP_HAS_EMBEDDED_VALUES
    return values_bytes(lp_heap_embedded_values(op), NULL);
#elif LP_HAS_VALUES_POINTER
    const PyDictValues *values = values_of(op);
    const PyDictKeysObject *keys = ((PyHeapTypeObject *)Py_TYPE(op))->ht_cached_keys;
    return values == NULL || keys == NULL ? 0 : values_bytes(values, keys);
#else
    (void)op;
    return 0;
#endif
}

int lp_heap_values_are_apart(void) { return LP_HAS_VALUES_POINTER; }

/* ---- ordered dicts, deques: their structs are private to one C file of CPython ---- */

/* struct _odictobject; a node is {key, hash, next, previous}. */
typedef struct odict {
    PyDictObject dict;
    void *first_node, *last_node;
    void **fast_nodes;
    Py_ssize_t fast_nodes_size;
} odict;

uint64_t lp_heap_odict_blocks(PyObject *op) {
    const odict *od = (const odict *)op;
    uint64_t index_bytes = od->fast_nodes == NULL ? 0 : (uint64_t)od->fast_nodes_size * sizeof(void *);
    return index_bytes + (uint64_t)od->dict.ma_used * 4 * sizeof(void *);
}

typedef struct deque {
    PyVarObject base;
    void *left_block, *right_block;
    Py_ssize_t left_index, right_index;
    size_t state;
    Py_ssize_t max_length;
    Py_ssize_t free_block_count;   /* 3.11+: blocks kept for reuse by the deque itself */
} deque;

#define DEQUE_BLOCK_ITEMS 64
#define DEQUE_BLOCK_BYTES ((DEQUE_BLOCK_ITEMS + 2) * sizeof(void *))

uint64_t lp_heap_deque_block_count(PyObject *op) {
    const deque *dq = (const deque *)op;
    uint64_t used = (uint64_t)(dq->left_index + Py_SIZE(op) + DEQUE_BLOCK_ITEMS - 1) / DEQUE_BLOCK_ITEMS;
    uint64_t blocks = used == 0 ? 1 : used;
#if PY_VERSION_HEX >= 0x030B0000
    blocks += (uint64_t)dq->free_block_count;
#endif
    return blocks;
}

uint64_t lp_heap_deque_blocks(PyObject *op) { return lp_heap_deque_block_count(op) * DEQUE_BLOCK_BYTES; }

/* ---- the rest ---- */

uint64_t lp_heap_set_blocks(PyObject *op) {
    const PySetObject *set = (const PySetObject *)op;
    return set->table == set->smalltable ? 0 : ((uint64_t)set->mask + 1) * sizeof(setentry);
}

uint64_t lp_heap_list_blocks(PyObject *op) {
    return (uint64_t)((const PyListObject *)op)->allocated * sizeof(PyObject *);
}

uint64_t lp_heap_bytearray_blocks(PyObject *op) {
    const PyByteArrayObject *array = (const PyByteArrayObject *)op;
#if LP_HAS_BYTES_IN_BYTEARRAY
    /* An empty one has the bytes object that all share. */
    return array->ob_alloc == 0 ? 0 : (uint64_t)array->ob_alloc + offsetof(PyBytesObject, ob_sval) + 1;
#else
    return (uint64_t)array->ob_alloc;
#endif
}

/* A str whose characters are not in its own block: an instance of a subclass, or before 3.12 an old style one. */
static uint64_t str_far_bytes(PyObject *op) {
    const PyUnicodeObject *str = (const PyUnicodeObject *)op;
    const PyASCIIObject *ascii = (const PyASCIIObject *)op;
    uint64_t bytes = sizeof(PyUnicodeObject);
    if (str->data.any != NULL) {
        bytes += ((uint64_t)ascii->length + 1) * (ascii->state.kind == 0 ? 1 : ascii->state.kind);
    }
    return bytes;
}

uint64_t lp_heap_str_bytes(PyObject *op) {
    const PyASCIIObject *ascii = (const PyASCIIObject *)op;
    const PyCompactUnicodeObject *compact = (const PyCompactUnicodeObject *)op;
    uint64_t length = (uint64_t)ascii->length;
#if PY_VERSION_HEX >= 0x030C0000
    if (ascii->state.statically_allocated) {
        return 0;
    }
#endif
    if (ascii->state.compact && ascii->state.ascii) {
        return sizeof(PyASCIIObject) + length + 1;
    }
    uint64_t bytes =
        ascii->state.compact ? sizeof(PyCompactUnicodeObject) + (length + 1) * ascii->state.kind : str_far_bytes(op);
    if (!ascii->state.ascii && compact->utf8 != NULL && compact->utf8 != ((const PyUnicodeObject *)op)->data.any) {
        bytes += (uint64_t)compact->utf8_length + 1;
    }
    return bytes;
}

uint64_t lp_heap_int_bytes(PyObject *op) {
    const PyLongObject *integer = (const PyLongObject *)op;
#if PY_VERSION_HEX >= 0x030C0000
    uint64_t digits = integer->long_value.lv_tag >> 3;
    uint64_t header_bytes = offsetof(PyLongObject, long_value.ob_digit);
#else
    Py_ssize_t size = Py_SIZE(op);
    uint64_t digits = (uint64_t)(size < 0 ? -size : size);
    uint64_t header_bytes = offsetof(PyLongObject, ob_digit);
    (void)integer;
#endif
    return header_bytes + (digits == 0 ? 1 : digits) * sizeof(digit);
}

#if PY_VERSION_HEX >= 0x030B0000
static const PyCodeObject *frame_code(const _PyInterpreterFrame *frame) {
#if PY_VERSION_HEX >= 0x030E0000
    return (const PyCodeObject *)(frame->f_executable.bits & ~(uintptr_t)3);
#elif PY_VERSION_HEX >= 0x030D0000
    return (const PyCodeObject *)frame->f_executable;
#else
    return frame->f_code;
#endif
}
#endif

int lp_heap_is_frame_like(const PyTypeObject *type) {
    return type == &PyFrame_Type || type == &PyGen_Type || type == &PyCoro_Type || type == &PyAsyncGen_Type;
}

uint64_t lp_heap_frame_slots(PyObject *op) {
#if PY_VERSION_HEX >= 0x030B0000
    /* A frame object has room for its slots even while they are still on its thread's stack. */
    const _PyInterpreterFrame *frame = PyFrame_Check(op) ? ((PyFrameObject *)op)->f_frame
                                                         : (const _PyInterpreterFrame *)&((PyGenObject *)op)->gi_iframe;
    const PyCodeObject *code = frame_code(frame);
    if (code == NULL || !PyCode_Check(code)) {
        return 0;
    }
    return (uint64_t)(code->co_nlocalsplus + code->co_stacksize) * sizeof(PyObject *);
#else
    return PyFrame_Check(op) ? (uint64_t)Py_SIZE(op) * sizeof(PyObject *) : 0;
#endif
}

static int is_stamped_size(size_t bytes) { return bytes > LP_SHADOW_SMALL_BYTES; }

/* A dict's table, unless it is of the size that free lists hand out again: its stamp may be of
 * another dict. */
static const void *dict_backing(const PyDictObject *dict) {
    const PyDictKeysObject *keys = dict->ma_keys;
    if (!lp_heap_owns_keys(dict)) {
        return NULL;
    }
#if LP_HAS_UNICODE_TABLES
    return keys->dk_log2_size <= 3 ? NULL : keys;
#else
    return keys->dk_size <= 8 ? NULL : keys;
#endif
}

#if PY_VERSION_HEX >= 0x030B0000
/* Of the blocks at its two ends, the one that was added last. */
static const void *deque_backing(const deque *dq) {
    uint32_t left = LP_STAMP_EPOCH(lp_shadow_get(dq->left_block, 0));
    uint32_t right = LP_STAMP_EPOCH(lp_shadow_get(dq->right_block, 0));
    return left > right ? dq->left_block : dq->right_block;
}
#endif

/* The block whose birth is the last growth. */
static const void *backing_of(PyObject *op) {
    if (PyList_Check(op)) {
        const PyListObject *list = (const PyListObject *)op;
        return is_stamped_size((size_t)list->allocated * sizeof(PyObject *)) ? list->ob_item : NULL;
    }
    if (lp_heap_is_dict_type(Py_TYPE(op))) {
        return dict_backing((PyDictObject *)op);
    }
    if (PyAnySet_Check(op)) {
        const PySetObject *set = (const PySetObject *)op;
        return set->table == set->smalltable ? NULL : set->table;
    }
    if (PyByteArray_Check(op)) {
#if LP_HAS_BYTES_IN_BYTEARRAY
        return ((PyByteArrayObject *)op)->ob_bytes_object;
#else
        const PyByteArrayObject *array = (const PyByteArrayObject *)op;
        return is_stamped_size((size_t)array->ob_alloc) ? array->ob_bytes : NULL;
#endif
    }
    if (lp_lookup_is_named(Py_TYPE(op), "array.array")) {
        return is_stamped_size((size_t)lp_streams_array_blocks(op)) ? lp_streams_array_items(op) : NULL;
    }
#if PY_VERSION_HEX >= 0x030B0000
    /* Before, all deques share a free list of blocks. */
    if (lp_lookup_is_named(Py_TYPE(op), "collections.deque")) {
        return deque_backing((const deque *)op);
    }
#endif
    return NULL;
}

lp_stamp lp_heap_growth(PyObject *op) {
    const void *backing = backing_of(op);
    lp_stamp stamp = backing == NULL ? 0 : lp_shadow_get(backing, 0);
    return stamp == LP_STAMP_IS_SMALL ? 0 : stamp & ~LP_STAMP_GROWTH;
}

lp_stamp lp_heap_growth_of_old(PyObject *op) {
    const void *backing = backing_of(op);
    lp_stamp stamp = backing == NULL ? 0 : lp_shadow_get(backing, 0);
    lp_site_id site = stamp == LP_STAMP_IS_SMALL ? LP_SITE_UNKNOWN : LP_STAMP_SITE(stamp);
    return site == LP_SITE_SELF ? 0 : LP_STAMP(site, 0);
}

int lp_heap_has_part(const PyTypeObject *type) {
#if LP_HAS_BYTES_IN_BYTEARRAY
    return PyType_IsSubtype((PyTypeObject *)(uintptr_t)type, &PyByteArray_Type);
#else
    (void)type;
    return 0;
#endif
}

PyObject *lp_heap_part(PyObject *op) {
#if LP_HAS_BYTES_IN_BYTEARRAY
    const PyByteArrayObject *array = (const PyByteArrayObject *)op;
    return array->ob_alloc == 0 ? NULL : array->ob_bytes_object;   /* NULL: empty ones share one */
#else
    (void)op;
    return NULL;
#endif
}

void lp_heap_prefetch_blocks(PyObject *op) {
    if (Py_TYPE(op) == &PyDict_Type) {
        __builtin_prefetch(((PyDictObject *)op)->ma_keys);
    } else if (Py_TYPE(op) == &PyList_Type) {
        __builtin_prefetch(((PyListObject *)op)->ob_item);   /* not for its size, but for its referents */
    }
#if LP_HAS_VALUES_POINTER
    else if (lp_heap_has_values(Py_TYPE(op))) {
        const PyDictValues *values = values_of(op);
        if (values != NULL) {
            __builtin_prefetch((const char *)values - 1);
        }
    }
#endif
}
