/* Entries of a table follow one another; each is about the instructions behind those of the one before. */
#include "python/compat/locations.h"

#include "python/compat/numbers.h"  // LP_LOCATION_FIRST

/* A table that a program has made may count past an int. */
static void move(lp_locations *table, int further) {
    table->computed = (int)((unsigned)table->computed + (unsigned)further);
}

#if PY_VERSION_HEX >= 0x030B0000
static int signed_number(const lp_locations *table) {
    unsigned value = 0, shift = 0;
    for (const unsigned char *at = table->at; at < table->end && shift < LP_INT_BITS; at++, shift += LP_LOCATION_BITS) {
        value |= (unsigned)(*at & (LP_LOCATION_MORE - 1)) << shift;
        if ((*at & LP_LOCATION_MORE) == 0) {
            break;
        }
    }
    return (value & 1) != 0 ? -(int)(value >> 1) : (int)(value >> 1);
}

static int lines_further(const lp_locations *table, unsigned kind) {
    if (kind == LP_LOCATION_LONG || kind == LP_LOCATION_NO_COLUMNS) {
        return signed_number(table);
    }
    return kind >= LP_LOCATION_ONE_LINE && kind < LP_LOCATION_NO_COLUMNS ? (int)(kind - LP_LOCATION_ONE_LINE) : 0;
}

static void read_entry(lp_locations *table) {
    unsigned head = *table->at++, kind = head >> LP_LOCATION_KIND_SHIFT & LP_LOCATION_KIND_MASK;
    table->past += (int)(((head & LP_LOCATION_UNITS_MASK) + 1) * LP_CODE_UNIT_BYTES);
    move(table, lines_further(table, kind));
    table->line = kind == LP_LOCATION_NONE ? -1 : table->computed;
    while (table->at < table->end && (*table->at & LP_LOCATION_FIRST) == 0) {
        table->at++;
    }
}
#else
static void read_entry(lp_locations *table) {
    if (table->end - table->at == 1) {   /* half an entry, which a program may make */
        table->at++;
        return;
    }
    int further = (signed char)table->at[1];
    table->past += table->at[0];
    move(table, further == LP_LINES_NONE ? 0 : further);
    table->line = further == LP_LINES_NONE ? -1 : table->computed;
    table->at += LP_LINES_ENTRY;
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
