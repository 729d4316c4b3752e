/* A C library that forgets what it allocates, in all ways that C has, and one that keeps up to a bound.
 *
 * Each forget_X(n) leaves n bytes behind.  forget_in_thread(n) does so in a thread that Python does not know.  What forks
 * does so without Python, which a library may. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* A line of libc's own buffer. */
void forget_getline(size_t n) {
    char *text = malloc(n), *line = NULL;
    size_t length = 0;
    memset(text, 'x', n - 1);
    text[n - 1] = '\n';
    FILE *file = fmemopen(text, n, "r");
    if (getline(&line, &length, file) > 0) {
        seen = line;
    }
    fclose(file);
    free(text);
}

/* Through a pointer that no loader has written into a slot. */
void forget_by_pointer(size_t n) {
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
    touch(allocate(n), n);
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

/* The exit status of a child that Python does not know of, and that allocates before it ends. */
int fork_and_allocate(void) {
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        for (size_t i = 1; i <= 1000; i++) {
            void *block = malloc(i);
            touch(block, i);
            free(block);
        }
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

/* A lock that fork() waits for, as libraries with a state that a child shall find whole have one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void take_lock(void) { pthread_mutex_lock(&lock); }

static void release_lock(void) { pthread_mutex_unlock(&lock); }

void hold_lock_over_forks(void) { pthread_atfork(take_lock, release_lock, release_lock); }

void allocate_with_lock(size_t n) {
    take_lock();
    keep_some(n);
    release_lock();
}
