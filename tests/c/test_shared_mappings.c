/* Shared mappings, asked for one by one and read from the table. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "process/shared_mappings.h"

enum { MOST = 64, PATH = 128 };

typedef struct mappings {
    lp_shared_mapping found[MOST];
    char path[MOST][PATH];
    size_t count;
} mappings;

static void keep(void *to, const lp_shared_mapping *mapping) {
    mappings *m = to;
    CHECK(m->count < MOST);
    m->found[m->count] = *mapping;
    snprintf(m->path[m->count++], PATH, "%s", mapping->path);
}

static int has(const mappings *m, const void *at, size_t bytes) {
    for (size_t i = 0; i < m->count; i++) {
        if (m->found[i].from == (uintptr_t)at && m->found[i].to == (uintptr_t)at + bytes) {
            return m->found[i].inode != 0 && m->path[i][0] == '/';
        }
    }
    return 0;
}

static int are_alike(const mappings *a, const mappings *b) {
    int alike = a->count == b->count;
    for (size_t i = 0; alike && i < a->count; i++) {
        const lp_shared_mapping *x = &a->found[i], *y = &b->found[i];
        alike = x->from == y->from && x->to == y->to && x->offset == y->offset && x->device == y->device &&
                x->inode == y->inode && strcmp(a->path[i], b->path[i]) == 0;
    }
    return alike;
}

static void test_shared_ones_with_a_file_alone(void) {
    static mappings listed, read, asked;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char name[] = "/tmp/leakprobe_XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0 && unlink(name) == 0 && ftruncate(file, (off_t)(4 * page)) == 0);
    void *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *part = mmap(NULL, page, PROT_READ, MAP_SHARED, file, (off_t)page);
    void *private = mmap(NULL, page, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(lp_shared_mappings_list(keep, &listed) == LP_OK && lp_shared_mappings_read(keep, &read) == LP_OK);
    CHECK(has(&listed, memory, 3 * page) && has(&listed, part, page) && !has(&listed, private, page));
    CHECK(are_alike(&listed, &read));
    lp_status status = lp_shared_mappings_ask(keep, &asked);
    CHECK(status == LP_UNSUPPORTED || (status == LP_OK && are_alike(&listed, &asked)));
    CHECK(munmap(part, page) == 0 && munmap(private, page) == 0 && munmap(memory, 3 * page) == 0 && close(file) == 0);
}

int main(void) {
    test_shared_ones_with_a_file_alone();
    return 0;
}
