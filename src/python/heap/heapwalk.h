/* One walk of the heap: objects, native blocks and running frames as a graph.
 *
 *   nodes 0 .. block_count - 1            live blocks of the ledger, by address
 *   then frame_count nodes                running frames that are not leakprobe's own
 *   then                                  objects: all tracked ones, and what they refer to
 *
 * address[n] is the block's address, the frame's key or the PyObject.  The walk runs no
 * Python code, takes no reference and allocates nothing through Python; objects are
 * borrowed, and stay valid as long as no Python code runs. */
#ifndef LP_HEAPWALK_H
#define LP_HEAPWALK_H

#include "python/compat/heap_locals.h"  // lp_running_frame

#include "analysis/addresses.h"
#include "analysis/graph.h"
#include "ledger/ledger.h"              // lp_block
#include "python/heap/kinds.h"

/* A group whose members are traced: objects of a type and site, or blocks of a medium and site. */
typedef struct lp_traced_group {
    PyTypeObject *type;      /* NULL for blocks; never followed unless a live object has it */
    uint32_t medium;         /* lp_medium */
    lp_site_id site;         /* base site */
    uint32_t next;           /* next group of the same type, or LP_KINDS_NO_GROUP */
} lp_traced_group;

/* torch's next number for an autograd node as of some marks, both rising. */
typedef struct lp_autograd_marks {
    const uint64_t *number;
    const uint32_t *step;            /* the step that the mark began */
    uint32_t count;                  /* 0: nodes are not told by their age */
} lp_autograd_marks;

typedef struct lp_walk_request {
    lp_traced_group *group;
    uint32_t group_count;
    uint32_t first_step, last_step;   /* members are born in these steps, inclusive */
    uint32_t node_budget;             /* 0: no limit; else LP_LIMIT beyond it */
    uint64_t byte_budget;             /* 0: no limit; else LP_LIMIT where tables would take more memory than that */
    int torch;                        /* tensors will be read by owners/torch.h */
    int older;                        /* containers from before the hooks are of the line that enlarged them */
    int by_keeper;                    /* members are as old as the oldest object above them that the window has */
    lp_autograd_marks autograd_marks;
    uint32_t autograd_group;          /* the group of autograd nodes born in the window */
    int by_thread;                    /* frames of other threads are reached from their Thread objects */
} lp_walk_request;

/* A member of a traced group. */
typedef struct lp_grown {
    uint32_t node, group, step;
    lp_site_id site;                  /* as stamped: the base site or a child of it */
} lp_grown;

typedef enum lp_root_kind { LP_ROOT_MODULE, LP_ROOT_FRAME, LP_ROOT_STACK, LP_ROOT_OUTSIDE, LP_ROOT_CYCLE } lp_root_kind;

typedef struct lp_module_root {
    uint32_t node;                    /* the module's dict, or what sys.modules has instead of a module */
    PyObject *name;                   /* borrowed str */
} lp_module_root;

/* From so many nodes on the table of addresses grows in large pages. */
#define LP_WALK_LARGE (1u << 22)

typedef struct lp_walk {
    const lp_walk_request *request;
    lp_graph graph;
    lp_addresses index;
    lp_kinds kinds;
    uint64_t *address;                /* node => address */
    uint32_t address_capacity;
    lp_block *block;
    uint32_t block_count, frame_count, first_object;
    lp_running_frame *frame;
    uint8_t *frame_is_tied;           /* frame => 1 if its Thread object leads to it: no root then; NULL if none is */
    uint32_t frame_capacity;
    lp_grown *grown;
    uint32_t grown_count, grown_capacity;
    lp_module_root *module;
    uint32_t module_count, module_capacity;
    uint32_t *torch_node;             /* tensors and autograd nodes, in the order they were found */
    uint32_t torch_count, torch_capacity;
    uint64_t *part;                   /* addresses that lead to the node of the object they are a part of */
    uint32_t part_count, part_capacity;
    uintptr_t *pending;               /* references of the nodes in work; odd: 2 * node + 1 */
    size_t pending_count, pending_capacity;
    uint64_t skipped_count;           /* references that led to nothing alive */
    uint64_t raw_ns;
    lp_status status;                 /* the first failure inside a visitor */
    PyObject *package_dir;            /* borrowed str, or NULL */
} lp_walk;

