/** Loops over the elements of tokens' rows, compiled for several instruction sets. */
#ifndef TSR_TENSOR_EXPERTS_EXPERT_KERNELS_H
#define TSR_TENSOR_EXPERTS_EXPERT_KERNELS_H

#include "tensor/kernel_sets.h"

#include <tessera/dtype.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Rows of one token: those of each slot, and of each part of the slot's expert. */
typedef struct tsr_expert_terms {
    const void *const *rows; /**< slot * parts + part */
    const double *weights;   /**< of each slot; exact in the accumulator */
    int64_t slots, parts;
} tsr_expert_terms;

/** The loops for a dtype. Accumulators are f64 for f64, else f32. A row's elements may begin at any
 * byte. Rows that are read and written do not overlap. */
typedef struct tsr_expert_loops {
    /** out = the sum over slots of the weight times the sum of the slot's parts; 0 without slots.
     * `stream`: stores go past the cache; the caller ends with `fence`. */
    void (*sum)(void *out, const tsr_expert_terms *terms, int64_t count, bool stream);
    /** The sum over elements of `a` times the sum of `parts` rows. */
    double (*dot)(const void *a, const void *const *rows, int64_t parts, int64_t count);
    double (*load)(const void *element);
    void (*store)(void *element, double value); /**< rounds once */
} tsr_expert_loops;

/** All loops of an instruction set. */
typedef struct tsr_expert_kernels {
    tsr_expert_loops loops[TSR_DTYPE_END]; /**< `sum` is NULL where the dtype is not a real floating type */
    void (*copy)(void *to, const void *from, size_t bytes, bool stream);
    void (*fence)(void); /**< orders streamed stores before what follows */
} tsr_expert_kernels;

extern const tsr_expert_kernels tsr_expert_kernels_portable;
#if TSR_HAVE_X86_KERNELS
extern const tsr_expert_kernels tsr_expert_kernels_avx2, tsr_expert_kernels_avx512;
#endif

/** Those called "portable", "avx2" or "avx512"; the portable ones if the build lacks them. */
static inline const tsr_expert_kernels *tsr_expert_kernels_of(const char *name)
{
    static const tsr_expert_kernels *const sets[] = TSR_KERNEL_SETS(tsr_expert_kernels);
    return sets[tsr_kernel_set(name)];
}

#endif
