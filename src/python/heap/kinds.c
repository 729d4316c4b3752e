/* Decides a type's kind once a walk, by names and flags that are read, not asked for. */
#include "python/heap/kinds.h"

#include <string.h>

#include "base/rawmem.h"         // lp_raw_realloc
#include "python/compat/lookups.h"  // lp_lookup_is_named
#include "python/compat/heap.h"  // lp_heap_has_part
#include "python/values/state.h"  // lp_state

#define UNDECIDED UINT8_MAX

void lp_kinds_clear(lp_kinds *kinds) {
    memset(kinds->cache, 0, sizeof(kinds->cache));
    lp_map_clear(&kinds->number);
    kinds->count = 0;
}

void lp_kinds_fini(lp_kinds *kinds) {
    lp_raw_free(kinds->info);
    lp_map_fini(&kinds->number);
    kinds->info = NULL;
    kinds->capacity = 0;
    lp_kinds_clear(kinds);
}

/* The entry of a type, new with kind UNDECIDED; NULL when out of memory. */
static lp_type_info *put(lp_kinds *kinds, PyTypeObject *type) {
    int is_new;
    uint32_t *number = lp_map_put(&kinds->number, (uintptr_t)type, &is_new);
    if (number == NULL) {
        return NULL;
    }
    if (!is_new && *number != 0) {
        return &kinds->info[*number - 1];
    }
    if (kinds->count == kinds->capacity) {
        uint32_t size = kinds->capacity ? kinds->capacity + kinds->capacity : LP_KINDS_FIRST;
        lp_type_info *info = lp_raw_realloc(kinds->info, size * sizeof(*info));
        if (info == NULL) {
            return NULL;
        }
        kinds->info = info;
        kinds->capacity = size;
    }
    *number = kinds->count + 1;
    kinds->info[kinds->count] = (lp_type_info){.type = type, .first_group = LP_KINDS_NO_GROUP, .kind = UNDECIDED};
    return &kinds->info[kinds->count++];
}

lp_status lp_kinds_set_group(lp_kinds *kinds, PyTypeObject *type, uint32_t group, uint32_t *out_previous) {
    lp_type_info *entry = put(kinds, type);
    if (entry == NULL) {
        return LP_NO_MEMORY;
    }
    *out_previous = entry->first_group;
    entry->first_group = group;
    return LP_OK;
}

const char *lp_kinds_ascii(PyObject *str) {
    if (str == NULL || !PyUnicode_Check(str) || !PyUnicode_IS_COMPACT_ASCII(str)) {
        return "";
    }
    return (const char *)PyUnicode_1BYTE_DATA(str);
}

int lp_kinds_init(void) {
    if (lp_state.names.metadata == NULL) {
        lp_state.names.module = PyUnicode_InternFromString("__module__");
        lp_state.names.next_functions = PyUnicode_InternFromString("next_functions");
        lp_state.names.metadata = PyUnicode_InternFromString("metadata");
    }
    return lp_state.names.module == NULL || lp_state.names.next_functions == NULL || lp_state.names.metadata == NULL
               ? -1
               : 0;
}

/* What the type's own dict has under an interned name (borrowed); tp_dict is NULL for built-in types since 3.12. */
static PyObject *own_attribute(PyTypeObject *type, PyObject *name) {
    if (type->tp_dict == NULL || !PyDict_Check(type->tp_dict)) {
        return NULL;
    }
    PyObject *value = PyDict_GetItemWithError(type->tp_dict, name);
    if (value == NULL) {
        PyErr_Clear();
    }
    return value;
}

static int is_tensor_type(PyTypeObject *type) {
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro != NULL && PyTuple_Check(mro) && i < PyTuple_GET_SIZE(mro); i++) {
        PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
        if (PyType_Check(base) &&
            (lp_lookup_is_named(base, "torch._C.TensorBase") || lp_lookup_is_named(base, "torch._C._TensorBase"))) {
            return 1;
        }
    }
    return 0;
}

static int is_autograd_type(PyTypeObject *type) {
    for (; type != NULL; type = type->tp_base) {
        if (type->tp_dict != NULL && own_attribute(type, lp_state.names.next_functions) != NULL) {
            return own_attribute(type, lp_state.names.metadata) != NULL;
        }
    }
    return 0;
}

int lp_kinds_is_own_name(const char *module) {
    static const char own[] = "leakprobe", demo[] = ".demo";
    const size_t length = sizeof(own) - 1;
    return strncmp(module, own, length) == 0 && (module[length] == 0 || module[length] == '.') &&
           strncmp(module + length, demo, sizeof(demo) - 1) != 0;
}

static int is_own_type(PyTypeObject *type) {
    const char *module = type->tp_name;
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        module = lp_kinds_ascii(own_attribute(type, lp_state.names.module));
    }
    return lp_kinds_is_own_name(module);
}

lp_kind lp_kinds_of_numpy(PyTypeObject *type) {
    return lp_lookup_base(type, "numpy.ndarray") != NULL ? LP_KIND_ARRAY
           : lp_lookup_base(type, "numpy.void") != NULL  ? LP_KIND_RECORD
           : lp_lookup_base(type, "numpy.dtype") != NULL ? LP_KIND_DTYPE
                                                         : LP_KIND_LEAF;
}

static uint8_t decide(PyTypeObject *type) {
    if (PyType_FastSubclass(type, Py_TPFLAGS_TYPE_SUBCLASS)) {
        return LP_KIND_TYPE;
    }
    if (PyType_FastSubclass(type, Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS) &&
        !(type->tp_flags & Py_TPFLAGS_HAVE_GC)) {
        return LP_KIND_LEAF;
    }
    if (type == &PyCode_Type) {
        return LP_KIND_CODE;
    }
    if (type == &PyCapsule_Type) {
        return LP_KIND_CAPSULE;
    }
    if (is_own_type(type)) {
        return LP_KIND_OWN;
    }
    lp_kind of_numpy = lp_kinds_of_numpy(type);
    if (of_numpy != LP_KIND_LEAF) {
        return (uint8_t)of_numpy;
    }
    if (is_tensor_type(type)) {
        return LP_KIND_TENSOR;
    }
    if (!(type->tp_flags & Py_TPFLAGS_HAVE_GC)) {
        return LP_KIND_LEAF;
    }
    if (lp_lookup_base(type, "torch._C.StorageBase") != NULL) {
        return LP_KIND_STORAGE;
    }
    return is_autograd_type(type) ? LP_KIND_AUTOGRAD : LP_KIND_PLAIN;
}

lp_type_info lp_kinds_get_slow(lp_kinds *kinds, PyTypeObject *type) {
    lp_type_info *entry = put(kinds, type);
    if (entry == NULL) {
        return (lp_type_info){.type = type,
                              .first_group = LP_KINDS_NO_GROUP,
                              .kind = decide(type),
                              .has_part = (uint8_t)lp_heap_has_part(type)};
    }
    if (entry->kind == UNDECIDED) {
        entry->kind = decide(type);
        entry->has_part = (uint8_t)lp_heap_has_part(type);
    }
    return *entry;
}
