/**
 * Loops of losses over the logits of one row: one source, compiled once for each set of
 * instructions; all sets give the same bits, but for those of NaNs.
 */
#ifndef TSR_OPS_KERNELS_LOSSES_LOSSES_KERNELS_H
#define TSR_OPS_KERNELS_LOSSES_LOSSES_KERNELS_H

#include <tessera/dtype.h>

#include <stdbool.h>
#include <stdint.h>

/** Logits that are scanned between two changes of the largest one. */
#define TSR_LOSSES_BLOCK 1024

/** What is known of some logits of a row. Without any: -infinity, 0, 0. */
typedef struct tsr_loss_sums {
    double largest; /**< the largest logit */
    double sum;     /**< of e^(x - largest); NaN if a logit is */
    double total;   /**< of the logits */
} tsr_loss_sums;

/** By dtype of logits, f64 and f32, which lie without gaps. */
typedef struct tsr_losses_kernels {
    /**
     * Adds n logits to what is known. Of each block of TSR_LOSSES_BLOCK the largest logit is found
     * first. Then exponentials are added in the logits' dtype, in halves (i and i + 512, then 256,
     * ..), and blocks in f64: the relative error of an f32 sum is below 14 * 2^-24 and that of the
     * exponentials. `totals` false: the total stays as it is; else its terms are added in f64.
     */
    void (*scan[TSR_DTYPE_END])(const void *logits, int64_t n, bool totals, tsr_loss_sums *sums);
    /** to[i] = e^(logits[i] - largest) * factor - less; `to` may be `logits`. */
    void (*slopes[TSR_DTYPE_END])(const void *logits, void *to, int64_t n, double largest, double factor, double less);
    /** Adds other logits of the row. */
    void (*merge)(tsr_loss_sums *sums, const tsr_loss_sums *others);
    /** The logarithm of the sum of e^x. */
    double (*level)(const tsr_loss_sums *sums);
} tsr_losses_kernels;

extern const tsr_losses_kernels tsr_losses_kernels_portable, tsr_losses_kernels_avx2, tsr_losses_kernels_avx512;

#endif
