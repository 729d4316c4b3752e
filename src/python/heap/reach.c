/* What one object reaches and none before it did, with the pages of their reference counts. Writes to no object. */
#include "python/heap/reach.h"

#include <string.h>
#include <unistd.h>              // sysconf

#include "base/rawmem.h"         // lp_raw_realloc
#include "python/compat/heap.h"  // lp_heap_traverse
#include "python/layouts/numpy.h" // lp_numpy_traverse
#include "python/values/type_names.h"   // lp_type_name_copy

static int page_shift(void) {
    static int shift;
    if (shift == 0) {
        shift = __builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
    }
    return shift;
}

/* ---- a region ---- */

/* The number of a type in the region; the last number, of no type, is for all that find no room. */
static uint32_t type_number(lp_region *region, PyTypeObject *type) {
    for (uint32_t i = 0; i < region->type_count; i++) {
        if (region->type[i].type == type) {
            return i;
        }
    }
    if (region->type_count >= LP_REGION_TYPES - 1) {
        region->type_count = LP_REGION_TYPES;
        return LP_REGION_TYPES - 1;
    }
    region->type[region->type_count] = (lp_region_type){.type = type, .rule = lp_size_rule_of(type)};
    return region->type_count++;
}

static lp_status add_page(lp_region *region, lp_page page) {
    if (region->page_count != 0 && region->page[region->page_count - 1].number == page.number) {
        region->page[region->page_count - 1].kinds |= page.kinds;
        return LP_OK;
    }
    if (region->page_count == region->page_capacity) {
        size_t size = region->page_capacity ? region->page_capacity * 2 : 64;
        lp_page *pages = lp_raw_realloc(region->page, size * sizeof(*pages));
        if (pages == NULL) {
            return LP_NO_MEMORY;
        }
        region->page = pages;
        region->page_capacity = size;
    }
    region->page[region->page_count++] = page;
    return LP_OK;
}

static lp_status add_object(lp_region *region, PyObject *op, uint32_t number, int kind) {
    lp_region_type *type = &region->type[number];
    lp_size_rule rule = type->type == Py_TYPE(op) ? type->rule : lp_size_rule_of(Py_TYPE(op));
    uint64_t bytes = lp_size_by_rule(op, &rule);
    type->count++;
    type->bytes += bytes;
    region->count++;
    region->bytes += bytes;
    region->array_bytes += kind == LP_KIND_ARRAY ? lp_numpy_owned_bytes(op) : 0;
    if (lp_is_immortal(op)) {
        return LP_OK;
    }
    int is_tracked = lp_heap_is_gc(op) && lp_heap_gc_is_tracked(op);
    uint64_t kinds = 1ull << number | (uint64_t)is_tracked << LP_REGION_TRACKED;
    return add_page(region, (lp_page){(uintptr_t)op >> page_shift(), kinds});
}

static char *name_of(PyTypeObject *type) {
    static const char others[] = "other types";
    char *name = type == NULL ? lp_raw_malloc(sizeof(others)) : lp_type_name_copy(type);
    return type == NULL && name != NULL ? memcpy(name, others, sizeof(others)) : name;
}

/* Types die; their names stay. */
static void name_types(lp_region *region) {
    for (uint32_t i = 0; i < region->type_count; i++) {
        region->type[i].name = name_of(region->type[i].type);
        region->type[i].type = NULL;
    }
}

static void free_region(lp_region *region) {
    for (uint32_t i = 0; i < region->type_count; i++) {
        lp_raw_free(region->type[i].name);
    }
    lp_raw_free(region->page);
    lp_raw_free(region);
}

/* ---- the walk ---- */

static int fail(lp_reach *reach, lp_status status) {
    reach->status = reach->status == LP_OK ? status : reach->status;
    return -1;
}

