/**
 * Small integers as the terms of Partial tensors, chosen so that their reduction is known without
 * floating-point arithmetic.
 *
 * A term depends on the rank's coordinate in the Partial mesh dims of the source, on a *pick* (one
 * of these coordinates) and on a *choice* (0 to 7). Pick and choice follow from the element's
 * global index. Mesh dims of size 1 do not count.
 */
#ifndef TESSERA_TOOLS_BENCH_CHECK_TERMS_H
#define TESSERA_TOOLS_BENCH_CHECK_TERMS_H

#include <tessera/layout.h>

#include <stdbool.h>

/** Bytes of the largest element. */
#define ELEMENT_BYTES 16

/** Number of choices of a term. */
#define TERM_CHOICES 8

/** The Partial mesh dims of a layout that are larger than 1. */
typedef struct terms {
    tsr_dtype dtype;
    int count; /**< number of dims; 0: there are no terms */
    int mesh_dim[TSR_MAX_DIMS];
    int64_t size[TSR_MAX_DIMS];
    tsr_reduce_op op[TSR_MAX_DIMS];
    int64_t picks; /**< number of picks: the product of the sizes */
} terms;

terms terms_of(const tsr_layout *layout);

/** Writes, for every pick and choice, the element of the rank at `coordinate` after reduction over
 * the dims that `reduced` marks (by index in `t`); with no dim marked, the element of the source.
 * `table` has picks * TERM_CHOICES * ELEMENT_BYTES bytes. */
void terms_table(const terms *t, const int64_t *coordinate, const bool *reduced, unsigned char *table);

/** Writes the element of a rank without a value in a new Partial(op): -0.0 (0 in integers) for sum,
 * 1 for prod. */
void encode_neutral(tsr_dtype dtype, tsr_reduce_op op, unsigned char out[ELEMENT_BYTES]);

#endif
