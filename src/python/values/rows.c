/* Owns the lp_state.types.row of rows, made once a process, and the constants that rows speak in. */
#include "python/values/rows.h"
#include "python/values/state.h"  // lp_state

#include <assert.h>
#include <stdarg.h>

#include "ledger/medium.h"  // lp_media
#include "ledger/site.h"    // LP_SITE_FIRST

#define FIELD(name, doc) {name, PyDoc_STR(doc)}
#define END {NULL, NULL}

/* Fields that several kinds have. */
#define SITE FIELD("site", "number of the allocation site")
#define TYPE FIELD("type", "name of the type")
#define MEDIUM FIELD("medium", "name of the medium")
#define COUNT FIELD("count", "how many")
#define BYTES FIELD("bytes", "bytes of them")
#define FIRST_STEP FIELD("first_step", "step of the first birth")
#define LAST_STEP FIELD("last_step", "step of the last birth")
#define STEP FIELD("step", "step of birth")
#define WINDOW                                                                                                         \
    FIELD("window_count", "how many of them were born in the window"), FIELD("window_bytes", "bytes of these"),        \
        FIELD("window_steps", "steps of the window with births that survive")

static PyStructSequence_Field frame[] = {FIELD("filename", "file of the code"), FIELD("lineno", "1-based; 0: unknown"),
                                         FIELD("function", "qualified name, where the version has it"), END};
static PyStructSequence_Field birth[] = {SITE, FIELD("first_step", "the step, or the first of those it may be"),
                                         FIELD("last_step", "the step, or the last of those it may be"), END};
static PyStructSequence_Field step_range[] = {FIELD("first_step", "first step"), FIELD("last_step", "last step"), END};
static PyStructSequence_Field gap[] = {FIELD("first_step", "first step"), FIELD("last_step", "last step"),
                                       FIELD("why", "what kept births from being seen"), END};
static PyStructSequence_Field cohort[] = {STEP, COUNT, BYTES, END};
static PyStructSequence_Field census_group[] = {
    TYPE, FIELD("type_id", "address of the type"), SITE, COUNT, BYTES, WINDOW, FIRST_STEP, LAST_STEP, END};
static PyStructSequence_Field container[] = {
    FIELD("address", "id of the container"), TYPE, FIELD("length", "number of items"), BYTES, SITE,
    FIELD("first_step", "step of birth"),    END};
static PyStructSequence_Field block_group[] = {MEDIUM, SITE, COUNT, BYTES, WINDOW, FIRST_STEP, LAST_STEP, END};
static PyStructSequence_Field block[] = {FIELD("address", "first byte"), BYTES, MEDIUM, SITE, STEP, END};
static PyStructSequence_Field event[] = {FIELD("address", "first byte of the block"),
                                         FIELD("bytes", "its size; negative where it was freed"),
                                         MEDIUM,
                                         SITE,
                                         STEP,
                                         END};
static PyStructSequence_Field events[] = {FIELD("events", "the last ones, oldest first"),
                                          FIELD("total", "how many there were in all"), END};
static PyStructSequence_Field tensor_block[] = {
    FIELD("tensor", "id of the tensor"), FIELD("block", "address of its block"), FIELD("bits", "TENSOR_* bits"), END};
static PyStructSequence_Field resource_counts[] = {FIELD("descriptors", "open file descriptors"),
                                                   FIELD("threads", "threads of the process"), END};
static PyStructSequence_Field memory_account[] = {FIELD("in_use", "malloc's live bytes without the probe's"),
                                                  FIELD("free", "what malloc keeps for later"),
                                                  FIELD("pool_touched", "bytes of pools beyond malloc, touched"),
                                                  FIELD("pool_mapped", "the same, touched or not"),
                                                  FIELD("resident", "resident private memory"),
                                                  FIELD("mapped", "private memory that can be written"),
                                                  END};
static PyStructSequence_Field ledger_row[] = {
    MEDIUM, FIELD("type_id", "address of the type; 0: a native block"), SITE, FIRST_STEP, LAST_STEP, COUNT, BYTES, END};
static PyStructSequence_Field ledger_diff[] = {MEDIUM,
                                               FIELD("type_id", "address of the type; 0: a native block"),
                                               SITE,
                                               FIELD("count_diff", "how many more"),
                                               FIELD("size_diff", "bytes more"),
                                               END};
