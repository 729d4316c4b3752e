/* The states are read as plain words, through a call that fails where a pointer would crash; nothing rests on
 * their layout but atexit's table: a pointer, two counts, and pointers to (function, args, kwargs).  That it is
 * the table is told by a callback in it that is known. */
#include "python/compat/interpreter.h"

#include <signal.h>             // NSIG
#include <string.h>             // memset, strcmp

#include "process/mappings.h"   // lp_peek_words
#include "python/compat/lookups.h"  // lp_lookup_attribute

enum {
    STATE_WORDS = 1 << 16,      /* of an interpreter: more than any version has */
    CHUNK_WORDS = 1 << 9,       /* a page */
    THREAD_WORDS = 1 << 6,      /* of a thread: those before its stack of frames */
    MOST_CALLBACKS = 1 << 20,
    CALLBACK_WORDS = 3
};

typedef struct reader {
    const PyObject *known;
    lp_kept_visit visit;
    void *arg;
} reader;

/* ---- atexit ---- */

static int is_count(uint64_t counts, uint32_t *out_count) {
    uint32_t count = (uint32_t)counts, capacity = (uint32_t)(counts >> 32);
    *out_count = count;
    return count > 0 && count <= capacity && capacity <= MOST_CALLBACKS;
}

/* The callback at a place of the table, zeros where one was taken back; 0 if that can't be read. */
static int read_callback(uint64_t table, uint32_t i, uint64_t out_callback[CALLBACK_WORDS]) {
    uint64_t address;
    memset(out_callback, 0, CALLBACK_WORDS * sizeof(*out_callback));
    return lp_peek_words(table + i * sizeof(address), &address, 1) &&
           (address == 0 || lp_peek_words(address, out_callback, CALLBACK_WORDS));
}

static int is_table(uint64_t table, uint32_t count, const PyObject *known) {
    uint64_t callback[CALLBACK_WORDS];
    for (uint32_t i = 0; i < count && read_callback(table, i, callback); i++) {
        if (callback[0] == (uintptr_t)known) {
            return 1;
        }
    }
    return 0;
}

static void visit_table(const reader *r, uint64_t table, uint32_t count) {
    uint64_t callback[CALLBACK_WORDS];
    for (uint32_t i = 0; i < count && read_callback(table, i, callback); i++) {
        for (uint32_t part = 0; part < CALLBACK_WORDS; part++) {
            if (callback[part] != 0) {
                r->visit((const void *)(uintptr_t)callback[part], LP_KEEPER_ATEXIT, r->arg);
            }
        }
    }
}

/* ---- signals ---- */

static int is_own(PyObject *function, const char *name) {
    return function != NULL && PyCFunction_CheckExact(function) &&
           strcmp(((PyCFunctionObject *)function)->m_ml->ml_name, name) == 0;
}

/* The module's table is asked through its own function, unless something else stands there under that name. */
static void visit_signal_handlers(const reader *r) {
    PyObject *get = lp_lookup_attribute("_signal", "getsignal");
    int may_ask = is_own(get, "getsignal");
    for (long number = 1; may_ask && number < NSIG; number++) {
        PyObject *handler = PyObject_CallFunction(get, "l", number);
        if (handler == NULL) {
            PyErr_Clear();
            continue;
        }
        Py_DECREF(handler); /* the table keeps it */
        r->visit(handler, LP_KEEPER_SIGNALS, r->arg);
    }
}

/* ---- states ---- */

static void visit_words(const reader *r, const uint64_t *word, uint32_t count) {
    uint32_t callbacks;
    for (uint32_t i = 0; i < count; i++) {
        if (word[i] == 0 || word[i] % sizeof(void *) != 0) {
            continue;
        }
        r->visit((const void *)(uintptr_t)word[i], LP_KEEPER_INTERPRETER, r->arg);
        if (r->known != NULL && i + 1 < count && is_count(word[i + 1], &callbacks) &&
            is_table(word[i], callbacks, r->known)) {
            visit_table(r, word[i], callbacks);
        }
    }
}

static void visit_state(const reader *r, const void *state, uint32_t words) {
    uint64_t word[CHUNK_WORDS];
    for (uint32_t at = 0; at < words; at += CHUNK_WORDS) {
        uint32_t count = words - at < CHUNK_WORDS ? words - at : CHUNK_WORDS;
        if (!lp_peek_words((uintptr_t)state + at * sizeof(*word), word, count)) {
            return;
        }
        visit_words(r, word, count);
    }
}

void lp_interpreter_each_kept(const PyObject *known, lp_kept_visit visit, void *arg) {
    LP_ASSERT_GIL();
    reader r = {known, visit, arg};
    PyInterpreterState *interpreter = PyInterpreterState_Get();
    visit_signal_handlers(&r);
    visit_state(&r, interpreter, STATE_WORDS);
    for (PyThreadState *thread = PyInterpreterState_ThreadHead(interpreter); thread != NULL;
         thread = PyThreadState_Next(thread)) {
        visit_state(&r, thread, THREAD_WORDS);
    }
}
