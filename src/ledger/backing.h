/* The largest block that each site ever made or grew: objects, and backing blocks of containers.
 *
 * Live counts do not show a container that is filled with what lived before (`flags.append(True)`): nothing is
 * born but a larger block in place of a smaller one.  Where a block larger than all before comes again and
 * again, a container of that line may grow without end; a walk of the heap tells.  Only blocks that
 * pymalloc leaves to malloc, of more than 512 bytes, are noted: their call is dear enough to hide it.
 * GIL. */
#ifndef LP_BACKING_H
#define LP_BACKING_H

#include "ledger/numbers.h"  // LP_BACKING_SITES
#include "ledger/site.h"  // lp_site_id

typedef struct lp_backing {
    lp_site_id site;          /* as it was stamped: readers join what has one lp_site_base() */
    lp_site_id family;        /* the same of all lines that extended one another's blocks; 0: none did */
    uint64_t bytes;           /* the largest block */
    uint64_t first_bytes;     /* the largest of its first step */
    uint32_t first_step, last_step;   /* of the records */
    uint32_t record_steps;    /* steps in which one was set */
    uint32_t extended_steps;  /* of these: by a block of an earlier step that was extended */
    uint32_t extended_step;   /* the last of them */
} lp_backing;

/* Where a table of LP_BACKING_SLOTS begins to look for a site. */
static inline uint32_t lp_backing_first_slot(lp_site_id site) {
    return (site * LP_BACKING_HASH_FACTOR >> LP_BACKING_HASH_SHIFT) % LP_BACKING_SLOTS;
}

/* A block of so many bytes at a site, now. */
void lp_backing_note(lp_site_id site, uint64_t bytes);
/* The record that was just set, if it was, is of a block of an earlier step with its content. */
void lp_backing_note_extended(lp_site_id site);
/* A site extended a block of an earlier step that another made or extended last: what they grow is one thing. */
void lp_backing_join(lp_site_id site, lp_site_id earlier);
uint32_t lp_backing_count(void);
lp_backing lp_backing_at(uint32_t i);
/* The last step in which a site found no room, as all others still grew; -1: none.  It comes back with its next
 * record, if there is room then. */
int64_t lp_backing_dropped_at(void);
void lp_backing_reset(void);
/* 1 if each record is found by its site, and no other one is. */
int lp_backing_is_valid(void);

#endif
