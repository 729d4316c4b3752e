/* What a walk must know about each type, decided once per type and walk. */
#ifndef LP_KINDS_H
#define LP_KINDS_H

#include "python/compat/compat.h"  // PyTypeObject

#include "base/map.h"   // lp_map
#include "python/heap/numbers.h"  // LP_KINDS_CACHE

typedef enum lp_kind {
    LP_KIND_LEAF,       /* refers to nothing */
    LP_KIND_PLAIN,      /* has a tp_traverse */
    LP_KIND_TYPE,       /* a type object */
    LP_KIND_CODE,       /* a code object: the collector does not know what it refers to */
    LP_KIND_ARRAY,      /* numpy.ndarray or a subclass */
    LP_KIND_RECORD,     /* numpy.void: a row of a structured array */
    LP_KIND_DTYPE,      /* numpy.dtype */
    LP_KIND_TENSOR,     /* torch.Tensor or a subclass */
    LP_KIND_AUTOGRAD,   /* a node of an autograd graph */
    LP_KIND_CAPSULE,    /* may own a tensor of DLPack */
    LP_KIND_STORAGE,    /* torch.UntypedStorage or a subclass */
    LP_KIND_OWN         /* belongs to leakprobe: nothing is followed */
} lp_kind;

#define LP_KINDS_NO_GROUP UINT32_MAX

typedef struct lp_type_info {
    PyTypeObject *type;     /* borrowed */
    uint32_t first_group;   /* of the groups that are traced, or LP_KINDS_NO_GROUP */
    uint8_t kind;           /* lp_kind */
    uint8_t has_part;       /* lp_heap_has_part() */
} lp_type_info;

typedef struct lp_kinds {
    lp_type_info cache[LP_KINDS_CACHE];   /* direct mapped by the type's address */
    lp_map number;                        /* type => index in info + 1 */
    lp_type_info *info;
    uint32_t count, capacity;
} lp_kinds;

/* Once, before any other call; -1 with an exception set on failure. */
int lp_kinds_init(void);
void lp_kinds_clear(lp_kinds *kinds);
void lp_kinds_fini(lp_kinds *kinds);
/* Record a group of a type before the walk; LP_NO_MEMORY or LP_OK.  The type may be dead by now. */
lp_status lp_kinds_set_group(lp_kinds *kinds, PyTypeObject *type, uint32_t group, uint32_t *out_previous);
lp_type_info lp_kinds_get_slow(lp_kinds *kinds, PyTypeObject *type);

static inline lp_type_info lp_kinds_get(lp_kinds *kinds, PyTypeObject *type) {
    lp_type_info *entry = &kinds->cache[((uintptr_t)type / LP_OBJECT_ALIGN) & (LP_KINDS_CACHE - 1)];
    if (LP_LIKELY(entry->type == type)) {
        return *entry;
    }
    return *entry = lp_kinds_get_slow(kinds, type);
}

/* The kind of a type of numpy's that does not tell the collector what it refers to; LP_KIND_LEAF for others. */
lp_kind lp_kinds_of_numpy(PyTypeObject *type);
/* 1 for "leakprobe" and its submodules, but its demos are like a user's programs. */
int lp_kinds_is_own_name(const char *module);
/* The text of a str without allocating; "" unless it is pure ASCII. */
const char *lp_kinds_ascii(PyObject *str);
#endif
