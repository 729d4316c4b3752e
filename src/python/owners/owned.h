/* Memory that objects own outside of Python's allocators, as their own types say: __sizeof__ of types written in C; of
 * tensors, what the walk has read.
 *
 * A walk runs no Python code; so a few members of each traced group are kept until it is over, and asked then. */
#ifndef LP_OWNED_H
#define LP_OWNED_H

#include "python/heap/heapwalk.h"
#include "python/owners/numbers.h"  // LP_OWNED_SAMPLES
#include "python/owners/torch.h"    // lp_torch_owned

/* Members of one group that are asked. */
typedef struct lp_owned_group {
    uint32_t group;
    uint32_t count;
    uintptr_t type_id;
    lp_site_id site;
    PyObject *object[LP_OWNED_SAMPLES];
    lp_torch_owned told;   /* of tensors */
} lp_owned_group;

typedef struct lp_owned {
    lp_owned_group *group;
    uint32_t count;
} lp_owned;

/* Take references to a few members of each group whose type can tell; without memory, to none. */
void lp_owned_collect(lp_owned *owned, const lp_torch *torch);
/* Ask them, once the walk is forgotten: a list of (type_id, site, bytes of an object beyond its own, whether
 * these are beside data that is a block of its own), or NULL. */
PyObject *lp_owned_ask(lp_owned *owned);
void lp_owned_release(lp_owned *owned);

#endif
