/* Another tool that patches import slots, as simple as they come: for tests of how hooks live beside one.
 *
 * Finds slots by itself, with no help of leakprobe's parser, in well-formed libraries only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct query {
    const char *object, *symbol;
    void **found;
} query;

static void *tag_value(const ElfW(Dyn) * entry, int64_t tag) {
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == tag) {
            return (void *)entry->d_un.d_ptr;
        }
    }
    return NULL;
}

static int look(struct dl_phdr_info *info, size_t size, void *argument) {
    query *q = argument;
    (void)size;
    if (strstr(info->dlpi_name, q->object) == NULL) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) {
            continue;
        }
        const ElfW(Dyn) *dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        const ElfW(Rela) *rela = tag_value(dynamic, DT_JMPREL);
        const ElfW(Sym) *symbols = tag_value(dynamic, DT_SYMTAB);
        const char *strings = tag_value(dynamic, DT_STRTAB);
        size_t count = (size_t)tag_value(dynamic, DT_PLTRELSZ) / sizeof(*rela);
        for (size_t k = 0; k < count; k++) {
            if (strcmp(strings + symbols[ELF64_R_SYM(rela[k].r_info)].st_name, q->symbol) == 0) {
                q->found = (void **)(info->dlpi_addr + rela[k].r_offset);
                return 1;
            }
        }
    }
    return 0;
}

/* The JUMP_SLOT of a symbol in the object whose path has `object` in it, or NULL. */
void **tool_find_slot(const char *object, const char *symbol) {
    query q = {object, symbol, NULL};
    dl_iterate_phdr(look, &q);
    return q.found;
}

void *tool_read(void **slot) { return *slot; }

void tool_write(void **slot, void *value) {
    uintptr_t page = (uintptr_t)slot & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    (void)mprotect((void *)page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
    *slot = value;
}

/* A layer over a function of up to three words that returns nothing: counts and passes on. */
static void (*below)(void *, void *, size_t);
static int layer_calls;

static void layer(void *a, void *b, size_t c) {
    layer_calls++;
    below(a, b, c);
}

void tool_push_layer(void **slot) {
    below = (void (*)(void *, void *, size_t))*slot;
    tool_write(slot, (void *)layer);
}

void tool_pop_layer(void **slot) { tool_write(slot, (void *)below); }

int tool_layer_calls(void) { return layer_calls; }

/* Open a library without binding what it calls; ctypes itself always binds. */
void *tool_open_lazily(const char *path) { return dlopen(path, RTLD_LAZY | RTLD_LOCAL); }
