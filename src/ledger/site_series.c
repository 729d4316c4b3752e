#include "ledger/site_series.h"

#include <string.h>

#include "base/rawmem.h"   // lp_raw_map
#include "ledger/alive.h"  // lp_alive

/* Sites that share the rows. */
#define MEMBERS_MAX 65536
/* A row that is new decodes its site's lines: so many in one mark. */
#define NEW_ROWS_A_MARK 64

typedef struct member {
    lp_site_id site;
    uint32_t row;
} member;

typedef struct row {
    lp_site_id site;
    uint32_t live, births;        /* sums over its members, as of the last mark */
    uint32_t births_before;       /* as the open span began */
    uint32_t low, high;           /* of the open span */
    uint32_t least;               /* the lowest `low` of a closed span */
    uint32_t is_at_least;         /* the last closed span has it */
} row;

#define SITES ((size_t)LP_SITE_MAX + 1)

static uint32_t *seen_births;     /* site => births as of the last mark */
static uint16_t *row_of;          /* site => row + 1, or 0 */
static member *members;
static uint32_t member_count;
static row *rows;
static lp_series_span *spans;     /* [span][row] */
static lp_series_state state;

static lp_series_span *span_at(uint32_t span) { return spans + (size_t)span * LP_SERIES_ROWS; }

lp_status lp_series_init(void) {
    if (spans == NULL) {
        seen_births = lp_raw_map(SITES * sizeof(*seen_births));
        row_of = lp_raw_map(SITES * sizeof(*row_of));
        members = lp_raw_map(MEMBERS_MAX * sizeof(*members));
        rows = lp_raw_map(LP_SERIES_ROWS * sizeof(*rows));
        spans = lp_raw_map((size_t)LP_SERIES_SPANS * LP_SERIES_ROWS * sizeof(*spans));
    }
    int has_all = seen_births != NULL && row_of != NULL && members != NULL && rows != NULL && spans != NULL;
    return has_all ? LP_OK : LP_NO_MEMORY;
}

void lp_series_reset(uint32_t first_step) {
    if (spans == NULL) {
        return;
    }
    lp_raw_map_discard(seen_births, SITES * sizeof(*seen_births));
    lp_raw_map_discard(row_of, SITES * sizeof(*row_of));
    lp_raw_map_discard(rows, LP_SERIES_ROWS * sizeof(*rows));
    lp_raw_map_discard(spans, (size_t)LP_SERIES_SPANS * LP_SERIES_ROWS * sizeof(*spans));
    member_count = 0;
    state = (lp_series_state){.first_step = first_step, .width = 1, .row_count = 1};
    rows[LP_SERIES_OVERFLOW_ROW] = (row){.site = LP_SITE_OVERFLOW, .low = UINT32_MAX};
}

/* ---- which sites have a row ---- */

/* What was alive of a site before it joined was alive in all spans before. */
static void add_to_history(uint32_t at, uint32_t before) {
    for (uint32_t i = 0; i < state.closed && before != 0; i++) {
        span_at(i)[at].low += before;
        span_at(i)[at].high += before;
    }
    rows[at].low += state.open_steps == 0 ? 0 : before;
    rows[at].high += before;
    rows[at].least += before;
}

static void join(lp_site_id site, uint32_t at) {
    if (member_count == MEMBERS_MAX || row_of[site] != 0) {
        return;
    }
    members[member_count++] = (member){site, at};
    row_of[site] = (uint16_t)(at + 1);
    uint32_t before = seen_births[site], live = lp_alive_now(site), fresh = lp_alive[site].births - before;
    rows[at].births_before += before;
    rows[at].births += before;
    add_to_history(at, live > fresh ? live - fresh : 0);
}

static uint32_t add_row(lp_site_id site) {
    if (state.row_count == LP_SERIES_ROWS) {
        state.overflow_sites++;
        return LP_SERIES_OVERFLOW_ROW;
    }
    rows[state.row_count] = (row){.site = site, .low = state.open_steps == 0 ? UINT32_MAX : 0};
    return state.row_count++;
}

static void give_row(lp_site_id site) {
    lp_site_id base = lp_site_base(site);
    if (row_of[base] == 0) {
        join(base, add_row(base));
    }
    join(site, row_of[base] == 0 ? LP_SERIES_OVERFLOW_ROW : row_of[base] - 1u);
}

static void find_new_members(void) {
    uint32_t count = lp_site_count() + LP_SITE_FIRST, given = 0;
    for (lp_site_id site = LP_SITE_NATIVE; site < count; site++) {
        uint32_t births = lp_alive[site].births;
        if (LP_LIKELY(births == seen_births[site])) {
            continue;
        }
        if (row_of[site] == 0 && seen_births[site] != 0 && lp_alive_now(site) != 0 && site != LP_SITE_SELF) {
            if (given++ >= NEW_ROWS_A_MARK) {
                continue;   /* as if its births were of the next step */
            }
            give_row(site);
        }
        seen_births[site] = births;
    }
}

