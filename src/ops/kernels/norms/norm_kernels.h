/**
 * Loops of softmax and of norms over rows without gaps: one source, compiled once for each set of
 * instructions; all sets give the same bits, but for those of NaNs.
 *
 * A row has statistics: a few f64 from which, with the row, its results follow. Sums of f32 terms
 * are those of exact f64 terms, in 16 f64 sums (term i in sum i mod 16), which are added as a tree;
 * so a sum of n terms has a relative error below (n / 16 + 4) 2^-53 of the sum of their sizes. The
 * exponentials of softmax are added four at a time in f32 before that, which adds 2 * 2^-24, and
 * scaled by an f64 at each block with a larger element than those before, which adds 2^-51 each.
 * Results of f32 are computed in f32.
 */
#ifndef TSR_OPS_KERNELS_NORM_KERNELS_H
#define TSR_OPS_KERNELS_NORM_KERNELS_H

#include <tessera/dtype.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/** The ops, as rows of the table call them, and their statistics. */
typedef enum tsr_norm_code {
    TSR_NORM_SOFTMAX,              /**< largest element m, sum of e^(x - m) */
    TSR_NORM_LOG_SOFTMAX,          /**< those of softmax */
    TSR_NORM_LOGSUMEXP,            /**< those of softmax, with m taken as 0 where it is infinite */
    TSR_NORM_SOFTMAX_GRADIENT,     /**< d, y: sum of d y */
    TSR_NORM_LOG_SOFTMAX_GRADIENT, /**< d, y: sum of d */
    TSR_NORM_RMS,                  /**< sum of x^2 */
    TSR_NORM_RMS_GRADIENT,         /**< d, x: sum of x^2, sum of d w x */
    TSR_NORM_LAYER,                /**< number of elements, mean m, sum of (x - m)^2 */
    TSR_NORM_LAYER_GRADIENT,       /**< d, x: those of layer, sum of d w, sum of d w (x - m) */
    TSR_NORM_ONE,                  /**< sum of |x| */
    TSR_NORM_TWO,                  /**< sum of x^2 */
    TSR_NORM_LARGEST,              /**< largest |x|, NaN if there is one */
    TSR_NORM_ONE_GRADIENT,         /**< x: 0 */
    TSR_NORM_TWO_GRADIENT,         /**< x: 0 */
    TSR_NORM_LARGEST_GRADIENT,     /**< x: number of elements whose size is the norm */
    TSR_NORM_END
} tsr_norm_code;

/** The most statistics of a row. */
#define TSR_NORM_STATISTICS 5

/** The most rows that go through a pipeline side by side. */
#define TSR_NORM_BAND 4

/** Rows of so many bytes that go through a pipeline side by side. */
static inline int64_t tsr_norm_band(int64_t row_bytes)
{
    return row_bytes <= INT64_C(65536) ? TSR_NORM_BAND : 1;
}

/** Rows for a loop. Elements of tensors are of the computation's dtype, T, and a step is from a row
 * to the next in elements. */
typedef struct tsr_norm_rows {
    int64_t rows, length;
    bool measures, makes; /**< computes the statistics; makes the results from them */
    const void *in[2];
    int64_t in_step[2];
    void *out; /**< may be one of `in` */
    int64_t out_step;
    bool streams;              /**< results bypass the cache; `out` and its step are multiples of 64 bytes */
    const void *weight, *bias; /**< a row each, of norms that have them */
    void *exponentials;        /**< of softmax: two bands, or NULL for rows that are too long */
    double *statistics;        /**< of each row, one after the other */
    const double *given[2];    /**< of each row: the gradient of the norm, and the norm */
    double *sums[2];           /**< `length` each, to which the gradients of weight and bias are added */
    double epsilon, count;     /**< the number of elements of a whole row */
} tsr_norm_rows;

typedef void tsr_norm_loop(const tsr_norm_rows *r);

typedef struct tsr_norm_kernels {
    tsr_norm_loop *loops[TSR_NORM_END][TSR_DTYPE_END]; /**< by dtype of the computation: f64, f32 */
} tsr_norm_kernels;

extern const tsr_norm_kernels tsr_norm_kernels_portable, tsr_norm_kernels_avx2, tsr_norm_kernels_avx512;

/** The number of statistics of a row. */
static inline int tsr_norm_statistics(tsr_norm_code code)
{
    static const unsigned char counts[TSR_NORM_END] = {2, 2, 2, 1, 1, 1, 2, 3, 5, 1, 1, 1, 1, 1, 1};
    return counts[code];
}

/** Merges numbers of elements, means and sums of squared deviations (Chan, Golub and LeVeque, 1983)
 * and, with five statistics, sums of d and of d (x - mean). */
static inline void tsr_norm_merge_deviations(double *into, const double *from, int count)
{
    if (from[0] == 0)
        return;
    if (into[0] == 0) {
        memcpy(into, from, (size_t)count * sizeof *into);
        return;
    }
    const double all = into[0] + from[0], part = from[0] / all;
    const double apart = from[1] - into[1], mean = into[1] + apart * part;
    if (count == 5) {
        into[4] = (into[4] + (into[1] - mean) * into[3]) + (from[4] + (from[1] - mean) * from[3]);
        into[3] += from[3];
    }
    into[2] += from[2] + apart * apart * (into[0] * part);
    into[1] = mean;
    into[0] = all;
}

#endif
