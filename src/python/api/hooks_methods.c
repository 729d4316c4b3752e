/* start, stop, mark; birth stamps and sites as Python objects. */
#include "python/api/methods.h"

#include "ledger/backing.h"  // lp_backing_dropped_at
#include "ledger/epoch.h"    // lp_epoch_steps
#include "ledger/site.h"     // lp_site_text
#include "python/values/convert.h"  // lp_raise
#include "python/births/frames.h"   // LP_FRAMES_DEPTH_MAX
#include "python/births/hooks.h"
#include "python/values/rows.h"  // lp_rows_new
#include "python/heap/untracked.h"  // lp_untracked_are_wanted

static PyObject *mod_start(PyObject *module, PyObject *args) {
    (void)module;
    int stack_depth;
    PyObject *package_dir;
    if (!PyArg_ParseTuple(args, "iU:start", &stack_depth, &package_dir)) {
        return NULL;
    }
    if (stack_depth < 1 || stack_depth > LP_FRAMES_DEPTH_MAX) {
        return lp_raise("bad_argument", "stack_depth must be from 1 to %d, not %d.", LP_FRAMES_DEPTH_MAX, stack_depth);
    }
    lp_untracked_are_wanted = 0;
    if (lp_hooks_start((uint32_t)stack_depth, package_dir) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *mod_stop(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    if (lp_hooks_get_status()->active) {
        lp_hooks_stop();
    }
    Py_RETURN_NONE;
}

static PyObject *mod_is_active(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(lp_hooks_get_status()->active);
}

static PyObject *mod_mark(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    if (!lp_hooks_get_status()->active) {
        return lp_raise("not_active", "leakprobe is not active in this process; call start() first.");
    }
    return PyLong_FromUnsignedLong(lp_hooks_mark());
}

static PyObject *mod_follow_frees(PyObject *module, PyObject *arg) {
    (void)module;
    int on = PyObject_IsTrue(arg);
    if (on > 0 && !lp_hooks_get_status()->active) {
        return lp_raise("not_active", "leakprobe is not active in this process; call start() first.");
    }
    if (on < 0) {
        return NULL;
    }
    lp_untracked_are_wanted = on && lp_hooks_get_status()->sees_deaths;
    return PyBool_FromLong(lp_untracked_are_wanted);
}

static PyObject *mod_forget_looked_up_names(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    lp_forget_looked_up_names();
    Py_RETURN_NONE;
}

static PyObject *mod_step(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromUnsignedLong(lp_step_now);
}

static const char *mechanism_name(lp_birth_mode mode) {
    return mode == LP_BIRTH_BY_BLOCK ? "allocator hook" : mode == LP_BIRTH_BY_OBJECT ? "creation events" : "none";
}

static PyObject *gaps_to_list(const lp_hooks_status *status) {
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < status->gap_count; i++) {
        const lp_gap *gap = &status->gap[i];
        PyObject *item = lp_rows_new(LP_ROWS_GAP, "IIs", gap->first_step, gap->last_step, gap->why);
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *mod_hook_status(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    const lp_hooks_status *status = lp_hooks_get_status();
    const char *why_not = status->why_not != NULL ? status->why_not : lp_compat_why_not();
    PyObject *gaps = gaps_to_list(status);
    if (gaps == NULL) {
        return NULL;
    }
    return Py_BuildValue("{s:s,s:O,s:z,s:N,s:O,s:K,s:K,s:L,s:I,s:O,s:I}", "mechanism", mechanism_name(status->mode),
                         "active", status->active ? Py_True : Py_False, "why_not", why_not, "gaps", gaps, "grown_at",
                         status->grown_at ? Py_True : Py_False, "dropped",
                         (unsigned long long)lp_shadow_dropped_count(), "site_overflow",
                         (unsigned long long)lp_site_overflow_count(), "backing_dropped_at",
                         (long long)lp_backing_dropped_at(), "sites", lp_site_count(), "sees_deaths",
                         status->sees_deaths ? Py_True : Py_False, "exact_since", status->exact_since);
}

static PyObject *mod_site_of(PyObject *module, PyObject *op) {
    (void)module;
    lp_hooks_verify();
    lp_stamp stamp = lp_birth_stamp(op);
    if (stamp == 0) {
        Py_RETURN_NONE;
    }
    lp_epoch_range range = lp_epoch_steps(LP_STAMP_EPOCH(stamp));
    return lp_rows_new(LP_ROWS_BIRTH, "III", LP_STAMP_SITE(stamp), range.first_step, range.last_step);
}

/* A site id from a Python int: 0 with an exception set unless it is one. */
static int parse_site(PyObject *arg, lp_site_id *out_site) {
    unsigned long site = PyLong_AsUnsignedLong(arg);
    if (PyErr_Occurred() || site >= (unsigned long)lp_site_count() + LP_SITE_FIRST) {
        PyErr_Clear();
        lp_raise("bad_argument", "%R is not the number of a site.", arg);
        return 0;
    }
    *out_site = (lp_site_id)site;
    return 1;
}

static PyObject *mod_site_frames(PyObject *module, PyObject *arg) {
    (void)module;
    lp_site_id site;
    lp_frame_text frames[LP_FRAMES_DEPTH_MAX];
    if (!parse_site(arg, &site)) {
        return NULL;
    }
    uint32_t count = lp_site_text(site, frames, LP_FRAMES_DEPTH_MAX);
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        PyObject *item = lp_frame_to_row(&frames[i]);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

static PyObject *mod_site_base(PyObject *module, PyObject *arg) {
    (void)module;
    lp_site_id site;
    return parse_site(arg, &site) ? PyLong_FromUnsignedLong(lp_site_base(site)) : NULL;
}

static PyObject *mod_site_children(PyObject *module, PyObject *arg) {
    (void)module;
    lp_site_id site;
    if (!parse_site(arg, &site)) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (lp_site_id child = lp_site_first_child(site); list != NULL && child != 0; child = lp_site_next_child(child)) {
        PyObject *item = PyLong_FromUnsignedLong(child);
        if (item == NULL || PyList_Append(list, item) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *mod_set_deep(PyObject *module, PyObject *arg) {
    (void)module;
    lp_site_id site;
    if (!parse_site(arg, &site)) {
        return NULL;
    }
    lp_frames_set_deep(site);
    Py_RETURN_NONE;
}

PyMethodDef lp_hook_methods[] = {
    {"start", mod_start, METH_VARARGS,
     PyDoc_STR("start($module, stack_depth, package_dir, /)\n--\n\n"
               "Hook object births")},
    {"stop", mod_stop, METH_NOARGS,
     PyDoc_STR("stop($module, /)\n--\n\n"
               "Remove the hooks; forget the stamps.")},
    {"is_active", mod_is_active, METH_NOARGS,
     PyDoc_STR("is_active($module, /)\n--\n\n"
               "True between start() and stop().")},
    {"mark", mod_mark, METH_NOARGS,
     PyDoc_STR("mark($module, /)\n--\n\n"
               "End the step; the number of the new one.")},
    {"forget_looked_up_names", mod_forget_looked_up_names, METH_NOARGS,
     PyDoc_STR("forget_looked_up_names($module, /)\n--\n\n"
               "Empty CPython's cache of attribute lookups, which keeps names that nothing "
               "else does.")},
    {"follow_frees", mod_follow_frees, METH_O,
     PyDoc_STR("follow_frees($module, on, /)\n--\n\n"
               "Let walks look for objects that nothing refers to, among the stamps; False if deaths "
               "are not seen.")},
    {"step", mod_step, METH_NOARGS,
     PyDoc_STR("step($module, /)\n--\n\n"
               "The number of the current step.")},
    {"hook_status", mod_hook_status, METH_NOARGS,
     PyDoc_STR("hook_status($module, /)\n--\n\n"
               "How births are seen, and where they were not.")},
    {"site_of", mod_site_of, METH_O,
     PyDoc_STR("site_of($module, obj, /)\n--\n\n"
               "The Birth of a live object, or None.")},
    {"site_frames", mod_site_frames, METH_O,
     PyDoc_STR("site_frames($module, site, /)\n--\n\n"
               "[Frame] of a site, innermost first.")},
    {"site_base", mod_site_base, METH_O,
     PyDoc_STR("site_base($module, site, /)\n--\n\n"
               "The site that counts are kept under.")},
    {"site_children", mod_site_children, METH_O,
     PyDoc_STR("site_children($module, site, /)\n--\n\n"
               "The sites with whole stacks below a site.")},
    {"set_deep", mod_set_deep, METH_O,
     PyDoc_STR("set_deep($module, site, /)\n--\n\n"
               "Whole stacks from now on for births at a site.")},
    {NULL, NULL, 0, NULL},
};
