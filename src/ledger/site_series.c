/* Owns spans and rows. All rows have the same spans, and the births of a row's spans add up to those of its
 * sites. */
#include "ledger/site_series.h"

#include <string.h>

#include "base/rawmem.h"   // lp_raw_map
#include "ledger/alive.h"  // lp_alive
#include "ledger/epoch.h"  // lp_step_now
#include "ledger/ledger.h"  // lp_ledger_read_lines

typedef struct member {
    lp_site_id site;
    uint32_t row;
} member;

#define ALL ((size_t)LP_ALIVE_COUNT)   /* sites, and behind them lines of native blocks */

/* What every mark reads, apart from what only the end of a span does. */
static struct {
    uint32_t live[LP_SERIES_ROWS];           /* as of the last mark */
    uint32_t low[LP_SERIES_ROWS], high[LP_SERIES_ROWS];   /* of the open span */
    lp_site_id site[LP_SERIES_ROWS];
    uint32_t births_before[LP_SERIES_ROWS];  /* as the open span began */
    uint32_t least[LP_SERIES_ROWS];          /* the lowest `low` of a closed span */
    uint8_t is_at_least[LP_SERIES_ROWS];     /* the last closed span has it */
} *rows;

static struct {
    uint32_t *seen_births;  /* site => births as of the end of the last span */
    uint16_t *row_of;  /* site => row + 1, or 0 */
    member *more;
    uint32_t more_count;
    lp_series_span *spans;  /* [span][row] */
    lp_series_state state;
    uint32_t begins_at;  /* the step from which on the spans are to be as narrow as can be */
} series;

static lp_series_span *span_at(uint32_t span) { return series.spans + (size_t)span * LP_SERIES_ROWS; }

/* The map, made if there is none yet: also after one of the others could not be made. */
static void *made(void *map, size_t bytes) { return map != NULL ? map : lp_raw_map(bytes); }

static int has_all(void) {
    return series.seen_births != NULL && series.row_of != NULL && series.more != NULL && rows != NULL &&
           series.spans != NULL;
}

lp_status lp_series_init(void) {
    series.seen_births = made(series.seen_births, ALL * sizeof(*series.seen_births));
    series.row_of = made(series.row_of, ALL * sizeof(*series.row_of));
    series.more = made(series.more, LP_SERIES_MORE * sizeof(*series.more));
    rows = made(rows, sizeof(*rows));
    series.spans = made(series.spans, (size_t)LP_SERIES_SPANS * LP_SERIES_ROWS * sizeof(*series.spans));
    return has_all() ? LP_OK : LP_NO_MEMORY;
}

void lp_series_reset(uint32_t first_step) {
    LP_ASSERT_GIL();
    if (!has_all()) {
        return;
    }
    lp_raw_map_discard(series.seen_births, ALL * sizeof(*series.seen_births));
    lp_raw_map_discard(series.row_of, ALL * sizeof(*series.row_of));
    lp_raw_map_discard(rows, sizeof(*rows));
    lp_raw_map_discard(series.spans, (size_t)LP_SERIES_SPANS * LP_SERIES_ROWS * sizeof(*series.spans));
    series.more_count = 0;
    series.state = (lp_series_state){.first_step = first_step, .width = 1, .row_count = 1};
    rows->site[LP_SERIES_OVERFLOW_ROW] = LP_SITE_OVERFLOW;
    rows->low[LP_SERIES_OVERFLOW_ROW] = UINT32_MAX;
    series.row_of[LP_SITE_OVERFLOW] = LP_SERIES_OVERFLOW_ROW + 1;
}

/* ---- which sites have a row ---- */

/* What was alive of a site before it joined was alive in all spans before. */
static void add_to_history(lp_site_id site, uint32_t at) {
    uint32_t live = lp_alive_now(site), fresh = lp_alive[site].births - series.seen_births[site];
    uint32_t before = live > fresh ? live - fresh : 0;
    for (uint32_t i = 0; i < series.state.closed && before != 0; i++) {
        span_at(i)[at].low += before;
        span_at(i)[at].high += before;
    }
    rows->least[at] += before;
    rows->births_before[at] += series.seen_births[site];
}

