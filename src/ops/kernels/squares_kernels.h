/**
 * Loops of squares and their sums over elements without gaps: one source, compiled once for each
 * set of instructions; all sets give the same bits. By dtype of the elements: f64 and f32.
 */
#ifndef TSR_OPS_KERNELS_SQUARES_KERNELS_H
#define TSR_OPS_KERNELS_SQUARES_KERNELS_H

#include <tessera/dtype.h>

#include <stdint.h>

typedef struct tsr_squares_kernels {
    /** Squares in f64 of elements, each multiplied by a factor of its dtype first. */
    void (*squares[TSR_DTYPE_END])(const void *from, double factor, double *out, int64_t n);
    /** Adds such squares to 16 sums, term i to sums[i mod 16], in ascending order; fetches
     * ahead. */
    void (*add_squares[TSR_DTYPE_END])(const void *from, double factor, double *sums, int64_t n);
} tsr_squares_kernels;

extern const tsr_squares_kernels tsr_squares_kernels_portable, tsr_squares_kernels_avx2, tsr_squares_kernels_avx512;

#endif
