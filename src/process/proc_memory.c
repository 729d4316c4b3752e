/* Reads /proc files with system calls alone: no stream, no allocation. */
#include "process/proc_memory.h"

#include <string.h>

#include "process/numbers.h"  // LP_PROC_TEXT

#ifdef __linux__

#include <fcntl.h>
#include <stdio.h>   // snprintf
#include <stdlib.h>
#include <unistd.h>

long lp_proc_read(const char *path, char *text, size_t capacity) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -1;
    }
    size_t length = 0;
    for (;;) {
        ssize_t got = read(file, text + length, capacity - 1 - length);
        if (got <= 0) {
            break;
        }
        length += (size_t)got;
    }
    close(file);
    text[length] = '\0';
    return (long)length;
}

/* "Name:   123 kB" of a line that begins with the name; 0 where there is none. */
static uint64_t field_bytes(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0) {
            return strtoull(line + length, NULL, 10) * 1024;
        }
    }
    return 0;
}

static int read_rollup(const char *path, lp_proc_memory *memory) {
    char text[LP_PROC_TEXT];
    if (lp_proc_read(path, text, sizeof(text)) <= 0 || strstr(text, "\nRss:") == NULL) {
        return 0;
    }
    memory->rss = field_bytes(text, "Rss:");
    memory->pss = field_bytes(text, "Pss:");
    memory->private_bytes = field_bytes(text, "Private_Clean:") + field_bytes(text, "Private_Dirty:");
    memory->shared_bytes = field_bytes(text, "Shared_Clean:") + field_bytes(text, "Shared_Dirty:");
    memory->anonymous = field_bytes(text, "Anonymous:");
    memory->has_rollup = 1;
    return 1;
}

uint64_t lp_proc_huge_bytes(void) {
    char text[LP_PROC_TEXT];
    return lp_proc_read("/proc/self/status", text, sizeof(text)) > 0 ? field_bytes(text, "HugetlbPages:") : 0;
}

lp_status lp_proc_rollup_of(int pid, lp_proc_memory *out_memory) {
    char path[64];
    memset(out_memory, 0, sizeof(*out_memory));
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
    return read_rollup(path, out_memory) ? LP_OK : LP_SYSTEM;
}

lp_status lp_proc_memory_read(int with_rollup, lp_proc_memory *out_memory) {
    char text[256], *rest = text;
    memset(out_memory, 0, sizeof(*out_memory));
    if (lp_proc_read("/proc/self/statm", text, sizeof(text)) <= 0) {
        return LP_SYSTEM;
    }
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t *const fields[] = {&out_memory->mapped, &out_memory->rss,    &out_memory->shared_rss,
                                NULL /* code */,     NULL /* always 0 */, &out_memory->writable};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        uint64_t pages = strtoull(rest, &rest, 10);
        if (fields[i] != NULL) {
            *fields[i] = pages * page_bytes;
        }
    }
    if (with_rollup) {
        uint64_t rss = out_memory->rss;
        read_rollup("/proc/self/smaps_rollup", out_memory);
        out_memory->rss = rss;
    }
    return LP_OK;
}

#else

uint64_t lp_proc_huge_bytes(void) { return 0; }

long lp_proc_read(const char *path, char *text, size_t capacity) {
    (void)path, (void)text, (void)capacity;
    return -1;
}

lp_status lp_proc_rollup_of(int pid, lp_proc_memory *out_memory) {
    (void)pid;
    memset(out_memory, 0, sizeof(*out_memory));
    return LP_UNSUPPORTED;
}

lp_status lp_proc_memory_read(int with_rollup, lp_proc_memory *out_memory) {
    (void)with_rollup;
    memset(out_memory, 0, sizeof(*out_memory));
    return LP_UNSUPPORTED;
}

#endif
