/* Whether an address that a foreign type hands out is an object: proved from memory that is there, before it is read as
 * one. */
#include "python/compat/heap_internal.h"

lp_mappings lp_heap_mappings;
PyTypeObject *lp_heap_proved_type[LP_HEAP_TYPES];

void lp_heap_begin_walk(void) {
    LP_ASSERT_GIL();
    lp_mappings_read(&lp_heap_mappings);
    memset(lp_heap_proved_type, 0, sizeof(lp_heap_proved_type));
}

static int is_readable_type(PyTypeObject *type) {
    return lp_heap_is_aligned(type) && lp_mappings_has(&lp_heap_mappings, type, sizeof(PyTypeObject)) &&
           lp_heap_is_count(*(const uint64_t *)type);
}

/* 1 if the bases of a metatype lead to the type of types, which no chance pattern does. */
static int is_metatype(PyTypeObject *meta) {
    for (int depth = 0; depth < 32 && is_readable_type(meta); depth++, meta = meta->tp_base) {
        if (meta == &PyType_Type) {
            return 1;
        }
    }
    return 0;
}

int lp_heap_prove_type(PyTypeObject *type) {
    if (!is_readable_type(type) || !is_metatype(Py_TYPE(type)) || type->tp_basicsize < (Py_ssize_t)sizeof(PyObject)) {
        return 0;
    }
    lp_heap_proved_type[((uintptr_t)type >> 4) & (LP_HEAP_TYPES - 1)] = type;
    return 1;
}

#define MOST_ITEMS ((Py_ssize_t)1 << 40)

static int is_sound_dict(const PyDictObject *dict) {
    return dict->ma_used >= 0 && dict->ma_used < MOST_ITEMS && lp_heap_is_aligned(dict->ma_keys) &&
           lp_mappings_has(&lp_heap_mappings, dict->ma_keys, sizeof(*dict->ma_keys)) && dict->ma_keys->dk_refcnt > 0 &&
           dict->ma_keys->dk_nentries >= dict->ma_used && dict->ma_keys->dk_nentries < MOST_ITEMS;
}

int lp_heap_is_untracked(PyObject *op) {
    const uintptr_t *head = (const uintptr_t *)op - 2;
    if (head[0] != 0 || (head[1] & ~(uintptr_t)3) != 0) {
        return 0;
    }
    if (PyTuple_CheckExact(op)) {
        Py_ssize_t count = Py_SIZE(op);
        return count >= 0 && count < MOST_ITEMS &&
               lp_mappings_has(&lp_heap_mappings, op, sizeof(PyTupleObject) + (uint64_t)count * sizeof(PyObject *));
    }
    return PyDict_CheckExact(op) && lp_mappings_has(&lp_heap_mappings, op, sizeof(PyDictObject)) &&
           is_sound_dict((PyDictObject *)op);
}
