#include "python/values/text_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lp_text_add(lp_text_out *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(out->bytes + out->length, out->size - out->length, format, args);
    va_end(args);
    if (wanted > 0) {
        size_t room = out->size - out->length - 1;
        out->length += (size_t)wanted < room ? (size_t)wanted : room;
    }
}

static void add_character(lp_text_out *out, Py_UCS4 c) {
    if (c == '\'' || c == '\\') {
        lp_text_add(out, "\\%c", (int)c);
    } else if (c >= 0x20 && c < 0x7f) {
        lp_text_add(out, "%c", (int)c);
    } else if (c < 0xa0 || (c >= 0xd800 && c <= 0xdfff)) {
        lp_text_add(out, "\\x%02x", (unsigned int)c);
    } else if (out->length + 5 < out->size) {
        if (c < 0x800) {
            lp_text_add(out, "%c%c", (int)(0xc0 | (c >> 6)), (int)(0x80 | (c & 0x3f)));
        } else if (c < 0x10000) {
            lp_text_add(out, "%c%c%c", (int)(0xe0 | (c >> 12)), (int)(0x80 | ((c >> 6) & 0x3f)),
                        (int)(0x80 | (c & 0x3f)));
        } else {
            lp_text_add(out, "%c%c%c%c", (int)(0xf0 | (c >> 18)), (int)(0x80 | ((c >> 12) & 0x3f)),
                        (int)(0x80 | ((c >> 6) & 0x3f)), (int)(0x80 | (c & 0x3f)));
        }
    }
}

void lp_text_add_str(lp_text_out *out, PyObject *str, Py_ssize_t most) {
    if (str == NULL || !PyUnicode_Check(str)) {
        return;
    }
    Py_ssize_t length = PyUnicode_GET_LENGTH(str);
    for (Py_ssize_t i = 0; i < length && i < most; i++) {
        add_character(out, PyUnicode_READ_CHAR(str, i));
    }
    if (length > most) {
        lp_text_add(out, "...");
    }
}

static void add_int(lp_text_out *out, PyObject *key) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(key, &overflow);
    if (overflow != 0) {
        lp_text_add(out, "<large int>");
    } else {
        lp_text_add(out, "%lld", value);
    }
}

void lp_text_add_key(lp_text_out *out, PyObject *key, int depth) {
    if (PyUnicode_CheckExact(key)) {
        lp_text_add(out, "'");
        lp_text_add_str(out, key, 40);
        lp_text_add(out, "'");
    } else if (PyBool_Check(key) || key == Py_None) {
        lp_text_add(out, "%s", key == Py_None ? "None" : key == Py_True ? "True" : "False");
    } else if (PyLong_CheckExact(key)) {
        add_int(out, key);
    } else if (PyFloat_CheckExact(key)) {
        lp_text_add(out, "%.6g", PyFloat_AS_DOUBLE(key));
    } else if (PyTuple_CheckExact(key) && depth > 0 && PyTuple_GET_SIZE(key) <= 4) {
        lp_text_add(out, "(");
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
            lp_text_add(out, "%s", i > 0 ? ", " : "");
            lp_text_add_key(out, PyTuple_GET_ITEM(key, i), depth - 1);
        }
        lp_text_add(out, ")");
    } else {
        const char *name = strrchr(Py_TYPE(key)->tp_name, '.');
        lp_text_add(out, "<%.40s key>", name == NULL ? Py_TYPE(key)->tp_name : name + 1);
    }
}
