/* Objects that CPython itself keeps where no collector looks: atexit's callbacks, handlers of signals, and what the
 * state of the interpreter and of its threads refers to (the current context, handlers for fork() and codecs). */
#ifndef LP_COMPAT_INTERPRETER_H
#define LP_COMPAT_INTERPRETER_H

#include "python/compat/compat.h"  // PyObject

typedef enum lp_keeper { LP_KEEPER_ATEXIT, LP_KEEPER_SIGNALS, LP_KEEPER_INTERPRETER } lp_keeper;
/* An object that may be kept so; a word of the interpreter's may be no object at all. */
typedef void (*lp_kept_visit)(const void *object, lp_keeper keeper, void *arg);

/* `known`: a callback that is registered with atexit, by which its table is found. */
void lp_interpreter_each_kept(const PyObject *known, lp_kept_visit visit, void *arg);

#endif
