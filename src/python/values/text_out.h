/* A text that is cut to a fixed size, and how keys of dicts are written into it. */
#ifndef LP_TEXT_OUT_H
#define LP_TEXT_OUT_H

#include "python/values/cpython.h"  // PyObject

typedef struct lp_text_out {
    char *bytes;
    size_t size, length;   /* always terminated; length < size */
} lp_text_out;

static inline lp_text_out lp_text_begin(char *bytes, size_t size) {
    bytes[0] = 0;
    return (lp_text_out){bytes, size, 0};
}

void lp_text_add(lp_text_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* At most `most` characters of a str as UTF-8; what can't be printed is escaped. */
void lp_text_add_str(lp_text_out *out, PyObject *str, Py_ssize_t most);
/* str, int, float, bool, None, bytes and tuples of them; of anything else, the type. */
void lp_text_add_key(lp_text_out *out, PyObject *key, int depth);

#endif
