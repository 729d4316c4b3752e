/* Code objects: read without allocating, and watched until they die. */
#include "python/compat/compat.h"
#include "python/compat/heap.h"       // lp_heap_traverse_code
#include "python/compat/locations.h"  // lp_locations_line

#include <string.h>

#include <stdio.h>  // snprintf

#include "native/hook_heap.h"  // lp_heap_library_of
#include "python/values/convert.h"  // lp_raise

uintptr_t lp_init_shim = 1;   /* no code lies there */

#if LP_HAS_SHIM_FRAMES
static int is_init(PyObject *text) {
    return PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, "__init__") == 0;
}
#endif

int lp_code_is_init_shim(const PyCodeObject *code) {
#if LP_HAS_SHIM_FRAMES
    /* One object, its file named as its function: code of a program has a file. */
    if (LP_LIKELY(code->co_firstlineno > 1) || Py_SIZE(code->co_consts) != 0 || !is_init(code->co_name) ||
        !is_init(code->co_filename)) {
        return 0;
    }
    __atomic_store_n(&lp_init_shim, (uintptr_t)code, __ATOMIC_RELAXED);
    return 1;
#else
    (void)code;
    return 0;
#endif
}

/* Characters that UTF-8 can't hold: a byte that os.fsdecode() escaped comes back as that byte. */
static size_t encode_one(Py_UCS4 c, char *out) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c >= 0xD800 && c < 0xE000) {
        out[0] = c >= 0xDC80 && c <= 0xDCFF ? (char)(c & 0xFF) : '?';
        return 1;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 63));
        out[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 63));
    out[2] = (char)(0x80 | (c >> 6 & 63));
    out[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* As UTF-8, cut to the buffer between characters; returns the bytes without the NUL. */
static size_t encode_str(PyObject *str, char *out, size_t capacity_bytes) {
    size_t used = 0;
    if (str != NULL && PyUnicode_Check(str)
#if LP_HAS_UNREADY_STR
        && PyUnicode_IS_READY(str)
#endif
    ) {
        int kind = PyUnicode_KIND(str);
        const void *data = PyUnicode_DATA(str);
        Py_ssize_t length = PyUnicode_GET_LENGTH(str);
        for (Py_ssize_t i = 0; i < length; i++) {
            char piece[4];
            size_t bytes = encode_one(PyUnicode_READ(kind, data, i), piece);
            if (used + bytes >= capacity_bytes) {
                break;
            }
            memcpy(out + used, piece, bytes);
            used += bytes;
        }
    }
    out[used] = '\0';
    return used;
}

static void name_native(const void *address, char *filename, size_t filename_bytes, char *function,
                        size_t function_bytes) {
    const char *library = lp_heap_library_of(address);
    snprintf(filename, filename_bytes, "%s", library == NULL || *library == '\0' ? "<native>" : library);
    snprintf(function, function_bytes, "<native>");
}

static void name(const void *pointer, uint32_t offset, char *filename, size_t filename_bytes, char *function,
                 size_t function_bytes) {
    if (offset == LP_SITE_NATIVE_CODE) {
        name_native(pointer, filename, filename_bytes, function, function_bytes);
        return;
    }
    const PyCodeObject *code = pointer;
    encode_str(code->co_filename, filename, filename_bytes);
#if LP_HAS_CODE_QUALNAME
    encode_str(code->co_qualname, function, function_bytes);
#else
    encode_str(code->co_name, function, function_bytes);
#endif
}

/* Forgotten with its code object; the lock of the sites. */
static lp_locations locations;

static uint32_t line_of(const void *pointer, uint32_t offset) {
    int line = offset == LP_SITE_NATIVE_CODE ? 0 : lp_locations_line(&locations, pointer, (int)offset);
    return line > 0 ? (uint32_t)line : 0;
}

static void forget(const void *code) {
    if (locations.code == code) {
        locations = (lp_locations){.code = NULL};
    }
}

static struct {
    char package_dir[4096];
    size_t package_dir_bytes;
} package;

/* Code below the package's folder; its demos are programs like a user's. */
static int is_own(const void *pointer) {
    char filename[sizeof(package.package_dir) + 8];
    const PyCodeObject *code = pointer;
    return package.package_dir_bytes != 0 &&
           encode_str(code->co_filename, filename, sizeof(filename)) >= package.package_dir_bytes &&
           memcmp(filename, package.package_dir, package.package_dir_bytes) == 0 &&
           strncmp(filename + package.package_dir_bytes, "demo", 4) != 0;
}

/* 1 in a thread that holds the GIL of our interpreter: PyGILState_Check() says so of all once there was another one. */
static int holds_gil(void) {
    const PyThreadState *running = lp_tstate();
    return running != NULL && lp_is_home(running) &&
           (!LP_HAS_CURRENT_SLOT || running == PyGILState_GetThisThreadState());
}

const lp_site_resolver lp_code_resolver = {name, line_of, is_own, holds_gil, forget};

int lp_code_set_package_dir(PyObject *dir) {
    package.package_dir_bytes = encode_str(dir, package.package_dir, sizeof(package.package_dir));
    return 0;
}

static void (*on_death)(const PyCodeObject *code);

#if LP_HAS_CODE_WATCHERS
static int watcher(PyCodeEvent event, PyCodeObject *code) {
    if (event == PY_CODE_EVENT_DESTROY) {
        on_death(code);
    }
    return 0;
}

int lp_code_watch_deaths(void (*dies)(const PyCodeObject *code)) {
    if (on_death != NULL) {
        return 0;
    }
    on_death = dies;
    if (PyCode_AddWatcher(watcher) < 0) {
        on_death = NULL;
        PyErr_Clear();
        lp_raise("no_code_watcher",
                 "all code watchers of this Python are taken by other tools, and leakprobe needs one.");
        return -1;
    }
    return 0;
}
#else
static destructor original_dealloc;

static void dealloc_code(PyObject *code) {
    on_death((PyCodeObject *)code);
    original_dealloc(code);
}

int lp_code_watch_deaths(void (*dies)(const PyCodeObject *code)) {
    if (on_death == NULL) {
        on_death = dies;
        original_dealloc = PyCode_Type.tp_dealloc;
        PyCode_Type.tp_dealloc = dealloc_code;
    }
    return 0;
}
#endif

/* ---- referents ---- */

static int visit_all(PyObject *const *refs, int count, visitproc visit, void *arg) {
    for (int i = 0; i < count; i++) {
        Py_VISIT(refs[i]);
    }
    return 0;
}

int lp_heap_traverse_code(PyObject *op, visitproc visit, void *arg) {
    PyCodeObject *code = (PyCodeObject *)op;
#if PY_VERSION_HEX >= 0x030B0000
    PyObject *const refs[] = {
        code->co_consts,   code->co_names, code->co_exceptiontable, code->co_localsplusnames, code->co_localspluskinds,
        code->co_filename, code->co_name,  code->co_qualname,       code->co_linetable,
    };
#else
    PyObject *const refs[] = {
        code->co_consts,   code->co_names,    code->co_code, code->co_varnames,  code->co_freevars,
        code->co_cellvars, code->co_filename, code->co_name, code->co_linetable,
    };
#endif
    return visit_all(refs, (int)(sizeof(refs) / sizeof(refs[0])), visit, arg);
}
