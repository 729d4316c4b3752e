/* Memory of the process that no object stands for: segments of shared memory, pools outside of malloc. */
#include "python/api/methods.h"

#include "base/rawmem.h"          // lp_raw_map_bytes
#include "ledger/ledger.h"        // lp_ledger_malloc_bytes
#include "ledger/site.h"          // lp_site_base
#include "native/cuda_memory.h"   // lp_cuda_malloc_bytes
#include "native/hook_names.h"    // lp_names_find
#include "process/malloc_info.h"  // lp_malloc_info_read
#include "process/proc_memory.h"  // lp_proc_memory_read
#include "process/resident.h"     // lp_thread_touched_bytes
#include "process/segments.h"     // lp_segments_read
#include "python/births/hook_arena.h"    // lp_hook_arena_bytes
#include "python/births/hooks.h"         // lp_hooks_prepare
#include "python/values/rows.h"          // lp_rows_new

/* ---- segments ---- */

typedef struct tally {
    unsigned long long count, bytes;
} tally;

static void count_segment(tally *t, const lp_segment *segment) {
    t->count++;
    t->bytes += segment->bytes;
}

/* own: mapped, open or counted by the kernel as made here; named: made here and neither; others: the rest. */
typedef struct sums {
    tally own, named, others, closed;
    PyObject *lines;  /* {base site: how many of named} */
} sums;

static int count_line(PyObject *lines, lp_site_id site) {
    PyObject *key = PyLong_FromUnsignedLong(lp_site_base(site)), *before = NULL, *now = NULL;
    if (key != NULL) {
        before = PyDict_GetItemWithError(lines, key);
        now = PyErr_Occurred() ? NULL : PyLong_FromLong(before == NULL ? 1 : PyLong_AsLong(before) + 1);
    }
    int failed = now == NULL || PyDict_SetItem(lines, key, now) < 0;
    Py_XDECREF(key);
    Py_XDECREF(now);
    return failed ? -1 : 0;
}

static int count_one(sums *s, const lp_segment *segment) {
    lp_site_id site;
    int is_known = (segment->known & LP_SEGMENT_NAMED) != 0 && lp_names_find(segment->inode, &site);
    if (segment->known != LP_SEGMENT_NAMED) {
        count_segment(&s->own, segment);
    } else {
        count_segment(is_known ? &s->named : &s->others, segment);
    }
    int is_named = segment->known == LP_SEGMENT_NAMED && is_known;
    if (is_named || segment->known == LP_SEGMENT_MADE) {
        count_segment(&s->closed, segment);
    }
    return is_named ? count_line(s->lines, site) : 0;
}

