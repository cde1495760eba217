/** Plain copies between contiguous memory, the peak that moves are compared with. */
#ifndef TESSERA_TOOLS_BENCH_RUN_COPY_H
#define TESSERA_TOOLS_BENCH_RUN_COPY_H

#include <stddef.h>

typedef struct plain_copy {
    const char *name;       /**< "memcpy", "non-temporal 32" .. */
    int (*runs_here)(void); /**< 1 if this processor has the instructions, else 0 */
    void (*copy)(void *dst, const void *src, size_t bytes);
} plain_copy;

/** The copy at `index` among those that this processor can run; NULL past the last. Static. */
const plain_copy *plain_copy_get(int index);

/** Upper bound of the number of copies. */
#define MAX_PLAIN_COPIES 3

#endif
