/* The holder of an entry as a dict. */
#include "python/graph/holder_out.h"

#include "ledger/epoch.h"          // lp_epoch_steps
#include "python/compat/heap.h"    // lp_heap_growth
#include "python/graph/path_out.h" // LP_PATH_MOST_NODES
#include "python/heap/sizes.h"     // lp_size_of_table
#include "python/values/convert.h" // lp_text_to_str

static PyObject *number_or_none(int64_t value) { return value < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(value); }

/* "head Node in train" for a name in a namespace, else the holder's own text. */
static void holder_text(const lp_trace *trace, const lp_bucket *bucket, lp_element *elements, char *out, size_t bytes,
                        const char **out_type) {
    uint32_t node[LP_PATH_MOST_NODES];
    uint32_t end = bucket->in_namespace ? bucket->top : bucket->holder;
    uint32_t count = lp_paths_get(&trace->paths, end, node, LP_PATH_MOST_NODES);
    count = lp_names_path(trace->walk, node, count, 0, elements, LP_PATH_MOST_NODES);
    const lp_element *last = &elements[count > 0 ? count - 1 : 0];
    *out_type = last->type;
    if (bucket->in_namespace && count >= 2) {
        const lp_element *before = last - 1;
        snprintf(out, bytes, "%.150s in %.150s", last->text, before->text);
        *out_type = before->type;
        return;
    }
    snprintf(out, bytes, "%s", last->text);
}

/* 1 if one item of the holder is what grows: a chain of many members, replaced in each step. */
static int is_one_item(const lp_bucket *bucket) {
    return bucket->in_namespace || (!bucket->has_many_tops && bucket->count > 1);
}

/* The line that last grew the holder: that of its backing block, or, for a name in a namespace and
 * where one item alone grows, that of the object which it is now. */
static void grown_at(const lp_walk *walk, const lp_bucket *bucket, lp_site_id *out_site, uint32_t *out_step) {
    if (is_one_item(bucket)) {
        if (lp_walk_is_object(walk, bucket->top)) {
            lp_walk_birth(walk, lp_walk_object(walk, bucket->top), out_site, out_step);
        }
        return;
    }
    lp_stamp stamp = lp_heap_growth(lp_walk_object(walk, bucket->holder));
    *out_site = LP_STAMP_SITE(stamp);
    *out_step = lp_epoch_steps(LP_STAMP_EPOCH(stamp)).first_step;
}

/* Places of a list whose items were born in the steps that are asked for; -1 of anything else. */
static int64_t places_filled(const lp_walk *walk, PyObject *op) {
    lp_site_id site;
    uint32_t step;
    int64_t filled = 0;
    if (!PyList_CheckExact(op)) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(op); i++) {
        filled += lp_walk_birth(walk, PyList_GET_ITEM(op, i), &site, &step);
    }
    return filled;
}

PyObject *lp_holder_to_dict(const lp_trace *trace, const lp_bucket *bucket, lp_element *elements) {
    const lp_walk *walk = trace->walk;
    char text[2 * LP_NAME_BYTES];
    const char *type;
    int64_t length, bound, filled = -1;
    uint64_t table_bytes = 0;
    uint32_t step = 0, grown_step = 0, item_step = 0;
    lp_site_id site = 0, grown_site = 0, item_site = 0;
    if (bucket->holder == LP_NODE_NONE) {
        return Py_NewRef(Py_None);
    }
    holder_text(trace, bucket, elements, text, sizeof(text), &type);
    lp_names_length(walk, bucket->holder, &length, &bound);
    if (bucket->in_namespace) {
        length = bound = -1;
    }
    if (lp_walk_is_object(walk, bucket->holder)) {
        lp_walk_birth(walk, lp_walk_object(walk, bucket->holder), &site, &step);
        table_bytes = lp_size_of_table(lp_walk_object(walk, bucket->holder));
        filled = places_filled(walk, lp_walk_object(walk, bucket->holder));
    }
    if (is_one_item(bucket) || lp_walk_is_object(walk, bucket->holder)) {
        grown_at(walk, bucket, &grown_site, &grown_step);
        grown_site = lp_site_base(grown_site);
    }
    if (!bucket->has_many_tops && lp_walk_is_object(walk, bucket->top)) {
        lp_walk_birth(walk, lp_walk_object(walk, bucket->top), &item_site, &item_step);
    }
    return Py_BuildValue("{s:N,s:N,s:N,s:N,s:K,s:I,s:I,s:I,s:I,s:I,s:K,s:N}", "text", lp_text_to_str(text), "type",
                         lp_text_to_str(type), "length", number_or_none(length), "bound", number_or_none(bound),
                         "address", (unsigned long long)walk->address[bucket->holder], "grown_at_site", grown_site,
                         "grown_at_step", grown_step, "item_site", lp_site_base(item_site), "site", lp_site_base(site),
                         "step", step, "table_bytes", (unsigned long long)table_bytes, "filled",
                         number_or_none(filled));
}
