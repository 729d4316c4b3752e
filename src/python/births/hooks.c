/* Owns whether births are seen, by what, and since when. Each start has one stop, also over fork and at exit;
 * gaps are noted. */
#include "python/births/hooks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"         // LP_HOOKS_RECYCLED
#include "ledger/alive.h"         // lp_alive_died
#include "ledger/backing.h"       // lp_backing_reset
#include "ledger/epoch.h"         // lp_epoch_reset
#include "ledger/ledger.h"        // lp_ledger_init
#include "ledger/site_series.h"   // lp_series_mark
#include "native/capture.h"       // lp_capture_site
#include "native/samples.h"       // lp_samples_before_fork
#include "native/native.h"        // lp_native_reset_in_child
#include "python/compat/freelists.h"  // lp_freelists_each_block
#include "python/compat/heap.h"   // lp_heap_init
#include "python/values/convert.h"       // lp_raise
#include "python/births/frames.h"
#include "python/births/freelists.h"
#include "python/births/hook_arena.h"
#include "python/births/hook_pymem.h"
#include "python/births/hook_tracer.h"
#include "python/watch/watch.h"         // lp_watch_reset_in_child
#include "python/values/state.h"  // lp_state

static lp_hooks_status status;
static lp_capture_fn default_capture;

const lp_hooks_status *lp_hooks_get_status(void) { return &status; }

/* ---- births: one of two mechanisms ---- */

static void set_birth_mode(lp_birth_mode mode) {
    status.mode = mode;
    lp_compat_set_birth_mode(mode);
    lp_hook_pymem_set_active(LP_PYMEM_OBJ, mode == LP_BIRTH_BY_BLOCK);
    lp_hook_tracer_set_active(mode == LP_BIRTH_BY_OBJECT);
    lp_hook_pymem_note_large(mode != LP_BIRTH_NONE);
}

static int can_install_deaths(void) {
    const char *text;
    return lp_hook_pymem_deaths_place() == LP_PYMEM_ABSENT && lp_hook_pymem_why_not(&text) == NULL;
}

/* Take the creation events; LP_OK or LP_UNSUPPORTED. */
static lp_status take_events(void) {
    if (!lp_hook_tracer_is_reached() && lp_hook_tracer_install() < 0) {
        return LP_UNSUPPORTED;
    }
    if (can_install_deaths()) {
        lp_hook_pymem_install_deaths();
    }
    set_birth_mode(LP_BIRTH_BY_OBJECT);
    return LP_OK;
}

/* Take the object allocator; NULL, or the code of an error and its text. */
static const char *take_allocator(const char **out_text) {
    lp_pymem_place place = lp_hook_pymem_place(LP_PYMEM_OBJ);
    if (place == LP_PYMEM_SHIFTED) {
        *out_text = "PyMem_SetupDebugHooks() was called after leakprobe's hooks: addresses no longer match";
        return "debug_hooks";
    }
    if (place == LP_PYMEM_ABSENT) {
        const char *code = lp_hook_pymem_why_not(out_text);
        if (code != NULL) {
            return code;
        }
        lp_hook_pymem_install(LP_PYMEM_OBJ);
    }
    set_birth_mode(LP_BIRTH_BY_BLOCK);
    return NULL;
}

static int is_asked_for(const char *variable, const char *wanted) {
    const char *value = getenv(variable);
    return value != NULL && strcmp(value, wanted) == 0;
}

/* For tests of the second mechanism where the first is there too. */
static int wants_allocator(void) { return is_asked_for("LEAKPROBE_MECHANISM", "allocator"); }

static const char *take_births(const char **out_text) {
    if (!wants_allocator() && take_events() == LP_OK) {
        return NULL;
    }
    return take_allocator(out_text);
}

