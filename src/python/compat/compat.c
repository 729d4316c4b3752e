/* Checks at import what the rest relies on: frames of known code, thread states, recycled types. What fails is
 * switched off. */
#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1
#endif

#include "python/compat/compat.h"

#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#if LP_HAS_CURRENT_SLOT
#include "internal/pycore_runtime.h"      // _PyRuntime
#endif
#if LP_HAS_CFRAME
#include "internal/pycore_frame.h"        // _PyInterpreterFrame
#endif
#if LP_HAS_DEBUG_TABLE
#include "internal/pycore_runtime.h"      // _PyRuntime, _Py_DebugOffsets
#endif
#pragma GCC diagnostic pop

#include "python/compat/freelists.h"      // lp_freelists_are_known
#include "python/compat/locations.h"      // lp_locations_line
#include "python/compat/quick.h"          // lp_frames_are_quick
#include "python/values/convert.h"               // lp_raise

PyInterpreterState *lp_home_interpreter;
uint64_t lp_recycled_filter;
int lp_frames_are_quick;

static const char *why_not;

#if LP_HAS_CURRENT_SLOT
PyThreadState *const volatile *lp_current_slot;
#endif

#if LP_HAS_CFRAME
_Static_assert(offsetof(_PyInterpreterFrame, f_code) == LP_FRAME_CODE, "frame layout");
_Static_assert(offsetof(_PyInterpreterFrame, previous) == LP_FRAME_PREVIOUS, "frame layout");
_Static_assert(offsetof(_PyInterpreterFrame, prev_instr) == LP_FRAME_INSTRUCTION, "frame layout");
_Static_assert(offsetof(_PyInterpreterFrame, owner) == LP_FRAME_OWNER, "frame layout");
#endif

#if LP_HAS_DEBUG_TABLE
lp_frame_layout lp_layout;

/* 0, or -1 if the runtime's table is not the one this was compiled for. */
static int read_layout(void) {
    const _Py_DebugOffsets *table = &_PyRuntime.debug_offsets;
    if (memcmp(table->cookie, _Py_Debug_Cookie, sizeof(table->cookie)) != 0 ||
        table->version >> 16 != PY_VERSION_HEX >> 16) {
        return -1;
    }
    lp_layout = (lp_frame_layout){
        .current_frame = (uint32_t)table->thread_state.current_frame,
        .previous = (uint32_t)table->interpreter_frame.previous,
        .executable = (uint32_t)table->interpreter_frame.executable,
        .instruction = (uint32_t)table->interpreter_frame.instr_ptr,
        .owner = (uint32_t)table->interpreter_frame.owner,
        .code_start = (uint32_t)table->code_object.co_code_adaptive,
    };
    return 0;
}
#endif

const char *lp_compat_why_not(void) { return why_not; }

void lp_code_key_range(const PyCodeObject *code, uint64_t *out_first, uint64_t *out_end) {
#if LP_HAS_FRAME_OBJECTS
    *out_first = (uint64_t)(uintptr_t)code << 17;
    *out_end = *out_first + (1u << 21);
#else
    /* Before its first instruction a frame points one unit in front of the code. */
    uintptr_t start = (uintptr_t)code + LP_CODE_START;
    *out_first = start - sizeof(_Py_CODEUNIT);
    *out_end = start + (uint64_t)Py_SIZE(code) * sizeof(_Py_CODEUNIT);
#endif
}

int lp_code_opcode(PyCodeObject *code, uint64_t key) {
    uint64_t first, end;
    lp_code_key_range(code, &first, &end);
#if LP_HAS_FRAME_OBJECTS
    PyObject *bytes = Py_NewRef(code->co_code);
    uint64_t offset = (key - first) * sizeof(_Py_CODEUNIT);
#else
    PyObject *bytes = PyCode_GetCode(code);
    uint64_t offset = key - first - sizeof(_Py_CODEUNIT);   /* a frame that has not begun is in front of it */
#endif
    int is_in = bytes != NULL && offset < (uint64_t)PyBytes_GET_SIZE(bytes);
    int opcode = is_in ? (unsigned char)PyBytes_AS_STRING(bytes)[offset] : -1;
    Py_XDECREF(bytes);
    PyErr_Clear();
    return opcode;
}

