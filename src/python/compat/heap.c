#include "python/compat/heap_internal.h"

#include "python/compat/streams.h"  // lp_streams_traverse
#include "python/values/convert.h"         // lp_raise

/* ---- what foreign types hand out ---- */

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

/* ---- the collector's lists ---- */

static struct _gc_runtime_state *gc_state(void) {
#if LP_HAS_DEBUG_OFFSETS
    return (struct _gc_runtime_state *)((char *)PyInterpreterState_Get() +
                                        _PyRuntime.debug_offsets.interpreter_state.gc);
#else
    return &PyInterpreterState_Get()->gc;
#endif
}

int lp_heap_is_collecting(void) {
#if LP_HAS_DEBUG_OFFSETS
    return *(int *)((char *)gc_state() + _PyRuntime.debug_offsets.gc.collecting);
#else
    return gc_state()->collecting;
#endif
}

#if LP_HAS_GC_LISTS
static PyGC_Head *next_of(const PyGC_Head *gc) { return (PyGC_Head *)gc->_gc_next; }

static PyGC_Head *previous_of(const PyGC_Head *gc) {
    return (PyGC_Head *)(gc->_gc_prev & ~(uintptr_t)3);   /* two flags below the address */
}

/* Neighbours on a list are often neighbours in a pool: what comes a few objects later. */
#define PREFETCH_BYTES 512

/* From both ends to the middle: two chains of cache misses that do not wait for each other. */
static int walk_list(const PyGC_Head *head, int (*visit)(PyObject *, void *), void *arg) {
    PyGC_Head *front = next_of(head), *back = previous_of(head);
    if (front == head) {
        return 0;
    }
    for (;;) {
        __builtin_prefetch((const char *)front + PREFETCH_BYTES);
        __builtin_prefetch((const char *)back - PREFETCH_BYTES);
        int result = visit((PyObject *)(front + 1), arg);
        if (result != 0 || front == back) {
            return result;
        }
        result = visit((PyObject *)(back + 1), arg);
        front = next_of(front);
        if (result != 0 || front == back) {
            return result;
        }
        back = previous_of(back);
    }
}

/* The lists are where the headers said they would be: each end of each points back to its head. */
static int are_lists_sane(void) {
    struct _gc_runtime_state *gc = gc_state();
    for (int i = 0; i < 4; i++) {
        const PyGC_Head *head = i < 3 ? &gc->generations[i].head : &gc->permanent_generation.head;
        const PyGC_Head *first = next_of(head), *last = previous_of(head);
        if (first == NULL || last == NULL || previous_of(first) != head || next_of(last) != head) {
            return 0;
        }
    }
    return lp_heap_is_collecting() == 0 || lp_heap_is_collecting() == 1;
}

#define LISTS 4   /* three generations, and what is frozen */

/* Frozen objects are on the permanent list, which CPython's own enumeration left out until 3.13.5. */
static void get_lists(const PyGC_Head *out_heads[LISTS]) {
    struct _gc_runtime_state *gc = gc_state();
    for (int i = 0; i < LISTS; i++) {
        out_heads[i] = i < LISTS - 1 ? &gc->generations[i].head : &gc->permanent_generation.head;
    }
}

