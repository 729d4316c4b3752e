/* Works out a frozen graph's tree and retained sizes from what is stored. A graph from a file is bounded before
 * it is believed. */
#include "analysis/frozen.h"

#include <string.h>

#include "analysis/addresses.h"
#include "base/clock.h"   // lp_clock_ns
#include "base/rawmem.h"  // lp_raw_malloc

/* ---- what is worked out ---- */

static lp_status check(const lp_frozen *f) {
    if (!lp_graph_is_valid(&f->graph) || f->graph.row_count != f->graph.node_count || f->graph.late_count != 0 ||
        f->named_count > f->alive_count || f->alive_count > f->root_count || f->graph.row[0] != 0 ||
        f->graph.row[f->graph.node_count] != f->graph.edge_count) {
        return LP_BAD_INPUT;
    }
    for (uint32_t i = 0; i < f->root_count; i++) {
        if (f->root[i] >= f->graph.node_count) {
            return LP_BAD_INPUT;
        }
    }
    for (uint32_t i = 0; i < f->graph.node_count; i++) {
        if (f->group[i] >= f->group_count || (f->graph.flag[i] & ~LP_FROZEN_HOLDER) != 0) {
            return LP_BAD_INPUT;
        }
    }
    for (uint32_t i = 0; i < f->group_count; i++) {
        if (f->group_of[i].type >= f->type_count || f->group_of[i].medium >= LP_MEDIUM_COUNT) {
            return LP_BAD_INPUT;
        }
    }
    return LP_OK;
}

/* Names first: what they lead to is told by them. */
lp_status lp_frozen_find_paths(const lp_frozen *f, lp_paths *out) {
    uint32_t to[] = {f->named_count, f->alive_count, f->root_count};
    *out = (lp_paths){0};
    lp_status status = lp_paths_reset(out, f->graph.node_count);
    for (uint32_t i = 0, part = 0; part < 3 && status == LP_OK; part++) {
        for (; i < to[part]; i++) {
            lp_paths_add_root(out, f->root[i]);
        }
        lp_paths_run(out, &f->graph);
    }
    return status;
}

static lp_status take_paths(lp_frozen *f) {
    lp_paths paths;
    lp_status status = lp_frozen_find_paths(f, &paths);
    f->parent = paths.parent;
    paths.parent = NULL;
    lp_paths_fini(&paths);
    return status;
}

lp_status lp_frozen_finish(lp_frozen *f) {
    lp_dominators tree;
    uint64_t began = lp_clock_ns();
    lp_status status = check(f);
    if (status == LP_OK && f->parent == NULL) {
        status = take_paths(f);
    }
    if (status != LP_OK) {
        return status;
    }
    status = lp_dominators_find(&f->graph, f->root, f->root_count, &tree);
    if (status != LP_OK) {
        return status;
    }
    f->idom = tree.idom;
    f->retained = lp_raw_malloc(((size_t)f->graph.node_count + 1) * sizeof(*f->retained));
    if (f->retained != NULL) {
        memcpy(f->retained, f->bytes, (size_t)f->graph.node_count * sizeof(*f->retained));
        lp_dominators_sum(&tree, f->retained);
    }
    lp_raw_free(tree.order);
    f->dominators_ns = lp_clock_ns() - began;
    return f->retained == NULL ? LP_NO_MEMORY : LP_OK;
}

void lp_frozen_fini(lp_frozen *f) {
    lp_graph_fini(&f->graph);
    for (uint32_t i = 0; i < f->type_count; i++) {
        lp_raw_free(f->type_name[i]);
    }
    void *array[] = {f->address, f->bytes,  f->group, f->group_of, f->type_name,
                     f->root,    f->parent, f->idom,  f->retained};
    for (size_t i = 0; i < sizeof(array) / sizeof(array[0]); i++) {
        lp_raw_free(array[i]);
    }
    *f = (lp_frozen){0};
}

