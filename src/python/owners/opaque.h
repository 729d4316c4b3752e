/* What objects of C types keep without telling the collector.
 *
 * Their types have no tp_traverse. So the words of their memory, and of the blocks that these point to, are compared
 * with the addresses of objects whose references nothing else explains. One equal word may be left over from
 * something else; a place that leads to such objects in several holders of one type is a reference. */
#ifndef LP_OPAQUE_H
#define LP_OPAQUE_H

#include "python/heap/heapwalk.h"

typedef struct lp_opaque_request {
    lp_walk *walk;
    const lp_map *wanted;                                        /* address => node + 1 */
    int (*may_hold)(void *arg, uint32_t node);                   /* nodes that may be holders */
    lp_status (*found)(void *arg, uint32_t holder, uint32_t node);
    void *arg;
} lp_opaque_request;

/* found() each reference to a wanted object. */
lp_status lp_opaque_find(const lp_opaque_request *request);

#endif
