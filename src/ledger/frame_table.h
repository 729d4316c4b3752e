/* Interned frames: (code object, byte offset) => lp_frame_id, and code object => its frames.
 *
 * The caller holds the lock of the sites.  A frame whose code has died keeps its text and
 * its id, and serves again for a frame that reads the same: code that is compiled over and
 * over does not fill the table. */
#ifndef LP_FRAME_TABLE_H
#define LP_FRAME_TABLE_H

#include "ledger/site.h"  // lp_raw_frame, lp_frame_text

typedef struct lp_frame {
    const void *code;       /* NULL once the code object has died */
    const char *filename;   /* NULL until decoded */
    const char *alike;      /* the same without numbers where code was generated: "<eval_with_key>.3" */
    const char *function;
    uint32_t offset;
    uint32_t lineno;
    lp_frame_id next;       /* of the same code object, 0 at the end */
    uint8_t own;            /* leakprobe's own code */
} lp_frame;

#define LP_FRAME_MAX (1u << 20)

lp_status lp_frames_init_lock_held(const lp_site_resolver *resolver);
/* The id of a frame, 0 if the table is full or memory is out. */
lp_frame_id lp_frames_intern_lock_held(const lp_raw_frame *frame);
const lp_frame *lp_frames_get(lp_frame_id id);
/* 1 if there is a frame of this id. */
int lp_frames_has_lock_held(lp_frame_id id);
/* Decode a frame whose code is alive. */
void lp_frames_decode_lock_held(lp_frame_id id);
/* Decode all frames of a code object and forget its address; 1 if there were any. */
int lp_frames_code_dies_lock_held(const void *code);

#endif
