/**
 * Keeps calls of an OpenBLAS correct, with one thread each, while several ranks call it at once.
 *
 * OpenBLAS has one thread count for the whole process, and its rules for calls from several threads
 * depend on its build (openblas_get_parallel()). A pthread build must run one thread per call, or
 * callers queue on its lock. A serial build computes wrong numbers if two calls overlap, so calls
 * are serialised. An OpenMP build uses the calling thread's own count, so each call sets and
 * restores that. The count of holders and the counts to restore are the only process-wide state of
 * the library, one for each OpenBLAS in the process. Any thread may call all functions.
 */
#ifndef TSR_OPS_BLAS_GUARD_H
#define TSR_OPS_BLAS_GUARD_H

/** The calls of an OpenBLAS about threads. The OpenMP calls are those of its own runtime; NULL if
 * it has none. */
typedef struct tsr_blas_threads {
    int (*parallel)(void), (*get)(void);
    void (*set)(int);
    int (*omp_get)(void);
    void (*omp_set)(int);
} tsr_blas_threads;

typedef struct tsr_blas_guard tsr_blas_guard;

/** The guard of the OpenBLAS with these calls: one for all callers. It stays, as the library must,
 * until the process ends. NULL: the process has too many OpenBLAS libraries. */
tsr_blas_guard *tsr_blas_guard_of(const tsr_blas_threads *threads);

/** From the first hold on OpenBLAS runs one thread per call. */
void tsr_blas_hold(tsr_blas_guard *guard);

/** Undoes a hold. The last release restores the program's thread count, unless the program has
 * changed it meanwhile. */
void tsr_blas_release(tsr_blas_guard *guard);

/** Called before each BLAS call by a holder; returns the token for tsr_blas_end(). Costs nothing
 * with a pthread build. */
int tsr_blas_begin(tsr_blas_guard *guard);

/** Called after each BLAS call, on its thread, with the token of tsr_blas_begin(). */
void tsr_blas_end(tsr_blas_guard *guard, int token);

#endif
