/* Owns what is noted about young containers, for one attribution; the GIL. */
#include "python/graph/collectors.h"

#include <stdlib.h>

#include "base/rawmem.h"     // lp_raw_free
#include "python/graph/ascent.h"  // lp_node_above

/* ---- young ---- */

/* Of these wrappers are kept, which were born when a trace asked for them. */
static int is_autograd(const lp_collectors *all, uint32_t node) {
    return lp_walk_is_object(all->walk, node) &&
           lp_kinds_get(&all->walk->kinds, Py_TYPE(lp_walk_object(all->walk, node))).kind == LP_KIND_AUTOGRAD;
}

int lp_collectors_is_young(lp_collectors *all, uint32_t node) {
    lp_walk *walk = all->walk;
    uint8_t *flag = &walk->graph.flag[node];
    if (*flag & (LP_NODE_GROWING | LP_NODE_MADE)) {
        return 1;
    }
    if (!lp_walk_is_object(walk, node)) {
        uint32_t thread = all->parent[node];   /* a frame is as young as its Thread object */
        return thread != LP_NODE_NONE && thread != node && lp_walk_is_object(walk, thread) &&
               lp_collectors_is_young(all, thread);
    }
    if (!(*flag & LP_NODE_JUDGED)) {
        lp_site_id site;
        uint32_t step;
        lp_walk_birth(walk, lp_walk_object(walk, node), &site, &step);
        /* Younger than the window counts too: the newest link of a chain is.  Wrappers that torch made
         * for an earlier trace, and its graph, are never what a user keeps things in. */
        int young = (step >= walk->request->first_step && step != 0) || site == LP_SITE_SELF || is_autograd(all, node);
        *flag |= LP_NODE_JUDGED | (young ? LP_NODE_YOUNG : 0);
    }
    return (*flag & LP_NODE_YOUNG) != 0;
}

/* The birth step of a node that has one. */
static int birth_step(const lp_collectors *all, uint32_t node, uint32_t *out_step) {
    lp_site_id site;
    if (node < all->walk->block_count) {
        *out_step = all->walk->block[node].step;
        return 1;
    }
    if (!lp_walk_is_object(all->walk, node) || (all->walk->graph.flag[node] & LP_NODE_MADE)) {
        return 0;
    }
    return lp_walk_birth(all->walk, lp_walk_object(all->walk, node), &site, out_step);
}

/* ---- what is noted ---- */

static lp_collector *at(lp_collectors *all, uint32_t node) {
    uint32_t *number = lp_map_put(&all->number, (uint64_t)node + 1, NULL);
    lp_collector *array = lp_walk_reserve(all->array, all->count, &all->capacity, sizeof(*array));
    if (number == NULL || array == NULL) {
        return NULL;
    }
    all->array = array;
    if (*number == 0) {
        array[all->count] = (lp_collector){.node = node, .home = LP_NODE_NONE, .top = LP_NODE_NONE};
        *number = ++all->count;
    }
    return &array[*number - 1];
}

static void note_step(lp_collector *one, uint32_t step) {
    one->newest = step > one->newest ? step : one->newest;
    for (uint32_t i = 0; i < one->step_count; i++) {
        if (one->step[i] == step) {
            return;
        }
    }
    if (one->step_count < LP_COLLECTORS_STEPS) {
        one->step[one->step_count++] = step;
    }
}

lp_status lp_collectors_note(lp_collectors *all, uint32_t parent, uint32_t child) {
    uint32_t step;
    if (!birth_step(all, child, &step)) {
        return LP_OK;
    }
    lp_collector *one = at(all, parent);
    if (one == NULL) {
        return LP_NO_MEMORY;
    }
    note_step(one, step);
    return LP_OK;
}

static const lp_collector *find(const lp_collectors *all, uint32_t node) {
    uint32_t number = lp_map_get(&all->number, (uint64_t)node + 1, 0);
    return number == 0 ? NULL : &all->array[number - 1];
}

/* ---- holders ---- */

/* A block of a linked list of blocks: all of them belong to what leads to the first. */
static int continues(const lp_collectors *all, uint32_t node) {
    uint32_t before = all->parent[node];
    if (before == LP_NODE_NONE || before == node || !lp_walk_is_object(all->walk, before) ||
        !lp_walk_is_object(all->walk, node)) {
        return 0;
    }
    PyObject *op = lp_walk_object(all->walk, node);
    return Py_TYPE(op) == Py_TYPE(lp_walk_object(all->walk, before)) && !PyList_Check(op) && !PyDict_Check(op) &&
           !PyTuple_Check(op) && !PyAnySet_Check(op);
}

int lp_collectors_is_holder(const lp_collectors *all, uint32_t node) {
    const lp_collector *one = find(all, node);
    return one != NULL && !one->is_lifted && one->step_count >= LP_COLLECTORS_STEPS && !is_autograd(all, node) &&
           lp_names_is_container(all->walk, node) && !continues(all, node);
}

uint32_t lp_collectors_place(const lp_collectors *all, uint32_t node) {
    const lp_collector *one = find(all, node);
    return one != NULL && one->is_lifted ? one->top : LP_NODE_NONE;
}

