/** Which of the host's kernels this processor, under this operating system, runs. Any thread; cheap where the C library
 * knows (glibc since 2.33), microseconds where the processor has to be asked under a hypervisor. */
#ifndef TSR_BASE_PROCESSOR_H
#define TSR_BASE_PROCESSOR_H

#include <stdbool.h>

/** The best of "portable", "avx2" (AVX2, FMA, F16C) and "avx512" (also AVX-512 F, BW, DQ, VL). Static text. */
const char *tsr_processor_kernels(void);

/** Whether kernels of that name run here; false for a name that there is not. */
bool tsr_processor_runs(const char *kernels);

/** The static text equal to `kernels`, or NULL if there are no kernels of that name on any processor. */
const char *tsr_processor_name(const char *kernels);

#endif