static PyStructSequence_Field type_tally[] = {TYPE, COUNT, BYTES, END};
static PyStructSequence_Field site_tally[] = {SITE, COUNT, BYTES, END};
static PyStructSequence_Field graph_group[] = {
    MEDIUM, FIELD("type", "name of the type; None: buffers"), SITE, COUNT, BYTES, END};
static PyStructSequence_Field retained_type[] = {FIELD("type", "name of the type; None: buffers"),
                                                 FIELD("bytes", "bytes that its objects keep"), END};
static PyStructSequence_Field graph_node[] = {FIELD("type", "name of the type; None: a buffer"),
                                              MEDIUM,
                                              FIELD("group", "place of its group in groups()"),
                                              FIELD("bytes", "its own bytes"),
                                              FIELD("retained", "bytes that would go with it"),
                                              FIELD("dominator", "immediate dominator, or the node itself"),
                                              END};
static PyStructSequence_Field holder_tally[] = {FIELD("group", "place of the group in groups()"),
                                                FIELD("holder", "node that holds them"), COUNT, BYTES, END};
static PyStructSequence_Field graph_taken[] = {
    FIELD("graph", "the Graph"), FIELD("cycles", "as find_cycles() has them"),
    FIELD("names", "node => named path to it"), FIELD("census", "groups of the objects of the graph; or None"), END};
static PyStructSequence_Field pages[] = {FIELD("pages", "pages that are mapped"),
                                         FIELD("private", "of these, such as no other process has"), END};
static PyStructSequence_Field series_state[] = {FIELD("first_step", "the first step of the first span"),
                                                FIELD("width", "steps of a span that is closed"),
                                                FIELD("closed", "spans that are closed; at most one more is open"),
                                                FIELD("open_steps", "marks in the open span"),
                                                FIELD("rows", "sites with a row"),
                                                FIELD("overflow_sites", "sites beyond those, which share one row"),
                                                FIELD("sees_deaths", "whether live counts are exact"),
                                                FIELD("exact_since", "since which step they are"),
                                                END};
static PyStructSequence_Field site_series[] = {SITE,
                                               FIELD("live", "alive at the last mark"),
                                               FIELD("births", "births in all"),
                                               FIELD("rises", "how often the floor rose; None: not asked for"),
                                               FIELD("low", "by span, the lowest live count at a mark"),
                                               FIELD("high", "by span, the highest"),
                                               FIELD("born", "by span, births in it"),
                                               END};
static PyStructSequence_Field backing[] = {
    SITE,
    FIELD("bytes", "the largest block that it grew"),
    FIELD("first_bytes", "the largest of the first step with one"),
    FIELD("first_step", "that step"),
    FIELD("last_step", "the last step with a block larger than all before"),
    FIELD("record_steps", "how many such steps there were"),
    FIELD("extended_steps", "of these: where a block of an earlier step was extended"),
    FIELD("family", "the same of all lines that extended one another's blocks; 0: none did"),
    FIELD("lines", "how many lines it is of; the site is that of the largest block"),
    END};
static PyStructSequence_Field found_type[] = {SITE, FIELD("type", "None: no object was found there"), COUNT,
                                              FIELD("bytes", "their size"), END};
static PyStructSequence_Field survivors[] = {SITE, FIELD("first_step", "the step of birth, or the first it may be"),
                                             FIELD("last_step", "the step of birth, or the last it may be"), COUNT,
                                             END};
static PyStructSequence_Field scan[] = {FIELD("begun_step", "births before this step are counted"),
                                        FIELD("as_of_step", "those that are alive in this one"),
                                        FIELD("rows", "[Survivors]"), END};
static PyStructSequence_Field confirmed[] = {SITE, FIELD("met", "stamps whose object the census met"),
                                             FIELD("unreached", "of a live object that nothing in reach refers to"),
                                             FIELD("corrected", "of no object: no longer counted"), END};
static PyStructSequence_Field confirmation[] = {FIELD("census", "the Census"), FIELD("sites", "[Confirmed]"), END};

static PyStructSequence_Field medium[] = {FIELD("name", "of the family: cuda for all devices"),
                                          FIELD("module", "whose import brings what a hook patches; empty: no hook"),
                                          FIELD("on_cuda", "1: only where the program has started CUDA"),
                                          FIELD("memory", "what its bytes count against"),
                                          FIELD("has_owners", "1: a walk sees which object owns a block"),
                                          FIELD("meaning", "what lives there"),
                                          END};

