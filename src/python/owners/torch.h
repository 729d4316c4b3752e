/* The edges of tensors and autograd graphs that the collector cannot see.
 *
 * Second phase of a walk: torch's own getters are called, under DisableTorchFunction and
 * with the collector off.  No hook, no unpacking, no user code runs.  Wrappers that torch
 * makes for us become nodes (LP_NODE_MADE) and are held until lp_torch_release(). */
#ifndef LP_OWNERS_TORCH_H
#define LP_OWNERS_TORCH_H

#include "python/heap/heapwalk.h"

/* Tensors of one group that were asked what they own, and the bytes that they said. */
typedef struct lp_torch_owned {
    uint32_t count;
    uint64_t bytes;
} lp_torch_owned;

/* A node with owners beyond Python that no edge of the graph stands for. */
typedef struct lp_torch_outsider {
    uint32_t node, owners;
} lp_torch_outsider;

typedef struct lp_torch {
    lp_walk *walk;
    PyObject **made;              /* owned: those, and all tensors and autograd nodes */
    uint32_t made_count, made_capacity;
    uint32_t wrapper_count;       /* wrappers that did not exist before */
    lp_torch_outsider *outside;
    uint32_t outside_count, outside_capacity;
    uint32_t *unasked;            /* views whose function was not asked for, as torch might replace it */
    uint32_t unasked_count, unasked_capacity;
    uint32_t budget;              /* autograd nodes still to be read */
    int arrays_grow;              /* what lent a tensor its memory is asked of each: it takes 4 us */
    int is_complete;
    const char *why_not;          /* static text, or NULL */
    uint64_t ns;
    lp_map lent;                  /* storages whose memory Python lent => node of what lent it */
    lp_map shown;                 /* address of what views were cut from => how much of it they show together */
    lp_torch_owned *owned;        /* of each group that was asked for, or NULL */
    struct lp_torch_names *names;
} lp_torch;

/* Add late edges to the walk's graph.  LP_OK also when torch is not imported. */
lp_status lp_torch_take(lp_torch *torch, lp_walk *walk, uint32_t budget);
/* References that lp_torch holds itself, subtracted: refs[node] -= 1 each; and one added for
 * each node that something unknown owns. */
void lp_torch_subtract_own(lp_torch *torch, int64_t *refs);
/* Let go of the wrappers. */
void lp_torch_release(lp_torch *torch);

#endif
