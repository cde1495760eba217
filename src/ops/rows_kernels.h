/**
 * The loops over weights for products of few rows: one source, compiled once for each set of instructions, all of which give the same bits.
 *
 * Sums are made in f32, of products that are rounded to f32: nothing is contracted into fused multiply-adds, and the order is the same
 * whatever the processor, the number of rows and the place of a row among them.
 */
#ifndef TSR_OPS_ROWS_KERNELS_H
#define TSR_OPS_ROWS_KERNELS_H

#include <stdint.h>
#include <tessera/dtype.h>

/** Sums that a dot product is divided into: term t goes to sum t mod 16. */
#define TSR_ROWS_LANES 16

/** Rows of x, `x_ld` elements apart, times some of the weights: `w` is stored as the kernel wants it, in rows `w_ld` elements apart, at any
 * address. sums[i * sums_ld + j] gets row i of x times the weights of result j. NaNs are of any kind. */
typedef struct tsr_rows_part {
    const void *w;
    int64_t w_ld;
    const float *x;
    int64_t x_ld;
    int64_t m, n, k;
    float *sums;
    int64_t sums_ld;
} tsr_rows_part;

typedef void tsr_rows_kernel(const tsr_rows_part *part);

typedef struct tsr_rows_kernels {
    /** w is (n, k): each result is the dot product of two rows. Its terms are added in ascending order to 16 sums that start from 0, term t
     * to sum t mod 16, and these are then folded: s[l] + s[l + 8], then + 4, + 2, + 1. NULL for a dtype of weights that there is not. */
    tsr_rows_kernel *dots[TSR_DTYPE_END];
    /** w is (k, n): the terms of each result are added in ascending order to one sum that starts from 0. NULL likewise. */
    tsr_rows_kernel *terms[TSR_DTYPE_END];
} tsr_rows_kernels;

extern const tsr_rows_kernels tsr_rows_kernels_portable, tsr_rows_kernels_avx2, tsr_rows_kernels_avx512;

#endif
