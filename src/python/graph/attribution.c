/* Gives each member of the traced groups to the nearest thing above it that does not grow. Each is counted once. */
#include <stdlib.h>
#include <string.h>

#include "python/graph/ascent.h"  // lp_node_above
#include "python/graph/collectors.h"
#include "python/graph/examples.h"
#include "python/graph/keepers.h"
#include "python/graph/trace.h"

#include "base/rawmem.h"     // lp_raw_malloc
#include "python/owners/autograd_births.h"  // lp_autograd_bytes
#include "python/heap/sizes.h"    // lp_size_of

#define VISITED (UINT32_MAX - 1)

typedef struct work {
    lp_trace *trace;
    lp_walk *walk;
    const uint32_t *parent;
    uint32_t *top;            /* node => the node right below its holder; LP_NODE_NONE: not known yet */
    lp_collectors collectors;
    uint32_t *climb;          /* nodes between a member and its holder */
    uint32_t climb_count, climb_capacity;
    lp_map bucket_number;     /* holder and name => bucket + 1 */
    lp_map namespace_number;  /* holder + 1 => IS_CONTAINER, or IS_NAMESPACE + its names with members below */
    int is_crowded;           /* a namespace turned out to have too many */
    int has_counted;          /* all names */
} work;

enum { IS_CONTAINER = 1, IS_NAMESPACE };

/* ---- climbing ---- */

/* Which young containers get members over several steps. */
static lp_status note_collectors(work *w) {
    lp_status status = LP_OK;
    for (uint32_t i = 0; i < w->walk->grown_count && status == LP_OK; i++) {
        uint32_t node = w->walk->grown[i].node;
        while (status == LP_OK && w->top[node] != VISITED) {
            w->top[node] = VISITED;
            uint32_t parent = w->parent[node];
            if (parent == LP_NODE_NONE || parent == node || !lp_collectors_is_young(&w->collectors, parent)) {
                break;
            }
            status = lp_collectors_note(&w->collectors, parent, node);
            node = parent;
        }
    }
    return status == LP_OK ? lp_collectors_lift(&w->collectors) : status;
}

static uint32_t find_top(work *w, uint32_t node) {
    uint32_t top;
    w->climb_count = 0;
    for (;;) {
        if (w->top[node] < VISITED) {
            top = w->top[node];
            break;
        }
        uint32_t *climb = lp_walk_reserve(w->climb, w->climb_count, &w->climb_capacity, sizeof(*climb));
        if (climb == NULL) {
            return LP_NODE_NONE;
        }
        w->climb = climb;
        w->climb[w->climb_count++] = node;
        uint32_t parent = w->parent[node], place = lp_collectors_place(&w->collectors, node);
        if (place != LP_NODE_NONE || parent == LP_NODE_NONE || parent == node ||
            !lp_collectors_is_young(&w->collectors, parent) || lp_collectors_is_holder(&w->collectors, parent)) {
            top = place != LP_NODE_NONE ? place : node;
            break;
        }
        node = parent;
    }
    /* A container that collects is its own members' holder, and may itself lie below another. */
    for (uint32_t i = 0; i < w->climb_count; i++) {
        w->top[w->climb[i]] = top;
    }
    return top;
}

/* 1 if what a node keeps is told apart by name: a module, a frame, an instance, a class, a closure. */
static int is_namespace(work *w, uint32_t node) {
    uint32_t *known = lp_map_put(&w->namespace_number, (uint64_t)node + 1, NULL);
    if (known != NULL && *known != 0) {
        return *known >= IS_NAMESPACE;
    }
    int is_held_root = w->parent[node] == node && lp_trace_kind_of_root(w->trace, node) == LP_TRACE_HELD;
    int by_name = is_held_root || lp_collectors_is_named(&w->collectors, node);
    if (known != NULL) {
        *known = by_name ? IS_NAMESPACE : IS_CONTAINER;
    }
    return by_name;
}

