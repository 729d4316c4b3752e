/* Owns a sorted list of readable ranges, as old as its last read. What must be surer goes through
 * lp_peek_words(). */
#include "process/mappings.h"

#include "base/rawmem.h"  // lp_raw_realloc

#include <string.h>

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>      // process_vm_readv
#include <unistd.h>

#define PEEK_WORDS 8

int lp_peek_words(uint64_t from, uint64_t *out, size_t count) {
    struct iovec local = {out, count * sizeof(*out)}, remote = {(void *)(uintptr_t)from, count * sizeof(*out)};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)(count * sizeof(*out));
}

int lp_copy_words(uint64_t from, uint64_t *out, size_t count) {
    errno = 0; /* where only a part can be copied it is not set */
    if (lp_peek_words(from, out, count)) {
        return 1;
    }
    if (errno != EPERM && errno != ENOSYS) {
        return 0;
    }
    memcpy(out, (const void *)(uintptr_t)from, count * sizeof(*out));
    return 1;
}

/* ---- /proc/self/maps: "7f0123-7f0456 r-xp ..." ---- */

typedef struct reader {
    int file;
    char text[1 << 15];
    size_t at, length;
} reader;

/* The next character, or -1 at the end. */
static int next(reader *r) {
    if (r->at == r->length) {
        ssize_t got = read(r->file, r->text, sizeof(r->text));
        r->at = 0;
        r->length = got > 0 ? (size_t)got : 0;
        if (got <= 0) {
            return -1;
        }
    }
    return (unsigned char)r->text[r->at++];
}

/* A number up to a character that is no digit, which is taken too; *out_end is that character. */
static uint64_t read_number(reader *r, int *out_end) {
    uint64_t number = 0;
    for (;;) {
        int c = next(r);
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) {
            *out_end = c;
            return number;
        }
        number = number << 4 | (unsigned)digit;
    }
}

static lp_status add(lp_mappings *m, uint64_t from, uint64_t to) {
    if (m->count > 0 && m->range[m->count - 1].to == from) {
        m->range[m->count - 1].to = to;
        return LP_OK;
    }
    if (m->count == m->capacity) {
        uint32_t capacity = m->capacity == 0 ? 512 : m->capacity * 2;
        lp_range *range = lp_raw_realloc(m->range, capacity * sizeof(*range));
        if (range == NULL) {
            return LP_NO_MEMORY;
        }
        m->range = range;
        m->capacity = capacity;
    }
    m->range[m->count++] = (lp_range){from, to};
    return LP_OK;
}

/* The rest of a line up to a blank, which is taken too, or to its end: as much of it as fits, with a NUL. */
static int read_word(reader *r, char *out, size_t room) {
    int c = next(r);
    for (; c == ' '; c = next(r)) {
    }
    size_t length = 0;
    for (; c >= 0 && c != '\n' && c != ' '; c = next(r)) {
        if (length + 1 < room) {
            out[length++] = (char)c;
        }
    }
    out[length] = '\0';
    return c;
}

/* Memory of a device is mapped, but reading it may hang or fail.  What other processes share too lies there as well. */
int lp_mappings_is_device(const char *rights, const char *path) {
    static const char *const memory[] = {"/dev/shm/", "/dev/zero", "/dev/hugepages/"};
    static const char *const device[] = {"/dev/", "/sys/", "/proc/", "anon_inode:", "/dmabuf"};
    if (rights[0] == '\0' || rights[3] != 's') {
        return 0;
    }
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
        if (strncmp(path, memory[i], strlen(memory[i])) == 0) {
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof(device) / sizeof(device[0]); i++) {
        if (strncmp(path, device[i], strlen(device[i])) == 0) {
            return 1;
        }
    }
    return 0;
}

/* "rw-s 00000000 00:06 42 /dev/nvidia0" of the line, after its range. */
static lp_status read_rest(lp_mappings *m, reader *r, uint64_t from, uint64_t to, int *out_end) {
    char rights[5], path[24] = "";
    *out_end = read_word(r, rights, sizeof(rights));
    for (int skipped = 0; skipped < 3 && *out_end == ' '; skipped++) {
        *out_end = read_word(r, path, sizeof(path));
    }
    path[0] = '\0';
    if (*out_end == ' ') {
        *out_end = read_word(r, path, sizeof(path));
    }
    return rights[0] == 'r' && !lp_mappings_is_device(rights, path) ? add(m, from, to) : LP_OK;
}

static lp_status read_lines(lp_mappings *m, reader *r) {
    lp_status status = LP_OK;
    for (int c = 0; c >= 0 && status == LP_OK;) {
        uint64_t from = read_number(r, &c), to = c == '-' ? read_number(r, &c) : 0;
        if (c == ' ') {
            status = read_rest(m, r, from, to, &c);
        }
        while (c >= 0 && c != '\n') {
            c = next(r);
        }
    }
    return status;
}

/* What is left out here, the kernel may still read for us, or refuse to: see lp_mappings_find(). */
lp_status lp_mappings_read(lp_mappings *m) {
    reader r = {.file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    m->count = 0;
    m->last = (lp_range){0, 0};
    if (r.file < 0) {
        return LP_UNSUPPORTED;
    }
    lp_status status = read_lines(m, &r);
    close(r.file);
    return status;
}

static const lp_range *find(const lp_mappings *m, uint64_t address) {
    uint32_t low = 0, high = m->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->range[middle].to <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < m->count && m->range[low].from <= address ? &m->range[low] : NULL;
}

int lp_mappings_find(lp_mappings *m, uint64_t address, uint64_t bytes) {
    uint64_t word[PEEK_WORDS];
    const lp_range *range = find(m, address);
    if (range == NULL) {
        size_t words = (size_t)(bytes + 7) / 8 < PEEK_WORDS ? (size_t)(bytes + 7) / 8 : PEEK_WORDS;
        if (!lp_peek_words(address, word, words)) {
            return 0;
        }
        lp_mappings_read(m);   /* mapped since */
        range = find(m, address);
        if (range == NULL) {
            m->last = (lp_range){address, address + words * 8};
        }
    }
    if (range != NULL) {
        m->last = *range;
        return range->to - address >= bytes;
    }
    return 1;
}

#else

int lp_peek_words(uint64_t from, uint64_t *out, size_t count) {
    (void)from, (void)out, (void)count;
    return 0;
}

int lp_copy_words(uint64_t from, uint64_t *out, size_t count) {
    memcpy(out, (const void *)(uintptr_t)from, count * sizeof(*out));
    return 1;
}

lp_status lp_mappings_read(lp_mappings *m) {
    m->last = (lp_range){0, UINT64_MAX};
    return LP_UNSUPPORTED;
}

int lp_mappings_find(lp_mappings *m, uint64_t address, uint64_t bytes) {
    (void)m, (void)address, (void)bytes;
    return 1;
}

#endif
