/** Tensors that kernels walk through together, row by row. */
#ifndef TSR_OPS_KERNELS_WALKED_H
#define TSR_OPS_KERNELS_WALKED_H

#include <tessera/tensor.h>

#include <stdbool.h>

/** One tensor of a walk. */
typedef struct tsr_walked {
    char *data;
    tsr_dtype dtype, computed;
    int64_t bytes, strides[TSR_MAX_DIMS]; /**< bytes of an element; strides in elements */
} tsr_walked;

/** Goes on from a row, which lies along the last of `ndim` dims, to the next one: `index` is its
 * place and `at` its address in each of `count` tensors. False: that was the last. */
static inline bool tsr_walked_next_row(const tsr_walked *tensors, int count, int ndim, const int64_t *shape,
                                       int64_t *index, char **at)
{
    for (int dim = ndim - 2; dim >= 0; dim--) {
        const bool more = ++index[dim] < shape[dim];
        for (int i = 0; i < count; i++)
            at[i] += (more ? 1 : 1 - shape[dim]) * tensors[i].strides[dim] * tensors[i].bytes;
        if (more)
            return true;
        index[dim] = 0;
    }
    return false;
}

#endif