/* One more name of a namespace.  With many it is a table: no name of it grows, the whole does. */
static void count_name(work *w, uint32_t holder) {
    uint32_t *known = lp_map_put(&w->namespace_number, (uint64_t)holder + 1, NULL);
    if (known != NULL && ++*known > IS_NAMESPACE + LP_KEYS_TOLD_APART) {
        *known = IS_CONTAINER;
        w->is_crowded = 1;
    }
}

/* ---- buckets ---- */

static lp_bucket *bucket_at(work *w, uint64_t key, uint32_t *out_number) {
    lp_trace *trace = w->trace;
    uint32_t *number = lp_map_put(&w->bucket_number, key, NULL);
    lp_bucket *array = lp_walk_reserve(trace->bucket, trace->bucket_count, &trace->bucket_capacity, sizeof(*array));
    if (number == NULL || array == NULL) {
        return NULL;
    }
    trace->bucket = array;
    if (*number == 0) {
        memset(&array[trace->bucket_count], 0, sizeof(*array));
        array[trace->bucket_count].holder = array[trace->bucket_count].top = LP_NODE_NONE;
        array[trace->bucket_count].entry = LP_NODE_NONE;
        lp_examples_begin(&array[trace->bucket_count]);
        *number = ++trace->bucket_count;
    }
    *out_number = *number - 1;
    return &array[*number - 1];
}

static uint64_t bytes_of(const lp_walk *walk, const lp_grown *grown) {
    if (grown->node < walk->block_count) {
        return walk->block[grown->node].bytes;
    }
    PyObject *op = lp_walk_object(walk, grown->node);
    int is_function = walk->request->autograd_marks.count > 0 && grown->group == walk->request->autograd_group;
    return is_function ? lp_autograd_bytes(op) : lp_size_of(op);
}

static lp_status attribute(work *w, uint32_t i) {
    lp_trace *trace = w->trace;
    const lp_grown *grown = &w->walk->grown[i];
    uint32_t node = grown->node, holder = LP_NODE_NONE, top = LP_NODE_NONE;
    uint64_t key = lp_map_pair(UINT32_MAX, grown->group);
    int by_name = 0;
    if (w->parent[node] != LP_NODE_NONE) {
        top = find_top(w, node);
        if (top == LP_NODE_NONE) {
            return LP_NO_MEMORY;
        }
        holder = w->parent[top] == top ? LP_NODE_NONE : w->parent[top];
        if (holder != LP_NODE_NONE && lp_names_is_cache_dict(w->walk, w->parent[holder], holder)) {
            holder = w->parent[holder];
        }
        by_name = holder != LP_NODE_NONE && is_namespace(w, holder);
        key = holder == LP_NODE_NONE ? (uint64_t)top + 1 : lp_map_pair(holder + 1, by_name ? top + 1 : 0);
    }
    uint64_t bytes = bytes_of(w->walk, grown);
    lp_bucket *bucket = bucket_at(w, key, &trace->bucket_of[i]);
    if (bucket == NULL) {
        return LP_NO_MEMORY;
    }
    if (bucket->count == 0) {
        bucket->holder = holder;
        bucket->top = top;
        bucket->in_namespace = (uint8_t)by_name;
        bucket->kind = (uint8_t)lp_trace_kind_of_member(trace, node);
        if (by_name && !w->has_counted) {
            count_name(w, holder);
        }
    }
    bucket->has_many_tops |= bucket->top != top;
    trace->bytes_of[i] = bytes;
    bucket->count++;
    bucket->bytes += bytes;
    lp_examples_add(w->walk, w->parent, bucket, node, bytes);
    return LP_OK;
}

static lp_status attribute_all(work *w) {
    lp_status status = LP_OK;
    lp_map_clear(&w->bucket_number);
    w->trace->bucket_count = 0;
    for (uint32_t i = 0; i < w->walk->grown_count && status == LP_OK; i++) {
        status = attribute(w, i);
    }
    w->has_counted = 1;
    return status;
}

/* ---- entries ---- */

/* No text has the byte that ends it here. */
static uint64_t hash_text(uint64_t hash, const char *text) {
    return lp_map_hash_byte(lp_map_hash_more(hash, text), UINT8_MAX);
}

