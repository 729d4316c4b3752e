/* What objects refer to, beyond what their tp_traverse shows, and the check that the running CPython is laid out as built for. */
#include "python/compat/heap_internal.h"

#include "python/compat/heap_names.h" // lp_heap_instance_dict
#include "python/compat/streams.h" // lp_streams_traverse
#include "python/values/convert.h" // lp_raise

/* ---- referents ---- */

#define VISIT(op)                                                                                                      \
    do {                                                                                                               \
        PyObject *visited_ = (PyObject *)(op);                                                                         \
        if (visited_ != NULL) {                                                                                        \
            int result_ = visit(visited_, arg);                                                                        \
            if (result_ != 0) {                                                                                        \
                return result_;                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#if LP_HAS_UNICODE_TABLES
static int traverse_keys(PyDictKeysObject *keys, visitproc visit, void *arg) {
    Py_ssize_t count = keys->dk_nentries;
    if (DK_IS_UNICODE(keys)) {
        PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
        for (Py_ssize_t i = 0; i < count; i++) {
            VISIT(entries[i].me_key);
        }
    } else {
        PyDictKeyEntry *entries = DK_ENTRIES(keys);
        for (Py_ssize_t i = 0; i < count; i++) {
            VISIT(entries[i].me_key);
        }
    }
    return 0;
}

static int traverse_table(PyDictKeysObject *keys, visitproc visit, void *arg) {
    Py_ssize_t count = keys->dk_nentries;
    if (DK_IS_UNICODE(keys)) {
        PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
        for (Py_ssize_t i = 0; i < count; i++) {
            VISIT(entries[i].me_key);
            VISIT(entries[i].me_value);
        }
    } else {
        PyDictKeyEntry *entries = DK_ENTRIES(keys);
        for (Py_ssize_t i = 0; i < count; i++) {
            VISIT(entries[i].me_key);
            VISIT(entries[i].me_value);
        }
    }
    return 0;
}

#if LP_HAS_EMBEDDED_VALUES
/* Values embedded in an instance that also has a dict are visited by one of the two; patch
 * releases changed which (gh-130327). Where it is the instance, it leaves the dict out. */
static int dict_visits_embedded, instance_hides_dict;
#endif

static int traverse_split(PyDictObject *dict, visitproc visit, void *arg) {
    Py_ssize_t count = dict->ma_keys->dk_nentries;
#if LP_HAS_EMBEDDED_VALUES
    if (dict->ma_values->embedded && !dict_visits_embedded) {
        return 0;
    }
#endif
    for (Py_ssize_t i = 0; i < count; i++) {
        VISIT(dict->ma_values->values[i]);
    }
    return 0;
}

/* Keys that tp_traverse leaves out: those of tables that hold str keys only. */
static int hides_keys(const PyDictObject *dict) { return DK_IS_UNICODE(dict->ma_keys); }
#else
typedef struct key_entry {
    Py_hash_t me_hash;
    PyObject *me_key, *me_value;
} key_entry;

static size_t index_bytes(const PyDictKeysObject *keys) {
    return keys->dk_size <= 0xff ? 1 : keys->dk_size <= 0xffff ? 2 : keys->dk_size <= 0xffffffff ? 4 : 8;
}

static key_entry *table_entries(PyDictKeysObject *keys) {
    return (key_entry *)(keys->dk_indices + (size_t)keys->dk_size * index_bytes(keys));
}

static int traverse_keys(PyDictKeysObject *keys, visitproc visit, void *arg) {
    key_entry *entries = table_entries(keys);
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        VISIT(entries[i].me_key);
    }
    return 0;
}

static int traverse_table(PyDictKeysObject *keys, visitproc visit, void *arg) {
    key_entry *entries = table_entries(keys);
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        VISIT(entries[i].me_key);
        VISIT(entries[i].me_value);
    }
    return 0;
}

static int traverse_split(PyDictObject *dict, visitproc visit, void *arg) {
    for (Py_ssize_t i = 0; i < dict->ma_keys->dk_nentries; i++) {
        VISIT(dict->ma_values[i]);
    }
    return 0;
}

static const void *general_lookup;   /* the lookup function of tables with keys that are not all str */

static int hides_keys(const PyDictObject *dict) {
    return general_lookup != NULL && dict->ma_keys->dk_lookup != general_lookup;
}
#endif

#if LP_HAS_TRACKED_INTERNED
static const PyDictObject *interned; /* CPython's dict of interned strings, once it was met */

/* 1 for the dict of interned strings, which the collector lists here although it borrows all that it refers to.
 * An entry that is its own key has two references at least where they are counted. */
static int is_interned(const PyDictObject *dict) {
    if (interned != NULL || !DK_IS_UNICODE(dict->ma_keys)) {
        return dict == interned;
    }
    const PyDictUnicodeEntry *entry = DK_UNICODE_ENTRIES(dict->ma_keys);
    for (Py_ssize_t i = 0; i < dict->ma_keys->dk_nentries && entry[i].me_key == entry[i].me_value; i++) {
        if (entry[i].me_key != NULL && Py_REFCNT(entry[i].me_key) < 2) {
            interned = dict;
            return 1;
        }
    }
    return 0;
}
#else
static int is_interned(const PyDictObject *dict) {
    (void)dict;
    return 0;
}
#endif

static int traverse_dict(PyDictObject *dict, visitproc visit, void *arg) {
    if (dict->ma_values == NULL) {
        return is_interned(dict) ? 0 : traverse_table(dict->ma_keys, visit, arg);
    }
    int result = traverse_split(dict, visit, arg);
    if (result == 0 && lp_heap_owns_keys(dict)) {
        result = traverse_keys(dict->ma_keys, visit, arg);
    }
    return result;
}

#if LP_HAS_BORROWED_STACKREFS
/* Bit 0: the stack only borrows the reference; bit 1: a number, no object. */
#define STACKREF_NOT_OWNED 3

/* f_executable .. stackpointer as _PyFrame_Traverse visits them, less what is borrowed. */
static int traverse_frame(_PyInterpreterFrame *frame, visitproc visit, void *arg) {
    VISIT(frame->frame_obj);
    VISIT(frame->f_locals);
    const uintptr_t specials[2] = {frame->f_funcobj.bits, frame->f_executable.bits};
    for (int i = 0; i < 2; i++) {
        VISIT((specials[i] & STACKREF_NOT_OWNED) ? 0 : specials[i]);
    }
    const _PyStackRef *end = frame->stackpointer;
    for (const _PyStackRef *ref = frame->localsplus; end != NULL && ref < end; ref++) {
        VISIT((ref->bits & STACKREF_NOT_OWNED) ? 0 : ref->bits);
    }
    return 0;
}

static int traverse_generator(PyGenObject *gen, visitproc visit, void *arg) {
    VISIT(gen->gi_name);
    VISIT(gen->gi_qualname);
    VISIT(gen->gi_exc_state.exc_value);
    if (gen->gi_frame_state != FRAME_CLEARED) {
        return traverse_frame(&gen->gi_iframe, visit, arg);
    }
    uintptr_t code = gen->gi_iframe.f_executable.bits;
    VISIT((code & STACKREF_NOT_OWNED) ? 0 : code);
    return 0;
}

static int has_borrowing_stack(PyTypeObject *type) {
    return type == &PyGen_Type || type == &PyCoro_Type || type == &PyAsyncGen_Type;
}
#endif

/* The dict of an instance whose tp_traverse leaves it out: it would have one reference more than is known of. */
static PyObject *hidden_dict(PyObject *op, const PyTypeObject *type) {
#if LP_HAS_EMBEDDED_VALUES
    if (instance_hides_dict && (type->tp_flags & Py_TPFLAGS_INLINE_VALUES) != 0 && lp_heap_embedded_values(op)->valid) {
        return lp_heap_instance_dict(op);
    }
#endif
    (void)op, (void)type;
    return NULL;
}

int lp_heap_traverse(PyObject *op, visitproc visit, void *arg) {
    LP_ASSERT_GIL();
    PyTypeObject *type = Py_TYPE(op);
    if (type == &PyDict_Type) {
        return traverse_dict((PyDictObject *)op, visit, arg);
    }
    if (!lp_heap_is_gc(op) || type->tp_traverse == NULL) {
        return 0;
    }
#if LP_HAS_BORROWED_STACKREFS
    if (has_borrowing_stack(type)) {
        return traverse_generator((PyGenObject *)op, visit, arg);
    }
#endif
    int result = type->tp_traverse(op, visit, arg);
    if (result == 0 && LP_UNLIKELY(lp_streams_is_one(type))) {
        return lp_streams_traverse(op, visit, arg);
    }
    if (result == 0) {
        VISIT(hidden_dict(op, type));
    }
    if (result != 0 || !((type->tp_flags & Py_TPFLAGS_TYPE_SUBCLASS) || lp_heap_is_dict_type(type))) {
        return result;
    }
    if (PyType_Check(op)) {
        PyDictKeysObject *keys = ((PyHeapTypeObject *)op)->ht_cached_keys;
        return keys == NULL ? 0 : traverse_keys(keys, visit, arg);
    }
    PyDictObject *dict = (PyDictObject *)op;
    return hides_keys(dict) && lp_heap_owns_keys(dict) ? traverse_keys(dict->ma_keys, visit, arg) : 0;
}

/* ---- start ---- */

#if LP_HAS_DEBUG_OFFSETS
/* 1 if the runtime's own table agrees with the headers on every field that is read here. */
static int are_structs_known(void) {
    const _Py_DebugOffsets *table = &_PyRuntime.debug_offsets;
    if (table->interpreter_frame.size != sizeof(_PyInterpreterFrame) ||
        table->interpreter_frame.previous != offsetof(_PyInterpreterFrame, previous) ||
        table->interpreter_frame.executable != offsetof(_PyInterpreterFrame, f_executable) ||
        table->interpreter_frame.localsplus != offsetof(_PyInterpreterFrame, localsplus) ||
        table->interpreter_frame.owner != offsetof(_PyInterpreterFrame, owner)) {
        return 0;
    }
#if LP_HAS_BORROWED_STACKREFS
    if (table->dict_object.size != sizeof(PyDictObject) ||
        table->interpreter_frame.stackpointer != offsetof(_PyInterpreterFrame, stackpointer) ||
        table->gen_object.size != sizeof(PyGenObject) ||
        table->gen_object.gi_iframe != offsetof(PyGenObject, gi_iframe) ||
        table->gen_object.gi_frame_state != offsetof(PyGenObject, gi_frame_state)) {
        return 0;
    }
#endif
    return table->type_object.size == sizeof(PyTypeObject);
}

static int count_visits(PyObject *op, void *arg) {
    PyObject **wanted = arg;
    if (op == wanted[0]) {
        wanted[0] = NULL;
    }
    return 0;
}

/* A class of Python code that is always there: one of our own would be garbage afterwards. */
static const char instance_source[] = "from _frozen_importlib import ModuleSpec\n"
                                      "value = [1]\n"
                                      "instance = ModuleSpec('leakprobe', value)\n"
                                      "table = instance.__dict__\n";

/* Look whether the instance or its dict visits the values.  0, or -1 with an exception set. */
static int learn_who_visits_values(void) {
    PyObject *globals = Py_BuildValue("{s:O,s:s}", "__builtins__", PyEval_GetBuiltins(), "__name__", "leakprobe");
    PyObject *done = globals == NULL ? NULL : PyRun_String(instance_source, Py_file_input, globals, globals);
    if (done != NULL) {
        PyObject *instance = PyDict_GetItemString(globals, "instance");
        PyObject *wanted = PyDict_GetItemString(globals, "value");
        PyObject *table = PyDict_GetItemString(globals, "table");
        Py_TYPE(instance)->tp_traverse(instance, count_visits, &wanted);
        Py_TYPE(instance)->tp_traverse(instance, count_visits, &table);
        dict_visits_embedded = wanted != NULL;
        instance_hides_dict = table != NULL;
    }
    Py_XDECREF(done);
    Py_XDECREF(globals);
    return done == NULL ? -1 : 0;
}
#else
static int are_structs_known(void) { return 1; /* frozen since the release */ }

static int learn_who_visits_values(void) { return 0; }
#endif

#if LP_HAS_UNICODE_TABLES
static int learn_general_lookup(void) { return 0; }
#else
static int learn_general_lookup(void) {
    PyObject *dict = PyDict_New();
    int result = dict == NULL ? -1 : PyDict_SetItem(dict, Py_None, Py_None);
    if (result == 0) {
        general_lookup = ((PyDictObject *)dict)->ma_keys->dk_lookup;
    }
    Py_XDECREF(dict);
    return result;
}
#endif

int lp_heap_init(void) {
    LP_ASSERT_GIL();
    static int is_done;
    if (is_done || lp_heap_is_collecting()) {
        return 0; /* the lists of a running collector are in pieces; nothing is walked then */
    }
    if (!are_structs_known() || !lp_heap_lists_are_known()) {
        lp_raise("unsupported_python",
                 "objects and the garbage collector of this Python (%s) are laid out differently "
                 "from those leakprobe was built for; rebuild leakprobe from source for it",
                 Py_GetVersion());
        return -1;
    }
    if (learn_general_lookup() < 0 || learn_who_visits_values() < 0 || lp_streams_init() < 0) {
        return -1;
    }
    is_done = 1;
    return 0;
}
