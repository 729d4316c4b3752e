/* Allocation sites: interned stacks of code locations.
 *
 * A frame is (code object, byte offset of the instruction); interned, it is a
 * lp_frame_id.  A site is a sequence of frames, innermost first; interned, it is
 * a 19-bit lp_site_id.  Code objects are borrowed and never dereferenced here:
 * when one dies, lp_site_code_dies() turns its frames into text first and frees
 * the address for another code object.
 *
 * All tables are protected by one lock (LP_RANK_SITES), taken inside; no function
 * here calls Python except through the resolver, which must not take the GIL,
 * allocate through hooks or run user code. */
#ifndef LP_SITE_H
#define LP_SITE_H

#include "base/base.h"
#include "ledger/shadow.h"  // LP_SITE_BITS

typedef uint32_t lp_site_id;
typedef uint32_t lp_frame_id;

#define LP_SITE_DEPTH_MAX 1024
#define LP_SITE_MAX ((1u << LP_SITE_BITS) - 1)
enum {
    LP_SITE_UNKNOWN = 0,   /* born before the hooks were installed; never stored in a stamp */
    LP_SITE_NATIVE = 1,    /* no Python frame was running */
    LP_SITE_SELF = 2,      /* leakprobe's own Python objects */
    LP_SITE_RECYCLED = 3,  /* an object of a free list: its line was not seen */
    LP_SITE_OVERFLOW = 4,  /* the site table was full */
    LP_SITE_FIRST = 16
};

/* The offset of a frame whose code is an address of native code. */
#define LP_SITE_NATIVE_CODE UINT32_MAX

typedef struct lp_raw_frame {
    const void *code;      /* borrowed */
    uint32_t offset;       /* byte offset of the running instruction in the code */
} lp_raw_frame;

typedef struct lp_frame_text {
    const char *filename;  /* UTF-8, interned for the life of the process */
    const char *function;  /* qualified name where the version has it */
    uint32_t lineno;       /* 0 if unknown */
} lp_frame_text;

/* Given by src/python: read a code object that is alive.  names are copied by the caller.
 * names: write file and function as UTF-8 (truncated to the buffer, NUL-terminated); line: 0 if it has none. */
typedef struct lp_site_resolver {
    void (*names)(const void *code, uint32_t offset, char *filename, size_t filename_bytes, char *function,
                  size_t function_bytes);
    uint32_t (*line)(const void *code, uint32_t offset);
    int (*is_own)(const void *code);   /* 1 if the code belongs to leakprobe itself */
    int (*may_decode)(void);           /* 1 if this thread may decode now; NULL: always */
    void (*forget)(const void *code);  /* the code dies: nothing is remembered of it; NULL: nothing ever is */
} lp_site_resolver;

/* 1 if every site names frames and a base that exist, children hang in closed chains below their base, and the
 * indices find what they hold.  For tests and assertions. */
int lp_site_is_valid(void);

lp_status lp_site_init(const lp_site_resolver *resolver);

/* The site of a stack, innermost first, cut at LP_SITE_DEPTH_MAX frames.  Frames of leakprobe itself
 * are left out of text and base; if the innermost is one, the site is LP_SITE_SELF.  count 0 gives
 * LP_SITE_NATIVE; a full table LP_SITE_OVERFLOW (counted).  Where three quarters of it are taken, a
 * stack that is new has the site of its innermost frame alone. */
lp_site_id lp_site_intern(const lp_raw_frame *frames, uint32_t count);

/* The same for a whole stack below a suspect: a site whose base is `base`. */
lp_site_id lp_site_intern_child(lp_site_id base, const lp_raw_frame *frames, uint32_t count);

/* The site that counts are kept under.  A child counts under its base; sites that read the same
 * as text count under the first of them: one line of code has several instructions, a specialising
 * interpreter runs a call under one or another, and code that is compiled anew gets new addresses.
 * May decode frames: GIL held. */
lp_site_id lp_site_base(lp_site_id site);
/* The site that a child with a whole stack was made under; the site itself if it is none. */
lp_site_id lp_site_parent(lp_site_id site);
/* Mark a site so that lp_site_is_deep() tells the hook to capture whole stacks from now on, until it has UINT8_MAX
 * children: a line beneath a recursion has a stack of its own for each way there, and would fill the table. */
void lp_site_set_deep(lp_site_id site);
int lp_site_is_deep(lp_site_id site);
/* The child of `base` that was interned first, or 0; and the next one after `child`, or 0. */
lp_site_id lp_site_first_child(lp_site_id base);
lp_site_id lp_site_next_child(lp_site_id child);

/* A code object dies: decode its frames, forget its address.  1 if it had frames. */
int lp_site_code_dies(const void *code);

/* Text of the frames of a site, decoded now if their code is alive (GIL held).
 * Returns the number of frames written, at most max. */
uint32_t lp_site_text(lp_site_id site, lp_frame_text *out_frames, uint32_t max);

uint32_t lp_site_count(void);
/* 1 if a new stack may get the site of its first frame alone. */
int lp_site_is_crowded(void);
uint64_t lp_site_overflow_count(void);
/* Around fork, after lp_ledger_before_fork() and before lp_ledger_after_fork_in_parent(). */
void lp_site_before_fork(void);
void lp_site_after_fork_in_parent(void);
void lp_site_reset_in_child(void);

#endif
