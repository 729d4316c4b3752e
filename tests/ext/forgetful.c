/* A C library that forgets what it allocates, in all ways that C has, and one that keeps up to a bound.
 *
 * Each forget_X(n) leaves n bytes behind.  forget_in_thread(n) does so in a thread that Python does not know. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A compiler may leave out what nobody looks at. */
static void *volatile seen;

static void touch(void *block, size_t bytes) {
    memset(block, 1, bytes);
    seen = block;
}

void forget_malloc(size_t n) { touch(malloc(n), n); }

void forget_calloc(size_t n) { touch(calloc(n, 1), n); }

void forget_aligned(size_t n) { touch(aligned_alloc(64, n), n); }

void forget_mmap(size_t n) { touch(mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), n); }

/* operator new(size_t) of libstdc++ */
extern void *_Znwm(size_t bytes);

void forget_new(size_t n) { touch(_Znwm(n), n); }

/* One block that is enlarged over and over. */
void forget_realloc(size_t n) {
    static char *grown;
    static size_t length;
    grown = realloc(grown, length + n);
    touch(grown + length, n);
    length += n;
}

void forget_strdup(size_t n) {
    char *text = malloc(n);
    memset(text, 'x', n - 1);
    text[n - 1] = '\0';
    seen = strdup(text);
    free(text);
}

static void *in_thread(void *bytes) {
    touch(malloc(*(size_t *)bytes), *(size_t *)bytes);
    return NULL;
}

void forget_in_thread(size_t n) {
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, &n);
    pthread_join(thread, NULL);
}

/* Keeps the last sixteen. */
void keep_some(size_t n) {
    static void *kept[16];
    static unsigned next;
    free(kept[next % 16]);
    kept[next % 16] = malloc(n);
    touch(kept[next % 16], n);
    next++;
}
