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

#define TYPE_WORDS (sizeof(PyTypeObject) / sizeof(uint64_t))

typedef union type_copy {
    PyTypeObject type;
    uint64_t word[TYPE_WORDS];
} type_copy;

/* 0 for what is no type.  Its memory is not the interpreter's then: a thread of C may unmap it during the walk. */
static int copy_type(const PyTypeObject *type, type_copy *out) {
    return lp_heap_is_aligned(type) && lp_mappings_has(&lp_heap_mappings, type, sizeof(PyTypeObject)) &&
           lp_copy_words((uintptr_t)type, out->word, TYPE_WORDS) && lp_heap_is_count(out->word[0]);
}

/* 1 if the bases of a metatype lead to the type of types, which no chance pattern does. */
static int is_metatype(const PyTypeObject *meta) {
    type_copy copy;
    for (int depth = 0; depth < 32 && copy_type(meta, &copy); depth++, meta = copy.type.tp_base) {
        if (meta == &PyType_Type) {
            return 1;
        }
    }
    return 0;
}

int lp_heap_prove_type(PyTypeObject *type) {
    type_copy copy;
    if (!copy_type(type, &copy) || !is_metatype(Py_TYPE(&copy.type)) ||
        copy.type.tp_basicsize < (Py_ssize_t)sizeof(PyObject)) {
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
