/* Names of native code. */
#ifndef LP_SYMBOLS_H
#define LP_SYMBOLS_H

/* The file of the library at an address, and the exported function; "" where it is not known.  Valid while the library
 * is loaded. */
void lp_symbol_of(const void *address, const char **out_library, const char **out_name);

#endif
