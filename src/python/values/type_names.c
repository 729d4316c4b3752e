#include "python/values/type_names.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_malloc

#define NAME_BYTES 512    /* longer names are cut */

typedef struct text {
    char bytes[NAME_BYTES];
    size_t length;
} text;

static void add_byte(text *out, unsigned int byte) {
    if (out->length < NAME_BYTES - 1) {
        out->bytes[out->length++] = (char)byte;
    }
}

/* PyUnicode_AsUTF8() would add a copy to the str; a lone surrogate becomes '?'. */
static void add_character(text *out, Py_UCS4 c) {
    if (out->length + 4 >= NAME_BYTES) {
        return;
    }
    if (c < 0x80) {
        add_byte(out, c);
    } else if (c < 0x800) {
        add_byte(out, 0xC0 | (c >> 6));
        add_byte(out, 0x80 | (c & 0x3F));
    } else if (c >= 0xD800 && c <= 0xDFFF) {
        add_byte(out, '?');
    } else {
        if (c < 0x10000) {
            add_byte(out, 0xE0 | (c >> 12));
        } else {
            add_byte(out, 0xF0 | (c >> 18));
            add_byte(out, 0x80 | ((c >> 12) & 0x3F));
        }
        add_byte(out, 0x80 | ((c >> 6) & 0x3F));
        add_byte(out, 0x80 | (c & 0x3F));
    }
}

static int add_str(text *out, PyObject *str) {
    if (str == NULL || !PyUnicode_CheckExact(str) || PyUnicode_READY(str) < 0) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(str); i++) {
        add_character(out, PyUnicode_READ_CHAR(str, i));
    }
    return 1;
}

/* The key is walked to, not looked up: a lookup could call __eq__ of an odd key. */
static PyObject *module_of(PyTypeObject *type) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    if (type->tp_dict == NULL) {
        return NULL;
    }
    while (PyDict_Next(type->tp_dict, &position, &key, &value)) {
        if (PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, "__module__") == 0) {
            return value;
        }
    }
    return NULL;
}

char *lp_type_name_copy(PyTypeObject *type) {
    text out = {.length = 0};
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) && add_str(&out, module_of(type))) {
        add_byte(&out, '.');
    }
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !add_str(&out, ((PyHeapTypeObject *)type)->ht_qualname)) {
        for (const char *c = type->tp_name; *c != '\0'; c++) {
            add_byte(&out, (unsigned char)*c);
        }
    }
    char *copy = lp_raw_malloc(out.length + 1);
    if (copy != NULL) {
        memcpy(copy, out.bytes, out.length);
        copy[out.length] = '\0';
    }
    return copy;
}
