/* A library that imports a function in three ways: a call (JUMP_SLOT, or GLOB_DAT with -fno-plt), a table of
 * constants (ABS64 in a part that the loader makes read-only) and a variable (ABS64). */
int lpt_make(int x);

static int own(int x) { return -x; }

int (*const imp_table[2])(int) = {own, lpt_make};
int (*imp_variable)(int) = lpt_make;

int imp_call(int x) { return lpt_make(x) + 0 * x; }

int imp_by_table(int x, int i) { return imp_table[i](x); }

int imp_by_variable(int x) { return imp_variable(x); }
