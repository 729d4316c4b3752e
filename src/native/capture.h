/* How a native hook learns the Python stack of an allocation: a function that
 * src/python installs.  It is called without the GIL on any thread, takes no lock
 * but the ledger's, and never calls Python. */
#ifndef LP_CAPTURE_H
#define LP_CAPTURE_H

#include "ledger/site.h"  // lp_site_id

typedef lp_site_id (*lp_capture_fn)(void);

/* LP_SITE_NATIVE until src/python sets one. */
extern lp_capture_fn lp_capture_site;

/* The same for an allocation that `caller` asked for; of a thread without Python, the site is that native code. */
lp_site_id lp_capture_caller(const void *caller);

#endif
