/** What a kernel of an op is given: this rank's local tensors, and what their layouts say of the
 * whole ones. */
#ifndef TSR_OPS_KERNELS_CALL_H
#define TSR_OPS_KERNELS_CALL_H

#include <tessera/ops.h>

/** The stage of a call whose exchanged factors are whole: the kernel computes all at once. */
#define TSR_STAGE_WHOLE (-1)

/**
 * One call of a kernel. Tensors have any strides; each result has its own memory, or exactly that
 * of an operand.
 *
 * An op whose rule has a factor marked "exchange" meets inside where mesh dims cut the factor. Its
 * kernel is then called for stage 0, 1, .. up to the row's number of exchanges. Each stage but the
 * last fills `record`, and the next one gets the records of all ranks along these mesh dims, or
 * those of them that the row chooses for the stage. The workspace stays as it is between stages.
 */
typedef struct tsr_kernel_call {
    const char *op;                  /**< its name, for errors */
    int code;                        /**< which op of its kernel's it is; of the row */
    const tsr_attribute *attributes; /**< all of the row's, in its order */
    const char *kernels;             /**< "portable", "avx2" or "avx512" */
    int input_count, output_count;
    const tsr_tensor *inputs; /**< operands that are left out have no data and ndim -1 */
    const tsr_tensor *outputs;
    const tsr_layout *const *layouts;        /**< of the inputs; NULL: left out */
    const tsr_layout *const *result_layouts; /**< of the outputs */
    const int64_t *coordinate;               /**< this rank's; with a layout it gives a shard's global intervals
                                                  (tsr_layout_intervals()) */
    int stage;                               /**< TSR_STAGE_WHOLE, or 0, 1, .. */
    const void *records;                     /**< stage > 0: those of the stage before */
    int64_t record_stride;                   /**< bytes from one record to the next, a multiple of 64 */
    int record_count;                        /**< the ranks that exchanged, in row-major order of their coordinates
                                                  along the mesh dims on which they met */
    int own_record;                          /**< the place of this rank's own among them */
    void *record;                            /**< to fill, but for the last stage; aligned to 64 bytes */
    void *workspace;                         /**< as many bytes as the row wants, aligned to 64; else NULL */
} tsr_kernel_call;

/** Computes the outputs, or a stage of them. Errors are those of data alone, because check has seen
 * dtypes and shapes. */
typedef tsr_status tsr_host_kernel(const tsr_kernel_call *call);

/** A number of bytes for a call whose tensors, layouts and stage are set. */
typedef int64_t tsr_kernel_bytes(const tsr_kernel_call *call);

#endif
