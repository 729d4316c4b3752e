/* Counts what /proc lists. A quick way to count is used only where it agreed with the slow one. */
#include "process/resources.h"

#include <string.h>

static const char *const kind_names[LP_FD_KIND_COUNT] = {
#define LP_X(name, text) [LP_FD_##name] = text,
    LP_FD_KIND_LIST(LP_X)
#undef LP_X
};

const char *lp_fd_kind_name(lp_fd_kind kind) { return kind_names[kind]; }

#ifdef __linux__

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>   // snprintf, fgets
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/numbers.h"      // LP_PROC_LINE
#include "process/proc_memory.h"  // lp_proc_read

/* More threads than this are not asked for their children. */
#define MAX_TASKS 4096

static int is_number(const char *name) { return name[0] >= '0' && name[0] <= '9'; }

/* Entries of a folder that are numbers; -1 if it can't be read. */
static int64_t count_numbers(const char *path) {
    DIR *folder = opendir(path);
    int64_t count = 0;
    if (folder == NULL) {
        return -1;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        count += is_number(entry->d_name);
    }
    closedir(folder);
    return count;
}

/* ---- descriptors and threads, quickly ---- */

/* The folder's own descriptor is not counted. */
static int64_t count_descriptors(void) {
    int64_t count = count_numbers("/proc/self/fd");
    return count < 0 ? -1 : count - 1;
}

/* From Linux 6.2 on, st_size is the number of descriptors; 0 before. */
static int64_t descriptors_by_size(void) {
    struct stat status;
    return stat("/proc/self/fd", &status) == 0 && status.st_size > 0 ? (int64_t)status.st_size : -1;
}

/* A thread is a folder in the folder: one link each besides the folder's own two. */
static int64_t threads_by_links(void) {
    struct stat status;
    return stat("/proc/self/task", &status) == 0 && status.st_nlink > 2 ? (int64_t)status.st_nlink - 2 : -1;
}

/* 1 if both quick ways agree with counting, -1 if one does not; found out once. */
static int quick_ways;

static int are_quick_ways_right(void) {
    if (quick_ways == 0) {
        int descriptors = descriptors_by_size() == count_descriptors();
        quick_ways = descriptors && threads_by_links() == count_numbers("/proc/self/task") ? 1 : -1;
    }
    return quick_ways > 0;
}

lp_status lp_resources_count(uint64_t *out_descriptors, uint64_t *out_threads) {
    int quick = are_quick_ways_right();
    int64_t descriptors = quick ? descriptors_by_size() : count_descriptors();
    int64_t threads = quick ? threads_by_links() : count_numbers("/proc/self/task");
    if (descriptors < 0 || threads < 0) {
        return LP_SYSTEM;
    }
    *out_descriptors = (uint64_t)descriptors;
    *out_threads = (uint64_t)threads;
    return LP_OK;
}

/* ---- descriptors by kind ---- */

static lp_fd_kind kind_of_target(const char *target) {
    static const struct {
        const char *prefix;
        lp_fd_kind kind;
    } kinds[] = {
        {"/dev/shm/", LP_FD_SHARED_MEMORY},
        {"/memfd:", LP_FD_SHARED_MEMORY},
        {"/dev/", LP_FD_DEVICE},
        {"socket:", LP_FD_SOCKET},
        {"pipe:", LP_FD_PIPE},
        {"/", LP_FD_FILE},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strncmp(target, kinds[i].prefix, strlen(kinds[i].prefix)) == 0) {
            return kinds[i].kind;
        }
    }
    return LP_FD_OTHER;
}

static lp_status read_descriptors(lp_resources *resources) {
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) {
        return LP_SYSTEM;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char target[64];
        if (!is_number(entry->d_name) || atoi(entry->d_name) == dirfd(folder)) {
            continue;
        }
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
        target[length < 0 ? 0 : length] = '\0';
        resources->descriptors++;
        resources->descriptors_by_kind[kind_of_target(target)]++;
    }
    closedir(folder);
    return LP_OK;
}

/* ---- children ---- */

static uint64_t count_words(const char *text) {
    uint64_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text != ' ' && (text[1] == ' ' || text[1] == '\0');
    }
    return count;
}

