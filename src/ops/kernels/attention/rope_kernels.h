/** The loops of rotary positions: one source, compiled once for each set of instructions; all sets
 * give the same bits. */
#ifndef TSR_OPS_KERNELS_ATTENTION_ROPE_KERNELS_H
#define TSR_OPS_KERNELS_ATTENTION_ROPE_KERNELS_H

#include <tessera/dtype.h>

#include <stdint.h>

/** Angles whose reduction by quarter turns is exact in the loops. */
#define TSR_ROPE_MOST_ANGLE 0x1p28

typedef struct tsr_rope_kernels {
    /** cosines[i] and sines[i] of position times frequencies[i], which is at most
     * TSR_ROPE_MOST_ANGLE. Errors are below 1e-15, plus 2^-53 times the angle. */
    void (*turn)(double position, const double *frequencies, int64_t n, double *cosines, double *sines);
    /** By dtype, f32 or f64: rotates the pairs (x[i], x[n + i]); `to` may be x. */
    void (*rotate[TSR_DTYPE_END])(const void *x, int64_t n, const double *cosines, const double *sines, void *to);
} tsr_rope_kernels;

extern const tsr_rope_kernels tsr_rope_kernels_portable, tsr_rope_kernels_avx2, tsr_rope_kernels_avx512;

#endif