static int walk_lists(const PyGC_Head *const *heads, int count, int (*visit)(PyObject *, void *), void *arg) {
    for (int i = 0; i < count; i++) {
        int result = walk_list(heads[i], visit, arg);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

int lp_heap_each_tracked(int (*visit)(PyObject *, void *), void *arg) {
    LP_ASSERT_GIL();
    const PyGC_Head *heads[LISTS];
    if (lp_heap_is_collecting()) {
        return LP_UNSUPPORTED;
    }
    get_lists(heads);
    return walk_lists(heads, LISTS, visit, arg);
}

/* ---- what is younger than a mark ---- */

static PyObject *age_mark;   /* a tracked object of our own */
static const PyGC_Head *last_frozen;   /* at the mark: 3.12 freezes some objects of its own */
static int was_frozen; /* since the mark: gc.freeze() and gc.unfreeze() put old objects behind younger ones */

static const PyGC_Head *find_last_frozen(void) { return previous_of(&gc_state()->permanent_generation.head); }

/* A full collection puts the youngest generation before the middle one: only in the oldest is a place that stays. */
static void move_to_oldest(PyObject *op) {
    PyGC_Head *gc = (PyGC_Head *)op - 1, *head = &gc_state()->generations[2].head;
    PyObject_GC_UnTrack(op);
    PyGC_Head *last = previous_of(head);
    _PyGCHead_SET_NEXT(last, gc);
    _PyGCHead_SET_PREV(gc, last);
    _PyGCHead_SET_NEXT(gc, head);
    _PyGCHead_SET_PREV(head, gc);
}

int lp_heap_set_age_mark(void) {
    LP_ASSERT_GIL();
    lp_heap_clear_age_mark();
    if (lp_heap_is_collecting()) {
        return 0;
    }
    age_mark = PyList_New(0);
    if (age_mark == NULL) {
        return -1;
    }
    move_to_oldest(age_mark);
    last_frozen = find_last_frozen();
    was_frozen = 0;
    return 0;
}

void lp_heap_clear_age_mark(void) { Py_CLEAR(age_mark); }

static int list_of_head(const PyGC_Head *const *heads, const PyGC_Head *at) {
    for (int i = 0; i < LISTS; i++) {
        if (heads[i] == at) {
            return i;
        }
    }
    return -1;
}

/* The collector adds to the ends of its lists only: what it starts to track, what outlives a collection of a younger
 * generation, and what it comes back to while it looks for garbage.  So nothing younger ever lies before the mark. */
int lp_heap_each_tracked_since_mark(int (*visit)(PyObject *, void *), void *arg) {
    const PyGC_Head *heads[LISTS];
    was_frozen |= find_last_frozen() != last_frozen;
    if (age_mark == NULL || was_frozen || lp_heap_is_collecting()) {
        return lp_heap_each_tracked(visit, arg);
    }
    get_lists(heads);
    const PyGC_Head *at = next_of((PyGC_Head *)age_mark - 1);
    int list;
    for (; (list = list_of_head(heads, at)) < 0; at = next_of(at)) {
        __builtin_prefetch((const char *)at + PREFETCH_BYTES);
        int result = visit((PyObject *)(at + 1), arg);
        if (result != 0) {
            return result;
        }
    }
    return walk_lists(heads, list, visit, arg);
}
#else
static int are_lists_sane(void) { return 1; /* CPython walks them itself */ }

typedef struct walk {
    int (*visit)(PyObject *, void *);
    void *arg;
    int result;
} walk;

static int walk_one(PyObject *op, void *arg) {
    walk *how = arg;
    how->result = how->visit(op, how->arg);
    return how->result == 0;
}

int lp_heap_each_tracked(int (*visit)(PyObject *, void *), void *arg) {
    LP_ASSERT_GIL();
    walk how = {visit, arg, 0};
    if (lp_heap_is_collecting()) {
        return LP_UNSUPPORTED;
    }
    PyUnstable_GC_VisitObjects(walk_one, &how);
    return how.result;
}

int lp_heap_set_age_mark(void) { return 0; }

void lp_heap_clear_age_mark(void) {}

int lp_heap_each_tracked_since_mark(int (*visit)(PyObject *, void *), void *arg) {
    return lp_heap_each_tracked(visit, arg);
}
#endif

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
 * releases changed which (gh-130327). */
static int dict_visits_embedded;
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

static int traverse_dict(PyDictObject *dict, visitproc visit, void *arg) {
    if (dict->ma_values == NULL) {
        return traverse_table(dict->ma_keys, visit, arg);
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
        Py_TYPE(instance)->tp_traverse(instance, count_visits, &wanted);
        dict_visits_embedded = wanted != NULL;
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
    if (!are_structs_known() || !are_lists_sane()) {
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