uint64_t lp_frozen_memory(const lp_frozen *f) {
    uint64_t node = 4 + 1 + 8 + 8 + 4 + (f->parent != NULL) * 4 + (f->idom != NULL) * 4 + (f->retained != NULL) * 8;
    return f->graph.node_count * node + (uint64_t)f->graph.edge_count * 4 + f->root_count * 4 +
           f->group_count * sizeof(*f->group_of);
}

/* ---- the largest ---- */

static int is_larger(const lp_frozen *f, uint32_t a, uint32_t b) {
    if (f->retained[a] != f->retained[b]) {
        return f->retained[a] > f->retained[b];
    }
    return f->idom[b] == a || (f->idom[a] != b && a < b);
}

/* out[0 .. count) is a heap with the smallest at its top. */
static void sift_down(const lp_frozen *f, uint32_t *out, uint32_t count, uint32_t at) {
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && is_larger(f, out[child], out[child + 1]);
        if (!is_larger(f, out[at], out[child])) {
            return;
        }
        uint32_t swap = out[at];
        out[at] = out[child];
        out[child] = swap;
    }
}

uint32_t lp_frozen_largest(const lp_frozen *f, uint32_t most, uint32_t *out) {
    uint32_t count = 0;
    for (uint32_t node = 0; node < f->graph.node_count && most > 0; node++) {
        if (count < most) {
            out[count++] = node;
            for (uint32_t i = count == most ? most / 2 + 1 : 0; i-- > 0;) {
                sift_down(f, out, count, i);
            }
        } else if (is_larger(f, node, out[0])) {
            out[0] = node;
            sift_down(f, out, count, 0);
        }
    }
    for (uint32_t i = count < most ? count / 2 + 1 : 0; i-- > 0;) {
        sift_down(f, out, count, i);
    }
    for (uint32_t left = count; left > 1; left--) {
        uint32_t swap = out[0];
        out[0] = out[left - 1];
        out[left - 1] = swap;
        sift_down(f, out, left - 1, 0);
    }
    return count;
}

/* ---- by type ---- */

/* The dominator tree downwards: first child, next sibling. */
typedef struct downwards {
    uint32_t *child, *sibling, *inside;   /* inside: type => nodes of it that are open */
} downwards;

static lp_status make_downwards(const lp_frozen *f, downwards *d) {
    size_t nodes = (size_t)f->graph.node_count + 1;
    d->child = lp_raw_malloc(nodes * sizeof(uint32_t));
    d->sibling = lp_raw_malloc(nodes * sizeof(uint32_t));
    d->inside = lp_raw_calloc((size_t)f->type_count + 1, sizeof(uint32_t));
    if (d->child == NULL || d->sibling == NULL || d->inside == NULL) {
        return LP_NO_MEMORY;
    }
    memset(d->child, 0xff, nodes * sizeof(uint32_t));
    for (uint32_t node = 0; node < f->graph.node_count; node++) {
        uint32_t above = f->idom[node];
        if (above != node && above != LP_NODE_NONE) {
            d->sibling[node] = d->child[above];
            d->child[above] = node;
        }
    }
    return LP_OK;
}

static void sum_below(const lp_frozen *f, downwards *d, uint32_t top, uint64_t *out_bytes) {
    uint32_t node = top;
    for (;;) {
        uint32_t type = f->group_of[f->group[node]].type;
        out_bytes[type] += d->inside[type]++ == 0 ? f->retained[node] : 0;
        if (d->child[node] != LP_NODE_NONE) {
            node = d->child[node];
            continue;
        }
        for (;;) {
            d->inside[f->group_of[f->group[node]].type]--;
            if (node == top) {
                return;
            }
            if (d->sibling[node] != LP_NODE_NONE) {
                node = d->sibling[node];
                break;
            }
            node = f->idom[node];
        }
    }
}

