/**
 * Small integers as the terms of Partial tensors, chosen so that what they reduce to is known without reducing floating-point numbers.
 *
 * A term depends on the coordinate in the source's Partial mesh dims and on a *pick* (one of those coordinates) and a *choice* (0 to 7),
 * which follow from the element's global index. Mesh dims of size 1 do not count.
 */
#ifndef TESSERA_TOOLS_BENCH_CHECK_TERMS_H
#define TESSERA_TOOLS_BENCH_CHECK_TERMS_H

#include <stdbool.h>
#include <tessera/layout.h>

/** Bytes of the largest element. */
#define ELEMENT_BYTES 16

#define TERM_CHOICES 8

/** The Partial mesh dims, larger than 1, of a layout. */
typedef struct terms {
    tsr_dtype dtype;
    int count; /**< of those dims; 0: there are no terms */
    int mesh_dim[TSR_MAX_DIMS];
    int64_t size[TSR_MAX_DIMS];
    tsr_reduce_op op[TSR_MAX_DIMS];
    int64_t picks; /**< the product of the sizes */
} terms;

terms terms_of(const tsr_layout *layout);

/** Encodes, for every pick and choice, what a rank at `coordinate` holds once the terms of the dims that `reduced` marks (by index in
 * `t`) are reduced: none for the source itself. `table` has picks * TERM_CHOICES * ELEMENT_BYTES bytes. */
void terms_table(const terms *t, const int64_t *coordinate, const bool *reduced, unsigned char *table);

/** What the ranks that hold no value put into a new Partial(op): -0.0 or 0 for sum, 1 for prod. */
void encode_neutral(tsr_dtype dtype, tsr_reduce_op op, unsigned char out[ELEMENT_BYTES]);

#endif