/* Children that one thread began; 0 if there is no such file (the thread is gone). */
static uint64_t children_of_task(const char *task) {
    char path[64], text[32768];
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", task);
    return lp_proc_read(path, text, sizeof(text)) > 0 ? count_words(text) : 0;
}

static uint64_t children_by_tasks(void) {
    DIR *folder = opendir("/proc/self/task");
    uint64_t count = 0;
    if (folder == NULL) {
        return 0;
    }
    struct dirent *entry;
    for (unsigned seen = 0; seen < MAX_TASKS && (entry = readdir(folder)) != NULL; seen++) {
        count += is_number(entry->d_name) ? children_of_task(entry->d_name) : 0;
    }
    closedir(folder);
    return count;
}

/* The parent in "/proc/PID/stat": the second field behind the name, which may hold anything. */
static long parent_of(const char *pid) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    const char *end = lp_proc_read(path, text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
    return end != NULL && strlen(end) > 4 ? strtol(end + 4, NULL, 10) : -1;
}

/* The way of kernels without CONFIG_PROC_CHILDREN. */
static uint64_t children_by_parents(void) {
    DIR *folder = opendir("/proc");
    uint64_t count = 0;
    if (folder == NULL) {
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        count += is_number(entry->d_name) && parent_of(entry->d_name) == (long)getpid();
    }
    closedir(folder);
    return count;
}

static uint64_t count_children(void) {
    return access("/proc/thread-self/children", R_OK) == 0 ? children_by_tasks() : children_by_parents();
}

int64_t lp_resources_children(void) { return (int64_t)count_children(); }

/* ---- segments ---- */

/* Pages of all mappings; 0 if not known. */
static uint64_t mapped_pages(void) {
    char text[128];
    return lp_proc_read("/proc/self/statm", text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0;
}

/* "start-end perms offset device inode   path": the mappings of one file follow each other mostly. */
static void count_segments(lp_resources *resources) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[LP_PROC_LINE], before[256] = "";
    if (maps == NULL) {
        return;
    }
    while (fgets(line, sizeof(line), maps) != NULL) {
        const char *path = strchr(line, '/');
        if (path == NULL || strncmp(path, "/dev/shm/", 9) != 0) {
            before[0] = '\0';
            continue;
        }
        if (strncmp(before, path, sizeof(before) - 1) != 0) {
            *(strncmp(path + 9, "sem.", 4) == 0 ? &resources->semaphores : &resources->segments) += 1;
        }
        snprintf(before, sizeof(before), "%s", path);
    }
    fclose(maps);
}

/* While the mappings are of as many bytes as when they were gone through, what came would have to be as large as what went: the
 * numbers of then stand, since going through a thousand mappings takes the kernel a millisecond.  Read under the GIL. */
static void read_segments(lp_resources *resources) {
    static struct {
        uint64_t pages, segments, semaphores;
    } last;
    uint64_t pages = mapped_pages();
    if (pages == 0 || pages != last.pages) {
        count_segments(resources);
        last.pages = pages;
        last.segments = resources->segments;
        last.semaphores = resources->semaphores;
    }
    resources->segments = last.segments;
    resources->semaphores = last.semaphores;
}

lp_status lp_resources_read(lp_resources *out_resources) {
    LP_ASSERT_GIL();
    memset(out_resources, 0, sizeof(*out_resources));
    int64_t threads = count_numbers("/proc/self/task");
    lp_status status = read_descriptors(out_resources);
    if (status != LP_OK || threads < 0) {
        return LP_SYSTEM;
    }
    out_resources->threads = (uint64_t)threads;
    out_resources->children = count_children();
    read_segments(out_resources);
    return LP_OK;
}

static int lowest_free_descriptor(void) {
    int number = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (number < 0) {
        return 0;
    }
    close(number);
    return number;
}

int64_t lp_open_descriptors(void) { return are_quick_ways_right() ? descriptors_by_size() : lowest_free_descriptor(); }

#else

int64_t lp_open_descriptors(void) { return 0; }

int64_t lp_resources_children(void) { return -1; }

lp_status lp_resources_read(lp_resources *out_resources) {
    memset(out_resources, 0, sizeof(*out_resources));
    return LP_UNSUPPORTED;
}

lp_status lp_resources_count(uint64_t *out_descriptors, uint64_t *out_threads) {
    *out_descriptors = *out_threads = 0;
    return LP_UNSUPPORTED;
}

#endif
