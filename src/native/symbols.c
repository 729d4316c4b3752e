/* Asks the loader for names. Called without any lock of ours. */
#include "native/symbols.h"

#include <stddef.h>

#ifdef __linux__

#include <dlfcn.h>

void lp_symbol_of(const void *address, const char **out_library, const char **out_name) {
    Dl_info info;
    int is_known = dladdr(address, &info) != 0;
    *out_library = is_known && info.dli_fname != NULL ? info.dli_fname : "";
    *out_name = is_known && info.dli_sname != NULL ? info.dli_sname : "";
}

#else

void lp_symbol_of(const void *address, const char **out_library, const char **out_name) {
    (void)address;
    *out_library = *out_name = "";
}

#endif