/* Types with a free list that stays in use under the allocator hook. */
static const PyTypeObject *recycled_types[24];
static size_t recycled_type_count;

static void note_recycled_type(const PyTypeObject *type) {
    if (recycled_type_count < sizeof(recycled_types) / sizeof(recycled_types[0])) {
        recycled_types[recycled_type_count++] = type;
    }
}

/* Types whose lists could be closed if they were known. */
static void note_closable_types(void) {
    static PyTypeObject *const types[] = {
        &PyFloat_Type,   &PyTuple_Type,          &PyList_Type,      &PyDict_Type,
#if LP_HAS_GENERIC_FREELISTS
        &PyContext_Type, &_PyAsyncGenASend_Type, &PySlice_Type,     &PyLong_Type,
        &PyComplex_Type, &PyMethod_Type,         &PyCFunction_Type, &PyCMethod_Type,
        &PyRange_Type,   &PyRangeIter_Type,      &PyListIter_Type,  &PyTupleIter_Type,
#endif
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        note_recycled_type(types[i]);
    }
}

static void find_recycled_types(void) {
    recycled_type_count = 0;
    note_recycled_type((PyTypeObject *)PyExc_MemoryError);
#if !LP_HAS_GENERIC_FREELISTS
    note_recycled_type(&PyContext_Type);
    note_recycled_type(&_PyAsyncGenASend_Type);
    note_recycled_type(&PySlice_Type);
#endif
#if LP_HAS_FRAME_OBJECTS
    note_recycled_type(&PyFrame_Type);
#endif
    if (!lp_freelists_are_known()) {
        note_closable_types();
    }
}

int lp_compat_is_recycled_type(const PyTypeObject *type) {
    for (size_t i = 0; i < recycled_type_count; i++) {
        if (recycled_types[i] == type) {
            return 1;
        }
    }
    return 0;
}

int lp_compat_sees_recycled(void) { return lp_freelists_are_known(); }

void lp_compat_set_birth_mode(lp_birth_mode mode) {
    uint64_t filter = 0;
    if (mode == LP_BIRTH_BY_BLOCK) {
        find_recycled_types();
    }
    for (size_t i = 0; mode == LP_BIRTH_BY_BLOCK && i < recycled_type_count; i++) {
        filter |= (uint64_t)1 << ((uintptr_t)recycled_types[i] >> 6 & 63);
    }
    lp_recycled_filter = filter;
}

/* ---- checks at import ---- */

static const char check_source[] = "def inner(look):\n"
                                   "    x = 1\n"
                                   "    return look()\n"
                                   "def outer(look):\n"
                                   "    return [inner(look)\n"
                                   "        for _ in (1,)]\n"
                                   "def entry(look):\n"
                                   "    return sorted([1, 2],\n"
                                   "        key=lambda _: outer(look))\n"
                                   "entry(look)\n";

/* The stack that look() must see, innermost first: name and line. */
static const struct {
    const char *name;
    int lineno;
} expected_stack[] = {{"inner", 3}, {"<listcomp>", 5}, {"outer", 5}, {"<lambda>", 9}, {"entry", 8}, {"<module>", 10}};

static int look_result;

/* 1 if the frames read here are those expected.  Comprehensions are inlined on 3.12+. */
static int sees_expected_stack(void) {
    const lp_pyframe *frame = lp_frame_top(lp_tstate());
    for (size_t i = 0; i < sizeof(expected_stack) / sizeof(expected_stack[0]); i++) {
        if (PY_VERSION_HEX >= 0x030C0000 && i == 1) {
            continue;
        }
        PyCodeObject *code = frame == NULL ? NULL : lp_frame_code(frame);
        if (code == NULL || PyUnicode_CompareWithASCIIString(code->co_name, expected_stack[i].name) != 0 ||
            lp_locations_line(&(lp_locations){.code = NULL}, code, (int)lp_frame_offset(frame, code)) !=
                expected_stack[i].lineno) {
            return 0;
        }
        uint64_t first, end, key = lp_frame_key(frame);
        lp_code_key_range(code, &first, &end);
        if (key < first || key >= end) {
            return 0;
        }
        frame = lp_frame_previous(frame);
    }
    return 1;
}

/* 1 if all shims of this stack have one key: then it is one that the interpreter gives them, not what
 * happened to be there.  The one at the bottom, part of the thread state on 3.15, may have another. */
