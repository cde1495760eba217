/**
 * The kernels for products with few rows: one source, compiled once for each set of instructions;
 * all sets give the same bits.
 *
 * Products are rounded to f32 and summed in f32, without fused multiply-adds. The order of sums
 * does not depend on the instruction set, the number of rows or the place of a row.
 */
#ifndef TSR_OPS_ROWS_KERNELS_H
#define TSR_OPS_ROWS_KERNELS_H

#include <tessera/dtype.h>

#include <stdint.h>

/** The number of sums into which a dot product is divided: term t goes to sum t mod 16. */
#define TSR_ROWS_LANES 16

/** Weights of 8 bits that have one scale: a weight's value is its integer times the scale, rounded
 * to f32. */
#define TSR_Q8_BLOCK 32

/** A product for a kernel: m rows of x, `x_ld` elements apart, times weights. Rows of `w` are
 * `w_ld` elements apart; the kernel says how `w` is stored; its address need not be aligned.
 * sums[i * sums_ld + j] becomes row i of x times the weights of result j. NaNs have unspecified
 * bits. */
typedef struct tsr_rows_part {
    const void *w;
    int64_t w_ld;
    const float *x;
    int64_t x_ld;
    int64_t m, n, k;
    float *sums;
    int64_t sums_ld;
    const float *scales; /**< of weights of 8 bits: rows of them, `scales_ld` elements apart */
    int64_t scales_ld;
} tsr_rows_part;

typedef void tsr_rows_kernel(const tsr_rows_part *part);

/** Makes the values of `count` weights of 8 bits, a multiple of TSR_Q8_BLOCK. */
typedef void tsr_q8_widen(const int8_t *weights, const float *scales, int64_t count, float *values);

typedef struct tsr_rows_kernels {
    /** By dtype of weights; NULL: not supported. w is (n, k): each result is the dot product of two
     * rows. Its terms are added in ascending order to 16 sums that start from 0, term t to sum t
     * mod 16; then the sums are folded: s[l] + s[l + 8], then + 4, + 2, + 1. */
    tsr_rows_kernel *dots[TSR_DTYPE_END];
    /** By dtype of weights; NULL: not supported. w is (k, n): the terms of each result are added in
     * ascending order to one sum that starts from 0. */
    tsr_rows_kernel *terms[TSR_DTYPE_END];
    /** As dots, with the values of weights of 8 bits: the same bits as dots of these in f32. k is a
     * multiple of TSR_Q8_BLOCK. */
    tsr_rows_kernel *dots_q8;
    tsr_q8_widen *widen_q8;
} tsr_rows_kernels;

extern const tsr_rows_kernels tsr_rows_kernels_portable, tsr_rows_kernels_avx2, tsr_rows_kernels_avx512;

#endif
