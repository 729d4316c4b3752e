/* Finds mallinfo2() once, and only where glibc's malloc serves the process. */
#include "process/malloc_info.h"

#include <stdint.h>
#include <string.h>

#include "base/rawmem.h"  // lp_raw_block_bytes

#if defined(__linux__) && defined(__GLIBC__)

#include <dlfcn.h>  // dlsym, dladdr1
#include <elf.h>    // SHN_UNDEF
#include <link.h>   // struct link_map

/* struct mallinfo2 of glibc 2.33, so that older headers will do. */
typedef struct glibc_mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
} glibc_mallinfo2;

typedef glibc_mallinfo2 (*mallinfo2_fn)(void);

static mallinfo2_fn read_info;
static const char *why_not;
static int is_looked_up;

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

/* Where the library begins that serves a function of this name; NULL if none does.  A program at a fixed address that
 * takes the address of a function has an entry of its own for it, which calls another library's. */
static const void *library_of(const char *name) {
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *function = dlsym(RTLD_DEFAULT, name);
    if (function == NULL || dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0) {
        return NULL;
    }
    return symbol != NULL && symbol->st_shndx == SHN_UNDEF ? first_that_defines(name) : info.dli_fbase;
}

static const char *look_up(void) {
    const void *libc = library_of("gnu_get_libc_version");
    if (libc == NULL) {
        return "the C library is not glibc";
    }
    static const char *const served[] = {"malloc", "free", "calloc", "realloc", "posix_memalign"};
    for (size_t i = 0; i < sizeof(served) / sizeof(served[0]); i++) {
        if (library_of(served[i]) != libc) {
            return "another allocator than glibc's serves malloc";
        }
    }
    if (library_of("mallinfo2") != libc) {
        return "glibc is older than 2.33: it has no mallinfo2";
    }
    void *function = dlsym(RTLD_DEFAULT, "mallinfo2");
    memcpy(&read_info, &function, sizeof(read_info));
    return NULL;
}

const char *lp_malloc_info_why_not(void) {
    if (!is_looked_up) {
        why_not = look_up();
        is_looked_up = 1;
    }
    return why_not;
}

lp_status lp_malloc_info_read(lp_malloc_info *out_info) {
    if (lp_malloc_info_why_not() != NULL) {
        return LP_UNSUPPORTED;
    }
    glibc_mallinfo2 now = read_info();
    out_info->in_use = now.uordblks + now.hblkhd;
    out_info->mapped = now.hblkhd;
    out_info->free_bytes = now.fordblks;
    out_info->top_bytes = now.keepcost;
    out_info->probe_bytes = lp_raw_block_bytes();
    return LP_OK;
}

#else

const char *lp_malloc_info_why_not(void) { return "not available on this platform"; }

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
