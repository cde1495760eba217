/**
 * Loops of random numbers over a few hundred elements without gaps: one source, compiled once for
 * each set of instructions; all sets give the same bits.
 */
#ifndef TSR_OPS_KERNELS_RANDOM_RANDOM_KERNELS_H
#define TSR_OPS_KERNELS_RANDOM_RANDOM_KERNELS_H

#include <stdint.h>

/** Elements come in groups of as many: the words of a block of Philox. */
#define TSR_RANDOM_GROUP 4

/** Places of generators in the arrays below, as in tsr_random_generator. */
enum { TSR_LOOPS_THREEFRY, TSR_LOOPS_PHILOX, TSR_LOOPS_END };

typedef struct tsr_random_kernels {
    /** Bits of elements `first` to `first + n`, by generator; both are multiples of the group. */
    void (*bits32[TSR_LOOPS_END])(const uint64_t key[2], uint64_t first, int64_t n, uint32_t *to);
    void (*bits64[TSR_LOOPS_END])(const uint64_t key[2], uint64_t first, int64_t n, uint64_t *to);
    /** Numbers from `low` to `high`: the bits from `shift` on, of which `digits` count, as a
     * fraction. */
    void (*uniform_f32)(const uint32_t *bits, int64_t n, int shift, int digits, float low, float high, float *to);
    void (*uniform_f64)(const uint64_t *bits, int64_t n, int shift, int digits, double low, double high, double *to);
    /** sqrt(2) times the inverse error function, in place: uniform numbers between -1 and 1 become
     * normal ones. */
    void (*invert_f32)(float *values, int64_t n);
    void (*invert_f64)(double *values, int64_t n);
    /** The method of Box and Muller: each pair of bits becomes a pair of normal numbers; n is
     * even. */
    void (*box_muller_f32)(const uint32_t *bits, int64_t n, float *to);
    void (*box_muller_f64)(const uint64_t *bits, int64_t n, double *to);
    /** values[i] = draws[i] < keep ? values[i] / keep : 0. */
    void (*drop_f32)(const float *draws, int64_t n, float keep, float *values);
    void (*drop_f64)(const float *draws, int64_t n, float keep, double *values);
} tsr_random_kernels;

extern const tsr_random_kernels tsr_random_kernels_portable, tsr_random_kernels_avx2, tsr_random_kernels_avx512;

#endif
