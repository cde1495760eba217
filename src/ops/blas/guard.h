/**
 * Keeps an OpenBLAS right, and on one thread a caller, while ranks call it at once.
 *
 * OpenBLAS has one thread count for the whole process, and what it takes to call it from several threads depends on how it was built
 * (openblas_get_parallel()): a pthread build wants one thread a call, or callers queue on its own lock; a serial build computes wrong
 * numbers when two calls overlap, so calls are serialised; an OpenMP build goes by the calling thread's own count, so each call sets and
 * restores that. The count of holders and what to restore are the only process-wide state of the library, for each OpenBLAS that the
 * process has. Any thread may call all of this.
 */
#ifndef TSR_OPS_BLAS_GUARD_H
#define TSR_OPS_BLAS_GUARD_H

/** How an OpenBLAS is asked for its threads. The OpenMP calls are those of its own runtime; NULL where it has none. */
typedef struct tsr_blas_threads {
    int (*parallel)(void), (*get)(void);
    void (*set)(int);
    int (*omp_get)(void);
    void (*omp_set)(int);
} tsr_blas_threads;

typedef struct tsr_blas_guard tsr_blas_guard;

/** The guard of the OpenBLAS with these calls: the same for every caller. It stays as long as the process does, as the library must. NULL:
 * the process has more of them than are guarded. */
tsr_blas_guard *tsr_blas_guard_of(const tsr_blas_threads *threads);

/** From the first hold on OpenBLAS runs one thread a call; the last release restores the host's count, unless the host has changed it
 * meanwhile. */
void tsr_blas_hold(tsr_blas_guard *guard);
void tsr_blas_release(tsr_blas_guard *guard);

/** Around every BLAS call, by a holder; `token` is what begin returned. Free of cost with a pthread build. */
int tsr_blas_begin(tsr_blas_guard *guard);
void tsr_blas_end(tsr_blas_guard *guard, int token);

#endif
