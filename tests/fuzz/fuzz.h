/* What the fuzz targets share: a check that aborts, and numbers out of the input. */
#ifndef LP_FUZZ_H
#define LP_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct input {
    const uint8_t *data;
    size_t size, at;
} input;

/* The next `bytes` (at most 8) of the input as a number; 0 beyond its end. */
static inline uint64_t take(input *in, size_t bytes) {
    uint64_t value = 0;
    size_t rest = in->size - in->at, count = rest < bytes ? rest : bytes;
    if (count > 0) {
        memcpy(&value, in->data + in->at, count);
    }
    in->at += count;
    return value;
}

#endif
