/* The dict behind an lru_cache, which no attribute gives. */
#include "python/graph/relate.h"

#include "python/compat/heap.h"        // lp_heap_traverse
#include "python/compat/heap_names.h"  // lp_heap_instance_dict
#include "python/compat/lookups.h"     // lp_lookup_base

int lp_relate_is_lru_cache(PyTypeObject *type) { return lp_lookup_base(type, "functools._lru_cache_wrapper") != NULL; }

static int is_it(PyObject *op, void *target) { return op == target; }

/* Only what is visited is certain to be an object. */
static int refers_to(PyObject *op, void *target) { return lp_heap_traverse(op, is_it, target) != 0; }

/* struct lru_cache_object has, in all versions, these words in a row. */
enum { CACHE, HITS, FUNC, MAXSIZE };

static size_t cache_word;   /* where CACHE lies, the same in all; 0: not looked for yet; the GIL protects it */

/* The first dict past the head and the root of the list: five words and two pointers to links. */
static size_t find_cache_word(PyObject *op, size_t words) {
    PyObject **word = (PyObject **)op, *attributes = lp_heap_instance_dict(op);
    for (size_t i = LP_LRU_HEAD_WORDS; i + MAXSIZE < words; i++) {
        if (word[i] != NULL && word[i] != attributes && refers_to(op, word[i]) && PyDict_CheckExact(word[i])) {
            return i;
        }
    }
    return 0;
}

PyObject *lp_relate_lru_dict(PyObject *op, Py_ssize_t *out_maxsize) {
    *out_maxsize = -1;
    if (cache_word == 0) {
        cache_word = find_cache_word(op, (size_t)Py_TYPE(op)->tp_basicsize / sizeof(PyObject *));
    }
    PyObject *dict = cache_word == 0 ? NULL : ((PyObject **)op)[cache_word];
    if (dict != NULL) {
        *out_maxsize = ((Py_ssize_t *)op)[cache_word + MAXSIZE];
    }
    return dict;
}
