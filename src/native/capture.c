#include "native/capture.h"

static lp_site_id native_site(void) { return LP_SITE_NATIVE; }

lp_capture_fn lp_capture_site = native_site;
