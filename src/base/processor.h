/** Which of the host's kernels run on this processor and operating system, and how many processors
 * a process may use. Any thread. Asking for kernels is cheap if the C library knows the answer
 * (glibc since 2.33); else the processor is asked, which takes microseconds under a hypervisor. */
#ifndef TSR_BASE_PROCESSOR_H
#define TSR_BASE_PROCESSOR_H

#include <stdbool.h>

/** The best kernels that run here: "portable", "avx2" (AVX2, FMA, F16C) or "avx512" (also AVX-512
 * F, BW, DQ, VL). Static text. */
const char *tsr_processor_kernels(void);

/** True if the kernels of this name run here; false also for an unknown name. */
bool tsr_processor_runs(const char *kernels);

/** The static text equal to `kernels`; NULL: no processor has kernels of this name. */
const char *tsr_processor_name(const char *kernels);

/** How many processors this process may run on, by its affinity. */
int tsr_processor_count(void);

#endif
