/* The heap as the running CPython keeps it: which objects there are, what they refer
 * to, and the blocks behind them.
 *
 * Everything here needs the GIL, runs no Python code, allocates nothing, keeps nothing
 * alive and changes nothing (CPython's own enumeration raises a reference count around
 * the visit).  Results are borrowed and valid until Python code runs again. */
#ifndef LP_COMPAT_HEAP_H
#define LP_COMPAT_HEAP_H

#include "python/compat/compat.h"  // Python.h

#include "base/base.h"      // LP_LIKELY
#include "process/mappings.h"  // lp_mappings

/* Check that the collector is laid out as in the headers; 0, or -1 with an exception set.
 * Before any other call; again costs nothing. */
int lp_heap_init(void);

/* Every object the collector tracks, frozen ones too: visit(op, arg) until it returns
 * nonzero.  Returns LP_OK, the nonzero result of visit, or LP_UNSUPPORTED while the
 * collector is running: its lists are in pieces then. */
int lp_heap_each_tracked(int (*visit)(PyObject *, void *), void *arg);

/* 1 while the collector is running, that is from a callback or finaliser of its own. */
int lp_heap_is_collecting(void);

/* What a code object refers to: constants, names, tables. */
int lp_heap_traverse_code(PyObject *code, visitproc visit, void *arg);

/* tp_traverse as it should be: each reference that op owns is visited once.
 *   dict, frozendict    str keys too, where the table is the dict's own
 *   type                the attribute names of its shared-key table
 *   BytesIO, StringIO   what they have collected
 *   generator, 3.14+    without the references that a suspended stack only borrows
 *   static type, atoms  nothing
 * Instances with inline values are visited by their tp_traverse, which makes no dict.
 * The pointers come as the type gives them: use lp_heap_looks_alive() on each. */
int lp_heap_traverse(PyObject *op, visitproc visit, void *arg);

/* 0 for what a faulty tp_traverse may hand out.  The first test touches no memory. */
static inline int lp_heap_is_aligned(const void *pointer) { return pointer != NULL && ((uintptr_t)pointer & 7) == 0; }

/* At the start of a walk: learn which addresses can be read.  Types are proved once a walk. */
void lp_heap_begin_walk(void);

extern lp_mappings lp_heap_mappings;
#define LP_HEAP_TYPES 1024
extern PyTypeObject *lp_heap_proved_type[LP_HEAP_TYPES];   /* direct mapped by address */
/* 1 if this is a type object; runs no code. */
int lp_heap_prove_type(PyTypeObject *type);

/* A count that no freed block has: its first word leads to the next free one. */
static inline int lp_heap_is_count(uint64_t word) { return (word >> 32 & 0xffff) == 0 && (uint32_t)word != 0; }

/* 1 if a live object is here: it can be read, and has a plausible count and the type of one. */
static inline int lp_heap_looks_alive(PyObject *op) {
    if (LP_UNLIKELY(!lp_heap_is_aligned(op) || !lp_mappings_has(&lp_heap_mappings, op, sizeof(PyObject)) ||
                    !lp_heap_is_count(*(const uint64_t *)op))) {
        return 0;
    }
    PyTypeObject *type = Py_TYPE(op);
    if (LP_UNLIKELY(type == NULL)) {
        return 0;   /* an empty place of the table of types */
    }
    return LP_LIKELY(lp_heap_proved_type[((uintptr_t)type >> 4) & (LP_HEAP_TYPES - 1)] == type) ||
           lp_heap_prove_type(type);
}

/* A dict, or what is laid out like one: frozendict on 3.15. */
static inline int lp_heap_is_dict_type(const PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030F0000
    if (type == &PyFrozenDict_Type || (type->tp_base == &PyFrozenDict_Type)) {
        return 1;
    }
#endif
    return (type->tp_flags & Py_TPFLAGS_DICT_SUBCLASS) != 0;
}

/* PyObject_IS_GC() without a call for most types. */
static inline int lp_heap_is_gc(PyObject *op) {
    PyTypeObject *type = Py_TYPE(op);
    return (type->tp_flags & Py_TPFLAGS_HAVE_GC) && (LP_LIKELY(type->tp_is_gc == NULL) || type->tp_is_gc(op));
}

/* 1 if the collector tracks op.  pre: lp_heap_is_gc(op). */
static inline int lp_heap_gc_is_tracked(PyObject *op) { return ((const uintptr_t *)op)[-2] != 0; }

/* 1 for what is in a list of the collector's: its neighbours there refer to it, which no chance pattern has.
 * pre: lp_heap_looks_alive(), two words before it can be read. */
int lp_heap_is_linked(PyObject *op);

/* 1 for a dict or tuple that the collector once had and let go; what only looks like one has no empty head
 * and no sound contents.  pre: lp_heap_looks_alive(), two words before it can be read. */
int lp_heap_is_untracked(PyObject *op);

/* Blocks that belong to an object, in bytes as asked of the allocator; 0 when it has none.
 * pre: the object is of the type named, or of a subclass. */
uint64_t lp_heap_dict_blocks(PyObject *dict);      /* keys table if it is the dict's own, values */
uint64_t lp_heap_odict_blocks(PyObject *odict);    /* nodes and index, beside those of the dict */
uint64_t lp_heap_set_blocks(PyObject *set);
uint64_t lp_heap_list_blocks(PyObject *list);
uint64_t lp_heap_bytearray_blocks(PyObject *bytearray);
uint64_t lp_heap_deque_blocks(PyObject *deque);
uint64_t lp_heap_deque_block_count(PyObject *deque);
uint64_t lp_heap_type_blocks(PyObject *heap_type); /* shared-key table, copied name */

/* The whole of a str or int after the presize, which only the object itself knows. */
uint64_t lp_heap_str_bytes(PyObject *str);
uint64_t lp_heap_int_bytes(PyObject *integer);
/* Slots (locals and stack) at the end of a frame, generator, coroutine or async generator. */
int lp_heap_is_frame_like(const PyTypeObject *type);
uint64_t lp_heap_frame_slots(PyObject *op);

/* 1 if instances of the type keep attribute values without a dict; their bytes: in the
 * object's own block (3.13+) or in a block beside it (3.11, 3.12). */
int lp_heap_has_values(const PyTypeObject *type);
uint64_t lp_heap_values_bytes(PyObject *op);
int lp_heap_values_are_apart(void);   /* in a block beside the object */

/* The stamp of the last growth of a list, dict, set, bytearray or deque; 0 for others, and for a block of up to 16 bytes,
 * whose growth has no stamp.  A block of the allocator of objects (a dict's table before 3.13) is stamped as they are. */
lp_stamp lp_heap_growth(PyObject *op);
/* A container that no birth was seen of, and that grew since: the line that last grew it, as a stamp of no step; 0 for
 * others. */
lp_stamp lp_heap_growth_of_old(PyObject *op);

/* 1 if objects of the type keep their contents in an object of their own, which nothing else refers to and
 * whose bytes their size has: a bytearray's bytes since 3.15.  That object, or NULL while there is none. */
int lp_heap_has_part(const PyTypeObject *type);
PyObject *lp_heap_part(PyObject *op);

/* Fetch ahead what the size and the referents of op will be read from, where that is not op itself. */
void lp_heap_prefetch_blocks(PyObject *op);

#endif
