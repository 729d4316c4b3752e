/* Asks the kernel for mappings one by one (PROCMAP_QUERY, linux/fs.h), or reads their table:
 * "start-end rw-s offset device inode   path". */
#include "process/shared_mappings.h"

#ifdef __linux__

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>          // fopen, fgets
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>  // makedev
#include <unistd.h>

#include "process/numbers.h"  // LP_PROC_LINE

static const char table[] = "/proc/self/maps";

/* struct procmap_query, which headers before 6.11 don't have. */
typedef struct map_query {
    uint64_t size, wanted, address;
    uint64_t from, to, flags, page_bytes, offset, inode;
    uint32_t major_number, minor_number, path_bytes, build_id_bytes;
    uint64_t path, build_id;
} map_query;

#define MAP_QUERY _IOWR('f', LP_MAP_QUERY, map_query)

static void note_answer(const map_query *query, const char *path, lp_note_mapping *note, void *to) {
    lp_shared_mapping found = {.from = query->from, .to = query->to, .offset = query->offset, .inode = query->inode};
    found.device = makedev(query->major_number, query->minor_number);
    found.path = path;
    note(to, &found);
}

static lp_status ask_for_all(int maps, lp_note_mapping *note, void *to) {
    char path[LP_PROC_LINE];
    for (uint64_t address = 0;;) {
        map_query query = {.size = sizeof(query), .wanted = LP_MAP_WANTED, .address = address};
        query.path = (uint64_t)(uintptr_t)path;
        query.path_bytes = LP_PROC_TEXT;
        if (ioctl(maps, MAP_QUERY, &query) != 0) {
            return errno == ENOENT ? LP_OK : LP_UNSUPPORTED; /* there are no more */
        }
        note_answer(&query, query.path_bytes != 0 ? path : "", note, to);
        address = query.to;
    }
}

lp_status lp_shared_mappings_ask(lp_note_mapping *note, void *to) {
    int maps = open(table, O_RDONLY | O_CLOEXEC);
    if (maps < 0) {
        return LP_SYSTEM;
    }
    lp_status status = ask_for_all(maps, note, to);
    close(maps);
    return status;
}

/* Most lines are of private mappings, which need no more than a look. */
static int is_of_shared(const char *line) {
    const char *rights = strchr(line, ' ');
    return rights != NULL && memchr(rights + 1, 's', strcspn(rights + 1, " ")) != NULL;
}

static void note_line(char *line, lp_note_mapping *note, void *to) {
    unsigned long long start, end, offset, inode = 0;
    unsigned int major_number, minor_number;
    int path_at = 0;
    line[strcspn(line, "\n")] = '\0';
    (void)sscanf(line, "%llx-%llx %*s %llx %x:%x %llu %n", &start, &end, &offset, &major_number, &minor_number, &inode,
                 &path_at);
    if (path_at != 0) {
        lp_shared_mapping found = {start, end, offset, makedev(major_number, minor_number), inode, line + path_at};
        note(to, &found);
    }
}

lp_status lp_shared_mappings_list(lp_note_mapping *note, void *to) {
    FILE *maps = fopen(table, "re");
    char line[LP_PROC_LINE];
    if (maps == NULL) {
        return LP_SYSTEM;
    }
    while (fgets(line, sizeof(line), maps) != NULL) {
        if (is_of_shared(line)) {
            note_line(line, note, to);
        }
    }
    fclose(maps);
    return LP_OK;
}

/* What was noted before an answer that failed is noted again: a file is one row, however often it is met. */
lp_status lp_shared_mappings_read(lp_note_mapping *note, void *to) {
    lp_status status = lp_shared_mappings_ask(note, to);
    return status == LP_OK ? LP_OK : lp_shared_mappings_list(note, to);
}

#else

lp_status lp_shared_mappings_ask(lp_note_mapping *note, void *to) {
    (void)note;
    (void)to;
    return LP_UNSUPPORTED;
}

lp_status lp_shared_mappings_list(lp_note_mapping *note, void *to) { return lp_shared_mappings_ask(note, to); }

lp_status lp_shared_mappings_read(lp_note_mapping *note, void *to) { return lp_shared_mappings_ask(note, to); }

#endif