static int shims_share_a_key(void) {
#if LP_HAS_SHIM_FRAMES
    uint64_t shim_key = 0;
    const lp_pyframe *frame = lp_frame_top_raw(lp_tstate()), *previous;
    for (; frame != NULL; frame = previous) {
        previous = lp_frame_previous_raw(frame);
        if (previous != NULL && LP_FIELD(char, frame, LP_FRAME_OWNER) >= LP_FRAME_OWNER_SHIM) {
            if (shim_key != 0 && lp_frame_key(frame) != shim_key) {
                return 0;
            }
            shim_key = lp_frame_key(frame);
        }
    }
    return shim_key != 0;
#else
    return 1;
#endif
}

/* 1 if the quick path sees what the other one does.  pre: shims are on the stack, if there are any. */
static int quick_path_holds(void) {
    if (!shims_share_a_key()) {
        return 0;
    }
#if LP_HAS_DEBUG_TABLE
    if (lp_layout.current_frame != LP_QUICK_CURRENT || lp_layout.previous != LP_QUICK_PREVIOUS ||
        lp_layout.instruction != LP_QUICK_INSTRUCTION) {
        return 0;
    }
#endif
#if LP_HAS_TLS_SLOT
    return lp_tstate_offset != 0;
#else
    return LP_HAS_CURRENT_SLOT;
#endif
}

static PyObject *look(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    look_result = sees_expected_stack();
    lp_frames_are_quick = look_result && quick_path_holds();
    return PyLong_FromLong(1);
}

static PyMethodDef look_def = {"look", look, METH_NOARGS, NULL};

/* Run the check; 0, or -1 with an exception set.  look_result says what it saw. */
static int run_check(void) {
    int result = -1;
    PyObject *function = PyCFunction_New(&look_def, NULL), *code = NULL, *value = NULL;
    PyObject *globals =
        function == NULL ? NULL : Py_BuildValue("{s:O,s:O}", "look", function, "__builtins__", PyEval_GetBuiltins());
    if (globals == NULL) {
        goto done;
    }
    code = Py_CompileString(check_source, "<leakprobe check>", Py_file_input);
    if (code == NULL) {
        goto done;
    }
    value = PyEval_EvalCode(code, globals, globals);
    result = value == NULL ? -1 : 0;
done:
    if (globals != NULL) {
        PyDict_Clear(globals);   /* its functions refer to it: garbage of ours otherwise */
    }
    Py_XDECREF(value);
    Py_XDECREF(code);
    Py_XDECREF(globals);
    Py_XDECREF(function);
    return result;
}

static int check_frames(void) {
#if LP_HAS_DEBUG_TABLE
    if (read_layout() < 0) {
        why_not = "this build of Python does not say where its frames are (_Py_DebugOffsets of another version)";
        return 0;
    }
#endif
    look_result = 0;
    if (run_check() < 0) {
        return -1;
    }
    if (!look_result) {
        why_not = "frames of this build of Python are not where they should be: a known line was not seen";
    }
    return 0;
}

int lp_compat_is_finalizing(void) {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

int lp_compat_init(PyObject *module) {
    (void)module;
#ifdef Py_GIL_DISABLED
    lp_raise("free_threaded",
             "leakprobe does not support free-threaded builds of Python yet; use the build with the GIL.");
    return -1;
#endif
    PyInterpreterState *interpreter = PyThreadState_Get()->interp;
    if (interpreter != PyInterpreterState_Main()) {
        lp_raise("subinterpreter",
                 "leakprobe works in the main interpreter only, not in a subinterpreter; import it there.");
        return -1;
    }
    if (lp_home_interpreter == interpreter) {
        return 0;
    }
#ifdef LEAKPROBE_DEBUG
    lp_holds_gil = PyGILState_Check;   /* says yes to everyone once there is a subinterpreter */
#endif
#if LP_HAS_CURRENT_SLOT
    lp_current_slot = (PyThreadState *const volatile *)&_PyRuntime.gilstate.tstate_current;
#endif
#if LP_HAS_TLS_SLOT
    lp_compat_find_tstate_slot();
#endif
    if (check_frames() < 0) {
        return -1;
    }
    lp_home_interpreter = interpreter;
    return 0;
}
