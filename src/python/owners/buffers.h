/* Bytes behind tensors and arrays that the ledger does not know: made before the hooks were installed. */
#ifndef LP_BUFFERS_H
#define LP_BUFFERS_H

#include "python/heap/heapwalk.h"

/* Bytes that an ndarray owns and no block stands for, else 0. */
uint64_t lp_buffers_of_array(lp_walk *walk, uint32_t node);
/* Each storage, once, that only nodes of a set refer to: add(arg, node, medium, bytes).  lent: storages whose
 * memory is counted with the object that lent it.
 * Its size is read from its own memory, checked by torch's count of its users. */
void lp_buffers_each(lp_walk *walk, const lp_map *lent, int (*is_in)(void *arg, uint32_t node),
                     void (*add)(void *arg, uint32_t node, uint32_t medium, uint64_t bytes), void *arg);

/* Every tensor on a storage that no block stands for, and every object of one: add(arg, node, number, medium, bytes);
 * storages are numbered from 0 in the order they are found. */
void lp_buffers_each_user(lp_walk *walk, const lp_map *lent,
                          void (*add)(void *arg, uint32_t node, uint32_t number, uint32_t medium, uint64_t bytes),
                          void *arg);

#endif
