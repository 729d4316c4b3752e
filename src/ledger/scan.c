/* Owns the asked sites and the places found. Between slices nothing is held that a birth or a death could spoil. */
#include "ledger/scan.h"

#include <string.h>

#include "base/clock.h"           // lp_clock_thread_ns
#include "base/map.h"             // lp_map
#include "base/rawmem.h"          // lp_raw_map
#include "ledger/alive.h"         // lp_alive_now
#include "ledger/epoch.h"         // lp_epoch_steps
#include "ledger/shadow.h"        // lp_shadow_region_at

/* The newest epochs stay one step each when old ones are merged (epoch.c). */
#define SINGLE_EPOCHS 1024
/* Looked at together for being resident, and between two looks at the clock: 2 MB of stamps take 0.2 ms.  Of 16 pages,
 * which was before, the kernel's calls took five times as long as the stamps beside torch. */
#define CHUNK_PAGES 512
/* Passed over together where all are 0. */
#define RUN 8

enum { SITES = LP_SITE_MAX + 1 };

/* A place is 8 bytes: the index of its leaf, and of the stamp in it. */
typedef uint64_t place;
#define PLACE(region, at) ((place)(region) << LP_SHADOW_LEAF_LG | (at))
#define PLACES_IN_BATCH ((size_t)1 << 14)
#define PLACE_REGION(p) ((size_t)((p) >> LP_SHADOW_LEAF_LG))
#define PLACE_AT(p) ((size_t)((p) & (LP_SHADOW_LEAF_STAMPS - 1)))

static struct scan {
    enum { IDLE, RUNNING, COMPLETE } phase;
    uint32_t begun_step;
    size_t region, region_count;   /* leaves that came later hold younger births only */
    size_t at;                     /* the next stamp in the leaf */
    place **places;                /* batches of PLACES_IN_BATCH: none is ever moved */
    size_t place_count, batch_count;
} scan;

static lp_site_id *wanted;         /* site => base site that was asked for, or 0 */

/* ---- which sites ---- */

/* Sites with something alive that count under those that were asked for. */
static void want_all(void) {
    uint32_t count = lp_site_count() + LP_SITE_FIRST;
    for (lp_site_id site = LP_SITE_FIRST; site < count; site++) {
        if (wanted[site] == 0 && lp_alive_now(site) != 0) {
            lp_site_id base = lp_site_base(site);
            wanted[site] = wanted[base] == base ? base : 0;
        }
    }
}

lp_status lp_scan_begin(const lp_site_id *sites, uint32_t count) {
    LP_ASSERT_GIL();
    lp_scan_end();
    wanted = wanted == NULL ? lp_raw_map(SITES * sizeof(*wanted)) : wanted;
    if (wanted == NULL) {
        return LP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (sites[i] == LP_SITE_UNKNOWN || sites[i] > LP_SITE_MAX) {
            return LP_BAD_INPUT;
        }
        wanted[sites[i]] = sites[i];
    }
    want_all();
    scan = (struct scan){.phase = RUNNING, .begun_step = lp_step_now, .region_count = lp_shadow_region_count()};
    return LP_OK;
}

void lp_scan_end(void) {
    if (wanted != NULL) {
        lp_raw_map_discard(wanted, SITES * sizeof(*wanted));
    }
    for (size_t i = 0; i < scan.batch_count; i++) {
        lp_raw_free(scan.places[i]);
    }
    lp_raw_free(scan.places);
    scan = (struct scan){0};
}

uint32_t lp_scan_begun_step(void) { return scan.begun_step; }

/* ---- slices ---- */

/* The first epoch that is not in the result, or 0 if the steps since the scan began share epochs. */
static uint32_t first_young_epoch(void) {
    uint32_t steps = lp_step_now - scan.begun_step;
    return steps < SINGLE_EPOCHS ? lp_epoch_now - steps : 0;
}

static inline int is_asked_for(lp_stamp stamp, uint32_t young_epoch) {
    return LP_STAMP_IS_BIRTH(stamp) && wanted[LP_STAMP_SITE(stamp)] != 0 && LP_STAMP_EPOCH(stamp) < young_epoch;
}