/* The last node of the path that tells a bucket from others. */
static uint32_t end_of(const lp_bucket *bucket) {
    return bucket->holder == LP_NODE_NONE || bucket->in_namespace ? bucket->top : bucket->holder;
}

/* A number for the pattern of the path to the holder; never 0. */
static uint64_t pattern_of(lp_trace *trace, const lp_bucket *bucket) {
    static lp_element element[LP_PATTERN_MOST];
    uint32_t node[LP_PATTERN_MOST];
    uint64_t hash = LP_MAP_HASH_BASIS + bucket->kind;
    uint32_t end = end_of(bucket);
    if (end == LP_NODE_NONE) {
        const lp_block *block = &trace->walk->block[bucket->sample];
        hash = lp_map_hash_byte(hash, (uint8_t)block->medium);
        return (hash ^ lp_site_base(block->site)) | 1;
    }
    uint32_t count = lp_paths_get(&trace->paths, end, node, LP_PATTERN_MOST);
    count = lp_names_path(trace->walk, node, count, 1, element, LP_PATTERN_MOST);
    for (uint32_t i = 0; i < count; i++) {
        hash = hash_text(hash_text(hash, element[i].text), element[i].type);
    }
    return hash | 1;
}

static uint64_t look_of(const lp_walk *walk, uint32_t node) {
    if (node < walk->block_count) {
        return walk->block[node].medium;
    }
    return (uint64_t)(uintptr_t)(lp_walk_is_object(walk, node) ? (void *)Py_TYPE(lp_walk_object(walk, node))
                                                               : (void *)walk->frame[node - walk->block_count].code);
}

static lp_site_id line_of(const lp_walk *walk, uint32_t node) {
    lp_site_id site = LP_SITE_UNKNOWN;
    uint32_t step;
    if (node < walk->block_count) {
        site = walk->block[node].site;
    } else if (lp_walk_is_object(walk, node)) {
        lp_walk_birth(walk, lp_walk_object(walk, node), &site, &step);
    }
    return lp_site_base(site);
}

/* A number that buckets of one pattern share as a rule, from a few words; never 0. */
static uint64_t likeness_of(lp_trace *trace, const lp_bucket *bucket) {
    uint32_t node = end_of(bucket);
    if (node == LP_NODE_NONE) {
        return pattern_of(trace, bucket);
    }
    uint64_t hash = lp_map_mix(lp_map_pair(line_of(trace->walk, node), bucket->kind)) + bucket->in_namespace;
    for (uint32_t i = 0; i < LP_ALIKE_LEVELS && node != LP_NODE_NONE; i++) {
        hash = lp_map_mix(hash ^ look_of(trace->walk, node));
        node = lp_node_above(trace->paths.parent, node);
    }
    return hash | 1;
}

static const lp_bucket *sorted_buckets;   /* qsort has no argument; the GIL protects it */

/* Of a size old ones and new ones mixed: among those named are then some of all steps. */
static int compare_buckets(const void *left_, const void *right_) {
    uint32_t left = *(const uint32_t *)left_, right = *(const uint32_t *)right_;
    if (sorted_buckets[left].bytes != sorted_buckets[right].bytes) {
        return sorted_buckets[left].bytes > sorted_buckets[right].bytes ? -1 : 1;
    }
    uint64_t left_mixed = lp_map_mix(left), right_mixed = lp_map_mix(right);
    return left_mixed < right_mixed ? -1 : left_mixed > right_mixed;
}

static void add_to_entry(lp_trace *trace, uint32_t number, lp_bucket *bucket) {
    lp_trace_entry *entry = &trace->entry[number];
    bucket->entry = number;
    entry->bucket_count++;
    entry->count += bucket->count;
    entry->bytes += bucket->bytes;
}

typedef struct naming {
    lp_map by_pattern, by_likeness;   /* => entry + 1 */
} naming;

