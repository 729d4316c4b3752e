/* Owns nothing: what a trace notes of its holders that let go, or have only copied. */
#include "python/graph/bounded.h"

#include "base/rawmem.h"  // lp_raw_malloc

/* 1 for a deque with a maxlen, or a cache with a maxsize. */
static int has_bound(const lp_walk *walk, uint32_t holder) {
    int64_t length, bound;
    lp_names_length(walk, holder, &length, &bound);
    return bound >= 0;
}

/* 1 for a container that was made later than a member: it did not collect them step by step.  One that is a member
 * itself, as the newest link of a chain, is no copy. */
static int is_copy(const lp_walk *walk, uint32_t holder, uint32_t first_member) {
    lp_site_id site;
    uint32_t step = 0;
    int is_member = (walk->graph.flag[holder] & LP_NODE_GROWING) != 0;
    if (!is_member && lp_walk_is_object(walk, holder) && lp_names_is_container(walk, holder)) {
        lp_walk_birth(walk, lp_walk_object(walk, holder), &site, &step);
    }
    return step > first_member;
}

/* What keeps the members of a bucket, LP_NODE_NONE if they have nothing in common. */
static uint32_t keeper_of(const lp_bucket *bucket) {
    if (bucket->count <= 1 || bucket->holder == LP_NODE_NONE) {
        return LP_NODE_NONE;
    }
    return bucket->in_namespace && !bucket->has_many_tops ? bucket->top : bucket->holder;
}

/* What was noted of a node, or NULL. */
static lp_bounded *noted(lp_trace *trace, uint32_t node) {
    uint32_t i = 0;
    while (i < trace->bounded_count && trace->bounded[i].node != node) {
        i++;
    }
    return i < trace->bounded_count ? &trace->bounded[i] : NULL;
}

/* Members below a node, those of several lines and names. */
static uint64_t members_of(const lp_trace *trace, uint32_t node) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < trace->bucket_count; i++) {
        count += keeper_of(&trace->bucket[i]) == node ? trace->bucket[i].count : 0;
    }
    return count;
}

static void note(lp_trace *trace, uint32_t node, int is_copy) {
    if (trace->bounded_count < LP_TRACE_BOUNDED && noted(trace, node) == NULL) {
        trace->bounded[trace->bounded_count++] =
            (lp_bounded){node, trace->paths.parent[node], members_of(trace, node), is_copy, 0, 0};
    }
}

/* What has most of its members to itself is not looked past: the rest may come and go elsewhere, which deaths do not
 * show as long as it has them.  1 if some of these went to others. */
static int keep_most(lp_trace *trace) {
    int has_changed = 0;
    for (uint32_t i = 0; i < trace->bounded_count; i++) {
        lp_bounded *one = &trace->bounded[i];
        uint64_t left = one->is_copy || one->is_kept ? 0 : members_of(trace, one->node);
        if (left > one->count - left && left < one->count) {
            one->is_kept = has_changed = 1;
        }
    }
    return has_changed;
}

/* The least birth step of each bucket's members, to be freed; NULL without memory. */
static uint32_t *first_members(const lp_trace *trace) {
    uint32_t *first = lp_raw_malloc((size_t)trace->bucket_count * sizeof(*first));
    for (uint32_t i = 0; i < trace->bucket_count && first != NULL; i++) {
        first[i] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < trace->walk->grown_count && first != NULL; i++) {
        uint32_t step = trace->walk->grown[i].step, *least = &first[trace->bucket_of[i]];
        *least = step < *least ? step : *least;
    }
    return first;
}

int lp_bounded_find(lp_trace *trace) {
    if (trace->walk->request->by_keeper) {
        return 0;  /* members are dated by the paths of the first round */
    }
    int has_changed = keep_most(trace);
    uint32_t before = trace->bounded_count, *first = first_members(trace);
    for (uint32_t i = 0; i < trace->bucket_count && first != NULL; i++) {
        uint32_t keeper = keeper_of(&trace->bucket[i]);
        if (keeper != LP_NODE_NONE && has_bound(trace->walk, keeper)) {
            note(trace, keeper, 0);
        } else if (keeper != LP_NODE_NONE && is_copy(trace->walk, keeper, first[i])) {
            note(trace, keeper, 1);
        }
    }
    lp_raw_free(first);
    return has_changed || trace->bounded_count > before;
}

void lp_bounded_block(lp_trace *trace) {
    for (uint32_t i = 0; i < trace->bounded_count; i++) {
        lp_bounded *one = &trace->bounded[i];
        one->is_released = one->is_kept;
        if (!one->is_kept) {
            trace->paths.parent[one->node] = one->node;
        }
    }
}

static int is_blocked(lp_trace *trace, uint32_t node) {
    const lp_bounded *one = noted(trace, node);
    return one != NULL && !one->is_released;
}

/* It leads on if what it lay below is reached, and not only blocked: ways up must not come back.  A root of its own
 * (of atexit, of C code) is left to those who find it. */
static void release(lp_trace *trace, lp_bounded *one) {
    lp_paths *paths = &trace->paths;
    if (one->is_released || one->parent == one->node || paths->parent[one->parent] == LP_NODE_NONE ||
        is_blocked(trace, one->parent)) {
        return;
    }
    one->is_released = 1;
    paths->parent[one->node] = one->parent;
    paths->queue[paths->tail++] = one->node;
    lp_paths_run(paths, &trace->walk->graph);
}

/* One may lie below another. */
static void release_all(lp_trace *trace, int copies) {
    for (uint32_t round = 0; round < trace->bounded_count; round++) {
        for (uint32_t i = 0; i < trace->bounded_count; i++) {
            if (!trace->bounded[i].is_copy || copies) {
                release(trace, &trace->bounded[i]);
            }
        }
    }
}

void lp_bounded_release(lp_trace *trace) {
    release_all(trace, 0);
    release_all(trace, 1);
    for (uint32_t i = 0; i < trace->bounded_count; i++) {
        if (!trace->bounded[i].is_released) {
            trace->paths.parent[trace->bounded[i].node] = LP_NODE_NONE;
        }
    }
}
