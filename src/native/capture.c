/* Holds the function that reads stacks, and the site of a native caller. Neither takes the GIL. */
#include "native/capture.h"

static lp_site_id native_site(void) { return LP_SITE_NATIVE; }

lp_capture_fn lp_capture_site = native_site;

lp_site_id lp_capture_caller(const void *caller) {
    lp_site_id site = lp_capture_site();
    lp_raw_frame frame = {caller, LP_SITE_NATIVE_CODE};
    return site == LP_SITE_NATIVE ? lp_site_intern(&frame, 1) : site;
}