/* See to recycled objects, which the allocator does not; 0, or -1 with an exception set. */
static int see_recycled(void) {
    if (status.mode != LP_BIRTH_BY_BLOCK) {
        return 0;
    }
    if (lp_compat_sees_recycled()) {
        return lp_freelists_neutralise();
    }
    status.why_not = "the free lists of this build of Python are not known, or LEAKPROBE_FREE_LISTS=kept: objects "
                     "that may have been recycled have no line";
    return 0;
}

static void set_growth(int is_stamped) {
    status.grown_at = is_stamped;
    lp_hook_pymem_set_active(LP_PYMEM_MEM, is_stamped);
}

static void start_growth(void) {
    const char *text;
    lp_pymem_place place = lp_hook_pymem_place(LP_PYMEM_MEM);
    if (place == LP_PYMEM_ABSENT && lp_hook_pymem_why_not(&text) == NULL) {
        lp_hook_pymem_install(LP_PYMEM_MEM);
        place = LP_PYMEM_ON_TOP;
    }
    set_growth(place == LP_PYMEM_ON_TOP || place == LP_PYMEM_BENEATH);
}

/* ---- deaths ---- */

static size_t recycled_count; /* blocks that lay in free lists when they were walked last */

static void forget_block(const void *block) {
    recycled_count++;
    lp_alive_died(block);
}

/* Under the allocator hook objects that are recycled unseen make live counts wrong. */
static int live_counts_are_exact(void) {
    int sees_recycled = status.mode == LP_BIRTH_BY_OBJECT || lp_compat_sees_recycled();
    return status.mode != LP_BIRTH_NONE && sees_recycled && lp_hook_pymem_sees_deaths();
}

/* All stamps and counts go; those of later births are exact if deaths are seen. */
static void forget_stamps(void) {
    lp_shadow_reset();
    lp_series_reset(lp_step_now);
    lp_backing_reset();
    status.sees_deaths = live_counts_are_exact();
    status.exact_since = lp_step_now;
}

/* ---- fork and exit ---- */

/* Locks are held over the fork, in the order of their ranks, so that the child gets whole tables. */
static void before_fork(void) {
    lp_samples_before_fork();
    lp_native_before_fork();
    lp_ledger_before_fork();
    lp_site_before_fork();
}

static void after_fork(void) {
    lp_site_after_fork_in_parent();
    lp_ledger_after_fork_in_parent();
    lp_native_after_fork_in_parent();
    lp_samples_after_fork_in_parent();
}

static void in_child(void) {
    lp_frames_reset_in_child();
    lp_samples_reset_in_child();
    lp_native_reset_in_child();
    lp_site_reset_in_child();
    lp_ledger_reset_in_child();
    set_birth_mode(LP_BIRTH_NONE);
    set_growth(0);
    lp_shadow_reset();   /* lest deaths be written into pages that the child shares */
    lp_capture_site = default_capture;
    lp_watch_reset_in_child();
    status.active = 0;
}

static PyObject *at_exit(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_frames_close();
    Py_RETURN_NONE;
}

const PyObject *lp_hooks_at_exit(void) { return lp_state.callbacks.at_exit; }

/* What in_child() may not touch: it runs without the GIL where C code forks. */
static PyObject *in_child_of_python(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    if (!status.active) {
        lp_freelists_restore();
    }
    Py_RETURN_NONE;
}

static PyMethodDef in_child_def = {"leakprobe_in_child", in_child_of_python, METH_NOARGS, NULL};

