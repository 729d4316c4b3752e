/* Cohorts: (medium, site, birth step) => survivors and their bytes.
 *
 * A cohort has a number that stays the same while it has survivors, so that a block points to
 * it and no lookup is needed when the block dies.  The caller holds the lock of the ledger. */
#ifndef LP_COHORT_H
#define LP_COHORT_H

#include "ledger/medium.h"  // lp_medium
#include "ledger/site.h"    // lp_site_id

typedef struct lp_cohort_record {
    uint64_t key;            /* medium, site, step: use the functions below */
    uint64_t bytes;
    uint32_t count;          /* survivors; 0: the record is free */
    uint32_t next_free;
} lp_cohort_record;

enum { LP_COHORT_CHUNK_LG = 10 };

typedef struct lp_cohorts {
    lp_cohort_record **chunks;   /* records[id], in chunks that never move; id 0 is none */
    uint32_t end;                /* ids from here on were never used */
    uint32_t first_free;
    uint32_t *slots;             /* open addressing: key => id */
    size_t mask;
    size_t count;                /* cohorts with survivors */
} lp_cohorts;

static inline lp_cohort_record *lp_cohorts_get(const lp_cohorts *cohorts, uint32_t id) {
    return &cohorts->chunks[id >> LP_COHORT_CHUNK_LG][id & ((1u << LP_COHORT_CHUNK_LG) - 1)];
}

static inline uint64_t lp_cohorts_key(lp_medium medium, lp_site_id site, uint32_t step) {
    return (uint64_t)medium << 52 | (uint64_t)site << 32 | step;
}

static inline lp_medium lp_cohorts_medium(uint64_t key) { return (lp_medium)(key >> 52); }

/* The key without its step: medium and site, whose key it is with step 0. */
static inline uint32_t lp_cohorts_line(uint64_t key) { return (uint32_t)(key >> 32); }

static inline uint64_t lp_cohorts_line_key(uint32_t line) { return (uint64_t)line << 32; }

static inline lp_site_id lp_cohorts_site(uint64_t key) { return (lp_site_id)lp_cohorts_line(key) & LP_SITE_MAX; }

static inline uint32_t lp_cohorts_step(uint64_t key) { return (uint32_t)key; }

/* Count a birth; the id of its cohort, 0 when out of memory. */
uint32_t lp_cohorts_add(lp_cohorts *cohorts, uint64_t key, uint64_t bytes);
/* Count the death of one of its blocks; the cohort goes with its last one. */
void lp_cohorts_remove(lp_cohorts *cohorts, uint32_t id, uint64_t bytes);
/* 1 if the index finds each cohort with survivors, and no other, and the free list has the rest. */
int lp_cohorts_is_valid(const lp_cohorts *cohorts);
/* Forget all cohorts, give the memory back. */
void lp_cohorts_clear(lp_cohorts *cohorts);

#endif
