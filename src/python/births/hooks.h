/* Starts, stops and checks the hooks of object births. */
#ifndef LP_HOOKS_H
#define LP_HOOKS_H

#include "python/compat/compat.h"  // Python.h

#define LP_HOOKS_GAPS 64

/* Steps in which births were not seen, or not all. */
typedef struct lp_gap {
    uint32_t first_step, last_step;
    const char *why;
} lp_gap;

typedef struct lp_hooks_status {
    lp_birth_mode mode;         /* which mechanism serves; LP_BIRTH_NONE while births are not seen */
    int active;
    int sees_deaths;            /* stamps are erased as blocks are freed: live counts are exact */
    uint32_t exact_since;       /* the step since which they are */
    int grown_at;               /* backing blocks of containers are stamped too */
    const char *why_not;        /* why births are not seen, or not all, although active; or NULL */
    uint32_t gap_count;
    lp_gap gap[LP_HOOKS_GAPS];  /* the first ones; later ones extend the last */
} lp_hooks_status;

/* Make what stays for the life of the process: tables, what is done around fork and at exit.  Before any
 * hook is installed, again as often as one likes; 0, or -1 with an exception set. */
int lp_hooks_prepare(void);
/* The callback that leakprobe has registered with atexit (borrowed), or NULL. */
const PyObject *lp_hooks_at_exit(void);
/* 0, or -1 with an exception set.  A stack_depth from 1 to LP_FRAMES_DEPTH_MAX. */
int lp_hooks_start(uint32_t stack_depth, PyObject *package_dir);
void lp_hooks_stop(void);
/* Before stamps and live counts are read: objects that wait in free lists are dead; and if births or deaths were not
 * seen since the last mark, forget all stamps and note a gap, since what was born meanwhile lies at addresses with the
 * stamps of others. */
void lp_hooks_verify(void);
/* End the step: check the hooks, then count on.  pre: active. */
uint32_t lp_hooks_mark(void);
const lp_hooks_status *lp_hooks_get_status(void);

#endif
