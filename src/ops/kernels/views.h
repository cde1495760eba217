/** Views of local tensors: results that are strides over the operand's memory, and copies of those
 * that are not. Elements of any dtype are moved as bytes. */
#ifndef TSR_OPS_KERNELS_VIEWS_H
#define TSR_OPS_KERNELS_VIEWS_H

#include "ops/kernels/call.h"

#include <stdbool.h>

/** The ops, as rows of the table call them. The attribute `dim` is the first one, `start` and
 * `before` the second. */
typedef enum tsr_view {
    TSR_VIEW_RESHAPE,         /**< the same elements in row-major order */
    TSR_VIEW_TRANSPOSE,       /**< dim0, dim1 */
    TSR_VIEW_PERMUTE,         /**< dims: result dim i is operand dim dims[i] */
    TSR_VIEW_PERMUTE_BACK,    /**< dims: operand dim i is result dim dims[i] */
    TSR_VIEW_EXPAND,          /**< dims of size 1 and missing leading dims are repeated */
    TSR_VIEW_SLICE,           /**< dim, start, end, step */
    TSR_VIEW_NARROW,          /**< dim, start, length */
    TSR_VIEW_SLICE_LIKE,      /**< dim, start; as long as operand 1 */
    TSR_VIEW_REST,            /**< dim; behind the length of operand 1 */
    TSR_VIEW_SLICE_GRADIENT,  /**< dim, start, end, step: operand 0 is this range; 0 elsewhere */
    TSR_VIEW_NARROW_GRADIENT, /**< dim, start, length: operand 0 is this range; 0 elsewhere */
    TSR_VIEW_CONCAT,          /**< dim */
    TSR_VIEW_PAD,             /**< dim, before, after, value */
    TSR_VIEW_FLIP,            /**< dim: a list, empty for all */
    TSR_VIEW_ROLL,            /**< dim, shift */
    TSR_VIEW_ROLL_BACK,       /**< dim, -shift */
    TSR_VIEW_TRIL,            /**< diagonal: 0 above it */
    TSR_VIEW_TRIU             /**< diagonal: 0 below it */
} tsr_view;

/** A range of a dim: start, start + step, .. below end. */
typedef struct tsr_view_range {
    int dim;
    int64_t start, end, step;
} tsr_view_range;

/** The dim that an attribute names, of a tensor of `ndim` dims: -1 is the last one; else -1: there
 * is no such dim. */
int tsr_view_dim(const tsr_attribute *attribute, int ndim);

/** The range that an op takes of a tensor of `shape`; `like` is the shape of operand 1, NULL if the
 * op has none. The attribute dim is checked, others are not. */
tsr_view_range tsr_view_range_of(int code, const tsr_attribute *attributes, int ndim, const int64_t *shape,
                                 const int64_t *like);

/** Writes the order of dims of a transpose or permute: result dim i is operand dim order[i]. False:
 * the attributes name no order of `ndim` dims. */
bool tsr_view_order_of(int code, const tsr_attribute *attributes, int ndim, int order[TSR_MAX_DIMS]);

/** Writes an element of a dtype, of at most 16 bytes: `value` rounded. */
tsr_status tsr_view_element(tsr_dtype dtype, double value, unsigned char *out);

/** The hook `view` of rows: makes the result over the memory of input 0. */
tsr_status tsr_view_make(const tsr_kernel_call *call, tsr_tensor *out, bool *fits);

/** Copies: the kernel of all these ops. Inputs and the output may overlap. */
tsr_status tsr_view_copy(const tsr_kernel_call *call);

/** The bytes that tsr_view_copy() wants where inputs and the output overlap, or no strides fit. */
int64_t tsr_view_workspace(const tsr_kernel_call *call);

#endif
