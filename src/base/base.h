/* Words that every folder uses: status codes, assertions, branch hints.
 *
 * Functions below src/python/ return LP_OK or a negative lp_status and set no
 * exception; the edge (src/python/values/convert.c) turns a status into one. */
#ifndef LP_BASE_H
#define LP_BASE_H

#include <stddef.h>
#include <stdint.h>

#define LP_STATUS_LIST(X)                                                                                              \
    X(NO_MEMORY, -1, "out of memory for the probe's own tables")                                                       \
    X(NOT_FOUND, -2, "not found")                                                                                      \
    X(FULL, -3, "a table of the probe is full")                                                                        \
    X(BAD_INPUT, -4, "bad input")                                                                                      \
    X(UNSUPPORTED, -5, "not available on this platform or version")                                                    \
    X(SYSTEM, -6, "a system call failed")                                                                              \
    X(LIMIT, -7, "a limit given by the caller was reached")

typedef enum lp_status {
    LP_OK = 0,
#define LP_X(name, value, text) LP_##name = value,
    LP_STATUS_LIST(LP_X)
#undef LP_X
} lp_status;

/* The text of a status, never NULL. */
const char *lp_status_text(lp_status status);

/* For a variable of a hot path: read at a known distance, not through a table of addresses. */
#define LP_HIDDEN __attribute__((visibility("hidden")))
#define LP_NOINLINE __attribute__((noinline))

#define LP_LIKELY(x) __builtin_expect(!!(x), 1)
#define LP_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* 1 for the address of a word that lies as the machine likes it. */
static inline int lp_is_word_aligned(uint64_t address) { return address % sizeof(uint64_t) == 0; }

/* What must hold, checked in builds with LEAKPROBE_DEBUG whatever NDEBUG says: a failure prints where and
 * aborts.  Other builds evaluate nothing. */
#ifdef LEAKPROBE_DEBUG
#define LP_ASSERT(x) (LP_LIKELY(x) ? (void)0 : lp_assert_failed(#x, __FILE__, __LINE__))
_Noreturn void lp_assert_failed(const char *expression, const char *file, int line);
#else
#define LP_ASSERT(x) ((void)0)
#endif

/* "The GIL is held", asserted where a comment claims it.  src/python/ says how to ask; without it, as in the C
 * tests, there is no GIL to hold. */
#ifdef LEAKPROBE_DEBUG
extern int (*lp_holds_gil)(void);
#endif
#define LP_ASSERT_GIL() LP_ASSERT(lp_holds_gil == NULL || lp_holds_gil())

#endif
