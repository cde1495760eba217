/** The two generators of random bits, one element at a time and without branches, so that loops over
 * them are vectorized. For kernels and keys alone. */
#ifndef TSR_OPS_KERNELS_GENERATORS_H
#define TSR_OPS_KERNELS_GENERATORS_H

#include <stdint.h>

static inline uint32_t tsr_rotate(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

static inline void tsr_threefry_rounds(uint32_t x[2], int a, int b, int c, int d)
{
    x[0] += x[1], x[1] = tsr_rotate(x[1], a) ^ x[0];
    x[0] += x[1], x[1] = tsr_rotate(x[1], b) ^ x[0];
    x[0] += x[1], x[1] = tsr_rotate(x[1], c) ^ x[0];
    x[0] += x[1], x[1] = tsr_rotate(x[1], d) ^ x[0];
}

/** Threefry-2x32 of 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"). */
static inline void tsr_threefry(uint32_t k0, uint32_t k1, uint64_t counter, uint32_t out[2])
{
    const uint32_t k2 = k0 ^ k1 ^ 0x1BD11BDA;
    uint32_t x[] = {(uint32_t)(counter >> 32) + k0, (uint32_t)counter + k1};
    tsr_threefry_rounds(x, 13, 15, 26, 6);
    x[0] += k1, x[1] += k2 + 1;
    tsr_threefry_rounds(x, 17, 29, 16, 24);
    x[0] += k2, x[1] += k0 + 2;
    tsr_threefry_rounds(x, 13, 15, 26, 6);
    x[0] += k0, x[1] += k1 + 3;
    tsr_threefry_rounds(x, 17, 29, 16, 24);
    x[0] += k1, x[1] += k2 + 4;
    tsr_threefry_rounds(x, 13, 15, 26, 6);
    out[0] = x[0] + k2;
    out[1] = x[1] + k0 + 5;
}

/** Philox-4x32 of 10 rounds (the same paper), with a counter of 64 bits. */
static inline void tsr_philox(uint64_t key, uint64_t counter, uint32_t out[4])
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    _Pragma("GCC unroll 10") for (int round = 0; round < 10; round++)
    {
        const uint64_t a = (uint64_t)0xD2511F53 * c0, b = (uint64_t)0xCD9E8D57 * c2;
        const uint32_t odd = c1, last = c3;
        c0 = (uint32_t)(b >> 32) ^ odd ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ last ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

#endif
