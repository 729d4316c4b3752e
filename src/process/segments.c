/* Lists memory by file from /proc and /dev/shm. A list that is full keeps what it has. */
#include "process/segments.h"

#include <string.h>

#include "base/rawmem.h"  // lp_raw_realloc

#ifdef __linux__

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>    // TMPFS_MAGIC
#include <stdio.h>          // fopen, fgets
#include <stdlib.h>
#include <sys/shm.h>        // shmctl
#include <sys/stat.h>
#include <sys/sysmacros.h>  // makedev
#include <sys/vfs.h>        // statfs
#include <unistd.h>

#include "process/mappings.h"     // lp_mappings_is_device
#include "process/proc_memory.h"  // lp_proc_memory_read
#include "process/shared_mappings.h"

static const char shm_folder[] = "/dev/shm", shm_begin[] = "/dev/shm/", semaphore_begin[] = "/dev/shm/sem.";
static const char shared_rights[] = "---s";

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

void lp_shared_memory_read(lp_shared_memory *out_memory) {
    struct statfs files;
    struct shm_info info;
    memset(out_memory, 0, sizeof(*out_memory));
    if (statfs(shm_folder, &files) == 0 && files.f_type == TMPFS_MAGIC) {
        out_memory->files = (uint64_t)(files.f_files - files.f_ffree);
        out_memory->file_bytes = (uint64_t)(files.f_blocks - files.f_bfree) * (uint64_t)files.f_bsize;
    }
    if (shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info) >= 0) {
        out_memory->segments = (uint64_t)info.used_ids;
        out_memory->segment_bytes = info.shm_tot * (uint64_t)sysconf(_SC_PAGESIZE);
    }
}

/* The row of a file, which is added if it is new; NULL without memory. */
static lp_segment *row_of(lp_segments *s, uint64_t device, uint64_t inode) {
    for (size_t i = s->count; i-- > 0;) {
        if (s->row[i].inode == inode && s->row[i].device == device) {
            return &s->row[i];
        }
    }
    if (s->count == LP_SEGMENTS_MOST) {
        return NULL;
    }
    if (s->count == s->capacity) {
        size_t capacity = s->capacity + LP_SEGMENTS_ROOM;
        lp_segment *row = lp_raw_realloc(s->row, capacity * sizeof(*row));
        if (row == NULL) {
            return NULL;
        }
        s->row = row;
        s->capacity = capacity;
    }
    s->row[s->count] = (lp_segment){.device = device, .inode = inode};
    return &s->row[s->count++];
}

static void note_file(lp_segments *s, const struct stat *file, uint32_t known) {
    lp_segment *row = row_of(s, file->st_dev, file->st_ino);
    if (row != NULL) {
        row->known |= known;
        row->has_size = 1;
        row->bytes = (uint64_t)file->st_blocks * LP_STAT_BLOCK_BYTES;
    }
}

/* ---- mappings ---- */

static int is_semaphore(const char *path) { return begins(path, semaphore_begin); }

/* 1 for the path of a mapping that is memory and no file that can be written back: what is unlinked, and tmpfs. */
static int is_memory(const char *path) {
    static const char gone[] = " (deleted)";
    size_t length = strlen(path), end = sizeof(gone) - 1;
    int is_unlinked = length > end && strcmp(path + length - end, gone) == 0;
    return !is_semaphore(path) && (is_unlinked || begins(path, shm_begin));
}

static void note_mapping(void *to, const lp_shared_mapping *mapping) {
    lp_segments *s = to;
    if (mapping->inode == 0 || !is_memory(mapping->path) || lp_mappings_is_device(shared_rights, mapping->path)) {
        return;
    }
    lp_segment *row = row_of(s, mapping->device, mapping->inode);
    if (row != NULL) {
        row->known |= LP_SEGMENT_MAPPED;
        row->from = mapping->from;
        row->to = mapping->to;
        uint64_t bytes = mapping->offset + (mapping->to - mapping->from);
        row->bytes = !row->has_size && bytes > row->bytes ? bytes : row->bytes;
    }
}

/* ---- descriptors and names ---- */

static int is_in_memory(int file) {
    struct statfs where;
    return fstatfs(file, &where) == 0 && (where.f_type == TMPFS_MAGIC || where.f_type == HUGETLBFS_MAGIC);
}

/* A name in another folder of tmpfs is a file like any other, which somebody wrote for its contents. */
static int is_segment(int file, const struct stat *found) {
    char link[LP_SHORT_PATH], target[LP_SHORT_PATH];
    if (!S_ISREG(found->st_mode) || !is_in_memory(file)) {
        return 0;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, target, sizeof(target) - 1);
    target[length < 0 ? 0 : length] = '\0';
    return !is_semaphore(target) && (found->st_nlink == 0 || begins(target, shm_begin));
}

