/* Records of the largest blocks, one a line, as Python objects. */
#include "python/api/methods.h"

#include <string.h>

#include "ledger/backing.h"            // lp_backing_at
#include "python/births/hook_pymem.h"  // lp_hook_pymem_follow_large
#include "python/values/convert.h"     // lp_append_steal
#include "python/values/rows.h"        // lp_rows_new

typedef struct joined_backing {
    lp_backing all;
    uint32_t lines;
} joined_backing;

typedef struct joining {
    joined_backing joined[LP_BACKING_SITES];
    uint16_t slots[LP_BACKING_SLOTS]; /* hash of the site or family => index + 1, or 0 */
    uint32_t count;
    int by_family;
} joining;

/* Records of one line that the interpreter ran as several instructions, or of lines that grow one thing: the site is
 * that of the largest. */
static void join_backing(lp_backing *to, const lp_backing *more) {
    to->site = more->bytes > to->bytes ? more->site : to->site;
    to->first_bytes = more->first_step < to->first_step ? more->first_bytes : to->first_bytes;
    to->first_step = more->first_step < to->first_step ? more->first_step : to->first_step;
    to->last_step = more->last_step > to->last_step ? more->last_step : to->last_step;
    to->bytes = more->bytes > to->bytes ? more->bytes : to->bytes;
    to->family = to->family != 0 ? to->family : more->family;
    to->record_steps += more->record_steps;
    to->extended_steps += more->extended_steps;
}

static lp_site_id key_of(const joining *j, const lp_backing *backing) {
    return j->by_family ? backing->family : lp_site_base(backing->site);
}

/* Add to what it belongs to, or as one more. */
static void add_backing(joining *j, const lp_backing *backing) {
    lp_site_id key = key_of(j, backing);
    uint32_t slot = lp_backing_first_slot(key);
    while (j->slots[slot] != 0 && key_of(j, &j->joined[j->slots[slot] - 1].all) != key) {
        slot = (slot + 1) % LP_BACKING_SLOTS;
    }
    if (j->slots[slot] == 0) {
        j->joined[j->count] = (joined_backing){*backing, 1};
        j->slots[slot] = (uint16_t)++j->count;
        return;
    }
    joined_backing *to = &j->joined[j->slots[slot] - 1];
    join_backing(&to->all, backing);
    to->lines += j->by_family != 0;
}

static void begin(joining *j, int by_family) {
    memset(j->slots, 0, sizeof(j->slots));
    j->count = 0;
    j->by_family = by_family;
}

/* One record a line. */
static void join_lines(joining *lines) {
    begin(lines, 0);
    for (uint32_t i = 0; i < lp_backing_count(); i++) {
        lp_backing backing = lp_backing_at(i);
        backing.site = lp_site_base(backing.site);
        add_backing(lines, &backing);
    }
}

static void join_families(const joining *lines, joining *families) {
    begin(families, 1);
    for (uint32_t i = 0; i < lines->count; i++) {
        if (lines->joined[i].all.family != 0) {
            add_backing(families, &lines->joined[i].all);
        }
    }
}

static PyObject *backing_to_row(const joined_backing *joined) {
    const lp_backing *all = &joined->all;
    return lp_rows_new(LP_ROWS_BACKING, "IKKIIIIII", (unsigned int)all->site, (unsigned long long)all->bytes,
                       (unsigned long long)all->first_bytes, all->first_step, all->last_step, all->record_steps,
                       all->extended_steps, (unsigned int)all->family, joined->lines);
}

typedef struct backing_filter {
    unsigned int since_step, min_steps;
    uint32_t beyond_lines; /* of more lines than these */
} backing_filter;

static int append_backings(PyObject *list, const joining *j, backing_filter wanted) {
    for (uint32_t i = 0; i < j->count; i++) {
        const lp_backing *all = &j->joined[i].all;
        int is_wanted = all->last_step >= wanted.since_step && all->record_steps >= wanted.min_steps &&
                        j->joined[i].lines > wanted.beyond_lines;
        if (is_wanted && lp_append_steal(list, backing_to_row(&j->joined[i])) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *mod_backing_records(PyObject *module, PyObject *args) {
    (void)module;
    backing_filter each = {0}, several;
    if (!PyArg_ParseTuple(args, "II:backing_records", &each.since_step, &each.min_steps)) {
        return NULL;
    }
    static joining lines, families;   /* GIL */
    join_lines(&lines);
    join_families(&lines, &families);
    PyObject *list = PyList_New(0);
    several = each;
    several.beyond_lines = 1;
    if (list != NULL && (append_backings(list, &lines, each) < 0 || append_backings(list, &families, several) < 0)) {
        Py_CLEAR(list);
    }
    return list;
}

static PyObject *mod_follow_large(PyObject *module, PyObject *arg) {
    (void)module;
    int wanted = PyObject_IsTrue(arg);
    if (wanted < 0) {
        return NULL;
    }
    lp_hook_pymem_follow_large(wanted);
    Py_RETURN_NONE;
}

PyMethodDef lp_backing_methods[] = {
    {"backing_records", mod_backing_records, METH_VARARGS,
     PyDoc_STR("backing_records($module, since_step, min_steps, /)\n--\n\n"
               "[Backing] of the sites whose largest block grew in so many steps, and since a step; then of\n"
               "those that extended one another's blocks, all of these together.")},
    {"follow_large", mod_follow_large, METH_O,
     PyDoc_STR("follow_large($module, wanted, /)\n--\n\n"
               "Note each large object that is made, where births are seen by events.")},
    {NULL, NULL, 0, NULL},
};
