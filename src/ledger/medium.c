/* The table of media, and their names with CUDA's devices. */
#include "ledger/medium.h"

#include <stdlib.h>
#include <string.h>

const lp_medium_row lp_media[LP_MEDIUM_FAMILIES] = {
#define LP_X(id, name, module, on_cuda, memory, has_owners, meaning)                                                   \
    {name, module, on_cuda, LP_MEMORY_##memory, has_owners, meaning},
    LP_MEDIUM_LIST(LP_X)
#undef LP_X
};

static const char *const devices[LP_MEDIUM_COUNT - LP_MEDIUM_CUDA0] = {
#define CUDA(i) [i] = "cuda:" #i
    CUDA(0), CUDA(1), CUDA(2),  CUDA(3),  CUDA(4),  CUDA(5),  CUDA(6),  CUDA(7),
    CUDA(8), CUDA(9), CUDA(10), CUDA(11), CUDA(12), CUDA(13), CUDA(14), CUDA(15),
#undef CUDA
};

const char *lp_medium_name(lp_medium medium) {
    return medium < LP_MEDIUM_CUDA0 ? lp_media[medium].name : devices[medium - LP_MEDIUM_CUDA0];
}

const char *lp_memory_name(lp_memory memory) {
    static const char *const names[] = {
#define LP_X(name, text) text,
        LP_MEMORY_LIST(LP_X)
#undef LP_X
    };
    return names[memory];
}

int lp_medium_find(const char *name) {
    for (int i = 0; i < LP_MEDIUM_COUNT; i++) {
        if (strcmp(lp_medium_name((lp_medium)i), name) == 0) {
            return i;
        }
    }
    return -1;
}