/* ---- marks ---- */

static void sum_members(void) {
    for (uint32_t i = 0; i < state.row_count; i++) {
        rows[i].live = rows[i].births = 0;
    }
    for (uint32_t i = 0; i < member_count; i++) {
        row *r = &rows[members[i].row];
        lp_alive_count count = lp_alive[members[i].site];
        r->live += count.births - count.deaths;
        r->births += count.births;
    }
}

static void join_pairs(void) {
    for (uint32_t i = 0; i < LP_SERIES_SPANS / 2; i++) {
        lp_series_span *to = span_at(i), *left = span_at(2 * i), *right = span_at(2 * i + 1);
        for (uint32_t r = 0; r < state.row_count; r++) {
            to[r].low = left[r].low < right[r].low ? left[r].low : right[r].low;
            to[r].high = left[r].high > right[r].high ? left[r].high : right[r].high;
            to[r].births = left[r].births + right[r].births;
        }
    }
    state.closed = LP_SERIES_SPANS / 2;
    state.width *= 2;
}

static void close_span(void) {
    lp_series_span *to = span_at(state.closed);
    for (uint32_t i = 0; i < state.row_count; i++) {
        row *r = &rows[i];
        to[i] = (lp_series_span){r->low, r->high, r->births - r->births_before};
        r->is_at_least = state.closed == 0 || r->low <= r->least;
        r->least = r->is_at_least ? r->low : r->least;
        r->births_before = r->births;
        r->low = UINT32_MAX, r->high = 0;
    }
    state.open_steps = 0;
    if (++state.closed == LP_SERIES_SPANS) {
        join_pairs();
    }
}

void lp_series_mark(void) {
    if (spans == NULL || state.width == 0) {
        return;
    }
    find_new_members();
    sum_members();
    for (uint32_t i = 0; i < state.row_count; i++) {
        row *r = &rows[i];
        r->low = r->live < r->low ? r->live : r->low;
        r->high = r->live > r->high ? r->live : r->high;
    }
    if (++state.open_steps == state.width) {
        close_span();
    }
}

/* ---- reading ---- */

lp_series_state lp_series_get_state(void) { return state; }

int lp_series_find(lp_site_id site) {
    return spans == NULL || site > LP_SITE_MAX || row_of[site] == 0 ? -1 : (int)row_of[site] - 1;
}

lp_series_row lp_series_get_row(uint32_t at) {
    return (lp_series_row){rows[at].site, rows[at].live, rows[at].births, 0};
}

static lp_series_span read_span(uint32_t at, uint32_t span) {
    if (span < state.closed) {
        return span_at(span)[at];
    }
    return (lp_series_span){rows[at].low, rows[at].high, rows[at].births - rows[at].births_before};
}

uint32_t lp_series_read(uint32_t at, lp_series_span out_spans[LP_SERIES_SPANS]) {
    uint32_t count = state.closed + (state.open_steps != 0);
    for (uint32_t i = 0; i < count; i++) {
        out_spans[i] = read_span(at, i);
    }
    return count;
}

/* The first span that begins at a step or later. */
static uint32_t span_since(uint32_t step) {
    uint32_t steps = step > state.first_step ? step - state.first_step : 0;
    return (steps + state.width - 1) / state.width;
}

static uint32_t count_rises(uint32_t at, uint32_t first_span) {
    uint32_t rises = 0, floor = UINT32_MAX;
    for (uint32_t i = state.closed + (state.open_steps != 0); i-- > first_span;) {
        uint32_t low = read_span(at, i).low;
        rises += floor != UINT32_MAX && low < floor;
        floor = low < floor ? low : floor;
    }
    return rises;
}

uint32_t lp_series_rising(uint32_t since_step, uint32_t min_rises, lp_series_row *out_rows, uint32_t max) {
    uint32_t written = 0, first_span = state.width == 0 ? 0 : span_since(since_step);
    for (uint32_t i = 0; i < state.row_count && written < max; i++) {
        const row *r = &rows[i];
        int is_level =
            r->live == 0 || (state.open_steps != 0 && r->low <= r->least) || (state.open_steps == 0 && r->is_at_least);
        uint32_t rises = is_level ? 0 : count_rises(i, first_span);
        if (!is_level && rises >= min_rises) {
            out_rows[written] = lp_series_get_row(i);
            out_rows[written++].rises = rises;
        }
    }
    return written;
}