static int add_batch(void) {
    place **grown = lp_raw_realloc(scan.places, (scan.batch_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return LP_NO_MEMORY;
    }
    scan.places = grown;
    scan.places[scan.batch_count] = lp_raw_malloc(PLACES_IN_BATCH * sizeof(place));
    return scan.places[scan.batch_count] == NULL ? LP_NO_MEMORY : (scan.batch_count++, LP_OK);
}

static inline int note_place(size_t at) {
    size_t batch = scan.place_count / PLACES_IN_BATCH;
    if (LP_UNLIKELY(batch == scan.batch_count) && add_batch() != LP_OK) {
        return LP_NO_MEMORY;
    }
    scan.places[batch][scan.place_count++ % PLACES_IN_BATCH] = PLACE(scan.region, at);
    return LP_OK;
}

/* Stamps first..end of a leaf, a multiple of RUN. */
static int visit_stamps(const lp_stamp *stamps, size_t first, size_t end, uint32_t young_epoch) {
    int status = LP_OK;
    for (size_t i = first; i < end && status == LP_OK; i += RUN) {
        lp_stamp any = 0;
        for (size_t k = 0; k < RUN; k++) {
            any |= stamps[i + k];
        }
        for (size_t k = 0; any != 0 && k < RUN && status == LP_OK; k++) {
            status = is_asked_for(stamps[i + k], young_epoch) ? note_place(i + k) : LP_OK;
        }
    }
    return status;
}

/* The pages from scan.at on. */
static int visit_chunk(const lp_shadow_region *region, uint32_t young_epoch) {
    unsigned char resident[CHUNK_PAGES];
    size_t page = lp_shadow_page_stamps(), at = scan.at;
    size_t pages = lp_shadow_resident(region->stamps + at, CHUNK_PAGES, resident);
    int status = LP_OK;
    for (size_t i = 0; i < pages && at + i * page < LP_SHADOW_LEAF_STAMPS && status == LP_OK; i++) {
        if (resident[i] & 1) {
            status = visit_stamps(region->stamps, at + i * page, at + (i + 1) * page, young_epoch);
        }
    }
    scan.at += pages * page;
    return status;
}

int lp_scan_slice(uint64_t budget_ns) {
    LP_ASSERT_GIL();
    if (scan.phase != RUNNING) {
        return scan.phase == COMPLETE ? 1 : LP_NOT_FOUND;
    }
    uint64_t end_ns = lp_clock_thread_ns() + budget_ns;
    uint32_t young_epoch = first_young_epoch();
    if (young_epoch == 0) {
        return LP_LIMIT;
    }
    while (scan.region < scan.region_count) {
        lp_shadow_region region = lp_shadow_region_at(scan.region);
        int status = region.stamps == NULL ? LP_OK : visit_chunk(&region, young_epoch);
        if (status != LP_OK) {
            return status;
        }
        if (region.stamps == NULL || scan.at >= LP_SHADOW_LEAF_STAMPS) {
            scan.region++;
            scan.at = 0;
        }
        if (lp_clock_thread_ns() >= end_ns) {
            break;
        }
    }
    scan.phase = scan.region == scan.region_count ? COMPLETE : RUNNING;
    return scan.phase == COMPLETE;
}

/* ---- the result ---- */

int lp_scan_each(int (*visit)(const lp_scan_place *place, void *arg), void *arg) {
    LP_ASSERT_GIL();
    uint32_t young_epoch = first_young_epoch();
    if (scan.phase != COMPLETE || young_epoch == 0) {
        return scan.phase != COMPLETE ? LP_NOT_FOUND : LP_LIMIT;
    }
    int result = 0;
    for (size_t i = 0; i < scan.place_count && result == 0; i++) {
        place noted = scan.places[i / PLACES_IN_BATCH][i % PLACES_IN_BATCH];
        lp_shadow_region region = lp_shadow_region_at(PLACE_REGION(noted));
        size_t at = PLACE_AT(noted);
        lp_stamp *stamp = &region.stamps[at];
        if (is_asked_for(*stamp, young_epoch)) {
            lp_scan_place found = {region.start + (at << lp_shadow_granule_lg(region.is_small)), region.is_small, stamp,
                                   wanted[LP_STAMP_SITE(*stamp)]};
            result = visit(&found, arg);
        }
    }
    return result;
}

typedef struct counted {
    uint64_t key, count;
} counted;

/* Counts by base site << 12 | epoch. */
typedef struct tally {
    lp_map number;                   /* key => index in of + 1 */
    counted *of;
    size_t capacity;
    uint64_t last_key, last_count;   /* neighbours are often of one site and step: not yet put */
} tally;

static int put_last(tally *t) {
    if (t->last_count == 0) {
        return LP_OK;
    }
    if (t->number.count == t->capacity) {
        size_t capacity = t->capacity == 0 ? 1024 : t->capacity + t->capacity;
        counted *grown = lp_raw_realloc(t->of, capacity * sizeof(*grown));
        if (grown == NULL) {
            return LP_NO_MEMORY;
        }
        t->of = grown;
        t->capacity = capacity;
    }
    uint32_t *number = lp_map_put(&t->number, t->last_key, NULL);
    if (number == NULL) {
        return LP_NO_MEMORY;
    }
    if (*number == 0) {
        *number = (uint32_t)t->number.count;
        t->of[*number - 1] = (counted){t->last_key, 0};
    }
    t->of[*number - 1].count += t->last_count;
    t->last_count = 0;
    return LP_OK;
}

static int count_place(const lp_scan_place *found, void *tally_) {
    tally *t = tally_;
    uint64_t key = (uint64_t)found->site << LP_EPOCH_BITS | LP_STAMP_EPOCH(*found->stamp);
    int status = key == t->last_key ? LP_OK : put_last(t);
    t->last_key = key;
    t->last_count++;
    return status;
}

lp_status lp_scan_rows(lp_scan_row **out_rows, size_t *out_count) {
    tally t = {0};
    lp_status status = (lp_status)lp_scan_each(count_place, &t);
    status = status == LP_OK ? (lp_status)put_last(&t) : status;
    lp_scan_row *rows = status == LP_OK ? lp_raw_malloc((t.number.count + 1) * sizeof(*rows)) : NULL;
    *out_count = rows == NULL ? 0 : t.number.count;
    for (size_t i = 0; i < *out_count; i++) {
        lp_epoch_range steps = lp_epoch_steps((uint32_t)t.of[i].key & LP_EPOCH_MAX);
        lp_site_id site = (lp_site_id)(t.of[i].key >> LP_EPOCH_BITS);
        rows[i] = (lp_scan_row){site, steps.first_step, steps.last_step, t.of[i].count};
    }
    lp_map_fini(&t.number);
    lp_raw_free(t.of);
    *out_rows = rows;
    return status == LP_OK && rows == NULL ? LP_NO_MEMORY : status;
}
