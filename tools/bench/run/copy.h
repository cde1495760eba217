/** Plain copies, the peak that moves are compared with: from contiguous memory to contiguous memory, nothing else. */
#ifndef TESSERA_TOOLS_BENCH_RUN_COPY_H
#define TESSERA_TOOLS_BENCH_RUN_COPY_H

#include <stddef.h>

typedef struct plain_copy {
    const char *name; /**< "memcpy", "non-temporal 32" .. */
    int (*runs_here)(void);
    void (*copy)(void *dst, const void *src, size_t bytes);
} plain_copy;

/** Row `index` of those that this processor runs, or NULL past the last. Static. */
const plain_copy *plain_copy_get(int index);

/** As many rows at most. */
#define MAX_PLAIN_COPIES 3

#endif
