/* Owns nothing. A stamp may have outlived its block, so what it stands for is proved to be an object first. */
#include "python/heap/found_types.h"

#include "base/map.h"              // lp_map_put
#include "base/rawmem.h"           // lp_raw_realloc
#include "python/compat/heap.h"    // lp_heap_begin_walk
#include "python/heap/numbers.h"
#include "python/heap/sizes.h"     // lp_size_of
#include "python/heap/untracked.h" // lp_untracked_or_not
#include "python/values/type_names.h" // lp_type_name_copy

typedef struct tally {
    lp_map number;  /* a site and a type => index in of, + 1 */
    lp_map met;     /* site => survivors of it so far */
    lp_found_type *of;
    size_t count, capacity;
} tally;

static lp_found_type *add_row(tally *t, lp_site_id site, uintptr_t type) {
    if (t->count == t->capacity) {
        size_t capacity = t->capacity == 0 ? LP_FOUND_ROOM : t->capacity + t->capacity;
        lp_found_type *grown = lp_raw_realloc(t->of, capacity * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        t->of = grown;
        t->capacity = capacity;
    }
    t->of[t->count] = (lp_found_type){.site = site, .type = type};
    return &t->of[t->count++];
}

/* The key is a hash: rows that share it are told apart by asking. */
static lp_found_type *row_of(tally *t, lp_site_id site, uintptr_t type) {
    for (uint64_t key = lp_map_mix(lp_map_mix(type) + site) | 1;; key = lp_map_mix(key) | 1) {
        uint32_t *number = lp_map_put(&t->number, key, NULL);
        if (number == NULL) {
            return NULL;
        }
        if (*number == 0) {
            lp_found_type *row = add_row(t, site, type);
            *number = (uint32_t)t->count;
            return row;
        }
        lp_found_type *row = &t->of[*number - 1];
        if (row->site == site && row->type == type) {
            return row;
        }
    }
}

/* One that may have come from a free list has an older one's stamp. */
static PyObject *object_of(const lp_scan_place *place) {
    PyObject *op = lp_untracked_or_not(place->start, place->is_small);
    return op != NULL && !lp_compat_is_recycled_type(Py_TYPE(op)) ? op : NULL;
}

static int look_at(const lp_scan_place *place, void *tally_) {
    tally *t = tally_;
    uint32_t *met = lp_map_put(&t->met, place->site, NULL);
    if (met == NULL) {
        return LP_NO_MEMORY;
    }
    uint64_t stands_for = (*met)++ < LP_FOUND_ALL_OF_THE_FIRST ? 1 : LP_FOUND_ONE_OF;
    if (stands_for != 1 && *met % LP_FOUND_ONE_OF != 0) {
        return LP_OK;
    }
    PyObject *op = object_of(place);
    lp_found_type *row = row_of(t, place->site, op == NULL ? 0 : (uintptr_t)Py_TYPE(op));
    if (row == NULL) {
        return LP_NO_MEMORY;
    }
    if (op != NULL && row->name == NULL) {
        row->name = lp_type_name_copy(Py_TYPE(op));
    }
    row->count += stands_for;
    row->bytes += op == NULL ? 0 : stands_for * lp_size_of(op);
    return op != NULL && row->name == NULL ? LP_NO_MEMORY : LP_OK;
}

lp_status lp_found_types(lp_found_type **out_found, size_t *out_count) {
    tally t = {.of = NULL};
    lp_heap_begin_walk();
    lp_status status = (lp_status)lp_scan_each(look_at, &t);
    lp_map_fini(&t.number);
    lp_map_fini(&t.met);
    if (status != LP_OK) {
        lp_found_types_free(t.of, t.count);
        t.of = NULL;
        t.count = 0;
    }
    *out_found = t.of;
    *out_count = t.count;
    return status;
}

void lp_found_types_free(lp_found_type *found, size_t count) {
    for (size_t i = 0; i < count; i++) {
        lp_raw_free(found[i].name);
    }
    lp_raw_free(found);
}
