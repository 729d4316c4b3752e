/* Containers that were made in the window, and get members over several steps: each is the holder of its members.
 *
 * Where they come one after another in one place (the lists of episodes in a history, a dict for each epoch), none
 * of them grows for long: they are lifted, and their members belong to that place, those of the one that is still
 * being filled elsewhere too. */
#ifndef LP_COLLECTORS_H
#define LP_COLLECTORS_H

#include "python/graph/edge_names.h"
#include "python/graph/numbers.h"  // LP_COLLECTORS_STEPS
#include "python/heap/heapwalk.h"

typedef struct lp_collector {
    uint32_t node;
    uint32_t step[LP_COLLECTORS_STEPS];   /* different birth steps of its children */
    uint32_t step_count;
    uint32_t newest;                      /* the last birth step of a child */
    uint32_t born;
    lp_site_id site;                      /* 0: it is no holder */
    uint32_t home;                        /* the nearest holder above it */
    uint32_t top;                         /* what lies right below that: itself, or what it is in */
    uint8_t is_lifted;
} lp_collector;

typedef struct lp_collectors {
    lp_walk *walk;
    const uint32_t *parent;
    lp_map number;                        /* young node + 1 => index in array + 1 */
    lp_collector *array;
    uint32_t count, capacity;
    lp_map known_top;                     /* node + 1 => top of what lies below it, of some */
} lp_collectors;

/* 1 if a node was made in the window, or for this trace. */
int lp_collectors_is_young(lp_collectors *all, uint32_t node);
/* `child` lies right below `parent`, a young node. */
lp_status lp_collectors_note(lp_collectors *all, uint32_t parent, uint32_t child);
/* Once all are noted: lift those that come one after another. */
lp_status lp_collectors_lift(lp_collectors *all);
/* 1 if a young node is the holder of what lies below it. */
int lp_collectors_is_holder(const lp_collectors *all, uint32_t node);
/* For one that was lifted what lies right below the place of all of them; else LP_NODE_NONE. */
uint32_t lp_collectors_place(const lp_collectors *all, uint32_t node);
/* 1 if what a node keeps is told apart by name; of a node that is no root. */
int lp_collectors_is_named(const lp_collectors *all, uint32_t node);
void lp_collectors_fini(lp_collectors *all);

#endif
