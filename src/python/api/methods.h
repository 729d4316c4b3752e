/* Method tables of leakprobe._core, one per file, and the types of some of them. */
#ifndef LP_METHODS_H
#define LP_METHODS_H

#include "python/compat/compat.h"  // PyMethodDef

extern PyMethodDef lp_hook_methods[];    /* hooks_methods.c: start, stop, mark, sites */
extern PyMethodDef lp_alive_methods[];   /* alive_methods.c: live counts by site, scans of the stamps */
extern PyMethodDef lp_backing_methods[]; /* backing_methods.c: the largest blocks of each line */
extern PyMethodDef lp_census_methods[];  /* census_methods.c: survivors by type, site, step */
extern PyMethodDef lp_native_methods[];  /* native_methods.c: slots of torch and numpy */
extern PyMethodDef lp_cuda_methods[];    /* cuda_methods.c: segments, out of memory */
extern PyMethodDef lp_ledger_methods[];  /* ledger_methods.c: native blocks, overhead */
extern PyMethodDef lp_process_methods[]; /* process_methods.c: malloc, descriptors, threads */
extern PyMethodDef lp_account_methods[]; /* account_methods.c: shared memory, pools outside of malloc */
extern PyMethodDef lp_heap_methods[];    /* heap_methods.c: samples of native blocks */
extern PyMethodDef lp_snapshot_methods[]; /* snapshot_methods.c: frozen copies and their differences */
extern PyMethodDef lp_trace_methods[];   /* trace_methods.c: who keeps what grows */
extern PyMethodDef lp_cycles_methods[];  /* cycles_methods.c: garbage, retention */
extern PyMethodDef lp_graph_methods[];   /* graph_methods.c: frozen object graphs */
extern PyMethodDef lp_kept_text_methods[]; /* kept_text.c: texts that are no objects of the program */
extern PyMethodDef lp_tensor_methods[]; /* tensor_methods.c: which tensors are on which blocks */
extern PyMethodDef lp_instances_methods[]; /* instances_methods.c: the live objects of some types */
extern PyMethodDef lp_slopes_methods[];  /* slopes_methods.c: how a plain number moves */
extern PyMethodDef lp_reach_methods[];   /* reach_methods.c: what an object reaches, and its pages */
extern PyMethodDef lp_watch_methods[];   /* watch_type.c: start and stop of a whole watch */

/* Types that are there from the beginning; each adds its own.  0, or -1 with an exception set. */
int lp_descriptor_init(PyObject *module);
int lp_shared_map_init(PyObject *module);
int lp_quiet_init(PyObject *module);
int lp_turn_type_init(PyObject *module);

/* A _core.Census without a window, which takes the census over, or NULL with an exception set. */
struct lp_census;
PyObject *lp_census_wrap(struct lp_census *census);

/* Each adds the type of its file to the module; 0 or -1. */
int lp_census_type_init(PyObject *module);
int lp_snapshot_type_init(PyObject *module);
int lp_graph_type_init(PyObject *module);
int lp_kept_text_type_init(PyObject *module);
int lp_reach_type_init(PyObject *module);

#endif
