/* The native hooks: which mechanism serves each medium, and why not.
 *
 * A medium is active only after its canary: one block of an odd size, made and freed by the caller's callback,
 * must be seen being born and dying by the hook.  CUDA is never started for it: until the program has, the first
 * mechanism serves unproven.  Mechanisms are tried in order; the first whose canary passes
 * serves.  The canary leaves no trace in the ledger.
 *
 * All functions are called with the GIL held, one at a time.  Off Linux they exist and report LP_UNSUPPORTED. */
#ifndef LP_NATIVE_H
#define LP_NATIVE_H

#include "base/base.h"      // lp_status
#include "ledger/medium.h"  // lp_medium

#define LP_NATIVE_WAIT 1

/* Make one block of `bytes` bytes of the medium on this thread, and free it; 0, -1 if that failed, or LP_NATIVE_WAIT
 * if it can't be tried yet.  Then the first mechanism serves, and lp_native_verify() tries the canary again. */
typedef int (*lp_native_canary_fn)(lp_medium medium, uint64_t bytes);

/* 1 for a medium that has a hook here; LP_MEDIUM_CUDA0 stands for all devices. */
int lp_native_has_hook(lp_medium medium);

/* Activate a medium with the first mechanism that works, or only with the one named if `mechanism` is not
 * NULL.  LP_OK also if it was active; LP_NOT_FOUND: lp_native_why_not() tells. */
lp_status lp_native_install(lp_medium medium, const char *mechanism, lp_native_canary_fn canary);

/* Run the canary of a medium that waits for it; where it fails, the next mechanisms are tried.
 * LP_OK while the medium is served. */
lp_status lp_native_verify(lp_medium medium, lp_native_canary_fn canary);
int lp_native_is_waiting(lp_medium medium);

/* Patch what was loaded since, and what lost our trampoline; only media that are active. */
void lp_native_refresh(void);

/* Turn all hooks into pass-throughs and put back the slots that are still ours. */
void lp_native_uninstall(void);

int lp_native_is_active(lp_medium medium);
/* The mechanism that serves, or NULL. */
const char *lp_native_mechanism(lp_medium medium);
/* Why the last lp_native_install() of the medium failed, or NULL. */
const char *lp_native_why_not(lp_medium medium);

/* How many objects the process has loaded so far: a change means that there may be new ones to hook. */
uint64_t lp_native_loaded_count(void);

/* This extension is never unloaded from now on: other tools may keep our trampolines' addresses. */
void lp_native_pin(void);

/* Around fork, before lp_ledger_before_fork() and after lp_ledger_after_fork_in_parent(): the child
 * gets whole tables. */
void lp_native_before_fork(void);
void lp_native_after_fork_in_parent(void);
/* Child of fork only: locks are free again; hooks stay as they were. */
void lp_native_reset_in_child(void);

#endif
