/* Garbage that only a collection would free, or that the collector cannot free, by strongly
 * connected component.  Nothing is collected or changed.
 *
 * Garbage is what no root reaches and whose every reference is known.  The collector's own
 * verdict is then worked out on the garbage alone, with the edges that it sees: those of
 * tracked objects, as their tp_traverse gives them. */
#ifndef LP_CYCLES_H
#define LP_CYCLES_H

#include "ledger/medium.h"
#include "python/graph/trace.h"

typedef struct lp_cycle {
    uint32_t component;
    uint32_t from, to; /* node[from .. to): what it keeps; its members first reached, mixed with the rest */
    uint32_t members; /* nodes of the component */
    uint32_t held_by; /* the first cycle found that refers to it, or LP_NODE_NONE */
    uint32_t source, target; /* the edge that the collector lacks; LP_NODE_NONE if there is none here */
    uint32_t tracked; /* of what it keeps: objects that the collector tracks */
    uint8_t collectable;
    uint64_t bytes[LP_MEDIUM_COUNT];
} lp_cycle;

typedef struct lp_cycles {
    lp_trace *trace;
    lp_components parts;
    lp_cycle *cycle;
    uint32_t count, capacity;
    uint32_t *node; /* garbage by cycle */
    uint32_t node_count;
    uint32_t *owner; /* node => cycle, or LP_NODE_NONE */
    uint8_t *held; /* node => 1 if the collector takes it for alive */
    uint64_t walk_ns, analysis_ns;
} lp_cycles;

/* Ends with lp_cycles_release() in any case. */
lp_status lp_cycles_find(lp_cycles *cycles, lp_trace *trace, const lp_walk_request *request, uint32_t torch_budget);
void lp_cycles_release(lp_cycles *cycles);
/* The same for the components that a trace found garbage; its references are counted anew.  The trace
 * stays the caller's; ends with lp_cycles_forget() in any case. */
lp_status lp_cycles_judge(lp_cycles *cycles, lp_trace *trace);
void lp_cycles_forget(lp_cycles *cycles);
/* The cycle that a node is a member of, or NULL. */
const lp_cycle *lp_cycles_of(const lp_cycles *cycles, uint32_t node);
/* The nodes of a cycle in order, the first repeated at the end; their number, 0 if longer than max. */
uint32_t lp_cycles_path(const lp_cycles *cycles, const lp_cycle *cycle, uint32_t *scratch, uint32_t *out_nodes,
                        uint32_t max);

/* cycles_methods.c: a new list of dicts, one for each cycle. */
PyObject *lp_cycles_to_list(const lp_cycles *cycles);

#endif