static int add_row(lp_site_id site) {
    if (series.state.row_count == LP_SERIES_ROWS) {
        return -1;
    }
    uint32_t at = series.state.row_count++;
    rows->site[at] = site;
    rows->low[at] = UINT32_MAX;
    series.row_of[site] = (uint16_t)(at + 1);
    add_to_history(site, at);
    return 0;
}

static void add_to_row(lp_site_id site, uint32_t at) {
    if (series.more_count < LP_SERIES_MORE) {
        series.more[series.more_count++] = (member){site, at};
        series.row_of[site] = (uint16_t)(at + 1);
        add_to_history(site, at);
    }
}

static uint32_t base_of(uint32_t site) {
    if (site < LP_ALIVE_SITES) {
        return lp_site_base(site);
    }
    return LP_ALIVE_SITES + lp_ledger_base_line(site - LP_ALIVE_SITES);
}

static void give_row(uint32_t site) {
    uint32_t base = base_of(site);
    if (series.row_of[base] == 0 && add_row(base) < 0) {
        series.state.overflow_sites++;
        add_to_row(base, LP_SERIES_OVERFLOW_ROW);
    }
    if (series.row_of[site] == 0 && series.row_of[base] != 0) {
        add_to_row(site, series.row_of[base] - 1u);
    }
}

/* 1 if another site has the row of this one, which is found without decoding it. */
static int belongs_to_row(uint32_t site) {
    uint32_t base = site < LP_ALIVE_SITES ? lp_site_parent(site) : base_of(site);
    return base != site && series.row_of[base] != 0;
}

static int is_due(uint32_t site) {
    if (series.row_of[site] != 0 || lp_alive_now(site) == 0 || site == LP_SITE_SELF) {
        return 0;
    }
    return series.seen_births[site] != 0 || belongs_to_row(site);
}

/* What is new gets a row where that is due, while there is room for it now. */
static void see_births(uint32_t site, uint32_t *given) {
    uint32_t births = lp_alive[site].births;
    if (LP_LIKELY(births == series.seen_births[site])) {
        return;
    }
    if (is_due(site)) {
        if ((*given)++ >= LP_SERIES_NEW_ROWS) {
            return;   /* as if its births were of the next span */
        }
        give_row(site);
    }
    series.seen_births[site] = births;
}

/* As a span begins: what happens until the next one is as if it were of its first step. */
static void find_new_members(uint32_t line_count) {
    uint32_t count = lp_site_count() + LP_SITE_FIRST, given = 0;
    for (lp_site_id site = LP_SITE_NATIVE; site < count; site++) {
        see_births(site, &given);
    }
    for (uint32_t line = 0; line < line_count; line++) {
        see_births(LP_ALIVE_SITES + line, &given);
    }
}

/* ---- marks ---- */

static void count_live(uint32_t out_live[LP_SERIES_ROWS]) {
    for (uint32_t i = 0; i < series.state.row_count; i++) {
        out_live[i] = lp_alive_now(rows->site[i]);
    }
    for (uint32_t i = 0; i < series.more_count; i++) {
        out_live[series.more[i].row] += lp_alive_now(series.more[i].site);
    }
}

static void read_live(int is_exact) {
    count_live(rows->live);
    for (uint32_t i = 0; i < series.state.row_count; i++) {
        uint32_t live = rows->live[i];
        rows->low[i] = live < rows->low[i] ? live : rows->low[i];
        rows->high[i] = is_exact && live > rows->high[i] ? live : rows->high[i];
    }
}

static uint32_t births_of(uint32_t at) {
    uint32_t births = lp_alive[rows->site[at]].births;
    for (uint32_t i = 0; i < series.more_count; i++) {
        births += series.more[i].row == at ? lp_alive[series.more[i].site].births : 0;
    }
    return births;
}

