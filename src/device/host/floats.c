/* Blocks of narrow floats: loops around minifloat.h; f16 uses the processor's conversion if it has
 * one. */
#include "device/host/floats.h"

#include "device/host/minifloat.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

#define DEFINE_NARROW_FLOAT(name, code)                                                                                \
    static void widen_##name(float *restrict dst, const void *restrict src, int64_t count)                             \
    {                                                                                                                  \
        const code *const codes = src;                                                                                 \
        for (int64_t i = 0; i < count; i++)                                                                            \
            dst[i] = name##_widen(codes[i]);                                                                           \
    }                                                                                                                  \
    static void narrow_##name(void *restrict dst, const float *restrict src, int64_t count)                            \
    {                                                                                                                  \
        code *const codes = dst;                                                                                       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            codes[i] = (code)name##_narrow(src[i]);                                                                    \
    }                                                                                                                  \
    static void add_pair_##name(void *restrict dst, const void *restrict a, const void *restrict b, int64_t count)     \
    {                                                                                                                  \
        code *const sum = dst;                                                                                         \
        const code *const left = a, *const right = b;                                                                  \
        for (int64_t i = 0; i < count; i++)                                                                            \
            sum[i] = (code)name##_narrow(name##_widen(left[i]) + name##_widen(right[i]));                              \
    }

DEFINE_NARROW_FLOAT(bf16, tsr_u16)
DEFINE_NARROW_FLOAT(f8e4m3, uint8_t)
DEFINE_NARROW_FLOAT(f8e5m2, uint8_t)
DEFINE_NARROW_FLOAT(f16, tsr_u16)

#if defined(__F16C__)
/* Eight elements at a time; the last few go through the portable code, which gives the same
 * bits. */
#define LANES 8

static inline __m256 load_f16(const tsr_u16 *src)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)src));
}

/* The processor keeps a NaN's sign and payload, but results have canonical NaNs. */
static inline void store_f16(tsr_u16 *dst, __m256 value)
{
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32((int)F32_NAN));
    const __m256 canonical = _mm256_blendv_ps(value, nan, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    _mm_storeu_si128((void *)dst, _mm256_cvtps_ph(canonical, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static void widen_f16_fast(float *restrict dst, const void *restrict src, int64_t count)
{
    const tsr_u16 *const codes = src;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm256_storeu_ps(dst + i, load_f16(codes + i));
    widen_f16(dst + i, codes + i, count - i);
}

static void narrow_f16_fast(void *restrict dst, const float *restrict src, int64_t count)
{
    tsr_u16 *const codes = dst;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store_f16(codes + i, _mm256_loadu_ps(src + i));
    narrow_f16(codes + i, src + i, count - i);
}

static void add_pair_f16_fast(void *restrict dst, const void *restrict a, const void *restrict b, int64_t count)
{
    tsr_u16 *const sum = dst;
    const tsr_u16 *const left = a, *const right = b;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        store_f16(sum + i, _mm256_add_ps(load_f16(left + i), load_f16(right + i)));
    add_pair_f16(sum + i, left + i, right + i, count - i);
}
#else
#define widen_f16_fast    widen_f16
#define narrow_f16_fast   narrow_f16
#define add_pair_f16_fast add_pair_f16
#endif

typedef struct narrow_float {
    tsr_widen *widen;
    tsr_narrow *narrow;
    tsr_add_pair *add_pair;
} narrow_float;

static const narrow_float narrow_floats[TSR_DTYPE_END] = {
    [TSR_F16] = {widen_f16_fast, narrow_f16_fast, add_pair_f16_fast},
    [TSR_BF16] = {widen_bf16, narrow_bf16, add_pair_bf16},
    [TSR_F8E4M3] = {widen_f8e4m3, narrow_f8e4m3, add_pair_f8e4m3},
    [TSR_F8E5M2] = {widen_f8e5m2, narrow_f8e5m2, add_pair_f8e5m2},
};

tsr_widen *KERNEL(widen)(tsr_dtype dtype)
{
    return narrow_floats[dtype].widen;
}

tsr_narrow *KERNEL(narrow)(tsr_dtype dtype)
{
    return narrow_floats[dtype].narrow;
}

tsr_add_pair *KERNEL(add_pair)(tsr_dtype dtype)
{
    return narrow_floats[dtype].add_pair;
}
