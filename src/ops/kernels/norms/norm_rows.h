/** Rows of tensors with any strides: a row is all elements along some dims, for each index of the
 * others. */
#ifndef TSR_OPS_KERNELS_NORM_ROWS_H
#define TSR_OPS_KERNELS_NORM_ROWS_H

#include "ops/kernels/pointwise_kernels.h"

#include <tessera/tensor.h>

#include <stdbool.h>

/** The most tensors of a walk. */
#define TSR_NORM_VIEWS 8

/** A tensor by the dims that count rows, and those along rows; strides are 0 where the tensor lacks
 * the dim. */
typedef struct tsr_norm_view {
    char *data;
    bool direct; /**< rows lie in memory without gaps, in the dtype of the computation */
    int64_t across[TSR_MAX_DIMS], along[TSR_MAX_DIMS];
} tsr_norm_view;

typedef struct tsr_norm_walk {
    const tsr_pointwise_kernels *kernels;
    tsr_dtype memory, computed;
    int64_t bytes, computed_bytes; /**< of an element in memory, and in the computation */
    int across_count, along_count; /**< at least 1 */
    int64_t across[TSR_MAX_DIMS], along[TSR_MAX_DIMS];
    int64_t rows, length;
    int view_count;
    tsr_norm_view views[TSR_NORM_VIEWS];
} tsr_norm_walk;

/** Begins a walk over the rows of a tensor along its marked dims. */
void tsr_norm_walk_begin(const tsr_tensor *x, const bool *marked, const tsr_pointwise_kernels *kernels,
                         tsr_norm_walk *out);

/** Adds a tensor whose dims are all of the walk's (`across` and `along`), those across rows, or
 * those along them; dims of size 1 may stand for the others. */
void tsr_norm_walk_add(tsr_norm_walk *walk, const tsr_tensor *tensor, const bool *marked, int ndim, bool across,
                       bool along);

/** Joins dims that are one in all tensors, and finds which are direct. */
void tsr_norm_walk_join(tsr_norm_walk *walk);

/** Reads a row from its first element on into an array of the computation's dtype, or writes it. */
void tsr_norm_read(const tsr_norm_walk *walk, int view, const char *at, char *to);
void tsr_norm_write(const tsr_norm_walk *walk, int view, const char *from, char *at);

/** Goes on to the next index across rows but for the last dim, and moves the addresses of all
 * views; false: there is none. */
bool tsr_norm_walk_advance(const tsr_norm_walk *walk, int64_t *index, char **at);

#endif