static int watch_forks(void) {
    PyObject *module = PyImport_ImportModule("os");
    PyObject *registrar = module == NULL ? NULL : PyObject_GetAttrString(module, "register_at_fork");
    PyObject *given =
        registrar == NULL ? NULL : Py_BuildValue("{sN}", "after_in_child", PyCFunction_New(&in_child_def, NULL));
    PyObject *no_args = given == NULL ? NULL : PyTuple_New(0);
    PyObject *result = no_args == NULL ? NULL : PyObject_Call(registrar, no_args, given);
    Py_XDECREF(no_args);
    Py_XDECREF(given);
    Py_XDECREF(registrar);
    Py_XDECREF(module);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static PyMethodDef at_exit_def = {"leakprobe_close", at_exit, METH_NOARGS, NULL};

static int watch_exit(void) {
    PyObject *module = PyImport_ImportModule("atexit"), *result = NULL;
    PyObject *function = module == NULL ? NULL : PyCFunction_New(&at_exit_def, NULL);
    if (function != NULL) {
        result = PyObject_CallMethod(module, "register", "O", function);
        lp_state.callbacks.at_exit = result == NULL ? NULL : function;
    }
    Py_XDECREF(function);
    Py_XDECREF(module);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

int lp_hooks_prepare(void) {
    static int prepared;
    if (prepared) {
        return 0;
    }
    lp_status made = lp_shadow_init();
    made = made == LP_OK ? lp_site_init(&lp_code_resolver) : made;
    made = made == LP_OK ? lp_ledger_init() : made;
    made = made == LP_OK ? lp_series_init() : made;
    if (made != LP_OK) {
        lp_raise_status(made, "starting the hooks");
        return -1;
    }
    if (watch_exit() < 0 || watch_forks() < 0 || pthread_atfork(before_fork, after_fork, in_child) != 0) {
        return PyErr_Occurred() ? -1 : (PyErr_NoMemory(), -1);
    }
    default_capture = lp_capture_site;
    prepared = 1;
    return 0;
}

/* ---- assertions ---- */

#ifdef LEAKPROBE_DEBUG
/* All tables, but at ever fewer marks: their cost grows with what is alive, and a run has any number of marks. */
static int are_tables_valid(uint32_t step) {
    return (step & (step - 1)) != 0 ||
           (lp_ledger_is_valid() && lp_site_is_valid() && lp_alive_is_valid() && lp_series_is_valid() &&
            lp_backing_is_valid() && lp_shadow_is_valid(lp_epoch_now + 1, LP_SITE_FIRST + lp_site_count()));
}
#endif

/* ---- start, stop, mark ---- */

static int can_start(void) {
    if (status.active) {
        lp_raise("already_active", "leakprobe is active already; call stop() first, or use the watch that runs.");
        return -1;
    }
    if (lp_compat_why_not() != NULL) {
        lp_raise("unsupported_python", "leakprobe can't follow this Python: %s.", lp_compat_why_not());
        return -1;
    }
    return lp_hooks_prepare();
}

int lp_hooks_start(uint32_t stack_depth, PyObject *package_dir) {
    LP_ASSERT_GIL();
    const char *text = NULL;
    if (can_start() < 0 || lp_code_set_package_dir(package_dir) < 0 || lp_frames_init(stack_depth) < 0) {
        return -1;
    }
    if (lp_heap_init() < 0) {
        return -1;
    }
    status = (lp_hooks_status){0};
    lp_frames_clear();
    lp_shadow_reset();
    lp_ledger_reset();
    lp_epoch_reset(LP_BIRTH_NONE);
    const char *code = take_births(&text);
    if (code != NULL) {
        lp_raise(code, "%s", text);
        return -1;
    }
    if (see_recycled() < 0) {
        lp_hooks_stop();
        return -1;
    }
    forget_stamps();
    start_growth();
    lp_hook_arena_install();
    lp_epoch_set_mode((uint8_t)status.mode);
    lp_capture_site = lp_frames_native_site;
    status.active = 1;
    return 0;
}

void lp_hooks_stop(void) {
    LP_ASSERT_GIL();
    LP_ASSERT(!status.active || are_tables_valid(0));
    set_birth_mode(LP_BIRTH_NONE);
    set_growth(0);
    lp_freelists_restore();
    lp_hook_arena_uninstall();
    lp_hook_tracer_uninstall();
    lp_hook_pymem_uninstall(LP_PYMEM_MEM);
    lp_hook_pymem_uninstall(LP_PYMEM_OBJ);
    lp_capture_site = default_capture;
    lp_shadow_reset();
    status.active = 0;
}

static void note_gap(const char *why) {
    lp_gap *last = status.gap_count == 0 ? NULL : &status.gap[status.gap_count - 1];
    if (last != NULL &&
        ((last->last_step + 1 >= lp_step_now && last->why == why) || status.gap_count == LP_HOOKS_GAPS)) {
        last->last_step = lp_step_now;
        return;
    }
    status.gap[status.gap_count++] = (lp_gap){lp_step_now, lp_step_now, why};
}

/* 0 if deaths are no more seen, or could be seen again. */
static int deaths_are_as_before(void) {
    if (status.mode == LP_BIRTH_NONE) {
        return 1;
    }
    int are_seen = live_counts_are_exact();
    return are_seen == status.sees_deaths && (are_seen || status.mode != LP_BIRTH_BY_OBJECT || !can_install_deaths());
}

/* 1 if births were seen up to now. */
static int births_are_seen(void) {
    if (status.mode == LP_BIRTH_BY_OBJECT) {
        return lp_hook_tracer_is_reached();
    }
    lp_pymem_place place = status.mode == LP_BIRTH_NONE ? LP_PYMEM_ABSENT : lp_hook_pymem_place(LP_PYMEM_OBJ);
    return place == LP_PYMEM_ON_TOP || place == LP_PYMEM_BENEATH;
}

/* Objects born meanwhile lie at addresses with stamps of earlier ones: none can be told from the
 * others, so all stamps go. */
static void recover(const char *why) {
    note_gap(why);
    set_birth_mode(LP_BIRTH_NONE);
    status.why_not = NULL;
    const char *code = take_births(&status.why_not);
    if (status.mode != LP_BIRTH_BY_BLOCK) {
        lp_freelists_restore();
    }
    if (code == NULL && see_recycled() < 0) {
        PyErr_Clear();
    }
    forget_stamps();
}

static void check_growth(void) {
    lp_pymem_place place = status.grown_at ? lp_hook_pymem_place(LP_PYMEM_MEM) : LP_PYMEM_ABSENT;
    set_growth(place == LP_PYMEM_ON_TOP || place == LP_PYMEM_BENEATH);
}

/* 1 if they are on. */
static int verify(void) {
    if (!status.active) {
        return 0;
    }
    if (!births_are_seen() || !deaths_are_as_before()) {
        recover("another tool took the place of the hooks");
        lp_epoch_set_mode((uint8_t)status.mode);
    } else if (status.mode == LP_BIRTH_BY_BLOCK && lp_freelists_were_opened()) {
        recover("another tool opened the free lists again, so that objects may have been recycled unseen");
    }
    return 1;
}

/* What lies in free lists has died, and no block was freed. */
static void forget_recycled(void) {
    recycled_count = 0;
    if (status.mode == LP_BIRTH_BY_OBJECT) {
        lp_freelists_each_block(forget_block);
    } else if (status.mode == LP_BIRTH_BY_BLOCK) {
        lp_freelists_each_table(forget_block);
    }
}

void lp_hooks_verify(void) {
    if (verify()) {
        forget_recycled();
    }
}

/* 1 if live counts are exact, 0 if full free lists are left for the last mark of the span. */
static int settle_counts(void) {
    if (!verify()) {
        return 1;
    }
    if (recycled_count >= LP_HOOKS_RECYCLED && !lp_series_ends_span()) {
        return 0;
    }
    forget_recycled();
    return 1;
}

uint32_t lp_hooks_mark(void) {
    LP_ASSERT_GIL();
    LP_ASSERT(are_tables_valid(lp_step_now));
    int is_exact = settle_counts();
    check_growth();
    lp_series_mark(is_exact);
    uint32_t step = lp_epoch_advance();
    lp_epoch_set_mode((uint8_t)status.mode);
    return step;
}
