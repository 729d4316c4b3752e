/* Owns nothing. A block starts in either half of its granule: an object is believed where just one looks alive and is
 * a leaf. A stamp may have outlived its block, so what it stands for is read as a walk reads what it is handed. */
#include "python/heap/leaves.h"

#include "base/map.h"             // lp_map_put
#include "base/rawmem.h"          // lp_raw_realloc
#include "ledger/shadow.h"        // LP_SHADOW_SMALL_BYTES
#include "python/compat/heap.h"   // lp_heap_looks_alive
#include "python/heap/numbers.h"  // LP_LEAVES_LOOKED_AT
#include "python/heap/sizes.h"    // lp_size_of

typedef struct tally {
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
    lp_leaves *leaves = of_site(tally_, place->site);
    if (leaves == NULL) {
        return LP_NO_MEMORY;
    }
    if (leaves->is_other || leaves->count >= LP_LEAVES_LOOKED_AT) {
        return LP_OK;
    }
    halves found = leaves_in(place);
    if (found.first == NULL && found.second == NULL) {
        leaves->is_other = 1;
    } else if (found.first == NULL || found.second == NULL) {
        leaves->count++;
        leaves->bytes += lp_size_of(found.first != NULL ? found.first : found.second);
    }
    return LP_OK;
}

lp_status lp_leaves_find(lp_leaves **out_leaves, size_t *out_count) {
    tally t = {.of = NULL};
    lp_heap_begin_walk();
    lp_status status = (lp_status)lp_scan_each(look_at, &t);
    *out_count = status == LP_OK ? t.number.count : 0;
    *out_leaves = t.of;
    lp_map_fini(&t.number);
    return status;
}
