/* Names of references, for the few paths that are shown.
 *
 * No user code runs, nothing is repr()ed: names come from dict keys, slots and members of
 * the objects on the path.  A carrier is a node that a reader does not want to see: the
 * dict of an instance, class or module, a closure's tuple, a cell. */
#ifndef LP_EDGE_NAMES_H
#define LP_EDGE_NAMES_H

#include "python/graph/numbers.h"  // LP_NAME_BYTES
#include "python/heap/heapwalk.h"

typedef struct lp_element {
    char text[LP_NAME_BYTES];      /* "history (list, 60 items)" */
    char edge[LP_EDGE_BYTES];                 /* "attribute", "index", "grad_fn", ... */
    char type[LP_NAME_BYTES];      /* "torch.Tensor"; "" if it has none */
    uint32_t node;
} lp_element;

/* Describe a path (nodes, root first) without its carriers; returns the number of elements, at
 * most max.  as_pattern: indices, long keys and counts are replaced, so that paths can be compared. */
uint32_t lp_names_path(const lp_walk *walk, const uint32_t *nodes, uint32_t count, int as_pattern, lp_element *out,
                       uint32_t max);

/* 1 if `node` only carries the contents of `owner`. */
int lp_names_is_carrier(const lp_walk *walk, uint32_t owner, uint32_t node);
/* 1 if `node` is the dict behind an lru_cache, `owner`. */
int lp_names_is_cache_dict(const lp_walk *walk, uint32_t owner, uint32_t node);
/* 1 for what keeps things in number: list, dict, set, deque, tuple, cache, array. */
int lp_names_is_container(const lp_walk *walk, uint32_t node);
/* Items of a container and the most it can have; -1 where there is no such number. */
void lp_names_length(const lp_walk *walk, uint32_t node, int64_t *out_length, int64_t *out_bound);
/* The name of a type that is alive, and of a node's type ("buffer", "frame"). */
void lp_names_type_of(PyTypeObject *type, char *out_text, size_t bytes);
void lp_names_type(const lp_walk *walk, uint32_t node, char *out_text, size_t bytes);

#endif
