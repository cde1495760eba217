/** Functions of one f32 without branches, so that loops over them are vectorized: twice as many at
 * a time as those of functions.h. They use sums and products alone, so every set of instructions
 * gives the same bits. For kernels alone. */
#ifndef TSR_OPS_KERNELS_FUNCTIONS_F32_H
#define TSR_OPS_KERNELS_FUNCTIONS_F32_H

#include <stdint.h>
#include <string.h>

/** e^x, within 1.1 units in the last place; results below 2^-125 are 0, those beyond the largest
 * f32 infinite. The polynomial is Cephes' (S. Moshier, expf). */
static inline float tsr_f32_exp(float x)
{
    const float high = x > 89.0f ? 89.0f : x, clamped = high < -86.643394f ? -86.643394f : high;
    /* Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits. */
    const float shifted = clamped * 0x1.715476p+0f + 0x1.8p23f, n = shifted - 0x1.8p23f;
    const float r = (clamped - n * 0x1.63p-1f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * (r * r) + r) + 1.0f;
    /* Half of the power of two, as 2^128 is not an f32. */
    uint32_t bits;
    float half;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 126) << 23;
    memcpy(&half, &bits, sizeof half);
    return x < -86.643394f ? 0.0f : p * half * 2.0f;
}

#endif