static void join_pairs(void) {
    for (uint32_t i = 0; i < LP_SERIES_SPANS / LP_SERIES_JOINED; i++) {
        lp_series_span *to = span_at(i), *left = span_at(LP_SERIES_JOINED * i), *right = left + LP_SERIES_ROWS;
        for (uint32_t r = 0; r < series.state.row_count; r++) {
            to[r].low = left[r].low < right[r].low ? left[r].low : right[r].low;
            to[r].high = left[r].high > right[r].high ? left[r].high : right[r].high;
            to[r].births = left[r].births + right[r].births;
        }
    }
    series.state.closed = LP_SERIES_SPANS / LP_SERIES_JOINED;
    series.state.width *= LP_SERIES_JOINED;
}

static void close_births(lp_series_span *to) {
    for (uint32_t i = 0; i < series.state.row_count; i++) {
        to[i].births = lp_alive[rows->site[i]].births;
    }
    for (uint32_t i = 0; i < series.more_count; i++) {
        to[series.more[i].row].births += lp_alive[series.more[i].site].births;
    }
    for (uint32_t i = 0; i < series.state.row_count; i++) {
        uint32_t births = to[i].births;
        to[i].births = births - rows->births_before[i];
        rows->births_before[i] = births;
    }
}

static void close_span(void) {
    lp_series_span *to = span_at(series.state.closed);
    for (uint32_t i = 0; i < series.state.row_count; i++) {
        uint32_t low = rows->low[i];
        to[i].low = low, to[i].high = rows->high[i];
        rows->is_at_least[i] = series.state.closed == 0 || low <= rows->least[i];
        rows->least[i] = rows->is_at_least[i] ? low : rows->least[i];
        rows->low[i] = UINT32_MAX, rows->high[i] = 0;
    }
    close_births(to);
    series.state.open_steps = 0;
    if (++series.state.closed == LP_SERIES_SPANS) {
        join_pairs();
    }
}

/* The rows stay, and so does what was alive; the spans are of no step before. */
static void begin_anew(uint32_t first_step) {
    uint32_t row_count = series.state.row_count;
    for (uint32_t i = 0; i < row_count; i++) {
        rows->low[i] = UINT32_MAX, rows->high[i] = 0;
        rows->least[i] = 0, rows->is_at_least[i] = 1;
        rows->births_before[i] = births_of(i);
    }
    uint64_t overflow_sites = series.state.overflow_sites;
    series.state = (lp_series_state){
        .first_step = first_step, .width = 1, .row_count = row_count, .overflow_sites = overflow_sites};
}

void lp_series_begin_at(uint32_t step) {
    LP_ASSERT_GIL();
    series.begins_at = step;
}

int lp_series_ends_span(void) { return series.spans != NULL && series.state.open_steps + 1 == series.state.width; }

void lp_series_mark(int is_exact) {
    LP_ASSERT_GIL();
    if (series.spans == NULL || series.state.width == 0) {
        return;
    }
    lp_alive_settle();
    uint32_t line_count = lp_ledger_read_lines(lp_alive + LP_ALIVE_SITES);
    if (series.state.open_steps == 0) {
        find_new_members(line_count);
    }
    read_live(is_exact);
    if (++series.state.open_steps == series.state.width) {
        close_span();
    }
    if (series.begins_at == lp_step_now + 1 && series.state.width > 1) {
        begin_anew(series.begins_at);
    }
}

/* ---- reading ---- */

lp_series_state lp_series_get_state(void) { return series.state; }

int lp_series_find(lp_site_id site) {
    return series.spans == NULL || site >= LP_ALIVE_COUNT || series.row_of[site] == 0 ? -1
                                                                                      : (int)series.row_of[site] - 1;
}

lp_series_row lp_series_get_row(uint32_t at) {
    lp_alive_settle();
    return (lp_series_row){rows->site[at], rows->live[at], births_of(at), 0};
}

