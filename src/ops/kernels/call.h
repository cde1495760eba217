/** What a kernel of an op is given: this rank's local tensors, and what their layouts say of the
 * whole ones. */
#ifndef TSR_OPS_KERNELS_CALL_H
#define TSR_OPS_KERNELS_CALL_H

#include <tessera/ops.h>

/** One call of a kernel. Tensors have any strides; each result has its own memory, or exactly that
 * of an operand. */
typedef struct tsr_kernel_call {
    const char *op;                  /**< its name, for errors */
    int code;                        /**< which op of its kernel's it is; of the row */
    const tsr_attribute *attributes; /**< all of the row's, in its order */
    const char *kernels;             /**< "portable", "avx2" or "avx512" */
    int input_count, output_count;
    const tsr_tensor *inputs; /**< operands that are left out have no data and ndim -1 */
    const tsr_tensor *outputs;
    const tsr_layout *const *layouts; /**< of the inputs; NULL: left out */
} tsr_kernel_call;

/** Computes the outputs; errors are those of data alone, because check has seen dtypes and
 * shapes. */
typedef tsr_status tsr_host_kernel(const tsr_kernel_call *call);

#endif
