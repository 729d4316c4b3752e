#include "base/base.h"

const char *lp_status_text(lp_status status) {
    switch (status) {
#define LP_X(name, value, text)                                                                                        \
    case LP_##name:                                                                                                    \
        return text;
        LP_STATUS_LIST(LP_X)
#undef LP_X
    default:
        return "ok";
    }
}
