/* Owns the hits of one search. Holders are read where they lie, what they point to is copied by the kernel: another
 * thread may unmap it at any time. */
#include "python/owners/opaque.h"

#include <stdlib.h>  // qsort
#include <string.h>

#include "base/rawmem.h"               // lp_raw_free
#include "process/chunks.h"            // lp_chunk_bytes
#include "process/mappings.h"          // lp_peek_words
#include "python/compat/heap.h"        // lp_heap_mappings
#include "python/owners/numbers.h"     // LP_OPAQUE_*

/* Where the address lies: in a word of the holder, or in a word of the block that this points to. */
typedef struct place {
    PyTypeObject *type;
    uint16_t outer, inner;
} place;

#define IN_HOLDER UINT16_MAX

typedef struct hit {
    place place;
    uint32_t node;
} hit;

typedef struct search {
    const lp_opaque_request *request;
    lp_map searched;                   /* type => holders of it that were searched */
    hit *hit;
    uint32_t count, capacity;
    lp_status status;
} search;

/* ---- holders ---- */

/* The type in a line of bases that has memory of its own and tells the collector nothing of it, or NULL. */
static PyTypeObject *opaque_base(PyTypeObject *type) {
    unsigned long atoms = Py_TPFLAGS_LONG_SUBCLASS | Py_TPFLAGS_UNICODE_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS;
    if (PyType_FastSubclass(type, atoms | Py_TPFLAGS_TYPE_SUBCLASS)) {
        return NULL;
    }
    while (type != NULL && (type->tp_flags & Py_TPFLAGS_HAVE_GC)) {
        type = type->tp_base;
    }
    return type == NULL || type->tp_basicsize <= (Py_ssize_t)sizeof(PyObject) ? NULL : type;
}

static PyTypeObject *type_to_search(const search *s, uint32_t node) {
    lp_walk *walk = s->request->walk;
    int kind = lp_walk_kind(walk, node);
    if ((kind != LP_KIND_LEAF && kind != LP_KIND_PLAIN) || !s->request->may_hold(s->request->arg, node)) {
        return NULL;
    }
    PyObject *op = lp_walk_object(walk, node);
    PyTypeObject *type = opaque_base(Py_TYPE(op));
    lp_site_id site;
    uint32_t step;
    int is_searched = type != NULL && lp_walk_birth(walk, op, &site, &step) &&
                      lp_mappings_has(&lp_heap_mappings, op, (uint64_t)type->tp_basicsize);
    return is_searched ? type : NULL;
}

static uint64_t word_of(const search *s, uint32_t node, uint32_t index) {
    return ((const uint64_t *)lp_walk_object(s->request->walk, node))[index];
}

static uint32_t words_of(const PyTypeObject *type) {
    size_t words = (size_t)type->tp_basicsize / sizeof(uint64_t);
    return words < LP_OPAQUE_WORDS ? (uint32_t)words : LP_OPAQUE_WORDS;
}

/* ---- first pass: hits ---- */

static void add_hit(search *s, place place, uint64_t word) {
    uint32_t node = lp_map_get(s->request->wanted, word, 0);
    if (node == 0) {
        return;
    }
    hit *room = lp_walk_reserve(s->hit, s->count, &s->capacity, sizeof(*room));
    if (room == NULL) {
        s->status = LP_NO_MEMORY;
        return;
    }
    s->hit = room;
    s->hit[s->count++] = (hit){place, node - 1};
}

/* What is a node speaks for itself. */
static int may_be_block(const lp_walk *walk, uint64_t word) {
    return word > UINT16_MAX && word % sizeof(word) == 0 && word >> LP_ADDRESSES_BITS == 0 &&
           lp_walk_find(walk, (const void *)(uintptr_t)word) == LP_NODE_NONE;
}

static void search_block(search *s, place place, uint64_t address) {
    uint64_t word[LP_OPAQUE_WORDS], whole = lp_chunk_bytes(address) / sizeof(*word);
    uint32_t count = whole < LP_OPAQUE_WORDS ? (uint32_t)whole : LP_OPAQUE_WORDS;
    if (count == 0 || !lp_peek_words(address, word, count)) {
        return; /* behind a block lies another one's, and what it keeps */
    }
    for (place.inner = 0; place.inner < count && s->status == LP_OK; place.inner++) {
        add_hit(s, place, word[place.inner]);
    }
}