/* What a medium of its own has: CUDA's driver keeps pinned memory in shared mappings.  `block`: sorted by address. */
static int is_pinned(const lp_segment *segment, const lp_block *block, size_t count) {
    size_t first = 0;
    for (size_t end = count; first < end;) {
        size_t middle = first + ((end - first) >> 1);
        if (block[middle].address < segment->from) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    for (; first < count && block[first].address < segment->to; first++) {
        if (block[first].medium == LP_MEDIUM_PINNED) {
            return 1;
        }
    }
    return 0;
}

/* The live blocks if some are pinned, else none; freed with lp_raw_free(). */
static lp_status pinned_among(lp_block **out_block, size_t *out_count) {
    lp_totals pinned;
    *out_block = NULL;
    *out_count = 0;
    lp_ledger_totals(LP_MEDIUM_PINNED, &pinned);
    return pinned.live_count == 0 ? LP_OK : lp_ledger_copy(out_block, out_count);
}

static PyObject *sums_out(const sums *s) {
    return Py_BuildValue("{sKsKsKsKsKsKsO}", "own", s->own.count, "own_bytes", s->own.bytes, "named", s->named.count,
                         "named_bytes", s->named.bytes, "others", s->others.count, "closed", s->closed.count, "lines",
                         s->lines);
}

static PyObject *segments(PyObject *self, PyObject *arg) {
    (void)self;
    long long since = PyLong_AsLongLong(arg);
    lp_segments found;
    sums all = {.lines = PyErr_Occurred() ? NULL : PyDict_New()};
    if (all.lines == NULL) {
        return NULL;
    }
    lp_names_learn();
    lp_block *block = NULL;
    size_t count;
    int failed = 0;
    if (lp_segments_read(since, &found) != LP_OK || pinned_among(&block, &count) != LP_OK) {
        lp_raw_free(found.row);
        Py_DECREF(all.lines);
        Py_RETURN_NONE;
    }
    for (size_t i = 0; i < found.count && !failed; i++) {
        failed = !is_pinned(&found.row[i], block, count) && count_one(&all, &found.row[i]) < 0;
    }
    lp_names_forget_rest();
    lp_raw_free(block);
    lp_raw_free(found.row);
    PyObject *out = failed ? NULL : sums_out(&all);
    Py_DECREF(all.lines);
    return out;
}

static PyObject *follow_names(PyObject *self, PyObject *arg) {
    (void)self;
    int on = PyObject_IsTrue(arg);
    if (on < 0 || lp_hooks_prepare() < 0) {
        return NULL;
    }
    if (!on) {
        (void)lp_names_end();
        Py_RETURN_FALSE;
    }
    return PyBool_FromLong(lp_names_begin() == LP_OK);
}

static PyObject *shared_memory(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_shared_memory found;
    lp_shared_memory_read(&found);
    return Py_BuildValue("KKK", (unsigned long long)(found.files + found.segments),
                         (unsigned long long)(found.file_bytes + found.segment_bytes),
                         (unsigned long long)lp_segments_mapped());
}

static PyObject *shared_memory_count(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_shared_memory found;
    lp_shared_memory_read(&found);
    return PyLong_FromUnsignedLongLong(found.files + found.segments);
}

static PyObject *shared_memory_bytes(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_shared_memory found;
    lp_proc_memory memory;
    lp_shared_memory_read(&found);
    (void)lp_proc_memory_read(0, &memory);
    return PyLong_FromUnsignedLongLong(found.file_bytes + found.segment_bytes + memory.shared_rss +
                                       lp_proc_huge_bytes());
}

/* ---- pools ---- */

/* Of a pool that is not malloc's, CPython's or the probe's: pages, and address space. */
typedef struct beyond {
    long long touched, mapped;
} beyond;

/* Where malloc can't be asked, what the ledger knows of its blocks stands for it: the rest counts as a pool. */
static beyond malloc_has(const lp_malloc_info *info) {
    if (info != NULL) {
        return (beyond){(long long)(info->in_use + info->free_bytes), (long long)info->system_bytes};
    }
    long long known = (long long)(lp_ledger_malloc_bytes() + lp_cuda_malloc_bytes() + lp_raw_block_bytes());
    return (beyond){known, known};
}

/* Anonymous pages of the process, and what it may write, without what the probe maps. */
static beyond private_bytes(void) {
    lp_proc_memory memory;
    (void)lp_proc_memory_read(0, &memory);
    return (beyond){(long long)memory.rss - (long long)memory.shared_rss - (long long)lp_raw_map_bytes(),
                    (long long)memory.writable - (long long)lp_raw_map_length()};
}

/* Pages are less than there are where blocks have some that nobody has touched. */
static beyond memory_beyond(beyond all, const lp_malloc_info *info) {
    beyond known = malloc_has(info);
    long long mapped = lp_hook_arena_bytes();
    return (beyond){all.touched - known.touched - mapped + (long long)lp_proc_huge_bytes(),
                    all.mapped - known.mapped - mapped};
}

/* One reading of malloc and of the kernel: a walk of malloc's free lists is what costs here. */
static PyObject *memory_account(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    lp_malloc_info read, *info = lp_malloc_info_read(&read) == LP_OK ? &read : NULL;
    beyond all = private_bytes(), pools = memory_beyond(all, info);
    long long in_use = info != NULL ? (long long)(info->in_use - info->probe_bytes) : 0;
    long long free_bytes = info != NULL ? (long long)info->free_bytes : 0;
    long long kept = info != NULL ? free_bytes + (long long)info->probe_bytes : 0;
    return lp_rows_new(LP_ROWS_MEMORY_ACCOUNT, "LLLLLL", in_use, free_bytes, pools.touched, pools.mapped,
                       all.touched - kept, all.mapped - kept);
}

static PyObject *thread_touched_bytes(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromUnsignedLongLong(lp_thread_touched_bytes() + lp_proc_huge_bytes());
}

PyMethodDef lp_account_methods[] = {
    {"segments", segments, METH_O,
     "segments($module, since, /)\n--\n\n"
     "Segments of shared memory: {own, own_bytes, named, named_bytes, others, closed, lines}; None where "
     "they can't be had."},
    {"follow_names", follow_names, METH_O,
     "follow_names($module, on, /)\n--\n\n"
     "Note which files of /dev/shm this process makes; again for libraries that were loaded since; False while not."},
    {"shared_memory", shared_memory, METH_NOARGS,
     "shared_memory($module, /)\n--\n\n"
     "(files and segments, bytes) that all processes have in /dev/shm and in System V segments, and the bytes of what "
     "this one maps beside private memory that can be written: while these stand, so do its segments."},
    {"shared_memory_count", shared_memory_count, METH_NOARGS,
     "shared_memory_count($module, /)\n--\n\n"
     "The first of these."},
    {"shared_memory_bytes", shared_memory_bytes, METH_NOARGS,
     "shared_memory_bytes($module, /)\n--\n\n"
     "The second, and what this process has touched of files, segments and huge pages."},
    {"memory_account", memory_account, METH_NOARGS,
     "memory_account($module, /)\n--\n\n"
     "A MemoryAccount: malloc's bytes, pools beyond it and all private memory, of one reading."},
    {"thread_touched_bytes", thread_touched_bytes, METH_NOARGS,
     "thread_touched_bytes($module, /)\n--\n\n"
     "Bytes of pages that this thread was the first to touch, ever, and the process's huge pages."},
    {NULL, NULL, 0, NULL},
};
