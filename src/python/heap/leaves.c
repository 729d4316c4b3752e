/* Owns nothing. A block starts in either half of its granule: an object is believed where just one looks alive and is
 * a leaf, or where a record is proved. A stamp may have outlived its block, so what it stands for is read as a walk
 * reads what it is handed. */
#include "python/heap/leaves.h"

#include "base/map.h"             // lp_map_put
#include "base/rawmem.h"          // lp_raw_realloc
#include "ledger/epoch.h"         // lp_epoch_steps
#include "ledger/shadow.h"        // LP_SHADOW_SMALL_BYTES
#include "python/compat/heap.h"   // lp_heap_looks_alive
#include "python/heap/numbers.h"  // LP_LEAVES_LOOKED_AT
#include "python/heap/sizes.h"    // lp_size_of
#include "python/heap/untracked.h"  // lp_untracked_or_not

typedef struct tally {
    uint32_t since; /* what was born before this step does not count */
    lp_map number; /* site => index in of */
    lp_leaves *of;
} tally;

static int is_leaf(const PyTypeObject *type) {
    return type == &PyFloat_Type || type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type;
}

static PyObject *leaf_at(uintptr_t start) {
    PyObject *op = (PyObject *)start;
    return lp_heap_looks_alive(op) && is_leaf(Py_TYPE(op)) ? op : NULL;
}

typedef struct halves {
    PyObject *first, *second;
} halves;

/* Both are leaves where one lies in what is left of an older block: which of them is alive can't be told. */
static halves leaves_in(const lp_scan_place *place) {
    if (place->is_small) {
        return (halves){NULL, NULL};
    }
    return (halves){leaf_at(place->start), leaf_at(place->start + LP_SHADOW_SMALL_BYTES)};
}

/* ---- records: what has one block, and refers to leaves and to such as itself ---- */

typedef struct parts {
    unsigned left, depth;
} parts;

/* Tuples, named ones too: what an instance has beside its block depends on the version. */
static int has_one_block(const PyTypeObject *type) {
    return PyType_HasFeature((PyTypeObject *)type, Py_TPFLAGS_TUPLE_SUBCLASS) && type->tp_dictoffset == 0 &&
           !(type->tp_flags & LP_TPFLAGS_PREHEADER);
}

static int is_record(PyObject *op, parts *whole);

/* 1, which ends the traversal, for a part that only a walk can tell the size of. */
static int is_other_part(PyObject *op, void *whole_) {
    parts *whole = whole_;
    if (whole->left == 0 || !lp_heap_looks_alive(op)) {
        return 1;
    }
    whole->left--;
    return !(is_leaf(Py_TYPE(op)) || op == Py_None || PyBool_Check(op) || PyType_Check(op) || is_record(op, whole));
}

static int is_record(PyObject *op, parts *whole) {
    if (whole->depth == 0 || !has_one_block(Py_TYPE(op))) {
        return 0;
    }
    whole->depth--;
    int is_other = lp_heap_traverse(op, is_other_part, whole);
    whole->depth++;
    return !is_other;
}

static PyObject *record_at(const lp_scan_place *place) {
    PyObject *op = place->is_small ? NULL : lp_untracked_or_not(place->start, 0);
    parts whole = {LP_RECORD_PARTS, LP_RECORD_DEPTH};
    return op != NULL && is_record(op, &whole) ? op : NULL;
}

static void add(lp_leaves *leaves, PyObject *op) {
    if (op == NULL) {
        leaves->is_other = ++leaves->others > LP_LEAVES_OTHERS;
        return;
    }
    leaves->count++;
    leaves->bytes += lp_size_of(op);
}

static lp_leaves *of_site(tally *t, lp_site_id site) {
    int is_new;
    uint32_t *number = lp_map_put(&t->number, site, &is_new);
    if (number == NULL || !is_new) {
        return number == NULL ? NULL : &t->of[*number];
    }
    lp_leaves *grown = lp_raw_realloc(t->of, t->number.count * sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    t->of = grown;
    *number = (uint32_t)t->number.count - 1;
    t->of[*number] = (lp_leaves){.site = site};
    return &t->of[*number];
}

static int look_at(const lp_scan_place *place, void *tally_) {
    tally *t = tally_;
    if (lp_epoch_steps(LP_STAMP_EPOCH(*place->stamp)).last_step < t->since) {
        return LP_OK;
    }
    lp_leaves *leaves = of_site(t, place->site);
    if (leaves == NULL) {
        return LP_NO_MEMORY;
    }
    if (leaves->is_other || leaves->count >= LP_LEAVES_LOOKED_AT) {
        return LP_OK;
    }
    halves found = leaves_in(place);
    if (found.first == NULL && found.second == NULL) {
        add(leaves, record_at(place));
    } else if (found.first == NULL || found.second == NULL) {
        add(leaves, found.first != NULL ? found.first : found.second);
    }
    return LP_OK;
}

lp_status lp_leaves_find(uint32_t since, lp_leaves **out_leaves, size_t *out_count) {
    tally t = {.since = since};
    lp_heap_begin_walk();
    lp_status status = (lp_status)lp_scan_each(look_at, &t);
    *out_count = status == LP_OK ? t.number.count : 0;
    *out_leaves = t.of;
    lp_map_fini(&t.number);
    return status;
}