static lp_series_span read_span(uint32_t at, uint32_t span) {
    if (span < series.state.closed) {
        return span_at(span)[at];
    }
    return (lp_series_span){rows->low[at], rows->high[at], births_of(at) - rows->births_before[at]};
}

uint32_t lp_series_read(uint32_t at, lp_series_span out_spans[LP_SERIES_SPANS]) {
    lp_alive_settle();
    uint32_t count = series.state.closed + (series.state.open_steps != 0);
    for (uint32_t i = 0; i < count; i++) {
        out_spans[i] = read_span(at, i);
    }
    return count;
}

/* The first span that begins at a step or later. */
static uint32_t span_since(uint32_t step) {
    uint32_t steps = step > series.state.first_step ? step - series.state.first_step : 0;
    return (steps + series.state.width - 1) / series.state.width;
}

static int may_rise(uint32_t at) {
    int is_level = series.state.open_steps != 0 ? rows->low[at] <= rows->least[at] : rows->is_at_least[at];
    return rows->live[at] != 0 && !is_level;
}

typedef struct candidate {
    uint32_t row, floor, rises;
} candidate;

/* From the last span to the first: neighbouring rows of a span lie side by side. */
static void count_rises(candidate *candidates, uint32_t count, uint32_t first_span) {
    for (uint32_t i = series.state.closed; i-- > first_span;) {
        const lp_series_span *span = span_at(i);
        for (uint32_t k = 0; k < count; k++) {
            candidate *c = &candidates[k];
            uint32_t low = span[c->row].low;
            c->rises += low < c->floor;
            c->floor = low < c->floor ? low : c->floor;
        }
    }
}

uint32_t lp_series_rising(uint32_t since_step, uint32_t min_rises, lp_series_row *out_rows, uint32_t max) {
    lp_alive_settle();
    static candidate candidates[LP_SERIES_ROWS];
    static uint32_t now[LP_SERIES_ROWS];  /* some may have died since the mark */
    uint32_t count = 0, written = 0, last = series.state.closed == 0 ? 0 : series.state.closed - 1;
    count_live(now);
    for (uint32_t i = 0; i < series.state.row_count; i++) {
        if (rows->site[i] < LP_ALIVE_SITES && may_rise(i)) {
            uint32_t floor = series.state.open_steps != 0 ? rows->low[i] : span_at(last)[i].low;
            candidates[count++] = (candidate){i, now[i] < floor ? now[i] : floor, 0};
        }
    }
    count_rises(candidates, count, series.state.width == 0 ? 0 : span_since(since_step));
    for (uint32_t i = 0; i < count && written < max; i++) {
        if (candidates[i].rises >= min_rises) {
            out_rows[written] = lp_series_get_row(candidates[i].row);
            out_rows[written++].rises = candidates[i].rises;
        }
    }
    return written;
}

/* ---- proof ---- */

static int is_row_valid(uint32_t at) {
    int is_open = series.state.open_steps != 0;
    if (series.row_of[rows->site[at]] != at + 1 || (is_open && rows->low[at] > rows->high[at])) {
        return 0;
    }
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < series.state.closed; i++) {
        const lp_series_span *span = &span_at(i)[at];
        least = span->low < least ? span->low : least;
        if (span->low > span->high) {
            return 0;
        }
    }
    return series.state.closed == 0 || rows->least[at] <= least;
}

int lp_series_is_valid(void) {
    if (series.spans == NULL || series.state.width == 0) {
        return 1;
    }
    if (series.state.closed >= LP_SERIES_SPANS || series.state.open_steps >= series.state.width ||
        series.state.row_count > LP_SERIES_ROWS) {
        return 0;
    }
    for (uint32_t i = 0; i < series.state.row_count; i++) {
        if (!is_row_valid(i)) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < series.more_count; i++) {
        if (series.more[i].row >= series.state.row_count ||
            series.row_of[series.more[i].site] != series.more[i].row + 1) {
            return 0;
        }
    }
    return 1;
}
