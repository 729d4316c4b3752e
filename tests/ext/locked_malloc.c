/* To preload: an allocator that maps memory with a lock of its own held, as jemalloc and tcmalloc do.  Never gives memory
 * back, and nothing twice. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *next, *end;

static char *map(size_t bytes) { return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/* The size lies before the block. */
static void *take(size_t align, size_t bytes) {
    align = align < ALIGN ? ALIGN : align;
    size_t needed = bytes + align + ALIGN;
    pthread_mutex_lock(&lock);
    if (needed > (size_t)(end - next)) {
        size_t room = needed > (1 << 20) ? needed : 1 << 20;
        next = map(room);
        end = next + room;
    }
    char *block = (char *)(((size_t)next + ALIGN + align - 1) & ~(align - 1));
    next = block + bytes;
    memcpy(block - ALIGN, &bytes, sizeof(bytes));
    pthread_mutex_unlock(&lock);
    return block;
}

static size_t size_of(void *block) {
    size_t bytes;
    memcpy(&bytes, (char *)block - ALIGN, sizeof(bytes));
    return bytes;
}

void *malloc(size_t bytes) { return take(ALIGN, bytes); }
void *calloc(size_t count, size_t bytes) { return take(ALIGN, count * bytes); }
void free(void *block) { (void)block; }
void *memalign(size_t align, size_t bytes) { return take(align, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return take(align, bytes); }

void *realloc(void *old, size_t bytes) {
    void *block = take(ALIGN, bytes);
    if (old != NULL) {
        memcpy(block, old, size_of(old) < bytes ? size_of(old) : bytes);
    }
    return block;
}

int posix_memalign(void **out, size_t align, size_t bytes) {
    *out = take(align, bytes);
    return 0;
}

size_t malloc_usable_size(void *block) { return block == NULL ? 0 : size_of(block); }
