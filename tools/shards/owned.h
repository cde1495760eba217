/** Reading what a rank owns, of whatever length. */
#ifndef TESSERA_TOOLS_SHARDS_OWNED_H
#define TESSERA_TOOLS_SHARDS_OWNED_H

#include <tessera/layout.h>

/** What a rank owns along one tensor dim. */
typedef struct owned {
    tsr_interval *at; /**< heap; grows as needed */
    size_t count, capacity;
} owned;

/** Reads what a coordinate owns along `dim`, into memory that is used again. */
tsr_status owned_read(const tsr_layout *layout, const int64_t *coordinate, int dim, owned *out);

#endif