int lp_collectors_is_named(const lp_collectors *all, uint32_t node) {
    uint32_t owner = all->parent[node];
    return !lp_names_is_container(all->walk, node) ||
           (owner != LP_NODE_NONE && owner != node && lp_names_is_carrier(all->walk, owner, node));
}

/* ---- one after another ---- */

/* 1 if a node lies right below a holder, or leads no further up. */
static int is_below_home(lp_collectors *all, uint32_t node) {
    uint32_t parent = lp_node_above(all->parent, node);
    return parent == LP_NODE_NONE || !lp_collectors_is_young(all, parent) || lp_collectors_is_holder(all, parent);
}

static lp_status find_home(lp_collectors *all, lp_collector *one) {
    uint32_t end = one->node, top = LP_NODE_NONE;
    while (top == LP_NODE_NONE && !is_below_home(all, end)) {
        end = all->parent[end];
        top = lp_node_remembers(end) ? lp_map_get(&all->known_top, (uint64_t)end + 1, LP_NODE_NONE) : LP_NODE_NONE;
    }
    one->top = top == LP_NODE_NONE ? end : top;
    one->home = lp_node_above(all->parent, one->top);
    for (uint32_t node = one->node; node != end; node = all->parent[node]) {
        uint32_t *known = lp_node_remembers(node) ? lp_map_put(&all->known_top, (uint64_t)node + 1, NULL) : &one->top;
        if (known == NULL) {
            return LP_NO_MEMORY;
        }
        *known = one->top;
    }
    return LP_OK;
}

/* What is of no known line is like nothing else. */
static lp_status describe(lp_collectors *all, lp_collector *one) {
    lp_site_id site = LP_SITE_UNKNOWN;
    if (lp_walk_is_object(all->walk, one->node) && lp_collectors_is_holder(all, one->node)) {
        lp_walk_birth(all->walk, lp_walk_object(all->walk, one->node), &site, &one->born);
    }
    if (site >= LP_SITE_FIRST) {
        one->site = lp_site_base(site);
        return find_home(all, one);
    }
    return LP_OK;
}

static int by_site_and_home(const void *left_, const void *right_) {
    const lp_collector *left = *(lp_collector *const *)left_, *right = *(lp_collector *const *)right_;
    if (left->site != right->site) {
        return left->site < right->site ? -1 : 1;
    }
    if (left->home != right->home) {
        return left->home < right->home ? -1 : 1;
    }
    return left->node < right->node ? -1 : left->node > right->node;
}

/* Those of one line in one place come one after another if most got their last member before another of the
 * line was made. */
static int come_in_turn(const lp_collectors *all, lp_collector *const *some, uint32_t count, uint32_t youngest) {
    uint32_t done = 0, home = some[0]->home;
    if (home == LP_NODE_NONE || all->parent[home] == home || lp_collectors_is_named(all, home)) {
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        done += some[i]->newest <= youngest;
    }
    return done >= LP_COLLECTORS_STEPS && done >= count - done;
}

static uint32_t same_home(lp_collector *const *some, uint32_t count) {
    uint32_t same = 1;
    while (same < count && some[same]->home == some[0]->home) {
        same++;
    }
    return same;
}

/* All of one line: fewer ones elsewhere are still being filled, and will go where most of the others went. */
static void lift_line(const lp_collectors *all, lp_collector **some, uint32_t count) {
    uint32_t youngest = 0, most = 0, place = LP_NODE_NONE;
    for (uint32_t i = 0; i < count; i++) {
        youngest = some[i]->born > youngest ? some[i]->born : youngest;
    }
    for (uint32_t i = 0, same; i < count; i += same) {
        same = same_home(some + i, count - i);
        if (!come_in_turn(all, some + i, same, youngest)) {
            continue;
        }
        for (uint32_t k = i; k < i + same; k++) {
            some[k]->is_lifted = 1;
        }
        place = same > most ? some[i]->top : place;
        most = same > most ? same : most;
    }
    for (uint32_t i = 0, same; i < count && most > 0; i += same) {
        same = same_home(some + i, count - i);
        for (uint32_t k = i; k < i + same && same < most && !some[k]->is_lifted; k++) {
            some[k]->is_lifted = 1;
            some[k]->top = place;
        }
    }
}

lp_status lp_collectors_lift(lp_collectors *all) {
    uint32_t count = 0;
    lp_collector **some = lp_raw_malloc(((size_t)all->count + 1) * sizeof(*some));
    if (some == NULL) {
        return LP_NO_MEMORY;
    }
    lp_status status = LP_OK;
    for (uint32_t i = 0; i < all->count && status == LP_OK; i++) {
        status = describe(all, &all->array[i]);
        if (all->array[i].site != 0) {
            some[count++] = &all->array[i];
        }
    }
    qsort(some, count, sizeof(lp_collector *), by_site_and_home);
    for (uint32_t i = 0, same; i < count; i += same) {
        for (same = 1; i + same < count && some[i + same]->site == some[i]->site;) {
            same++;
        }
        lift_line(all, some + i, same);
    }
    lp_raw_free(some);
    return status;
}

void lp_collectors_fini(lp_collectors *all) {
    lp_raw_free(all->array);
    lp_map_fini(&all->number);
    lp_map_fini(&all->known_top);
}
