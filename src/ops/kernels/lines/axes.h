/** Goes through local tensors of the host, by lines along one or several dims, and reads and writes
 * their elements as numbers of 8 bytes. */
#ifndef TSR_OPS_KERNELS_LINES_AXES_H
#define TSR_OPS_KERNELS_LINES_AXES_H

#include "ops/kernels/call.h"
#include "ops/kernels/pointwise.h"

#include <stdbool.h>

/** The most tensors that are gone through together. */
#define TSR_AXES_TENSORS 4

/** Some dims of tensors that are gone through together. */
typedef struct tsr_axes {
    int tensor_count, count;
    int64_t size[TSR_MAX_DIMS], index[TSR_MAX_DIMS];
    int64_t step[TSR_MAX_DIMS][TSR_AXES_TENSORS]; /**< bytes from one index to the next */
    char *at[TSR_AXES_TENSORS];                   /**< the element at `index` of each tensor */
} tsr_axes;

/** An element, or what is computed of one: an f64 where the dtype is a float, else an i64. */
typedef union tsr_number {
    double real;
    int64_t integer;
} tsr_number;

/** Begins with tensors at their first elements, and no axis. */
void tsr_axes_begin(tsr_axes *axes, int count, const tsr_tensor *const *tensors);

/** Adds a dim: `dims` has that of each tensor; -1: the tensor stays where it is. */
void tsr_axes_add(tsr_axes *axes, const tsr_tensor *const *tensors, const int *dims, int64_t size);

/** Begins with tensors of one shape, but for the first, which lacks the dims marked or has size 1
 * there (`keep`), and stands still along them. `kept` gets the dims that are not marked, `reduced`
 * those that are. */
void tsr_axes_split(int count, const tsr_tensor *const *tensors, const bool *marked, bool keep, tsr_axes *kept,
                    tsr_axes *reduced);

/** What reductions over some dims go through: tensors of one shape, but for the first, which is
 * that of the results. */
typedef struct tsr_reductions {
    tsr_axes kept;                  /**< the dims of the results */
    tsr_axes outer;                 /**< the dims that are reduced, but for the last of them */
    int64_t length;                 /**< elements along the last */
    int64_t step[TSR_AXES_TENSORS]; /**< from one to the next, in elements */
    int64_t count;                  /**< results */
    int64_t elements;               /**< behind each result */
} tsr_reductions;

/** Begins with the dims that the first two attributes, dim (INTS) and keep (INT), name. */
void tsr_reductions_begin(tsr_reductions *r, int count, const tsr_tensor *const *tensors,
                          const tsr_attribute *attributes);

/** Begins with all dims but `dim` of tensors that have as many dims. */
void tsr_axes_lines(tsr_axes *axes, int count, const tsr_tensor *const *tensors, int dim);

/** The number of lines along `dim`. */
int64_t tsr_axes_count_lines(const tsr_tensor *tensor, int dim);

/** The number of indices. */
int64_t tsr_axes_count(const tsr_axes *axes);

/** Goes on to the next index in row-major order; false: that was the last, and all are at the first
 * one again. */
bool tsr_axes_next(tsr_axes *axes);

/** Reads n elements of a dtype that computations know, `stride` elements apart. */
void tsr_numbers_read(const tsr_pointwise_kernels *kernels, tsr_dtype dtype, const char *from, int64_t stride,
                      int64_t n, tsr_number *to);

/** Writes n elements, rounding floats once. */
void tsr_numbers_write(const tsr_pointwise_kernels *kernels, tsr_dtype dtype, const tsr_number *from, int64_t n,
                       char *to, int64_t stride);

#endif
