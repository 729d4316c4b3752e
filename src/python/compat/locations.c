/* Entries of a table follow one another; each is about the instructions behind those of the one before. */
#include "python/compat/locations.h"

/* A table that a program has made may count past an int. */
static void move(lp_locations *table, int further) {
    table->computed = (int)((unsigned)table->computed + (unsigned)further);
}

#if PY_VERSION_HEX >= 0x030B0000
#define KIND_NONE 15u         /* no location */
#define KIND_LONG 14u         /* a signed distance of lines is next */
#define KIND_NO_COLUMNS 13u   /* the same */
#define KIND_ONE_LINE 10u     /* and the two above: so many lines further */
#define IS_FIRST_BYTE 0x80    /* of an entry; the others have it clear */
#define HAS_MORE 0x40         /* of a number's bytes, which have six bits each, the lowest first */

static int signed_number(const lp_locations *table) {
    unsigned value = 0, shift = 0;
    for (const unsigned char *at = table->at; at < table->end && shift < 32; at++, shift += 6) {
        value |= (unsigned)(*at & (HAS_MORE - 1)) << shift;
        if ((*at & HAS_MORE) == 0) {
            break;
        }
    }
    return (value & 1) != 0 ? -(int)(value >> 1) : (int)(value >> 1);
}

static int lines_further(const lp_locations *table, unsigned kind) {
    if (kind == KIND_LONG || kind == KIND_NO_COLUMNS) {
        return signed_number(table);
    }
    return kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS ? (int)(kind - KIND_ONE_LINE) : 0;
}

static void read_entry(lp_locations *table) {
    unsigned head = *table->at++, kind = head >> 3 & 15;
    table->past += ((int)(head & 7) + 1) * (int)sizeof(_Py_CODEUNIT);
    move(table, lines_further(table, kind));
    table->line = kind == KIND_NONE ? -1 : table->computed;
    while (table->at < table->end && (*table->at & IS_FIRST_BYTE) == 0) {
        table->at++;
    }
}
#else
#define NO_LINE (-128)

static void read_entry(lp_locations *table) {
    if (table->end - table->at == 1) {   /* half an entry, which a program may make */
        table->at++;
        return;
    }
    int further = (signed char)table->at[1];
    table->past += table->at[0];
    move(table, further == NO_LINE ? 0 : further);
    table->line = further == NO_LINE ? -1 : table->computed;
    table->at += 2;
}
#endif

static void begin(lp_locations *table, const PyCodeObject *code) {
    const unsigned char *bytes = (const unsigned char *)PyBytes_AS_STRING(code->co_linetable);
    int line = code->co_firstlineno;
    *table = (lp_locations){code, bytes, bytes + PyBytes_GET_SIZE(code->co_linetable), 0, 0, line, -1};
}

int lp_locations_line(lp_locations *table, const PyCodeObject *code, int offset) {
    if (offset < 0) {
        return code->co_firstlineno;
    }
    if (table->code != code || offset < table->first) {
        begin(table, code);
    }
    while (table->past <= offset && table->at < table->end) {
        table->first = table->past;
        read_entry(table);
    }
    return offset < table->past ? table->line : -1;
}