static struct {
    const char *name, *doc;
    PyStructSequence_Field *fields;
} const kinds[LP_ROWS_KIND_COUNT] = {
    [LP_ROWS_FRAME] = {"leakprobe._core.Frame", "One frame of a stack.", frame},
    [LP_ROWS_BIRTH] = {"leakprobe._core.Birth", "Where and when an object was born.", birth},
    [LP_ROWS_STEP_RANGE] = {"leakprobe._core.StepRange", "Steps whose births are kept as one.", step_range},
    [LP_ROWS_GAP] = {"leakprobe._core.Gap", "Steps in which births were not seen.", gap},
    [LP_ROWS_COHORT] = {"leakprobe._core.Cohort", "What is alive of the births of one step.", cohort},
    [LP_ROWS_CENSUS_GROUP] = {"leakprobe._core.CensusGroup", "Live objects of one type and site.", census_group},
    [LP_ROWS_CONTAINER] = {"leakprobe._core.Container", "A large container.", container},
    [LP_ROWS_BLOCK_GROUP] = {"leakprobe._core.BlockGroup", "Live blocks of one medium and site.", block_group},
    [LP_ROWS_BLOCK] = {"leakprobe._core.Block", "A live native block.", block},
    [LP_ROWS_EVENT] = {"leakprobe._core.Event", "A native block that was born or died.", event},
    [LP_ROWS_EVENTS] = {"leakprobe._core.Events", "The last births and deaths of native blocks.", events},
    [LP_ROWS_TENSOR_BLOCK] = {"leakprobe._core.TensorBlock", "A tensor and the block it lies on.", tensor_block},
    [LP_ROWS_RESOURCE_COUNTS] = {"leakprobe._core.ResourceCounts", "What the process has open.", resource_counts},
    [LP_ROWS_MEMORY_ACCOUNT] = {"leakprobe._core.MemoryAccount", "Private memory at one moment.", memory_account},
    [LP_ROWS_LEDGER_ROW] = {"leakprobe._core.LedgerRow", "A row of a Snapshot.", ledger_row},
    [LP_ROWS_LEDGER_DIFF] = {"leakprobe._core.LedgerDiff", "A row of the difference of two.", ledger_diff},
    [LP_ROWS_TYPE_TALLY] = {"leakprobe._core.TypeTally", "Objects of one type.", type_tally},
    [LP_ROWS_SITE_TALLY] = {"leakprobe._core.SiteTally", "Objects and blocks of one site.", site_tally},
    [LP_ROWS_GRAPH_GROUP] = {"leakprobe._core.GraphGroup", "Nodes of one medium, type and site.", graph_group},
    [LP_ROWS_RETAINED_TYPE] = {"leakprobe._core.RetainedType", "What objects of a type keep.", retained_type},
    [LP_ROWS_GRAPH_NODE] = {"leakprobe._core.GraphNode", "An object or a buffer.", graph_node},
    [LP_ROWS_HOLDER_TALLY] = {"leakprobe._core.HolderTally", "What a node holds of one group.", holder_tally},
    [LP_ROWS_GRAPH_TAKEN] = {"leakprobe._core.GraphTaken", "What graph_take() found.", graph_taken},
    [LP_ROWS_PAGES] = {"leakprobe._core.Pages", "Pages of a region as a process has them.", pages},
    [LP_ROWS_SERIES_STATE] = {"leakprobe._core.SeriesState", "Which spans of steps the series have.", series_state},
    [LP_ROWS_SITE_SERIES] = {"leakprobe._core.SiteSeries", "Live counts of one site over the run.", site_series},
    [LP_ROWS_BACKING] = {"leakprobe._core.Backing", "The largest block that a site grew.", backing},
    [LP_ROWS_FOUND_TYPE] = {"leakprobe._core.FoundType", "What is alive of one site and type.", found_type},
    [LP_ROWS_SURVIVORS] = {"leakprobe._core.Survivors", "What is alive of one site and step.", survivors},
    [LP_ROWS_SCAN] = {"leakprobe._core.Scan", "Who is alive of the sites that were asked for.", scan},
    [LP_ROWS_CONFIRMED] = {"leakprobe._core.Confirmed", "What confirm() found of one site.", confirmed},
    [LP_ROWS_CONFIRMATION] = {"leakprobe._core.Confirmation", "What confirm() found.", confirmation},
    [LP_ROWS_MEDIUM] = {"leakprobe._core.Medium", "Where bytes live.", medium},
};

