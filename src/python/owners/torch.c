/* The second phase of a walk, from the first getter to the last. The collector is off and a guard is held
 * meanwhile; both are put back. */
#include "python/owners/torch_parts.h"

#include <string.h>

#include "base/clock.h"                 // lp_clock_ns
#include "base/rawmem.h"                // lp_raw_malloc, lp_raw_free
#include "base/sort.h"                  // lp_sort_pairs
#include "python/compat/compat.h"       // lp_birth_stamp

/* What a getter lets go of may have been the last to hold a member that nothing in the graph holds. */
static void keep_grown(lp_torch *torch) {
    lp_walk *walk = torch->walk;
    for (uint32_t i = 0; i < walk->grown_count && walk->status == LP_OK; i++) {
        uint32_t node = walk->grown[i].node;
        if (lp_walk_is_object(walk, node)) {
            torch->arrays_grow |= lp_walk_kind(walk, node) == LP_KIND_ARRAY;
            lp_torch_keep(torch, node);
        }
    }
}

static void enqueue(lp_torch *torch, uint32_t node) {
    lp_torch_names *names = torch->names;
    if (torch->walk->graph.flag[node] & LP_NODE_JUDGED) {
        return;
    }
    uint32_t *work = lp_walk_reserve(names->work, names->work_tail, &names->work_capacity, sizeof(*work));
    if (work == NULL) {
        torch->walk->status = LP_NO_MEMORY;
        return;
    }
    names->work = work;
    names->work[names->work_tail++] = node;
    lp_torch_keep(torch, node);
    torch->walk->graph.flag[node] |= LP_NODE_JUDGED;
}

static void read_node(lp_torch *torch, uint32_t node) {
    lp_walk *walk = torch->walk;
    int kind = lp_walk_kind(walk, node);
    if (kind == LP_KIND_STORAGE) {
        lp_torch_read_storage_object(torch, node);
    } else if (kind == LP_KIND_TENSOR) {
        lp_torch_read_tensor(torch, node);
    } else if (torch->budget > 0) {
        torch->budget--;
        lp_torch_read_function(torch, node);
    } else {
        torch->is_complete = 0;
        torch->why_not = "the budget for autograd nodes is used up";
    }
}

static void drain(lp_torch *torch) {
    lp_torch_names *names = torch->names;
    lp_walk *walk = torch->walk;
    while (names->work_head < names->work_tail && walk->status == LP_OK) {
        read_node(torch, names->work[names->work_head++]);
        lp_walk_continue(walk);
        while (names->taken < walk->torch_count) {
            enqueue(torch, walk->torch_node[names->taken++]);
        }
    }
}

/* From the head of a chain to its end, so that where the budget does not last the oldest links are missing, and what
 * was read hangs together. */
static void read_newest_first(lp_torch *torch, lp_sort_pair *starts, lp_sort_pair *scratch, uint32_t count) {
    lp_walk *walk = torch->walk;
    for (uint32_t i = 0; i < count; i++) {
        lp_stamp birth = lp_birth_stamp(lp_walk_object(walk, walk->torch_node[i]));
        starts[i] = (lp_sort_pair){LP_EPOCH_MAX - LP_STAMP_EPOCH(birth), walk->torch_node[i]};
    }
    lp_sort_pairs(starts, scratch, count);
    for (uint32_t i = 0; i < count && walk->status == LP_OK; i++) {
        enqueue(torch, (uint32_t)starts[i].value);
        drain(torch);
    }
}

static void read_all(lp_torch *torch) {
    lp_walk *walk = torch->walk;
    uint32_t known = torch->names->taken = walk->torch_count;
    for (uint32_t i = 0; i < known && walk->status == LP_OK; i++) {
        lp_torch_keep(torch, walk->torch_node[i]);
    }
    lp_sort_pair *starts = lp_raw_malloc(((size_t)known + 1) * sizeof(*starts));
    lp_sort_pair *scratch = lp_raw_malloc(((size_t)known + 1) * sizeof(*scratch));
    if (starts != NULL && scratch != NULL) {
        read_newest_first(torch, starts, scratch, known);
    } else {
        walk->status = LP_NO_MEMORY;
    }
    lp_raw_free(starts);
    lp_raw_free(scratch);
    for (uint32_t i = 0; i < walk->torch_count; i++) {
        walk->graph.flag[walk->torch_node[i]] &= (uint8_t)~LP_NODE_JUDGED;
    }
}

lp_status lp_torch_take(lp_torch *torch, lp_walk *walk, uint32_t budget) {
    LP_ASSERT_GIL();
    static lp_torch_names names; /* the GIL protects it */
    uint64_t began = lp_clock_ns();
    memset(&names, 0, sizeof(names));
    *torch = (lp_torch){.walk = walk, .budget = budget, .is_complete = 1, .names = &names};
    if (walk->torch_count == 0) {
        return LP_OK;
    }
    int collects = PyGC_Disable();
    keep_grown(torch);
    if (lp_torch_open_names(&names) < 0) {
        torch->is_complete = 0;
        torch->why_not = "this torch does not have the getters that are needed";
    } else {
        read_all(torch);
        lp_torch_read_unasked(torch);
        lp_views_settle(torch);
        lp_torch_read_hooks(torch);
        lp_torch_read_storages(torch);
        lp_torch_read_owned(torch);
        if (walk->status == LP_OK) {
            lp_torch_settle_counts(torch);
        }
    }
    lp_torch_close_names(&names);
    if (collects) {
        PyGC_Enable();
    }
    torch->names = NULL;
    torch->ns = lp_clock_ns() - began;
    return walk->status;
}

void lp_torch_subtract_own(lp_torch *torch, int64_t *refs) {
    for (uint32_t i = 0; i < torch->made_count; i++) {
        uint32_t node = lp_walk_find(torch->walk, torch->made[i]);
        if (node != LP_NODE_NONE) {
            refs[node]--;
        }
    }
    for (uint32_t i = 0; i < torch->outside_count; i++) {
        refs[torch->outside[i].node]++;
    }
}

void lp_torch_release(lp_torch *torch) {
    for (uint32_t i = 0; i < torch->made_count; i++) {
        Py_DECREF(torch->made[i]);
    }
    lp_raw_free(torch->made);
    lp_raw_free(torch->outside);
    lp_raw_free(torch->unasked);
    lp_raw_free(torch->owned);
    torch->owned = NULL;
    lp_map_fini(&torch->shown);
    lp_map_fini(&torch->lent);
    torch->outside = NULL;
    torch->outside_count = torch->outside_capacity = 0;
    torch->unasked = NULL;
    torch->unasked_count = torch->unasked_capacity = 0;
    torch->made = NULL;
    torch->made_count = torch->made_capacity = 0;
}
