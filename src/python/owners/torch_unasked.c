/* A view whose base was written in place is not asked for its function, which torch might replace then. It owns that
 * function all the same, and so would keep it from being garbage: whose it is follows from what saved the view. A node
 * that saved an input has the input's function among its next ones, and the function of a view leads to that of the
 * base. */
#include "python/owners/torch_parts.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_free

/* A view that a node saved; of one node in a list. */
typedef struct saved_view {
    uint32_t view, next;
} saved_view;

typedef struct search {
    const lp_graph *graph;
    lp_map views;            /* view + 1 => base + 1, or 1 while the base is not known */
    lp_map first_next;       /* function + 1 => the first of its next ones + 1 */
    lp_map function;         /* tensor + 1 => its function + 1; of a leaf that which has it as its variable */
    lp_map savers;           /* function + 1 => the first of its saved views, an index + 1 */
    lp_map owners;           /* function + 1 => so many of the views are owners of it */
    saved_view *saved;
    uint32_t saved_count, saved_capacity;
    int failed;
} search;

void lp_torch_note_unasked(lp_torch *torch, uint32_t node) {
    uint32_t *unasked =
        lp_walk_reserve(torch->unasked, torch->unasked_count, &torch->unasked_capacity, sizeof(*unasked));
    if (unasked == NULL) {
        torch->walk->status = LP_NO_MEMORY;
        return;
    }
    torch->unasked = unasked;
    torch->unasked[torch->unasked_count++] = node;
}

static uint32_t get(const lp_map *map, uint32_t node) { return lp_map_get(map, (uint64_t)node + 1, 0); }

static void set(search *s, lp_map *map, uint32_t node, uint32_t value) {
    uint32_t *slot = lp_map_put(map, (uint64_t)node + 1, NULL);
    if (slot == NULL) {
        s->failed = 1;
    } else {
        *slot = value;
    }
}

static int is_next(const lp_late_edge *edge) { return strcmp(edge->label, "next_functions") == 0; }

static int is_saved(const lp_late_edge *edge) {
    static const char begin[] = "_saved";
    return strncmp(edge->label, begin, sizeof(begin) - 1) == 0;
}

static void note_edge(search *s, const lp_late_edge *edge) {
    if (is_next(edge)) {
        if (edge->order == 0) {
            set(s, &s->first_next, edge->source, edge->target + 1);
        }
    } else if (strcmp(edge->label, "grad_fn") == 0) {
        set(s, &s->function, edge->source, edge->target + 1);
    } else if (strcmp(edge->label, "variable") == 0) {
        set(s, &s->function, edge->target, edge->source + 1);
    } else if (strcmp(edge->label, "_base") == 0 && get(&s->views, edge->source) != 0) {
        set(s, &s->views, edge->source, edge->target + 1);
    }
}

static void note_saved(search *s, const lp_late_edge *edge) {
    if (!is_saved(edge) || get(&s->views, edge->target) == 0) {
        return;
    }
    saved_view *saved = lp_walk_reserve(s->saved, s->saved_count, &s->saved_capacity, sizeof(*saved));
    if (saved == NULL) {
        s->failed = 1;
        return;
    }
    s->saved = saved;
    saved[s->saved_count] = (saved_view){edge->target, get(&s->savers, edge->source)};
    set(s, &s->savers, edge->source, ++s->saved_count);
}

/* 1 if the first next functions lead to that of the base: as many views of views as anyone makes. */
static int is_of_view_of(const search *s, uint32_t function, uint32_t base) {
    uint32_t goal = get(&s->function, base);
    for (int i = 0; goal != 0 && i < LP_TORCH_MOST_VIEWS; i++) {
        uint32_t next = get(&s->first_next, function);
        if (next == 0 || next == goal) {
            return next != 0;
        }
        function = next - 1;
    }
    return 0;
}

/* Each view is the owner of one function, also where several nodes have saved it. */
static void note_owner(search *s, const lp_late_edge *edge) {
    for (uint32_t i = get(&s->savers, edge->source); i != 0; i = s->saved[i - 1].next) {
        uint32_t view = s->saved[i - 1].view, base = get(&s->views, view);
        if (base != 0 && is_of_view_of(s, edge->target, base - 1)) {
            set(s, &s->owners, edge->target, get(&s->owners, edge->target) + 1);
            set(s, &s->views, view, 0);
            return;
        }
    }
}

static void find_owners(search *s, const lp_torch *torch) {
    const lp_graph *graph = s->graph;
    for (uint32_t i = 0; i < torch->unasked_count; i++) {
        set(s, &s->views, torch->unasked[i], 1);
    }
    for (uint32_t i = 0; i < graph->late_count; i++) {
        note_edge(s, &graph->late[i]);
        note_saved(s, &graph->late[i]);
    }
    for (uint32_t i = 0; i < graph->late_count; i++) {
        if (is_next(&graph->late[i])) {
            note_owner(s, &graph->late[i]);
        }
    }
}

static void forget_explained(const search *s, lp_torch *torch) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < torch->outside_count; i++) {
        if (torch->outside[i].owners > get(&s->owners, torch->outside[i].node)) {
            torch->outside[kept++] = torch->outside[i];
        }
    }
    torch->outside_count = kept;
}

void lp_torch_explain_by_views(lp_torch *torch) {
    if (torch->unasked_count == 0 || torch->outside_count == 0) {
        return;
    }
    search s = {.graph = &torch->walk->graph};
    find_owners(&s, torch);
    if (!s.failed) {
        forget_explained(&s, torch);
    }
    torch->unasked_count = 0;
    lp_map_fini(&s.views);
    lp_map_fini(&s.first_next);
    lp_map_fini(&s.function);
    lp_map_fini(&s.savers);
    lp_map_fini(&s.owners);
    lp_raw_free(s.saved);
}
