/** Reads the intervals that a rank owns, however many there are. */
#ifndef TESSERA_TOOLS_SHARDS_OWNED_H
#define TESSERA_TOOLS_SHARDS_OWNED_H

#include <tessera/layout.h>

/** The intervals that a rank owns along one tensor dim. */
typedef struct owned {
    tsr_interval *at; /**< on the heap; grows as needed; the caller frees it */
    size_t count, capacity;
} owned;

/** Reads the intervals of a coordinate along `dim`; reuses the memory of `out`, which begins
 * zeroed. */
tsr_status owned_read(const tsr_layout *layout, const int64_t *coordinate, int dim, owned *out);

#endif