static lp_status name_bucket(lp_trace *trace, naming *known, uint32_t bucket_number) {
    lp_bucket *bucket = &trace->bucket[bucket_number];
    uint32_t *number = lp_map_put(&known->by_pattern, pattern_of(trace, bucket), NULL);
    uint32_t *alike = lp_map_put(&known->by_likeness, likeness_of(trace, bucket), NULL);
    lp_trace_entry *array = lp_walk_reserve(trace->entry, trace->entry_count, &trace->entry_capacity, sizeof(*array));
    if (number == NULL || alike == NULL || array == NULL) {
        return LP_NO_MEMORY;
    }
    trace->entry = array;
    if (*number == 0) {
        array[trace->entry_count] = (lp_trace_entry){.bucket = bucket_number};
        *number = ++trace->entry_count;
    }
    *alike = *alike == 0 ? *number : *alike;
    add_to_entry(trace, *number - 1, bucket);
    uint32_t *shown = &array[*number - 1].bucket;
    int is_older = trace->bucket[*shown].bytes == bucket->bytes && bucket_number < *shown;
    *shown = is_older ? bucket_number : *shown;
    return LP_OK;
}

/* What is too small, or too late, to be named goes where most like it went: its steps are part of a rate. */
static void join_bucket(lp_trace *trace, const naming *known, lp_bucket *bucket) {
    uint32_t number = lp_map_get(&known->by_likeness, likeness_of(trace, bucket), 0);
    if (number != 0) {
        add_to_entry(trace, number - 1, bucket);
    }
}

static int compare_entries(const void *left_, const void *right_) {
    const lp_trace_entry *left = left_, *right = right_;
    if (left->bytes != right->bytes) {
        return left->bytes > right->bytes ? -1 : 1;
    }
    return left->bucket < right->bucket ? -1 : left->bucket > right->bucket;
}

/* Order the entries by bytes and keep the largest; buckets follow. */
static lp_status rank_entries(lp_trace *trace) {
    uint32_t count = trace->entry_count;
    uint32_t *rank = lp_raw_malloc(((size_t)count + 1) * sizeof(*rank));

    if (rank == NULL) {
        return LP_NO_MEMORY;
    }
    qsort(trace->entry, count, sizeof(*trace->entry), compare_entries);
    for (uint32_t i = 0; i < count; i++) {
        rank[trace->bucket[trace->entry[i].bucket].entry] = i;
    }
    trace->entry_count = count < LP_TRACE_MOST_ENTRIES ? count : LP_TRACE_MOST_ENTRIES;
    for (uint32_t i = 0; i < trace->bucket_count; i++) {
        lp_bucket *bucket = &trace->bucket[i];
        bucket->entry = bucket->entry == LP_NODE_NONE ? LP_NODE_NONE : rank[bucket->entry];
        if (bucket->entry >= trace->entry_count) {
            bucket->entry = LP_NODE_NONE;
            trace->rest_count += bucket->count;
            trace->rest_bytes += bucket->bytes;
        }
    }
    lp_raw_free(rank);
    return LP_OK;
}

static lp_status make_entries(lp_trace *trace) {
    LP_ASSERT_GIL();
    naming known = {0};
    lp_status status = LP_OK;
    uint32_t *order = lp_raw_malloc(((size_t)trace->bucket_count + 1) * sizeof(*order));
    if (order == NULL) {
        return LP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < trace->bucket_count; i++) {
        order[i] = i;
    }
    sorted_buckets = trace->bucket;
    qsort(order, trace->bucket_count, sizeof(*order), compare_buckets);
    for (uint32_t i = 0; i < trace->bucket_count && i < LP_HOLDERS_NAMED && status == LP_OK; i++) {
        status = name_bucket(trace, &known, order[i]);
    }
    for (uint32_t i = LP_HOLDERS_NAMED; i < trace->bucket_count && status == LP_OK; i++) {
        join_bucket(trace, &known, &trace->bucket[order[i]]);
    }
    lp_raw_free(order);
    lp_map_fini(&known.by_pattern);
    lp_map_fini(&known.by_likeness);
    return status == LP_OK ? rank_entries(trace) : status;
}

/* ---- cells ---- */

