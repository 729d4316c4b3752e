/* The choice of an example, member by member. */
#include "python/graph/examples.h"

#include "python/graph/ascent.h"  // lp_ascent_next

typedef struct climb {
    lp_walk *walk;
    const uint32_t *parent;
} climb;

/* How many edges from the root; more than all others where the way does not lead by the holder. */
static uint32_t depth_by(const climb *c, uint32_t node, uint32_t holder) {
    lp_ascent up = {c->parent, node, 0};
    int by_holder = holder == LP_NODE_NONE;
    while (lp_ascent_next(&up)) {
        by_holder |= up.node == holder;
    }
    return by_holder ? up.steps : UINT32_MAX;
}

static PyObject *object_at(const climb *c, uint32_t node) {
    return node != LP_NODE_NONE && lp_walk_is_object(c->walk, node) ? lp_walk_object(c->walk, node) : NULL;
}

/* What links of one chain share: the class that a program made, or the code of functions.  NULL of all else. */
static const void *kind_of(PyObject *op) {
    if (op != NULL && PyFunction_Check(op)) {
        return PyFunction_GET_CODE(op);
    }
    return op != NULL && PyType_HasFeature(Py_TYPE(op), Py_TPFLAGS_HEAPTYPE) ? Py_TYPE(op) : NULL;
}

/* A function refers to the one that it wraps through a cell of its closure, or its namespace. */
static int is_inside_function(PyObject *op, PyObject *above) {
    if (op == NULL || above == NULL) {
        return 0;
    }
    PyFunctionObject *function = PyFunction_Check(above) ? (PyFunctionObject *)above : NULL;
    return PyCell_Check(op) || (function != NULL && (op == function->func_closure || op == function->func_dict));
}

/* 1 if between a member and what is right below its holder each of several objects of one kind refers to the next. */
static int is_linked(const climb *c, uint32_t node, uint32_t top) {
    const void *before = NULL;
    uint32_t alike = 0;
    lp_ascent up = {c->parent, node, 0};
    do {
        PyObject *op = object_at(c, up.node);
        uint32_t above = up.node == top ? LP_NODE_NONE : lp_node_above(c->parent, up.node);
        if (!is_inside_function(op, object_at(c, above))) {
            const void *kind = kind_of(op);
            alike = kind == NULL ? 0 : kind == before ? alike + 1 : 1;
            before = kind;
        }
        if (alike == LP_LINKS_OF_CHAIN) {
            return 1;
        }
    } while (up.node != top && lp_ascent_next(&up));
    return 0;
}

static void take(lp_example *example, uint32_t node, uint32_t depth) {
    example->count++;
    if (example->node == LP_NODE_NONE || depth < example->depth) {
        example->node = node;
        example->depth = depth;
    }
}

static void forget(lp_bucket *bucket) {
    bucket->nearest = bucket->linked = (lp_example){.node = LP_NODE_NONE, .depth = UINT32_MAX};
}

void lp_examples_begin(lp_bucket *bucket) {
    bucket->sample = LP_NODE_NONE;
    forget(bucket);
}

static int most_are_linked(const lp_bucket *bucket) {
    return bucket->linked.count > bucket->nearest.count - bucket->linked.count;
}

/* Whether a chain is looked for at all is known after the first members. */
static int may_be_linked(const lp_bucket *bucket) {
    return bucket->nearest.count <= LP_MEMBERS_TO_DECIDE || most_are_linked(bucket);
}

static int is_candidate(const lp_bucket *bucket, uint64_t bytes) {
    return bytes >= bucket->sample_bytes || bucket->nearest.depth == UINT32_MAX;
}

void lp_examples_add(lp_walk *walk, const uint32_t *parent, lp_bucket *bucket, uint32_t node, uint64_t bytes) {
    climb c = {walk, parent};
    if (!is_candidate(bucket, bytes)) {
        return;
    }
    uint32_t depth = depth_by(&c, node, bucket->holder);
    int is_better = bytes > bucket->sample_bytes || bucket->nearest.depth == UINT32_MAX;
    if (bucket->nearest.node == LP_NODE_NONE || (is_better && depth != UINT32_MAX)) {
        forget(bucket);
        bucket->sample_bytes = bytes;
    }
    take(&bucket->nearest, node, depth);
    if (may_be_linked(bucket) && is_linked(&c, node, bucket->top)) {
        take(&bucket->linked, node, depth);
    }
    int is_chain = bucket->linked.depth != UINT32_MAX && most_are_linked(bucket);
    bucket->sample = is_chain ? bucket->linked.node : bucket->nearest.node;
}