static const struct {
    const char *name;
    long value;
} constants[] = {
    {"SITE_UNKNOWN", LP_SITE_UNKNOWN},
    {"SITE_NATIVE", LP_SITE_NATIVE},
    {"SITE_SELF", LP_SITE_SELF},
    {"SITE_RECYCLED", LP_SITE_RECYCLED},
    {"SITE_OVERFLOW", LP_SITE_OVERFLOW},
    {"SITE_FIRST", LP_SITE_FIRST},
    {"TENSOR_HAS_GRAPH", LP_TENSOR_HAS_GRAPH},
    {"TENSOR_IS_GRAD", LP_TENSOR_IS_GRAD},
    {"TENSOR_IS_SAVED", LP_TENSOR_IS_SAVED},
    {"TENSOR_IS_INNER", LP_TENSOR_IS_INNER},
};

static PyTypeObject *make_type(lp_rows_kind kind) {
    int count = 0;
    while (kinds[kind].fields[count].name != NULL) {
        count++;
    }
    PyStructSequence_Desc desc = {kinds[kind].name, kinds[kind].doc, kinds[kind].fields, count};
    return PyStructSequence_NewType(&desc);
}

/* MEDIA: all rows of the table of media. */
static int add_media(PyObject *module) {
    PyObject *media = PyTuple_New(LP_MEDIUM_FAMILIES);
    for (int i = 0; media != NULL && i < LP_MEDIUM_FAMILIES; i++) {
        const lp_medium_row *row = &lp_media[i];
        PyObject *item = lp_rows_new(LP_ROWS_MEDIUM, "ssIsIs", row->name, row->module, (unsigned int)row->on_cuda,
                                     lp_memory_name(row->memory), (unsigned int)row->has_owners, row->meaning);
        if (item == NULL) {
            Py_CLEAR(media);
        } else {
            PyTuple_SET_ITEM(media, i, item);
        }
    }
    int result = media == NULL ? -1 : PyModule_AddObjectRef(module, "MEDIA", media);
    Py_XDECREF(media);
    return result;
}

int lp_rows_init(PyObject *module) {
    for (int kind = 0; kind < LP_ROWS_KIND_COUNT; kind++) {
        if (lp_state.types.row[kind] == NULL && (lp_state.types.row[kind] = make_type((lp_rows_kind)kind)) == NULL) {
            return -1;
        }
        if (PyModule_AddType(module, lp_state.types.row[kind]) < 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) < 0) {
            return -1;
        }
    }
    return add_media(module);
}

/* The next item; args behind a pointer, since a va_list may be an array. */
static PyObject *next_item(char letter, va_list *args) {
    const char *text;
    switch (letter) {
    case 'K':
        return PyLong_FromUnsignedLongLong(va_arg(*args, unsigned long long));
    case 'L':
        return PyLong_FromLongLong(va_arg(*args, long long));
    case 'I':
        return PyLong_FromUnsignedLong(va_arg(*args, unsigned int));
    case 's':
        text = va_arg(*args, const char *);
        return PyUnicode_FromString(text);
    case 'O':
        return Py_XNewRef(va_arg(*args, PyObject *));
    default:
        assert(letter == 'N');
        return va_arg(*args, PyObject *);
    }
}

PyObject *lp_rows_new(lp_rows_kind kind, const char *format, ...) {
    PyObject *row = PyStructSequence_New(lp_state.types.row[kind]);
    int failed = row == NULL;
    va_list args;
    va_start(args, format);
    for (Py_ssize_t i = 0; format[i] != 0; i++) {
        assert(kinds[kind].fields[i].name != NULL);
        PyObject *item = next_item(format[i], &args);   // after a failure too: what is stolen must be let go of
        if (row != NULL) {
            PyStructSequence_SetItem(row, i, item);
        } else {
            Py_XDECREF(item);
        }
        failed |= item == NULL;
    }
    va_end(args);
    if (failed) {
        Py_CLEAR(row);
    }
    return row;
}
