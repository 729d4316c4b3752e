/* Stands for libtorch_cuda (and, built with another name, libtorch_python): pinned host memory as torch takes it,
 * blocks of a power of two that are kept when they are freed, and never split. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int cudaHostAlloc(void **out, size_t bytes, unsigned flags);
int cudaMallocHost(void **out, size_t bytes);
int cudaFreeHost(void *block);
int cudaHostRegister(void *block, size_t bytes, unsigned flags);
int cudaHostUnregister(void *block);

enum { CLASSES = 48 };

typedef struct host_block {
    struct host_block *next;
    void *address;
    int order;
} host_block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static host_block *cached[CLASSES];

/* old: as torch before 2.5: the smallest free block that is large enough, however large. */
static host_block *pop(int order, int old) {
    for (int at = order; at < (old ? CLASSES : order + 1); at++) {
        host_block *found = cached[at];
        if (found != NULL) {
            cached[at] = found->next;
            return found;
        }
    }
    return NULL;
}

void *pinned_alloc(size_t bytes, int old) {
    int order = 0;
    while (((size_t)1 << order) < bytes) {
        order++;
    }
    pthread_mutex_lock(&lock);
    host_block *made = pop(order, old);
    pthread_mutex_unlock(&lock);
    if (made == NULL) {
        made = malloc(sizeof(*made));
        *made = (host_block){NULL, NULL, order};
        if (cudaHostAlloc(&made->address, (size_t)1 << order, 0) != 0) {
            free(made);
            return NULL;
        }
    }
    return made;
}

void *pinned_address(void *made) { return ((host_block *)made)->address; }
size_t pinned_bytes(void *made) { return (size_t)1 << ((host_block *)made)->order; }

void pinned_free(void *made) {
    host_block *old = made;
    pthread_mutex_lock(&lock);
    old->next = cached[old->order];
    cached[old->order] = old;
    pthread_mutex_unlock(&lock);
}

void pinned_empty_cache(void) {
    pthread_mutex_lock(&lock);
    for (int order = 0; order < CLASSES; order++) {
        while (cached[order] != NULL) {
            host_block *old = cached[order];
            cached[order] = old->next;
            cudaFreeHost(old->address);
            free(old);
        }
    }
    pthread_mutex_unlock(&lock);
}

int pinned_register(void *address, size_t bytes) { return cudaHostRegister(address, bytes, 0); }
int pinned_unregister(void *address) { return cudaHostUnregister(address); }
int pinned_free_raw(void *address) { return cudaFreeHost(address); }
void *pinned_alloc_raw(size_t bytes) {
    void *address = NULL;
    return cudaMallocHost(&address, bytes) == 0 ? address : NULL;
}
