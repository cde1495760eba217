/** Kernels of products: matmul, einsum, linear, grouped and narrow ones, and their gradients, by
 * the BLAS that this rank would choose alone. */
#ifndef TSR_OPS_KERNELS_PRODUCTS_PRODUCTS_H
#define TSR_OPS_KERNELS_PRODUCTS_PRODUCTS_H

#include "ops/kernels/call.h"

/** Codes of rows. The gradient of an operand has the code TSR_PRODUCT_GRADIENT + its number more,
 * and takes dout in front of the op's operands, of which it does not read its own. */
enum {
    TSR_PRODUCT_MATMUL = 0,
    TSR_PRODUCT_EINSUM = 8,
    TSR_PRODUCT_LINEAR = 16, /**< x, w, b */
    TSR_PRODUCT_LINEAR_X,    /**< dout, w */
    TSR_PRODUCT_LINEAR_W,    /**< dout, x */
    TSR_PRODUCT_LINEAR_B,    /**< dout */
    TSR_PRODUCT_GROUPED,     /**< x, w, sizes */
    TSR_PRODUCT_GROUPED_X,   /**< dout, w, sizes */
    TSR_PRODUCT_GROUPED_W,   /**< x, dout, sizes */
    TSR_PRODUCT_Q8,          /**< x, w, scales, b */
    TSR_PRODUCT_Q8_X,        /**< dout, w, scales */
    TSR_PRODUCT_GRADIENT = 1
};

/** Computes the product of the call's code. TSR_ERROR_UNSUPPORTED: no BLAS multiplies the dtype, or
 * a size is beyond its integers. */
tsr_status tsr_product_run(const tsr_kernel_call *call);

/** The workspace of tsr_product_run(). */
int64_t tsr_product_bytes(const tsr_kernel_call *call);

/** The workspace of tsr_product_enqueue(). TSR_ERROR_UNSUPPORTED: the device has no gemm for these
 * dtypes, or no gemm computes the call: of groups, and of weights of 8 bits. */
tsr_status tsr_product_wants(const tsr_kernel_call *call, tsr_device device, int64_t *bytes);

/** Enqueues the product by the gemm of `device`, on which the call's tensors and workspace lie. */
tsr_status tsr_product_enqueue(const tsr_kernel_call *call, tsr_device device, tsr_stream stream);

#endif
