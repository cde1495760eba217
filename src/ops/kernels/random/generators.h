/** The two generators of random bits, one element at a time and without branches, so that loops
 * over them are vectorized. For kernels and keys alone. */
#ifndef TSR_OPS_KERNELS_RANDOM_GENERATORS_H
#define TSR_OPS_KERNELS_RANDOM_GENERATORS_H

#include <stdint.h>

static inline uint32_t tsr_rotate(uint32_t x, int bits)
{
    return x << bits | x >> (32 - bits);
}

/* Four rounds on the words x and y. */
#define TSR_THREEFRY_ROUNDS(a, b, c, d)                                                                                \
    x += y, y = tsr_rotate(y, a) ^ x;                                                                                  \
    x += y, y = tsr_rotate(y, b) ^ x;                                                                                  \
    x += y, y = tsr_rotate(y, c) ^ x;                                                                                  \
    x += y, y = tsr_rotate(y, d) ^ x

/** Threefry-2x32 of 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"): two
 * words, the first in the upper half. */
static inline uint64_t tsr_threefry(uint32_t k0, uint32_t k1, uint64_t counter)
{
    const uint32_t k2 = k0 ^ k1 ^ 0x1BD11BDA;
    uint32_t x = (uint32_t)(counter >> 32) + k0, y = (uint32_t)counter + k1;
    TSR_THREEFRY_ROUNDS(13, 15, 26, 6);
    x += k1, y += k2 + 1;
    TSR_THREEFRY_ROUNDS(17, 29, 16, 24);
    x += k2, y += k0 + 2;
    TSR_THREEFRY_ROUNDS(13, 15, 26, 6);
    x += k0, y += k1 + 3;
    TSR_THREEFRY_ROUNDS(17, 29, 16, 24);
    x += k1, y += k2 + 4;
    TSR_THREEFRY_ROUNDS(13, 15, 26, 6);
    x += k2, y += k0 + 5;
    return (uint64_t)x << 32 | y;
}

/** Philox-4x32 of 10 rounds (the same paper), with a counter of 64 bits: four words, in pairs of
 * which each has the first in the upper half. */
static inline void tsr_philox(uint64_t key, uint64_t counter, uint64_t *first, uint64_t *second)
{
    uint64_t c0 = (uint32_t)counter, c1 = counter >> 32, c2 = 0, c3 = 0;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    _Pragma("GCC unroll 10") for (int round = 0; round < 10; round++)
    {
        const uint64_t a = UINT64_C(0xD2511F53) * c0, b = UINT64_C(0xCD9E8D57) * c2;
        c0 = b >> 32 ^ c1 ^ k0;
        c1 = b & 0xffffffff;
        c2 = a >> 32 ^ c3 ^ k1;
        c3 = a & 0xffffffff;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    *first = c0 << 32 | c1;
    *second = c2 << 32 | c3;
}

#endif
