/* Asks a few tensors of each group: those of one line are mostly alike. */
#include "python/owners/torch_parts.h"

#include "base/rawmem.h"            // lp_raw_calloc
#include "python/layouts/torch.h"   // lp_torch_tensor_bytes

static void ask(const lp_torch_names *names, PyObject *op, lp_torch_owned *out) {
    uint64_t storage = lp_storage_of(&names->storage, op);
    out->bytes += storage == 0 ? 0 : lp_torch_tensor_bytes(lp_torch_get_number(names->cdata, op), storage);
    out->count++;
}

void lp_torch_read_owned(lp_torch *torch) {
    const lp_walk *walk = torch->walk;
    const lp_walk_request *request = walk->request;
    torch->owned = lp_raw_calloc((size_t)request->group_count + 1, sizeof(*torch->owned));
    for (uint32_t i = 0; torch->owned != NULL && i < walk->grown_count; i++) {
        const lp_grown *grown = &walk->grown[i];
        if (grown->group >= request->group_count || !lp_walk_is_object(walk, grown->node) ||
            torch->owned[grown->group].count == LP_OWNED_SAMPLES) {
            continue;
        }
        PyObject *op = lp_walk_object(walk, grown->node);
        if (lp_torch_is_exact(torch->names, Py_TYPE(op))) {
            ask(torch->names, op, &torch->owned[grown->group]);
        }
    }
}
