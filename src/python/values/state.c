/* The one state of the extension: what it keeps of Python's. */
#include "python/values/state.h"

lp_extension_state lp_state;
