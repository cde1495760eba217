/**
 * Keeps OpenBLAS right, and on one thread a caller, while ranks call it at once.
 *
 * OpenBLAS has one thread count for the whole process, and what it takes to call it from several threads depends on how it was built
 * (openblas_get_parallel()): a pthread build wants one thread a call, or callers queue on its own lock; a serial build computes wrong
 * numbers when two calls overlap, so calls are serialised; an OpenMP build goes by the calling thread's own count, so each call sets and
 * restores that. The count of holders and what to restore are the only process-wide state of the library. Any thread may call all of this.
 */
#ifndef TSR_OPS_BLAS_GUARD_H
#define TSR_OPS_BLAS_GUARD_H

/** From the first hold on OpenBLAS runs one thread a call; the last release restores the host's count, unless the host has changed it
 * meanwhile. */
void tsr_blas_hold(void);
void tsr_blas_release(void);

/** Around every BLAS call, by a holder; `token` is what begin returned. Free of cost with a pthread build. */
int tsr_blas_begin(void);
void tsr_blas_end(int token);

#endif
