/* Calls by a pointer, as ctypes makes them: libffi's one entry point stands for the function, and a hook of it may put
 * another in its place. */
#ifndef LP_FFI_CALLS_H
#define LP_FFI_CALLS_H

#include <string.h>

#include "native/hook.h" // LP_ORIGINAL

typedef void (*lp_function)(void);
typedef void (*lp_ffi_call_fn)(void *interface, lp_function callee, void *result, void **arguments);

static inline lp_function lp_as_function(void *address) {
    lp_function callee;
    memcpy(&callee, &address, sizeof(callee));
    return callee;
}

/* The trampoline ffi_<copy> of ffi_call(), with the file's own `ffi_originals`: it calls what the file's `redirected`
 * makes of the callee. */
#define LP_FFI_TRAMPOLINE(copy)                                                                                        \
    static void ffi_##copy(void *interface, lp_function callee, void *result, void **arguments) {                      \
        LP_ORIGINAL(lp_ffi_call_fn, ffi_originals, copy)(interface, redirected(callee), result, arguments);            \
    }

#endif