static void search_holder(search *s, PyTypeObject *type, uint32_t node) {
    uint32_t *searched = lp_map_put(&s->searched, (uintptr_t)type, NULL);
    if (searched == NULL) {
        s->status = LP_NO_MEMORY;
        return;
    }
    if ((*searched)++ >= LP_OPAQUE_HOLDERS) {
        return;
    }
    uint32_t words = words_of(type);
    for (uint32_t i = sizeof(PyObject) / sizeof(uint64_t); i < words && s->status == LP_OK; i++) {
        uint64_t word = word_of(s, node, i);
        add_hit(s, (place){type, (uint16_t)i, IN_HOLDER}, word);
        if (may_be_block(s->request->walk, word)) {
            search_block(s, (place){type, (uint16_t)i, 0}, word);
        }
    }
}

/* ---- places that are references ---- */

static int compare_places(const place *a, const place *b) {
    if (a->type != b->type) {
        return (uintptr_t)a->type < (uintptr_t)b->type ? -1 : 1;
    }
    return a->outer != b->outer ? a->outer - b->outer : a->inner - b->inner;
}

static int compare_hits(const void *a_, const void *b_) {
    const hit *a = a_, *b = b_;
    int order = compare_places(&a->place, &b->place);
    return order != 0 ? order : a->node < b->node ? -1 : a->node > b->node;
}

/* The end of the run of one place that begins at a hit; how many objects it leads to. */
static uint32_t end_of_run(const search *s, uint32_t begin, uint32_t *out_objects) {
    uint32_t end = begin;
    *out_objects = 0;
    while (end < s->count && compare_places(&s->hit[begin].place, &s->hit[end].place) == 0) {
        *out_objects += end == begin || s->hit[end].node != s->hit[end - 1].node;
        end++;
    }
    return end;
}

/* Leave one hit of each place that leads to several objects. */
static void keep_places(search *s) {
    uint32_t kept = 0, objects;
    if (s->count > 1) {
        qsort(s->hit, s->count, sizeof(*s->hit), compare_hits);
    }
    for (uint32_t begin = 0, end; begin < s->count; begin = end) {
        end = end_of_run(s, begin, &objects);
        if (objects >= LP_OPAQUE_LEAST) {
            s->hit[kept++] = s->hit[begin];
        }
    }
    s->count = kept;
}

/* ---- second pass: what lies there ---- */

static void read_place(search *s, const place *place, uint32_t node) {
    uint64_t word = word_of(s, node, place->outer);
    if (place->inner != IN_HOLDER) {
        uint64_t at = word + place->inner * sizeof(word), end = at + sizeof(word);
        int is_block = may_be_block(s->request->walk, word) && word + lp_chunk_bytes(word) >= end;
        if (!is_block || !lp_peek_words(at, &word, 1)) {
            return;
        }
    }
    uint32_t target = lp_map_get(s->request->wanted, word, 0);
    if (target != 0) {
        s->status = s->request->found(s->request->arg, node, target - 1);
    }
}

static void read_places(search *s, PyTypeObject *type, uint32_t node) {
    for (uint32_t i = 0; i < s->count && s->status == LP_OK; i++) {
        if (s->hit[i].place.type == type) {
            read_place(s, &s->hit[i].place, node);
        }
    }
}

static void each_holder(search *s, void (*visit)(search *, PyTypeObject *, uint32_t)) {
    const lp_walk *walk = s->request->walk;
    for (uint32_t node = walk->first_object; node < walk->graph.node_count && s->status == LP_OK; node++) {
        PyTypeObject *type = type_to_search(s, node);
        if (type != NULL) {
            visit(s, type, node);
        }
    }
}

lp_status lp_opaque_find(const lp_opaque_request *request) {
    search s = {.request = request};
    each_holder(&s, search_holder);
    keep_places(&s);
    if (s.count > 0 && s.status == LP_OK) {
        each_holder(&s, read_places);
    }
    lp_map_fini(&s.searched);
    lp_raw_free(s.hit);
    return s.status;
}
