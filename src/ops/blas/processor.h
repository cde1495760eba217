/** The instructions that this processor and its operating system let a BLAS use. */
#ifndef TSR_OPS_BLAS_PROCESSOR_H
#define TSR_OPS_BLAS_PROCESSOR_H

#include <stdbool.h>

/** The level of "portable", "avx2" or "avx512": 0, 1 or 2; -1 for NULL or another name. */
int tsr_kernels_level(const char *kernels);

/** The name of level 0, 1 or 2. Static text. */
const char *tsr_kernels_name(int level);

/** "portable", "avx2" or "avx512": the best kernels that run here, whatever a context chose. Static
 * text. */
const char *tsr_processor_best(void);

/**
 * True if a library may use AMX whenever the processor lists it: the processor does not list AMX,
 * or the system saves its registers (XCR0) and lets this process use them (this call asks, by
 * arch_prctl(ARCH_REQ_XCOMP_PERM)). Some systems list AMX but end a process that uses it.
 */
bool tsr_processor_amx_is_safe(void);

/** True if the processor has AMX and this process may use it. */
bool tsr_processor_runs_amx(void);

#endif
