/* Stands for libcudart where there is no GPU: the functions that leakprobe patches, backed by malloc.
 *
 * standin_set_capacity() makes a device run out of memory; standin_fail() makes the next frees fail. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct CUstream_st *stream_t;

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, DEVICES = 4, HEADER = 64 };

typedef struct header {
    size_t bytes;
    int device; /* -1: host memory */
} header;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t capacity[DEVICES] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX}, used[DEVICES];
static uint64_t host_bytes, calls;
static int failures;
static _Thread_local int device_now;

void standin_set_capacity(int device, size_t bytes) {
    pthread_mutex_lock(&lock);
    capacity[device] = bytes;
    pthread_mutex_unlock(&lock);
}

size_t standin_used(int device) {
    pthread_mutex_lock(&lock);
    size_t bytes = device < 0 ? host_bytes : used[device];
    pthread_mutex_unlock(&lock);
    return bytes;
}

size_t standin_capacity(int device) {
    pthread_mutex_lock(&lock);
    size_t bytes = capacity[device];
    pthread_mutex_unlock(&lock);
    return bytes;
}

/* The next `count` frees say that they failed, and free nothing. */
void standin_fail(int count) {
    pthread_mutex_lock(&lock);
    failures = count;
    pthread_mutex_unlock(&lock);
}

/* Calls of any function that takes or frees memory. */
uint64_t standin_calls(void) {
    pthread_mutex_lock(&lock);
    uint64_t count = calls;
    pthread_mutex_unlock(&lock);
    return count;
}

static int take(void **out, size_t bytes, int device) {
    int error = SUCCESS;
    *out = NULL;
    if (bytes == 0) {
        return SUCCESS;
    }
    pthread_mutex_lock(&lock);
    calls++;
    if (device >= 0 && (bytes > capacity[device] || used[device] > capacity[device] - bytes)) {
        error = OUT_OF_MEMORY;
    } else {
        size_t rounded = (bytes + HEADER + 511) / 512 * 512;
        header *head = aligned_alloc(512, rounded + 512);
        error = head == NULL ? OUT_OF_MEMORY : SUCCESS;
        if (head != NULL) {
            char *block = (char *)head + 512; /* aligned as the runtime's */
            header *own = (header *)(block - HEADER);
            *own = (header){bytes, device};
            *out = block;
            *(device < 0 ? &host_bytes : &used[device]) += bytes;
        }
    }
    pthread_mutex_unlock(&lock);
    return error;
}

static int give_back(void *block) {
    if (block == NULL) {
        return SUCCESS;
    }
    pthread_mutex_lock(&lock);
    calls++;
    int fails = failures > 0;
    failures -= fails;
    if (!fails) {
        header *own = (header *)((char *)block - HEADER);
        *(own->device < 0 ? &host_bytes : &used[own->device]) -= own->bytes;
    }
    pthread_mutex_unlock(&lock);
    if (!fails) {
        free((char *)block - 512);
    }
    return fails ? INVALID_VALUE : SUCCESS;
}

int cudaSetDevice(int device) {
    if (device < 0 || device >= DEVICES) {
        return 101; /* cudaErrorInvalidDevice */
    }
    device_now = device;
    return SUCCESS;
}

int cudaGetDevice(int *out) {
    *out = device_now;
    return SUCCESS;
}

int cudaMalloc(void **out, size_t bytes) { return take(out, bytes, device_now); }
int cudaFree(void *block) { return give_back(block); }
int cudaMallocAsync(void **out, size_t bytes, stream_t stream) { return (void)stream, take(out, bytes, device_now); }
int cudaFreeAsync(void *block, stream_t stream) { return (void)stream, give_back(block); }
int cudaMallocAsync_ptsz(void **out, size_t bytes, stream_t stream) { return cudaMallocAsync(out, bytes, stream); }
int cudaFreeAsync_ptsz(void *block, stream_t stream) { return cudaFreeAsync(block, stream); }
int cudaHostAlloc(void **out, size_t bytes, unsigned flags) { return (void)flags, take(out, bytes, -1); }
int cudaMallocHost(void **out, size_t bytes) { return take(out, bytes, -1); }
int cudaFreeHost(void *block) { return give_back(block); }
int cudaHostRegister(void *block, size_t bytes, unsigned flags) {
    return (void)flags, block == NULL || bytes == 0 ? INVALID_VALUE : SUCCESS;
}
int cudaHostUnregister(void *block) { return block == NULL ? INVALID_VALUE : SUCCESS; }
