/* To preload: what the kernel says of a process whose pages all lie in swap but for the map of pages. */
#include <stddef.h>
#include <string.h>
#include <sys/sysinfo.h>

int mincore(void *address, size_t length, unsigned char *out) {
    (void)address;
    memset(out, 0, (length + 4095) / 4096);
    return 0;
}

int sysinfo(struct sysinfo *info) {
    *info = (struct sysinfo){.totalswap = 2, .freeswap = 1, .mem_unit = 1};
    return 0;
}
