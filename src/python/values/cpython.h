/* Python.h as everything under src/python/ includes it. */
#ifndef LP_CPYTHON_H
#define LP_CPYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#endif
