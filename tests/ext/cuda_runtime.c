/* Stands for libcudart where there is no GPU: the functions that leakprobe patches.  Blocks are mappings of their own, as
 * a driver's are: memory that nobody writes to takes none of the host's, and malloc knows nothing of it.
 *
 * standin_set_capacity() makes a device run out of memory; standin_fail() makes the next frees fail;
 * standin_refuse_registers() is a system whose memory can't be registered. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct CUstream_st *stream_t;

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_SUPPORTED = 801,
    DEVICES = 18,
    BUCKETS = 1 << 12,
    PAGE = 4096
};

typedef struct block {
    void *address;
    size_t bytes;
    int device; /* -1: host memory */
    struct block *next;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t capacity[DEVICES] = {[0 ... DEVICES - 1] = SIZE_MAX}, used[DEVICES];
static uint64_t host_bytes, calls;
static int failures;
static block *buckets[BUCKETS];
static _Atomic int refuses_registers, has_context[DEVICES];
static _Thread_local int device_now, last_error;

/* A fork while another thread has the lock would leave it taken in the child for ever. */
static void take_lock(void) { pthread_mutex_lock(&lock); }
static void release_lock(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void survive_forks(void) { pthread_atfork(take_lock, release_lock, release_lock); }

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

void standin_refuse_registers(int on) { refuses_registers = on; }

/* What the program did so far has made a context on the device. */
int standin_has_context(int device) { return has_context[device]; }

static void use_device(void) { has_context[device_now] = 1; }

/* Calls of any function that takes or frees memory. */
uint64_t standin_calls(void) {
    pthread_mutex_lock(&lock);
    uint64_t count = calls;
    pthread_mutex_unlock(&lock);
    return count;
}

static block **bucket_of(const void *address) { return &buckets[(uintptr_t)address / PAGE % BUCKETS]; }

/* A block that is entered, or NULL: no memory.  Memory of the host is a shared mapping, as NVIDIA's driver makes
 * it ("/dev/zero (deleted)").  Under the lock. */
static block *make_block(size_t bytes, int device) {
    int flags = device < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    block *made = address == MAP_FAILED ? NULL : malloc(sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    block **bucket = bucket_of(address);
    *made = (block){address, bytes, device, *bucket};
    *bucket = made;
    *(device < 0 ? &host_bytes : &used[device]) += bytes;
    return made;
}

/* The block at an address, entered no more; NULL if there is none.  Under the lock. */
static block *take_out(const void *address) {
    block **link = bucket_of(address);
    while (*link != NULL && (*link)->address != address) {
        link = &(*link)->next;
    }
    block *found = *link;
    if (found != NULL) {
        *link = found->next;
        *(found->device < 0 ? &host_bytes : &used[found->device]) -= found->bytes;
    }
    return found;
}

static int take(void **out, size_t bytes, int device) {
    *out = NULL;
    if (bytes == 0) {
        return SUCCESS;
    }
    use_device();
    pthread_mutex_lock(&lock);
    calls++;
    int fits = device < 0 || (bytes <= capacity[device] && used[device] <= capacity[device] - bytes);
    block *made = fits ? make_block(bytes, device) : NULL;
    *out = made == NULL ? NULL : made->address;
    pthread_mutex_unlock(&lock);
    return made == NULL ? OUT_OF_MEMORY : SUCCESS;
}

static int give_back(void *address) {
    if (address == NULL) {
        return SUCCESS;
    }
    pthread_mutex_lock(&lock);
    calls++;
    int fails = failures > 0;
    failures -= fails;
    block *found = fails ? NULL : take_out(address);
    pthread_mutex_unlock(&lock);
    if (found == NULL) {
        return INVALID_VALUE;
    }
    munmap(address, found->bytes);
    free(found);
    return SUCCESS;
}

int cudaSetDevice(int device) {
    if (device < 0 || device >= DEVICES) {
        return 101; /* cudaErrorInvalidDevice */
    }
    device_now = device;
    use_device();
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
    (void)flags;
    use_device();
    if (refuses_registers) {
        return last_error = NOT_SUPPORTED;
    }
    return block == NULL || bytes == 0 ? INVALID_VALUE : SUCCESS;
}
int cudaHostUnregister(void *block) { return block == NULL ? INVALID_VALUE : SUCCESS; }

/* Of the thread, until it is asked for. */
int cudaGetLastError(void) {
    int error = last_error;
    last_error = SUCCESS;
    return error;
}
int cudaPeekAtLastError(void) { return last_error; }
