/** Random numbers that depend only on a seed, a stream's name and an index: every rank can make
 * just its own, and all meshes get the same. */
#ifndef LLAMA_RANDOM_H
#define LLAMA_RANDOM_H

#include <stdint.h>

/** The stream called `name` for that seed. */
uint64_t llama_random_stream(uint64_t seed, const char *name);

/** 64 evenly distributed bits: the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)
 * over a counter. */
static inline uint64_t llama_random_bits(uint64_t stream, uint64_t index)
{
    uint64_t x = stream + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/** Uniform in [0, 1). */
static inline double llama_random_unit(uint64_t stream, uint64_t index)
{
    return (double)(llama_random_bits(stream, index) >> 11) * 0x1p-53;
}

/** Uniform in [-1, 1); exact in f32. */
static inline float llama_random_symmetric(uint64_t stream, uint64_t index)
{
    return (float)((int64_t)(llama_random_bits(stream, index) >> 40) - (1 << 23)) * 0x1p-23f;
}

#endif
