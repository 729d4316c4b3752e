/* Live counts of each site, and of each line of native blocks, over the run: at most 64 spans of equal
 * width, each with the lowest and the highest count at a mark, and the births in it.
 *
 * The width is a power of two of steps, and doubles whenever the spans run out: neighbours are joined.
 * What read the same as text, and children with whole stacks, are one row, under lp_site_base().
 *
 * A site has a row once it has had births in two steps and something of it is alive: what is born and dies
 * between two marks, or all at once, can't grow.  A child of a site with a row joins at once.  Rows beyond
 * LP_SERIES_ROWS join row 0.
 * A line is known by its number in the ledger, behind the sites: LP_ALIVE_SITES + lp_ledger_line().
 * The GIL protects all of it. */
#ifndef LP_SITE_SERIES_H
#define LP_SITE_SERIES_H

#include "ledger/numbers.h"  // LP_SERIES_SPANS
#include "ledger/site.h" // lp_site_id

#define LP_SERIES_OVERFLOW_ROW 0

typedef struct lp_series_span {
    uint32_t low, high, births;
} lp_series_span;

typedef struct lp_series_state {
    uint32_t first_step; /* of the first span */
    uint32_t width; /* steps of a closed span */
    uint32_t closed; /* spans that are full, 0 to LP_SERIES_SPANS - 1 */
    uint32_t open_steps; /* marks in the span that is open now */
    uint32_t row_count; /* rows in use, row 0 too */
    uint64_t overflow_sites; /* sites that share row 0 */
} lp_series_state;

typedef struct lp_series_row {
    lp_site_id site; /* LP_SITE_OVERFLOW for row 0 */
    uint32_t live; /* as of the last mark */
    uint32_t births; /* in all */
    uint32_t rises; /* of the floor, where lp_series_rising() counted them */
} lp_series_row;

lp_status lp_series_init(void);
/* Begin anew; the next span begins with the step `first_step`.  Counts of ledger/alive.h are 0. */
void lp_series_reset(uint32_t first_step);
/* After `step` steps the spans are of one step again, if they are wider by then: those of a warm-up are not judged, and
 * a long one would leave few for what comes after it. */
void lp_series_begin_at(uint32_t step);
/* 1 if the step that ends now is the last of its span. */
int lp_series_ends_span(void);
/* The step ends: read the counts; if they are not exact, some of what died is counted still, and they are no peak.  May
 * decode the frames of sites that get a row. */
void lp_series_mark(int is_exact);
lp_series_state lp_series_get_state(void);

/* 1 if each row and each member is found by its site, and no count of a row is beyond its bounds. */
int lp_series_is_valid(void);

/* The row of a site or line, or -1. */
int lp_series_find(lp_site_id site);
lp_series_row lp_series_get_row(uint32_t row);
/* The spans of a row, the open one last; how many there are. */
uint32_t lp_series_read(uint32_t row, lp_series_span out_spans[LP_SERIES_SPANS]);

/* Rows of sites whose floor rose at least min_rises times since a step: the floor at a span is the lowest count
 * from it on, so that it rises only by what was never given back.  Returns how many were written. */
uint32_t lp_series_rising(uint32_t since_step, uint32_t min_rises, lp_series_row *out_rows, uint32_t max);

#endif
