/* Preloaded: serves malloc in libc's stead, so that nobody can ask it for numbers. */
#include <stddef.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *block);

void *malloc(size_t bytes) { return __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return __libc_calloc(count, bytes); }
void *realloc(void *block, size_t bytes) { return __libc_realloc(block, bytes); }
void free(void *block) { __libc_free(block); }

int posix_memalign(void **out_block, size_t alignment, size_t bytes) {
    *out_block = __libc_memalign(alignment, bytes);
    return *out_block == NULL ? 12 : 0;   /* ENOMEM */
}
