/* Merges two sorted lists of rows. A key appears once, with both sides. */
#include "snapshot/diff.h"

#include "base/rawmem.h"  // lp_raw_realloc

typedef struct rows_out {
    lp_diff_row *rows;
    size_t count, capacity;
} rows_out;

static lp_status grow(rows_out *out) {
    size_t capacity = out->capacity == 0 ? 256 : out->capacity * 2;
    lp_diff_row *rows = lp_raw_realloc(out->rows, capacity * sizeof(*rows));
    if (rows == NULL) {
        return LP_NO_MEMORY;
    }
    out->rows = rows;
    out->capacity = capacity;
    return LP_OK;
}

/* One key; either row may be missing.  Nothing is added where nothing differs. */
static lp_status add(rows_out *out, const lp_row *older, const lp_row *newer) {
    const lp_row *key = newer != NULL ? newer : older;
    lp_diff_row row = {.type_id = key->type_id, .site = key->site, .medium = key->medium};
    row.count_diff = (int64_t)((newer != NULL ? newer->count : 0) - (older != NULL ? older->count : 0));
    row.size_diff = (int64_t)((newer != NULL ? newer->bytes : 0) - (older != NULL ? older->bytes : 0));
    if (row.count_diff == 0 && row.size_diff == 0) {
        return LP_OK;
    }
    if (out->count == out->capacity && grow(out) != LP_OK) {
        return LP_NO_MEMORY;
    }
    out->rows[out->count++] = row;
    return LP_OK;
}

lp_status lp_diff(const lp_snapshot *older, const lp_snapshot *newer, lp_diff_row **out_rows, size_t *out_count) {
    rows_out out = {NULL, 0, 0};
    lp_status status = grow(&out);
    size_t i = 0, j = 0;
    while (status == LP_OK && (i < older->count || j < newer->count)) {
        int order = i == older->count   ? 1
                    : j == newer->count ? -1
                                        : lp_snapshot_compare(&older->rows[i], &newer->rows[j]);
        status = add(&out, order <= 0 ? &older->rows[i] : NULL, order >= 0 ? &newer->rows[j] : NULL);
        i += order <= 0;
        j += order >= 0;
    }
    if (status != LP_OK) {
        lp_raw_free(out.rows);
        out = (rows_out){NULL, 0, 0};
    }
    *out_rows = out.rows;
    *out_count = out.count;
    return status;
}
