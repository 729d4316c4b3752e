/* Types, groups and the census of a graph that is frozen. Each type is decided once, by what is read and not asked. */
#include "python/graph/freezer.h"

#include <string.h>

#include "base/rawmem.h"              // lp_raw_malloc
#include "python/graph/relate.h"      // lp_relate_is_lru_cache
#include "python/heap/census_rows.h"  // lp_census_copy_rows
#include "python/values/type_names.h" // lp_type_name_copy

int lp_freezer_fail(lp_freezer *z) {
    z->status = z->status == LP_OK ? LP_NO_MEMORY : z->status;
    return -1;
}

/* ---- types and groups ---- */

/* The number of a name; takes the text over. */
static uint32_t name_number(lp_freezer *z, char *text) {
    uint32_t *number = text == NULL ? NULL : lp_map_put(&z->name_at, lp_map_hash_text(text), NULL);
    char **names = number == NULL
                       ? NULL
                       : lp_walk_reserve(z->out->type_name, z->out->type_count, &z->name_capacity, sizeof(*names));
    if (names != NULL) {
        z->out->type_name = names;
    }
    if (names == NULL || *number != 0) {
        lp_raw_free(text);
        return names == NULL ? (uint32_t)lp_freezer_fail(z) : *number - 1;
    }
    names[z->out->type_count] = text;
    *number = ++z->out->type_count;
    return *number - 1;
}

uint32_t lp_freezer_name(lp_freezer *z, const char *name) {
    char *text = lp_raw_malloc(strlen(name) + 1);
    if (text != NULL) {
        memcpy(text, name, strlen(name) + 1);
    }
    return name_number(z, text);
}

static int is_holder_type(const lp_known_type *known, PyTypeObject *type) {
    return lp_size_is_container(&known->rule) || known->is_array || lp_relate_is_lru_cache(type);
}

static uint32_t learn_type(lp_freezer *z, PyTypeObject *type) {
    lp_known_type *types = lp_walk_reserve(z->type, z->type_count, &z->type_capacity, sizeof(*types));
    if (types == NULL) {
        return (uint32_t)lp_freezer_fail(z);
    }
    z->type = types;
    lp_known_type *known = &types[z->type_count];
    int kind = lp_kinds_get(&z->walk->kinds, type).kind;
    *known = (lp_known_type){.type = type,
                             .rule = lp_size_rule_of(type),
                             .group = LP_NODE_NONE,
                             .is_own = kind == LP_KIND_OWN,
                             .is_array = kind == LP_KIND_ARRAY};
    known->holds = (uint8_t)is_holder_type(known, type);
    known->is_dict = PyType_FastSubclass(type, Py_TPFLAGS_DICT_SUBCLASS) != 0;
    known->census = z->tables == NULL ? 0 : lp_census_find_type(z->tables, type);
    known->number = name_number(z, lp_type_name_copy(type));
    return z->status != LP_OK ? LP_NODE_NONE : z->type_count++;
}

lp_known_type *lp_freezer_type(lp_freezer *z, PyTypeObject *type) {
    uint32_t *cached = &z->cache[((uintptr_t)type >> 4) & (LP_FREEZER_CACHE - 1)];
    if (LP_LIKELY(*cached < z->type_count && z->type[*cached].type == type)) {
        return &z->type[*cached];
    }
    uint32_t *slot = lp_map_put(&z->type_at, (uintptr_t)type, NULL);
    if (slot == NULL) {
        lp_freezer_fail(z);
        return NULL;
    }
    if (*slot == 0) {
        uint32_t number = learn_type(z, type);
        if (number == LP_NODE_NONE) {
            return NULL;
        }
        *slot = number + 1;
    }
    *cached = *slot - 1;
    return &z->type[*cached];
}

uint32_t lp_freezer_group(lp_freezer *z, uint32_t type, uint32_t medium, lp_site_id site) {
    uint64_t key = (((uint64_t)type << 32) | (medium << LP_SITE_BITS) | site) + 1;
    uint32_t *slot = lp_map_put(&z->group_at, key, NULL);
    lp_frozen_group *groups =
        slot == NULL ? NULL
                     : lp_walk_reserve(z->out->group_of, z->out->group_count, &z->group_capacity, sizeof(*groups));
    if (groups == NULL) {
        return (uint32_t)lp_freezer_fail(z);
    }
    z->out->group_of = groups;
    if (*slot == 0) {
        groups[z->out->group_count] = (lp_frozen_group){.type = type, .medium = medium, .site = site};
        *slot = ++z->out->group_count;
    }
    return *slot - 1;
}

void lp_freezer_put(lp_freezer *z, uint32_t node, uint32_t group, uint64_t bytes) {
    if (group == LP_NODE_NONE) {
        lp_freezer_fail(z);
        return;
    }
    z->out->group[node] = group;
    z->out->bytes[node] = bytes;
    z->out->group_of[group].count++;
    z->out->group_of[group].bytes += bytes;
}

/* ---- census ---- */

/* What is older than the stamps is counted by type alone. */
lp_status lp_freezer_census(lp_freezer *z, lp_census **out_census) {
    lp_census *census = lp_raw_calloc(1, sizeof(*census));
    if (census == NULL) {
        return LP_NO_MEMORY;
    }
    census->full = 1;
    for (uint32_t i = 0; i < z->type_count; i++) {
        const lp_known_type *known = &z->type[i];
        if (known->old_count > 0) {
            lp_census_add(z->tables, known->census, 0, known->old_count, known->old_bytes);
        }
    }
    lp_status status = lp_census_copy_rows(census, z->tables);
    if (status != LP_OK) {
        lp_census_free(census);
        return status;
    }
    for (size_t i = 0; i < census->row_count; i++) {
        census->object_count += census->rows[i].count;
        census->total_bytes += census->rows[i].bytes;
    }
    *out_census = census;
    return LP_OK;
}
