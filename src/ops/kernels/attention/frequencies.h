/** The frequencies by which rotary positions turn pairs of elements. */
#ifndef TSR_OPS_KERNELS_FREQUENCIES_H
#define TSR_OPS_KERNELS_FREQUENCIES_H

#include "ops/kernels/call.h"

/** The frequency of each pair, and the highest of them. */
typedef struct tsr_frequencies {
    double fastest;
    const double *of;
} tsr_frequencies;

/** Computes the frequencies of `half` pairs by a call's attributes, into memory of the caller. */
tsr_frequencies tsr_frequencies_compute(const tsr_attribute *attributes, int64_t half, double *memory);

/** Computes them and keeps them with the call's context, where they are not kept yet: before a call
 * that finds them, because it allocates. Without memory, or with many others, they are not kept. */
void tsr_frequencies_keep(const tsr_kernel_call *call, int64_t half);

/** Finds kept frequencies, which live as long as the context. False: they are not kept. */
bool tsr_frequencies_find(const tsr_kernel_call *call, int64_t half, tsr_frequencies *out);

#endif
