/* The extension module leakprobe._core: method tables of the other files, joined. */
#include "python/compat/compat.h"
#include "python/api/methods.h"
#include "python/values/rows.h"   // lp_rows_init
#include "python/watch/watch.h"  // lp_watch_init

static PyMethodDef *const tables[] = {
    lp_hook_methods,   lp_alive_methods,   lp_backing_methods,   lp_census_methods,    lp_native_methods,
    lp_cuda_methods,   lp_ledger_methods,  lp_process_methods,   lp_snapshot_methods,  lp_trace_methods,
    lp_cycles_methods, lp_graph_methods,   lp_kept_text_methods, lp_reach_methods,     lp_tensor_methods,
    lp_watch_methods,  lp_account_methods, lp_heap_methods,      lp_instances_methods, lp_slopes_methods,
};

static int (*const add_type[])(PyObject *) = {
    lp_rows_init,           lp_census_type_init, lp_snapshot_type_init, lp_graph_type_init,
    lp_kept_text_type_init, lp_reach_type_init,  lp_watch_init,         lp_descriptor_init,
    lp_shared_map_init,     lp_quiet_init,       lp_turn_type_init,
};

static int module_exec(PyObject *module) {
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (PyModule_AddFunctions(module, tables[i]) < 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < sizeof(add_type) / sizeof(add_type[0]); i++) {
        if (add_type[i](module) < 0) {
            return -1;
        }
    }
    return lp_compat_init(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "leakprobe._core",
    .m_doc = "The C core of leakprobe: hooks, ledger, census and graph.  Use the package leakprobe instead.",
    .m_size = 0,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&module_def); }
