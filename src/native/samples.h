/* Blocks of the allocating functions, sampled by bytes: who made those that are alive.
 *
 * A block of s bytes is taken with probability 1 - exp(-s / mean), and stands for s divided by that: sums over
 * samples are unbiased whatever the sizes (D. G. Horvitz and D. J. Thompson, JASA 1952; as heap profilers do).  A
 * birth at an address that is known ends the sample there: its death was not seen.
 *
 * Any thread may call, with any lock of the program's; nothing is allocated through hooks, and the only locks are this
 * table's and, below it, the site's. */
#ifndef LP_SAMPLES_H
#define LP_SAMPLES_H

#include "base/base.h"
#include "base/sampling.h"  // lp_sampling
#include "ledger/site.h"  // lp_site_id

typedef struct lp_sample {
    uint64_t address;         /* 0: empty */
    uint64_t bytes;           /* of the block; in a copy, those that it stands for */
    uint64_t caller;          /* where the allocating function returned to */
    lp_site_id site;
    uint32_t step;
} lp_sample;

typedef struct lp_samples_counts {
    uint64_t taken, live, missed_deaths, dropped;
} lp_samples_counts;

/* Sample from now on, one in so many bytes; forgets what was there, unless it is on already.  `is_counted`: whether blocks
 * that this caller asked for are; asked only of those that would be taken. */
lp_status lp_samples_begin(uint64_t mean_bytes, int (*is_counted)(const void *caller));
/* Nothing is taken any more, all is forgotten. */
void lp_samples_end(void);
int lp_samples_are_on(void);
/* One in more bytes from now on: as many of those taken so far are dropped as if it had been so from the start. */
void lp_samples_raise_mean(uint64_t mean_bytes);

extern _Atomic uint8_t lp_samples_filter[LP_SAMPLING_FILTER_SLOTS];

/* A block that lp_sampling_is_due() said has to be looked at; NULL too. */
void lp_samples_look(lp_sampling *mine, const void *block, uint64_t bytes, const void *caller);
/* 1, and counts anew, if the count has run out with this block. */
int lp_samples_is_taken(lp_sampling *mine, uint64_t bytes);
void lp_samples_born(const void *block, uint64_t bytes, const void *caller);
/* 1 if what mmap() was asked for, and gave, is new memory: what is mapped over another map, or only to keep addresses
 * free, is none. */
int lp_samples_is_map(const void *block, int protection, int flags);
void lp_samples_mapped(const void *block, uint64_t bytes, int protection, int flags, const void *caller);
/* 1 if a sample was there. */
int lp_samples_died(const void *block);

void lp_samples_count(lp_samples_counts *out_counts);
/* Copy of the live ones; freed with lp_raw_free(). */
lp_status lp_samples_copy(lp_sample **out_samples, size_t *out_count);

/* Around fork, before any other lock is taken and after all are released: nothing is sampled between the two, and no
 * thread waits. */
void lp_samples_before_fork(void);
void lp_samples_after_fork_in_parent(void);
void lp_samples_reset_in_child(void);

#endif
