/* Finds the shim in the process, once. */
#include "base/preload.h"

#include <string.h>

#if defined(__linux__) && defined(__GLIBC__)

#include <dlfcn.h>  // dlsym
#include <elf.h>    // SHN_UNDEF
#include <link.h>   // ElfW

static struct {
    lp_preload *table;
    void *bound[LP_PRELOAD_COUNT];   /* what the loader binds the names to */
    int is_looked_up;
} found;

/* A program at a fixed address that takes a function's address has an entry of its own for it, which calls the
 * library's. */
static int leads_to_shim(const void *function, const void *own) {
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    int is_known = function != NULL && dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0;
    return function == own || (is_known && symbol != NULL && symbol->st_shndx == SHN_UNDEF);
}

static lp_preload *look_up(void) {
    lp_preload *table = dlsym(RTLD_DEFAULT, LP_PRELOAD_TABLE);
    if (table == NULL || table->version != LP_PRELOAD_VERSION) {
        return NULL;
    }
    for (size_t i = 0; i < LP_PRELOAD_COUNT; i++) {
        found.bound[i] = dlsym(RTLD_DEFAULT, table->names[i]);
        if (!leads_to_shim(found.bound[i], table->own[i])) {
            return NULL;
        }
    }
    return table;
}

lp_preload *lp_preload_find(void) {
    if (!found.is_looked_up) {
        found.table = look_up();
        found.is_looked_up = 1;
    }
    return found.table;
}

/* LP_PRELOAD_COUNT where there is none. */
static size_t index_of(const char *name) {
    const lp_preload *table = lp_preload_find();
    size_t i = table == NULL ? LP_PRELOAD_COUNT : 0;
    while (i < LP_PRELOAD_COUNT && strcmp(table->names[i], name) != 0) {
        i++;
    }
    return i;
}

void *lp_preload_behind(const char *name) {
    size_t i = index_of(name);
    return i < LP_PRELOAD_COUNT ? atomic_load(&found.table->next[i]) : NULL;
}

int lp_preload_serves(const char *name, const void *function) {
    size_t i = index_of(name);
    return i < LP_PRELOAD_COUNT && (function == found.table->own[i] || function == found.bound[i]);
}

#else

lp_preload *lp_preload_find(void) { return NULL; }

void *lp_preload_behind(const char *name) {
    (void)name;
    return NULL;
}

int lp_preload_serves(const char *name, const void *function) {
    (void)name, (void)function;
    return 0;
}

#endif
