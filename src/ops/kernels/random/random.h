/** Random numbers of local tensors of the host: functions of a key and of each element's index in
 * the whole tensor, counted in row-major order. */
#ifndef TSR_OPS_KERNELS_RANDOM_RANDOM_H
#define TSR_OPS_KERNELS_RANDOM_RANDOM_H

#include "ops/kernels/call.h"

/** Which op of the kernel a row is. */
enum {
    TSR_RANDOM_UNIFORM,   /**< attributes low, high */
    TSR_RANDOM_NORMAL,    /**< mean, std */
    TSR_RANDOM_TRUNCATED, /**< mean, std, low, high: normal between low and high */
    TSR_RANDOM_BERNOULLI, /**< p */
    TSR_RANDOM_BITS,
    TSR_RANDOM_INTEGERS, /**< low, high */
    TSR_RANDOM_DROPOUT   /**< p; the input's values are read */
};

/** The first attributes of a row; those of the op itself follow. */
enum { TSR_RANDOM_GENERATOR, TSR_RANDOM_KEY, TSR_RANDOM_FIRST };

/** Fills the output, whose shape and layout are those of the input. */
tsr_status tsr_random_run(const tsr_kernel_call *call);

/** Bytes of the workspace. */
int64_t tsr_random_workspace_bytes(const tsr_kernel_call *call);

#endif
