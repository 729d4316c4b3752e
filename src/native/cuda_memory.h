/* What the CUDA hooks know beyond the ledger: segments, memory that the program pinned itself, and reports of
 * memory that could not be had.  May be asked for by any thread.  Off Linux everything is zero. */
#ifndef LP_CUDA_MEMORY_H
#define LP_CUDA_MEMORY_H

#include <stdint.h>

#define LP_CUDA_DEVICES 16   /* devices that have a medium: LP_MEDIUM_CUDA0 + index */

typedef struct lp_cuda_sum {
    uint64_t live_bytes, peak_bytes, live_count;
} lp_cuda_sum;

static inline void lp_cuda_sum_add(lp_cuda_sum *sum, uint64_t bytes) {
    sum->live_bytes += bytes;
    sum->live_count++;
    sum->peak_bytes = sum->live_bytes > sum->peak_bytes ? sum->live_bytes : sum->peak_bytes;
}

static inline void lp_cuda_sum_remove(lp_cuda_sum *sum, uint64_t bytes) {
    sum->live_bytes -= bytes;
    sum->live_count--;
}

/* A report of the caching allocator, before it raises: sizes are as it gave them. */
typedef struct lp_cuda_oom {
    uint64_t count;                /* reports so far; the rest is of the last one */
    int64_t wanted_bytes;
    uint64_t allocated_bytes, reserved_bytes;
    int32_t device;
} lp_cuda_oom;

/* Memory that torch's libraries took with cudaMalloc and cudaMallocAsync since the hooks were installed. */
void lp_cuda_segments(int device, lp_cuda_sum *out_sum);
/* Memory of the program's own that it registered as pinned; its bytes belong to another medium. */
void lp_cuda_registered(lp_cuda_sum *out_sum);
/* Bytes of pinned blocks that are malloc's: torch took them there and registered them. */
uint64_t lp_cuda_malloc_bytes(void);
void lp_cuda_last_oom(lp_cuda_oom *out_oom);
/* Events of devices without a medium, which nothing else counts: index LP_CUDA_DEVICES and beyond. */
uint64_t lp_cuda_beyond_count(void);
void lp_cuda_count_beyond(void);
/* Functions of the CUDA runtime that torch.cuda.cudart() offers under the same names: pin memory and unpin it. */
extern const char lp_cuda_pin_name[], lp_cuda_unpin_name[];
/* From now on these functions, called by torch.cuda.cudart() with this block, succeed without reaching CUDA; NULL: none.
 * 1 if they come by here at all.  GIL. */
int lp_cuda_answer_for(const void *block);
/* The device that the calling thread has chosen; cudaSetDevice() is followed from then on. */
void lp_cuda_note_device(int device);

#endif
