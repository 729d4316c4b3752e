#include "ledger/medium.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[LP_MEDIUM_COUNT] = {
#define LP_X(name, text) [LP_MEDIUM_##name] = text,
    LP_MEDIUM_LIST(LP_X)
#undef LP_X
#define CUDA(i) [LP_MEDIUM_CUDA0 + i] = "cuda:" #i
        CUDA(0),
    CUDA(1),
    CUDA(2),
    CUDA(3),
    CUDA(4),
    CUDA(5),
    CUDA(6),
    CUDA(7),
    CUDA(8),
    CUDA(9),
    CUDA(10),
    CUDA(11),
    CUDA(12),
    CUDA(13),
    CUDA(14),
    CUDA(15),
#undef CUDA
};

const char *lp_medium_name(lp_medium medium) { return names[medium]; }

int lp_medium_find(const char *name) {
    for (int i = 0; i < LP_MEDIUM_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}
