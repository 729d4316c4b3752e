/* Owns rows, sorted and each key once from the moment that a snapshot is taken; nothing changes them afterwards. */
#include "snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/rawmem.h"    // lp_raw_malloc
#include "ledger/ledger.h"  // lp_ledger_groups

int lp_snapshot_compare(const lp_row *a, const lp_row *b) {
    if (a->medium != b->medium) {
        return a->medium < b->medium ? -1 : 1;
    }
    if (a->type_id != b->type_id) {
        return a->type_id < b->type_id ? -1 : 1;
    }
    return a->site < b->site ? -1 : a->site > b->site;
}

static int compare_for_qsort(const void *a, const void *b) { return lp_snapshot_compare(a, b); }

static lp_row row_of_group(const lp_group *group) {
    return (lp_row){.count = group->count,
                    .bytes = group->bytes,
                    .site = group->site,
                    .medium = group->medium,
                    .first_step = group->first_step,
                    .last_step = group->last_step};
}

static void join(lp_row *into, const lp_row *row) {
    into->count += row->count;
    into->bytes += row->bytes;
    into->first_step = row->first_step < into->first_step ? row->first_step : into->first_step;
    into->last_step = row->last_step > into->last_step ? row->last_step : into->last_step;
}

/* Sort, and join the rows of each key. */
static void normalise(lp_snapshot *snapshot) {
    size_t kept = 0;
    qsort(snapshot->rows, snapshot->count, sizeof(lp_row), compare_for_qsort);
    for (size_t i = 0; i < snapshot->count; i++) {
        if (kept > 0 && lp_snapshot_compare(&snapshot->rows[kept - 1], &snapshot->rows[i]) == 0) {
            join(&snapshot->rows[kept - 1], &snapshot->rows[i]);
        } else {
            snapshot->rows[kept++] = snapshot->rows[i];
        }
    }
    snapshot->count = kept;
}

lp_status lp_snapshot_take(const lp_row *more_rows, size_t more_count, lp_snapshot *out_snapshot) {
    lp_group *groups = NULL;
    size_t group_count = 0;
    *out_snapshot = (lp_snapshot){NULL, 0};
    lp_status status = lp_ledger_groups(0, UINT32_MAX, &groups, &group_count);
    if (status != LP_OK) {
        return status;
    }
    lp_row *rows = lp_raw_malloc((group_count + more_count + 1) * sizeof(*rows));
    if (rows == NULL) {
        status = LP_NO_MEMORY;
        goto done;
    }
    for (size_t i = 0; i < group_count; i++) {
        rows[i] = row_of_group(&groups[i]);
    }
    if (more_count != 0) {
        memcpy(rows + group_count, more_rows, more_count * sizeof(*rows));
    }
    *out_snapshot = (lp_snapshot){rows, group_count + more_count};
    normalise(out_snapshot);
done:
    lp_raw_free(groups);
    return status;
}

void lp_snapshot_fini(lp_snapshot *snapshot) {
    lp_raw_free(snapshot->rows);
    *snapshot = (lp_snapshot){NULL, 0};
}

lp_status lp_snapshot_check(const lp_snapshot *snapshot) {
    for (size_t i = 1; i < snapshot->count; i++) {
        if (lp_snapshot_compare(&snapshot->rows[i - 1], &snapshot->rows[i]) >= 0) {
            return LP_BAD_INPUT;
        }
    }
    return LP_OK;
}
