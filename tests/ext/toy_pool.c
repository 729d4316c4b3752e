/* An allocator of a library of its own, as simple as they come: for the recipe of docs/contributing.md. */
#include <stdlib.h>

__attribute__((visibility("default"))) void *toy_pool_take(size_t bytes) { return malloc(bytes); }

__attribute__((visibility("default"))) void toy_pool_give(void *block) { free(block); }
