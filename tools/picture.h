/** A layout drawn in text: which rank owns which block. */
#ifndef TESSERA_TOOLS_PICTURE_H
#define TESSERA_TOOLS_PICTURE_H

#include <tessera/layout.h>

/** What a rank owns along one tensor dim. */
typedef struct owned {
    tsr_interval *at; /**< heap; grows as needed */
    size_t count, capacity;
} owned;

/** Reads what a coordinate owns along `dim`, into memory that is used again. */
tsr_status owned_read(const tsr_layout *layout, const int64_t *coordinate, int dim, owned *out);

/** Draws a tensor of at most 2 dims on standard output, or says why it does not. Errors: memory. */
tsr_status picture_print(const tsr_layout *layout);

#endif