static void note_descriptors(lp_segments *s) {
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct stat found;
        int file = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && file != dirfd(folder) && fstat(file, &found) == 0 && is_segment(file, &found)) {
            note_file(s, &found, LP_SEGMENT_OPEN);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

static void note_names(lp_segments *s, int64_t since) {
    DIR *folder = opendir(shm_folder);
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        struct stat found;
        if (!begins(entry->d_name, semaphore_begin + strlen(shm_begin)) &&
            fstatat(dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode) &&
            found.st_uid == geteuid() && found.st_ctim.tv_sec >= since) {
            note_file(s, &found, LP_SEGMENT_NAMED);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap": the inode of a segment
 * is its number. */
static void note_system_v(lp_segments *s) {
    FILE *table = fopen("/proc/sysvipc/shm", "re");
    char line[LP_PROC_LINE];
    while (table != NULL && fgets(line, sizeof(line), table) != NULL) {
        unsigned long long id, rss, swap;
        long maker;
        int end = 0;
        (void)sscanf(line, "%*d %llu %*o %*u %ld %*d %*u %*u %*u %*u %*u %*u %*u %*u %llu %llu%n", &id, &maker, &rss,
                     &swap, &end);
        if (end != 0 && maker == (long)getpid()) {
            lp_segment *row = row_of(s, makedev(0, 1), id);
            if (row != NULL) {
                row->bytes = rss + swap;
                row->known |= LP_SEGMENT_MADE;
                row->has_size = 1;
            }
        }
    }
    if (table != NULL) {
        fclose(table);
    }
}

/* ---- mappings that are known ---- */

/* The mappings as of the last listing, how each was known then, and what the process mapped beside private memory that
 * can be written: while that stands, so do they, mostly.  Reading a thousand lines takes milliseconds. */
static lp_segments kept;
static uint64_t kept_at;

uint64_t lp_segments_mapped(void) {
    lp_proc_memory memory;
    (void)lp_proc_memory_read(0, &memory);
    return memory.mapped - memory.writable;
}

static void keep_mappings(const lp_segments *s, size_t count, uint64_t now) {
    lp_segment *row = lp_raw_realloc(kept.row, (count + 1) * sizeof(*row));
    kept_at = 0;
    if (row != NULL) {
        kept.row = row;
        kept.count = count;
        kept_at = now;
        for (size_t i = 0; i < count; i++) {
            row[i] = s->row[i];
        }
    }
}

static void take_kept(lp_segments *s) {
    for (size_t i = 0; i < kept.count; i++) {
        lp_segment *row = row_of(s, kept.row[i].device, kept.row[i].inode);
        if (row != NULL) {
            *row = kept.row[i];
            row->known = LP_SEGMENT_MAPPED;
        }
    }
}

/* 1 if a file has neither the descriptor nor the name that it had: another one may be mapped in its place. */
static int has_lost_handle(const lp_segments *s) {
    uint32_t handles = LP_SEGMENT_OPEN | LP_SEGMENT_NAMED;
    for (size_t i = 0; i < kept.count && i < s->count; i++) {
        if ((kept.row[i].known & handles) != 0 && (s->row[i].known & handles) == 0) {
            return 1;
        }
    }
    return 0;
}

static void note_handles(lp_segments *s, int64_t since) {
    note_descriptors(s);
    note_names(s, since);
}

/* All anew. */
static lp_status note_files(lp_segments *s, int64_t since, uint64_t now) {
    s->count = 0;
    kept_at = 0;
    lp_status status = lp_shared_mappings_read(note_mapping, s);
    if (status == LP_OK) {
        size_t mapped = s->count;
        note_handles(s, since);
        keep_mappings(s, mapped, now);
    }
    return status;
}

lp_status lp_segments_read(int64_t since, lp_segments *out_segments) {
    uint64_t now = lp_segments_mapped();
    int is_known = kept_at != 0 && kept_at == now;
    lp_status status = LP_OK;
    memset(out_segments, 0, sizeof(*out_segments));
    if (is_known) {
        take_kept(out_segments);
        note_handles(out_segments, since);
    }
    if (!is_known || has_lost_handle(out_segments)) {
        status = note_files(out_segments, since, now);
    }
    if (status == LP_OK) {
        note_system_v(out_segments);
    } else {
        lp_raw_free(out_segments->row);
        memset(out_segments, 0, sizeof(*out_segments));
    }
    return status;
}

#else

uint64_t lp_segments_mapped(void) { return 0; }

void lp_shared_memory_read(lp_shared_memory *out_memory) { memset(out_memory, 0, sizeof(*out_memory)); }

lp_status lp_segments_read(int64_t since, lp_segments *out_segments) {
    (void)since;
    memset(out_segments, 0, sizeof(*out_segments));
    return LP_UNSUPPORTED;
}

#endif