static lp_trace_cell *cell_at(lp_trace *trace, lp_map *pairs, lp_map *cells, uint32_t entry, const lp_grown *grown) {
    uint32_t *pair = lp_map_put(pairs, lp_map_pair(entry, grown->group) + 1, NULL);
    if (pair == NULL) {
        return NULL;
    }
    *pair = *pair != 0 ? *pair : (uint32_t)pairs->count;
    uint32_t *number = lp_map_put(cells, lp_map_pair(*pair, grown->step), NULL);
    lp_trace_cell *array = lp_walk_reserve(trace->cell, trace->cell_count, &trace->cell_capacity, sizeof(*array));
    if (number == NULL || array == NULL) {
        return NULL;
    }
    trace->cell = array;
    if (*number == 0) {
        array[trace->cell_count] = (lp_trace_cell){.entry = entry, .group = grown->group, .step = grown->step};
        *number = ++trace->cell_count;
    }
    return &array[*number - 1];
}

static int compare_cells(const void *left_, const void *right_) {
    const lp_trace_cell *left = left_, *right = right_;
    if (left->entry != right->entry) {
        return left->entry < right->entry ? -1 : 1;
    }
    if (left->group != right->group) {
        return left->group < right->group ? -1 : 1;
    }
    return left->step < right->step ? -1 : left->step > right->step;
}

static lp_status make_cells(lp_trace *trace) {
    lp_map pairs = {0}, cells = {0};
    lp_status status = LP_OK;
    for (uint32_t i = 0; i < trace->walk->grown_count && status == LP_OK; i++) {
        const lp_grown *grown = &trace->walk->grown[i];
        uint32_t entry = trace->bucket[trace->bucket_of[i]].entry;
        if (entry == LP_NODE_NONE) {
            continue;
        }
        lp_trace_cell *cell = cell_at(trace, &pairs, &cells, entry, grown);
        if (cell == NULL) {
            status = LP_NO_MEMORY;
            break;
        }
        cell->count++;
        cell->bytes += trace->bytes_of[i];
        if (grown->site != trace->walk->request->group[grown->group].site) {
            cell->deep_site = grown->site;
        }
    }
    if (status == LP_OK && trace->cell_count > 1) {
        qsort(trace->cell, trace->cell_count, sizeof(*trace->cell), compare_cells);
    }
    lp_map_fini(&pairs);
    lp_map_fini(&cells);
    return status;
}

lp_status lp_attribution_run(lp_trace *trace) {
    lp_walk *walk = trace->walk;
    work w = {.trace = trace, .walk = walk, .parent = trace->paths.parent};
    w.collectors = (lp_collectors){.walk = walk, .parent = w.parent};
    lp_status status = LP_NO_MEMORY;
    if (walk->grown_count == 0) {
        return LP_OK;
    }
    w.top = lp_raw_malloc((size_t)walk->graph.node_count * sizeof(*w.top));
    trace->bucket_of = lp_raw_malloc((size_t)walk->grown_count * sizeof(*trace->bucket_of));
    trace->bytes_of = lp_raw_malloc((size_t)walk->grown_count * sizeof(*trace->bytes_of));
    if (w.top == NULL || trace->bucket_of == NULL || trace->bytes_of == NULL) {
        goto done;
    }
    memset(w.top, LP_NODE_NONE_BYTE, (size_t)walk->graph.node_count * sizeof(*w.top));
    status = LP_OK;
    if (walk->request->by_keeper) {
        lp_keepers_date(trace);  /* what collects them is below what keeps that */
    } else {
        status = note_collectors(&w);
    }
    status = status == LP_OK ? attribute_all(&w) : status;
    if (status == LP_OK && w.is_crowded) {
        status = attribute_all(&w);  /* the first members of what is crowded went by name */
    }
    if (status == LP_OK) {
        status = make_entries(trace);
    }
    if (status == LP_OK) {
        status = make_cells(trace);
    }
done:
    lp_raw_free(w.top);
    lp_raw_free(w.climb);
    lp_collectors_fini(&w.collectors);
    lp_map_fini(&w.bucket_number);
    lp_map_fini(&w.namespace_number);
    return status;
}
