/* Texts of status codes, and what a failed assertion does. */
#include "base/base.h"

#ifdef LEAKPROBE_DEBUG
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int (*lp_holds_gil)(void);

/* Straight to the descriptor: a buffer may be in the middle of anything. */
void lp_assert_failed(const char *expression, const char *file, int line) {
    dprintf(STDERR_FILENO, "leakprobe: %s:%d: assertion failed: %s\n", file, line, expression);
    abort();
}
#endif

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
