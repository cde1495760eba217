/** What this processor, and the system on it, let a BLAS use. */
#ifndef TSR_OPS_BLAS_PROCESSOR_H
#define TSR_OPS_BLAS_PROCESSOR_H

#include <stdbool.h>

/** Where `kernels` stands among "portable", "avx2", "avx512": 0, 1, 2; -1 for NULL or another. And back. */
int tsr_kernels_level(const char *kernels);
const char *tsr_kernels_name(int level);

/** "portable", "avx2" or "avx512": the best that runs, whatever kernels were asked for. Static. */
const char *tsr_processor_best(void);

/**
 * True if a library that uses AMX wherever the processor lists it does no harm: the processor lists none, or the system saves its
 * registers (XCR0) and lets this process use them (arch_prctl(ARCH_REQ_XCOMP_PERM), which this asks). Some systems list AMX and end a
 * process that uses it.
 */
bool tsr_processor_amx_is_safe(void);

/** True if AMX is there and may be used. */
bool tsr_processor_runs_amx(void);

#endif