static int push(PyObject *op, void *reach_) {
    lp_reach *reach = reach_;
    if (!lp_heap_is_aligned(op)) {
        return 0;
    }
    uint32_t *slot = lp_addresses_slot(&reach->seen, (uintptr_t)op);
    if (slot == NULL) {
        return fail(reach, LP_NO_MEMORY);
    }
    if (*slot != 0) {
        return 0;
    }
    *slot = 1;
    if (reach->pending_count == reach->pending_capacity) {
        size_t size = reach->pending_capacity ? reach->pending_capacity * 2 : 4096;
        uintptr_t *pending = lp_raw_realloc(reach->pending, size * sizeof(*pending));
        if (pending == NULL) {
            return fail(reach, LP_NO_MEMORY);
        }
        reach->pending = pending;
        reach->pending_capacity = size;
    }
    reach->pending[reach->pending_count++] = (uintptr_t)op;
    return 0;
}

/* What belongs to the program rather than to its data. */
static int is_no_data(PyObject *op, int kind) {
    return kind == LP_KIND_TYPE || kind == LP_KIND_OWN || PyModule_Check(op) || PyFunction_Check(op) ||
           PyCode_Check(op) || PyCFunction_Check(op) || PyFrame_Check(op) || PyCapsule_CheckExact(op);
}

static void visit_object(lp_reach *reach, PyObject *op) {
    int kind = lp_kinds_get(&reach->kinds, Py_TYPE(op)).kind;
    if (is_no_data(op, kind)) {
        return;
    }
    if (reach->object_limit != 0 && reach->object_count >= reach->object_limit) {
        fail(reach, LP_LIMIT);
        return;
    }
    reach->object_count++;
    lp_status status = add_object(reach->walked, op, type_number(reach->walked, Py_TYPE(op)), kind);
    if (status != LP_OK) {
        fail(reach, status);
        return;
    }
    if (kind == LP_KIND_ARRAY) {
        lp_numpy_traverse(op, push, reach);
    }
    if (kind == LP_KIND_RECORD) {
        lp_numpy_traverse_record(op, push, reach);
    }
    if (kind != LP_KIND_LEAF) {
        lp_heap_traverse(op, push, reach);
    }
}

static void walk(lp_reach *reach) {
    while (reach->pending_count != 0 && reach->status == LP_OK) {
        PyObject *op = (PyObject *)reach->pending[--reach->pending_count];
        if (reach->pending_count >= 4) {
            __builtin_prefetch((void *)reach->pending[reach->pending_count - 4]);
        }
        if (lp_heap_looks_alive(op)) {
            visit_object(reach, op);
        }
    }
    reach->pending_count = 0;
}

lp_status lp_reach_add(lp_reach *reach, PyObject *op, uint32_t *out_region) {
    lp_region **regions = lp_raw_realloc(reach->region, (reach->region_count + 1) * sizeof(*regions));
    lp_region *region = lp_raw_calloc(1, sizeof(*region));
    if (regions != NULL) {
        reach->region = regions;
    }
    if (regions == NULL || region == NULL) {
        lp_raw_free(region);
        return LP_NO_MEMORY;
    }
    reach->walked = region;
    lp_kinds_clear(&reach->kinds);   /* the program ran since: another type may have the place of one that died */
    lp_heap_begin_walk();
    push(op, reach);
    walk(reach);
    name_types(region);
    lp_status merged = lp_pages_merge(region->page, &region->page_count);
    if (reach->status != LP_OK || merged != LP_OK) {
        free_region(region);
        return reach->status != LP_OK ? reach->status : merged;
    }
    *out_region = reach->region_count;
    reach->region[reach->region_count++] = region;
    return LP_OK;
}

lp_status lp_reach_init(lp_reach *reach, uint64_t object_limit) {
    *reach = (lp_reach){.object_limit = object_limit};
    return lp_addresses_init(&reach->seen);
}

void lp_reach_finish(lp_reach *reach) {
    lp_addresses_discard(&reach->seen);
    lp_kinds_clear(&reach->kinds);
    lp_raw_free(reach->pending);
    reach->pending = NULL;
    reach->pending_capacity = 0;
}

void lp_reach_fini(lp_reach *reach) {
    for (uint32_t i = 0; i < reach->region_count; i++) {
        free_region(reach->region[i]);
    }
    lp_raw_free(reach->region);
    lp_raw_free(reach->pending);
    lp_addresses_fini(&reach->seen);
    lp_kinds_fini(&reach->kinds);
}
