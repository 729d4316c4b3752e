/* Which library serves malloc, and how it is asked what it has given out. */
#include "process/malloc_info.h"

#include <stdint.h>
#include <string.h>

#include "base/preload.h"          // lp_preload_behind
#include "base/rawmem.h"           // lp_raw_block_bytes
#include "process/malloc_reads.h"  // lp_read_*
#include "process/numbers.h"       // LP_ROUNDING_*

#if defined(__linux__) && defined(__GLIBC__)

#include <dlfcn.h>  // dlsym, dladdr1
#include <elf.h>    // SHN_UNDEF
#include <link.h>   // struct link_map

/* `asked`: the function that is asked; of the library that serves malloc, or the numbers are another heap's. */
typedef struct source {
    const char *name, *asked;
    void (*bind)(void *function);
    lp_status (*read)(lp_malloc_info *out_info);
    double rounding;
} source;

static const source sources[] = {
    {"glibc", "mallinfo2", lp_bind_glibc, lp_read_glibc, LP_ROUNDING_GLIBC},
    {"jemalloc", "mallctl", lp_bind_jemalloc, lp_read_jemalloc, LP_ROUNDING_JEMALLOC},
    {"tcmalloc", "MallocExtension_GetNumericProperty", lp_bind_tcmalloc, lp_read_tcmalloc, LP_ROUNDING_TCMALLOC},
    {"mimalloc", "mi_process_info", lp_bind_mimalloc, lp_read_mimalloc, LP_ROUNDING_MIMALLOC},
};

static struct {
    const source *served_by;
    const char *why_not;
    int is_looked_up;
} served;

/* Where this library begins if it defines a function of this name itself; otherwise NULL. */
static const void *defines(const struct link_map *library, const char *name) {
    Dl_info info;
    void *handle = dlopen(library->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return NULL;
    }
    void *function = dlsym(handle, name);   /* of the library, or of one that it needs */
    int is_own =
        function != NULL && dladdr(function, &info) != 0 && (uintptr_t)info.dli_fbase == (uintptr_t)library->l_addr;
    dlclose(handle);
    return is_own ? info.dli_fbase : NULL;
}

/* The first library that defines it, in the order that the program looks for it. */
static const void *first_that_defines(const char *name) {
    struct link_map *library = NULL;
    const void *found = NULL;
    void *program = dlopen(NULL, RTLD_LAZY);
    if (program == NULL || dlinfo(program, RTLD_DI_LINKMAP, &library) != 0 || library == NULL) {
        return NULL;
    }
    for (library = library->l_next; library != NULL && found == NULL; library = library->l_next) {
        found = defines(library, name);
    }
    dlclose(program);
    return found;
}

/* Where the library begins that serves a function of this name, behind our own shim; NULL if none does.  A program at a
 * fixed address that takes the address of a function has an entry of its own for it, which calls another library's. */
static const void *library_of(const char *name) {
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *behind = lp_preload_behind(name), *function = behind != NULL ? behind : dlsym(RTLD_DEFAULT, name);
    if (function == NULL || dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0) {
        return NULL;
    }
    return symbol != NULL && symbol->st_shndx == SHN_UNDEF ? first_that_defines(name) : info.dli_fbase;
}

/* True if one library serves all of malloc's functions. */
static int serves_all(const void *library) {
    static const char *const served[] = {"malloc", "free", "calloc", "realloc", "posix_memalign"};
    for (size_t i = 0; i < sizeof(served) / sizeof(served[0]); i++) {
        if (library_of(served[i]) != library) {
            return 0;
        }
    }
    return 1;
}

static const char *look_up(void) {
    const void *library = library_of("malloc");
    lp_malloc_info info;
    for (size_t i = 0; library != NULL && i < sizeof(sources) / sizeof(sources[0]); i++) {
        const source *tried = &sources[i];
        if (library_of(tried->asked) == library && serves_all(library)) {
            tried->bind(dlsym(RTLD_DEFAULT, tried->asked));
            served.served_by = tried->read(&info) == LP_OK ? tried : NULL;
            return served.served_by != NULL ? NULL : "the allocator was built without statistics";
        }
    }
    return library != NULL && library == library_of("gnu_get_libc_version")
               ? "glibc is older than 2.33: it has no mallinfo2"
               : "an allocator that leakprobe does not know serves malloc";
}

const char *lp_malloc_info_why_not(void) {
    if (!served.is_looked_up) {
        served.why_not = look_up();
        served.is_looked_up = 1;
    }
    return served.why_not;
}

const char *lp_malloc_info_source(void) { return lp_malloc_info_why_not() == NULL ? served.served_by->name : NULL; }

lp_status lp_malloc_info_read(lp_malloc_info *out_info) {
    if (lp_malloc_info_why_not() != NULL) {
        return LP_UNSUPPORTED;
    }
    memset(out_info, 0, sizeof(*out_info));
    lp_status status = served.served_by->read(out_info);
    out_info->rounding = served.served_by->rounding;
    out_info->probe_bytes = lp_raw_block_bytes();
    return status;
}

#else

const char *lp_malloc_info_why_not(void) { return "not available on this platform"; }

const char *lp_malloc_info_source(void) { return NULL; }

lp_status lp_malloc_info_read(lp_malloc_info *out_info) {
    memset(out_info, 0, sizeof(*out_info));
    out_info->probe_bytes = lp_raw_block_bytes();
    return LP_UNSUPPORTED;
}

#endif

uint64_t lp_malloc_info_in_use(void) {
    lp_malloc_info info;
    if (lp_malloc_info_read(&info) != LP_OK || info.in_use < info.probe_bytes) {
        return 0;
    }
    return info.in_use - info.probe_bytes;
}
