/** Loads of a vector of f32 from memory that holds f32, bf16, f16 or integers of 8 bits; at the
 * width of the instruction set. For kernels alone. */
#ifndef TSR_OPS_VECTORS_LOADS_H
#define TSR_OPS_VECTORS_LOADS_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/** Floats of the widest vector of the instruction set. */
#if defined(__AVX512F__)
#define TSR_VECTOR_FLOATS 16
#elif defined(__AVX2__)
#define TSR_VECTOR_FLOATS 8
#else
#define TSR_VECTOR_FLOATS 4
#endif

#define TSR_INLINED __attribute__((always_inline))

typedef float tsr_floats __attribute__((vector_size(TSR_VECTOR_FLOATS * 4)));
typedef uint32_t tsr_words __attribute__((vector_size(TSR_VECTOR_FLOATS * 4)));

/** Loads TSR_VECTOR_FLOATS elements of one dtype as f32. A constant in every kernel, so that it is
 * inlined. The address need not be aligned: tensors in mapped files may not be. */
typedef tsr_floats tsr_load_floats(const void *at);

static inline TSR_INLINED tsr_floats tsr_load_f32(const void *at)
{
    tsr_floats value;
    memcpy(&value, at, sizeof value);
    return value;
}

#if defined(__AVX512F__)
static inline TSR_INLINED tsr_words tsr_load_codes(const void *at)
{
    return (tsr_words)_mm512_cvtepu16_epi32(_mm256_loadu_si256(at));
}
#elif defined(__AVX2__)
static inline TSR_INLINED tsr_words tsr_load_codes(const void *at)
{
    return (tsr_words)_mm256_cvtepu16_epi32(_mm_loadu_si128(at));
}
#else
static inline TSR_INLINED tsr_words tsr_load_codes(const void *at)
{
    typedef uint16_t codes __attribute__((vector_size(TSR_VECTOR_FLOATS * 2)));
    codes value;
    memcpy(&value, at, sizeof value);
    return __builtin_convertvector(value, tsr_words);
}
#endif

/* A bf16 is the upper half of an f32: one instruction moves 16 of them there, where widening and
 * shifting take two. */
#if defined(__AVX512BW__)
static inline TSR_INLINED tsr_floats tsr_load_bf16(const void *at)
{
    const __m512i codes = _mm512_castsi256_si512(_mm256_loadu_si256(at));
    const __m512i places = _mm512_set_epi32(15 << 16, 14 << 16, 13 << 16, 12 << 16, 11 << 16, 10 << 16, 9 << 16,
                                            8 << 16, 7 << 16, 6 << 16, 5 << 16, 4 << 16, 3 << 16, 2 << 16, 1 << 16, 0);
    return (tsr_floats)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, places, codes);
}
#else
static inline TSR_INLINED tsr_floats tsr_load_bf16(const void *at)
{
    return (tsr_floats)(tsr_load_codes(at) << 16);
}
#endif

#if defined(__AVX512F__)
static inline TSR_INLINED tsr_floats tsr_load_f16(const void *at)
{
    return (tsr_floats)_mm512_cvtph_ps(_mm256_loadu_si256(at));
}
#elif defined(__F16C__)
static inline TSR_INLINED tsr_floats tsr_load_f16(const void *at)
{
    return (tsr_floats)_mm256_cvtph_ps(_mm_loadu_si128(at));
}
#else
/* A subnormal has the smallest normal's exponent but no leading 1; it is given one, which the
 * subtraction takes away. */
static inline TSR_INLINED tsr_floats tsr_load_f16(const void *at)
{
    const tsr_words code = tsr_load_codes(at), magnitude = code & 0x7fff, sign = (code & 0x8000) << 16,
                    shifted = magnitude << 13;
    const tsr_words normal = shifted + (UINT32_C(112) << 23);
    const tsr_words subnormal = (tsr_words)((tsr_floats)(shifted + (UINT32_C(113) << 23)) - 0x1p-14f);
    const tsr_words is_subnormal = (tsr_words)(magnitude < 0x400), is_special = (tsr_words)(magnitude > 0x7bff);
    return (tsr_floats)((is_subnormal & subnormal) | (~is_subnormal & normal) | (is_special & 0x7f800000) | sign);
}
#endif

#if defined(__AVX512F__)
static inline TSR_INLINED tsr_floats tsr_load_i8(const void *at)
{
    return (tsr_floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at)));
}
#elif defined(__AVX2__)
static inline TSR_INLINED tsr_floats tsr_load_i8(const void *at)
{
    return (tsr_floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at)));
}
#else
static inline TSR_INLINED tsr_floats tsr_load_i8(const void *at)
{
    typedef int8_t codes __attribute__((vector_size(TSR_VECTOR_FLOATS)));
    typedef int32_t integers __attribute__((vector_size(TSR_VECTOR_FLOATS * 4)));
    codes value;
    memcpy(&value, at, sizeof value);
    return __builtin_convertvector(__builtin_convertvector(value, integers), tsr_floats);
}
#endif

#endif
