/* Compares stamps with what a census met. A stamp is erased only where no object can be, never on suspicion. */
#include "python/heap/confirm.h"

#include "base/rawmem.h"          // lp_raw_malloc
#include "ledger/alive.h"         // lp_alive_correct
#include "ledger/scan.h"          // lp_scan_each
#include "python/heap/census_seen.h"   // lp_seen_has
#include "python/births/hooks.h"         // lp_hooks_get_status
#include "python/heap/numbers.h"       // LP_WHOLE_NS
#include "python/heap/untracked.h"     // lp_untracked_object

typedef struct confirmation {
    lp_confirmed *confirmed;
    uint32_t *index;              /* site => index + 1 */
    lp_status status;
} confirmation;

#define INDEX_BYTES (((size_t)LP_SITE_MAX + 1) * sizeof(uint32_t))

static int is_seen(void *unused, uintptr_t address) {
    (void)unused;
    return lp_seen_has(address);
}

static int confirm_place(const lp_scan_place *place, void *confirmation_) {
    const confirmation *c = confirmation_;
    lp_confirmed *site = &c->confirmed[c->index[place->site] - 1];
    if (lp_untracked_has_known(place->start, place->is_small, is_seen, NULL)) {
        site->met++;
    } else if (lp_untracked_object(place->start, place->is_small, is_seen, NULL) != NULL) {
        site->unreached++;
    } else {
        /* A bytearray's buffer is a block of the object allocator too: it dies with its owner. */
        if (lp_hooks_get_status()->mode != LP_BIRTH_BY_BLOCK) {
            lp_alive_correct(place->stamp, 0);
        }
        site->corrected++;
    }
    return 0;
}

static void confirm_places(void *confirmation_) {
    confirmation *c = confirmation_;
    c->status = (lp_status)lp_scan_each(confirm_place, c);
}

static lp_status scan_all(const lp_confirmed *confirmed, uint32_t count) {
    lp_site_id *sites = lp_raw_malloc((count + 1) * sizeof(*sites));
    if (sites == NULL) {
        return LP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        sites[i] = confirmed[i].site;
    }
    int status = lp_scan_begin(sites, count);
    lp_raw_free(sites);
    while (status == LP_OK) {
        status = lp_scan_slice(LP_WHOLE_NS);
    }
    return status > 0 ? LP_OK : (lp_status)status;
}

lp_status lp_confirm(PyTypeObject *own_type, lp_confirmed *confirmed, uint32_t count, lp_census **out_census) {
    confirmation c = {confirmed, lp_raw_map(INDEX_BYTES), LP_OK};
    lp_status status = c.index == NULL ? LP_NO_MEMORY : scan_all(confirmed, count);
    for (uint32_t i = 0; status == LP_OK && i < count; i++) {
        c.index[confirmed[i].site] = i + 1;
    }
    if (status == LP_OK) {
        status = lp_census_meet(own_type, confirm_places, &c, out_census);
    }
    if (status == LP_OK && c.status != LP_OK) {
        lp_census_free(*out_census);
    }
    lp_scan_end();
    if (c.index != NULL) {
        lp_raw_unmap(c.index, INDEX_BYTES);
    }
    return status == LP_OK ? c.status : status;
}