/* Enumerate, traverse, resolve.  LP_LIMIT beyond the budget, LP_UNSUPPORTED while the collector runs. */
lp_status lp_walk_take(lp_walk *walk, const lp_walk_request *request);
/* Hand the rows and addresses over, cut to size, and forget the walk.  pre: no late edges. */
void lp_walk_hand_over(lp_walk *walk, lp_graph *out_graph, uint64_t **out_address);
/* Forget the walk; memory is kept for the next one unless it had more nodes than lp_walk_keep_nodes, or more edges than
 * so many have. */
extern uint32_t lp_walk_keep_nodes;
void lp_walk_release(lp_walk *walk);
/* Give back what a released walk kept for the next one. */
void lp_walk_give_back(lp_walk *walk);
/* Give the table of addresses of a large walk back before that: no lp_walk_find() after it. */
void lp_walk_drop_index(lp_walk *walk);

/* The node of an object, added with `flag` when it has none; LP_NODE_NONE when out of memory or over budget. */
uint32_t lp_walk_add(lp_walk *walk, PyObject *op, uint8_t flag);
/* Traverse the nodes that were added since the last call. */
lp_status lp_walk_continue(lp_walk *walk);
/* 0 if the tables of the walk, and so many bytes more for each node and edge, are beyond the byte budget. */
int lp_walk_fits(const lp_walk *walk, uint32_t per_node, uint32_t per_edge);
/* The node of an object, or LP_NODE_NONE. */
uint32_t lp_walk_find(const lp_walk *walk, const void *op);
/* The block that contains an address, or LP_NODE_NONE. */
uint32_t lp_walk_find_block(const lp_walk *walk, const void *address);

/* 1 for code below the folder of leakprobe, whose frames are no nodes. */
int lp_walk_is_own_code(const lp_walk *walk, PyCodeObject *code);

static inline int lp_walk_is_object(const lp_walk *walk, uint32_t node) { return node >= walk->first_object; }
static inline PyObject *lp_walk_object(const lp_walk *walk, uint32_t node) {
    return (PyObject *)(uintptr_t)walk->address[node];
}
/* 0: a block of a medium whose owners no walk sees. */
static inline int lp_walk_has_owners(const lp_walk *walk, uint32_t node) {
    return node >= walk->block_count || lp_medium_row_of((lp_medium)walk->block[node].medium)->has_owners;
}
/* The lp_kind of a node; LP_KIND_LEAF for one that is no object. */
static inline int lp_walk_kind(lp_walk *walk, uint32_t node) {
    return lp_walk_is_object(walk, node) ? lp_kinds_get(&walk->kinds, Py_TYPE(lp_walk_object(walk, node))).kind
                                         : LP_KIND_LEAF;
}

/* ---- between heapwalk.c and heapwalk_roots.c ---- */

/* Room for one more element of an array; NULL when out of memory. */
void *lp_walk_reserve(void *array, uint32_t count, uint32_t *capacity, size_t element_bytes);
/* A node that is not looked up by address; LP_NODE_NONE when out of memory or over budget. */
uint32_t lp_walk_append(lp_walk *walk, uint64_t address, uint8_t flag);
void lp_walk_note_block(lp_walk *walk, uint32_t node);
/* Make a node a member of a group. */
void lp_walk_add_grown(lp_walk *walk, lp_grown grown);
/* A visitproc: collect a reference of the row in work. */
int lp_walk_push(PyObject *op, void *walk);
/* Close `rows` rows: row i has the references up to row_end[i]. */
int lp_walk_resolve(lp_walk *walk, const size_t *row_end, uint32_t rows);

/* 1 if the object was born in the window; its birth step. */
int lp_walk_birth(const lp_walk *walk, PyObject *op, lp_site_id *out_site, uint32_t *out_step);

#endif