lp_status lp_frozen_retained_by_type(const lp_frozen *f, uint64_t *out_bytes) {
    downwards d = {0};
    lp_status status = make_downwards(f, &d);
    memset(out_bytes, 0, f->type_count * sizeof(*out_bytes));
    for (uint32_t node = 0; node < f->graph.node_count && status == LP_OK; node++) {
        if (f->idom[node] == node) {
            sum_below(f, &d, node, out_bytes);
        }
    }
    lp_raw_free(d.child);
    lp_raw_free(d.sibling);
    lp_raw_free(d.inside);
    return status;
}

/* ---- holders ---- */

lp_status lp_frozen_holders(const lp_frozen *f, uint32_t *out) {
    uint8_t *known = lp_raw_calloc((size_t)f->graph.node_count + 1, 1);
    if (known == NULL) {
        return LP_NO_MEMORY;
    }
    for (uint32_t node = 0; node < f->graph.node_count; node++) {
        uint32_t at = node, holder = LP_NODE_NONE;
        while (!known[at] && f->parent[at] != at && f->parent[at] != LP_NODE_NONE &&
               !(f->graph.flag[f->parent[at]] & LP_FROZEN_HOLDER)) {
            at = f->parent[at];
        }
        if (known[at]) {
            holder = out[at] == LP_NODE_NONE ? at : out[at];
        } else if (f->parent[at] != at && f->parent[at] != LP_NODE_NONE) {
            holder = f->parent[at];
        } else {
            out[at] = LP_NODE_NONE;
            known[at] = 1;
            holder = at;
        }
        for (uint32_t below = node; !known[below]; below = f->parent[below]) {
            out[below] = holder;
            known[below] = 1;
            if (below == at) {
                break;
            }
        }
    }
    lp_raw_free(known);
    return LP_OK;
}

/* ---- what is new, by holder ---- */

typedef struct comparison {
    const lp_frozen *older;
    lp_addresses index;
    uint32_t *type_in_older;   /* type of the newer one => of the older one, or LP_NODE_NONE */
} comparison;

static lp_status match_types(comparison *c, const lp_frozen *newer, const lp_frozen *older) {
    lp_map number = {0};
    lp_status status = LP_OK;
    for (uint32_t i = 0; i < older->type_count && status == LP_OK; i++) {
        uint32_t *slot = lp_map_put(&number, lp_map_hash_text(older->type_name[i]), NULL);
        status = slot == NULL ? LP_NO_MEMORY : LP_OK;
        if (slot != NULL && *slot == 0) {
            *slot = i + 1;
        }
    }
    for (uint32_t i = 0; i < newer->type_count; i++) {
        uint32_t other = lp_map_get(&number, lp_map_hash_text(newer->type_name[i]), 0);
        c->type_in_older[i] = other == 0 ? LP_NODE_NONE : other - 1;
    }
    lp_map_fini(&number);
    return status;
}

static lp_status compare_begin(comparison *c, const lp_frozen *newer, const lp_frozen *older) {
    c->older = older;
    c->type_in_older = lp_raw_malloc(((size_t)newer->type_count + 1) * sizeof(uint32_t));
    if (c->type_in_older == NULL || lp_addresses_init(&c->index) != LP_OK) {
        return LP_NO_MEMORY;
    }
    if (match_types(c, newer, older) != LP_OK) {
        return LP_NO_MEMORY;
    }
    for (uint32_t node = 0; node < older->graph.node_count; node++) {
        if (older->address[node] == 0) {
            continue;
        }
        uint32_t *slot = lp_addresses_slot(&c->index, older->address[node]);
        if (slot == NULL) {
            return LP_NO_MEMORY;
        }
        *slot = node + 1;
    }
    return LP_OK;
}

static int is_in_older(const comparison *c, const lp_frozen *newer, uint32_t node) {
    uint32_t other = c->older == NULL ? LP_ADDRESSES_NONE : lp_addresses_find(&c->index, newer->address[node]);
    return other != LP_ADDRESSES_NONE && c->older->group_of[c->older->group[other]].type ==
                                             c->type_in_older[newer->group_of[newer->group[node]].type];
}

