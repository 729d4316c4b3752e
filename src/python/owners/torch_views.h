/* How much of a block, or of a tensor, its views show together: one that shows a small part keeps the whole
 * for little, many that show all of it keep what they need. */
#ifndef LP_OWNERS_TORCH_VIEWS_H
#define LP_OWNERS_TORCH_VIEWS_H

#include "python/owners/torch.h"

/* The order of the edge to the tensor or block at `address`, of `whole` bytes, that a view of `part` bytes was
 * cut from; 0 where a number is not known. */
uint32_t lp_views_order(lp_torch *torch, uint64_t address, uint64_t part, uint64_t whole);
/* Once all tensors are read: edges to what views show at least half of are no edges of a view. */
void lp_views_settle(lp_torch *torch);

#endif
