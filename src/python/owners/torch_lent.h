/* Memory that Python lent to torch: torch.from_numpy(), torch.frombuffer().
 *
 * The storage holds a reference to the array or buffer, in a function that is to let go of it. No getter
 * tells, so the storage's memory is read, through lp_peek_words(); what is found counts only if its data is
 * the storage's. */
#ifndef LP_OWNERS_TORCH_LENT_H
#define LP_OWNERS_TORCH_LENT_H

#include "python/owners/torch.h"

/* Add the edge from a tensor to what lent it its memory, if something did.  `lent`: storages met before. */
void lp_torch_read_lender(lp_torch *torch, uint32_t node, lp_map *lent);

#endif