/* What is below each holder, as lists: their first node, and the next of each. */
typedef struct below {
    uint32_t *first, *next;
    uint32_t *row;             /* group => its last row + 1 */
    uint32_t capacity;
} below;

static lp_status list_below(const lp_frozen *newer, const comparison *c, const uint32_t *holder, below *b) {
    size_t nodes = (size_t)newer->graph.node_count + 1;
    b->first = lp_raw_malloc(nodes * sizeof(*b->first));
    b->next = lp_raw_malloc(nodes * sizeof(*b->next));
    b->row = lp_raw_calloc((size_t)newer->group_count + 1, sizeof(*b->row));
    if (b->first == NULL || b->next == NULL || b->row == NULL) {
        return LP_NO_MEMORY;
    }
    memset(b->first, 0xff, nodes * sizeof(*b->first));
    for (uint32_t node = newer->graph.node_count; node-- > 0;) {
        if (holder[node] != LP_NODE_NONE && !is_in_older(c, newer, node)) {
            b->next[node] = b->first[holder[node]];
            b->first[holder[node]] = node;
        }
    }
    return LP_OK;
}

/* The row of a group below a holder, or NULL when out of memory. */
static lp_frozen_tally *find_row(below *b, uint32_t group, uint32_t holder, lp_frozen_tally **rows, uint32_t *count) {
    uint32_t number = b->row[group];
    if (number != 0 && (*rows)[number - 1].holder == holder) {
        return &(*rows)[number - 1];
    }
    if (*count == b->capacity) {
        uint32_t size = b->capacity == 0 ? 1024 : b->capacity + b->capacity / 2;
        lp_frozen_tally *bigger = lp_raw_realloc(*rows, size * sizeof(*bigger));
        if (bigger == NULL) {
            return NULL;
        }
        *rows = bigger;
        b->capacity = size;
    }
    (*rows)[*count] = (lp_frozen_tally){group, holder, 0, 0};
    b->row[group] = ++*count;
    return &(*rows)[*count - 1];
}

static lp_status tally(const lp_frozen *newer, const comparison *c, const uint32_t *holder, lp_frozen_tally **out_rows,
                       uint32_t *out_count) {
    below b = {0};
    lp_status status = list_below(newer, c, holder, &b);
    for (uint32_t at = 0; at < newer->graph.node_count && status == LP_OK; at++) {
        for (uint32_t node = b.first[at]; node != LP_NODE_NONE && status == LP_OK; node = b.next[node]) {
            lp_frozen_tally *row = find_row(&b, newer->group[node], at, out_rows, out_count);
            if (row == NULL) {
                status = LP_NO_MEMORY;
                break;
            }
            row->count++;
            row->bytes += newer->bytes[node];
        }
    }
    lp_raw_free(b.first);
    lp_raw_free(b.next);
    lp_raw_free(b.row);
    return status;
}

lp_status lp_frozen_tally_by_holder(const lp_frozen *newer, const lp_frozen *older, lp_frozen_tally **out_rows,
                                    uint32_t *out_count) {
    comparison c = {0};
    uint32_t *holder = lp_raw_malloc(((size_t)newer->graph.node_count + 1) * sizeof(*holder));
    *out_rows = NULL;
    *out_count = 0;
    lp_status status = holder == NULL ? LP_NO_MEMORY : lp_frozen_holders(newer, holder);
    if (status == LP_OK && older != NULL) {
        status = compare_begin(&c, newer, older);
    }
    if (status == LP_OK) {
        status = tally(newer, &c, holder, out_rows, out_count);
    }
    if (status != LP_OK) {
        lp_raw_free(*out_rows);
        *out_rows = NULL;
        *out_count = 0;
    }
    lp_addresses_fini(&c.index);
    lp_raw_free(c.type_in_older);
    lp_raw_free(holder);
    return status;
}
