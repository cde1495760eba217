/** What a kernel of an op computes, as the cost model counts it. */
#ifndef TSR_OPS_PROGRAMS_TOLD_WORK_H
#define TSR_OPS_PROGRAMS_TOLD_WORK_H

#include "ops/programs/executable.h"

#include <tessera/profile.h>

/** Multiplications and additions of a step's kernel on this rank; 0: it passes over elements. */
typedef struct tsr_kernel_work {
    tsr_product product;
    int64_t flops;
    int64_t least; /**< the least size of the product, or the number of queries; 1 or more */
} tsr_kernel_work;

/** True of an op whose work is counted as that of products. */
bool tsr_is_product(const tsr_op *op);

/** The work of a step's kernel, at the lengths of now. Masks of attention are not looked at. */
tsr_kernel_work tsr_count_work(const tsr_executable *x, const tsr_step *step);

/** Seconds of a step's kernel, whose operands and results are `touched` bytes, by the profile of
 * the executable's context. */
double tsr_kernel_seconds(const tsr_executable *x, const tsr_step *step, const tsr_kernel_work *work, int64_t touched);

/** Seconds in which a step reads `bytes` and writes as many. */
double tsr_copy_seconds(const tsr_executable *x, int64_t bytes);

#endif
