#include "device/host/arithmetic.h"

#include "device/host/minifloat.h"
#include "device/host/stream.h"

#include <stdalign.h>

/* dst may be exactly a. Without this pragma compilers test for overlap at run time and leave the
 * loop scalar. */
#define ELEMENTWISE _Pragma("omp simd")

#define IN_LINE(type) (STREAM_LINE / sizeof(type))

#define DEFINE_COMBINE(name, type, expression)                                                                         \
    static inline type one_##name(type x, type y)                                                                      \
    {                                                                                                                  \
        return (type)(expression);                                                                                     \
    }                                                                                                                  \
    static void name(void *dst, const void *a, const void *b, int64_t count)                                           \
    {                                                                                                                  \
        type *const out = dst;                                                                                         \
        const type *const left = a, *const right = b;                                                                  \
        ELEMENTWISE                                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = one_##name(left[i], right[i]);                                                                    \
    }                                                                                                                  \
    static void name##_streamed(char *const *dst, int count, size_t begin, const void *a, const void *b, size_t bytes) \
    {                                                                                                                  \
        const type *left = a, *right = b;                                                                              \
        for (size_t at = begin; at < begin + bytes;                                                                    \
             at += STREAM_LINE, left += IN_LINE(type), right += IN_LINE(type)) {                                       \
            alignas(STREAM_LINE) type line[IN_LINE(type)];                                                             \
            ELEMENTWISE                                                                                                \
            for (size_t i = 0; i < IN_LINE(type); i++)                                                                 \
                line[i] = one_##name(left[i], right[i]);                                                               \
            for (int d = 0; d < count; d++)                                                                            \
                stream_line(dst[d] + at, (const char *)line);                                                          \
        }                                                                                                              \
    }

/* Unsigned arithmetic wraps as signed integers must. Products go through u64, because two u16 would
 * be multiplied as signed ints. */
#define DEFINE_UNSIGNED(width, type)                                                                                   \
    DEFINE_COMBINE(sum_u##width, type, x + y)                                                                          \
    DEFINE_COMBINE(prod_u##width, type, UINT64_C(1) * x * y)                                                           \
    DEFINE_COMBINE(min_u##width, type, x < y ? x : y)                                                                  \
    DEFINE_COMBINE(max_u##width, type, x > y ? x : y)

#define DEFINE_SIGNED(width, type)                                                                                     \
    DEFINE_COMBINE(min_i##width, type, x < y ? x : y)                                                                  \
    DEFINE_COMBINE(max_i##width, type, x > y ? x : y)

DEFINE_UNSIGNED(8, uint8_t)
DEFINE_UNSIGNED(16, tsr_u16)
DEFINE_UNSIGNED(32, tsr_u32)
DEFINE_UNSIGNED(64, tsr_u64)
DEFINE_SIGNED(8, int8_t)
DEFINE_SIGNED(16, tsr_i16)
DEFINE_SIGNED(32, tsr_i32)
DEFINE_SIGNED(64, tsr_i64)

/* Equal numbers differ at most in the sign of zero: the or of their bits is -0 if either is -0, the
 * and is +0 if either is +0. */
#define DEFINE_ORDER(width, bits_type)                                                                                 \
    static inline bits_type min_bits_f##width(bits_type x, bits_type y, int less, int equal, int unordered)            \
    {                                                                                                                  \
        const bits_type number = equal ? x | y : less ? x : y;                                                         \
        return unordered ? F##width##_NAN : number;                                                                    \
    }                                                                                                                  \
    static inline bits_type max_bits_f##width(bits_type x, bits_type y, int less, int equal, int unordered)            \
    {                                                                                                                  \
        const bits_type number = equal ? x & y : less ? y : x;                                                         \
        return unordered ? F##width##_NAN : number;                                                                    \
    }

#define ORDERED(op, width)                                                                                             \
    f##width##_of_bits(op##_bits_f##width(bits_of_f##width(x), bits_of_f##width(y), x < y, x == y, (x != x) | (y != y)))

#define DEFINE_FLOAT(width, type, native, bits_type)                                                                   \
    DEFINE_ORDER(width, bits_type)                                                                                     \
    DEFINE_COMBINE(sum_f##width, type, canonical_f##width(x + y))                                                      \
    DEFINE_COMBINE(prod_f##width, type, canonical_f##width((x) * (y)))                                                 \
    DEFINE_COMBINE(min_f##width, type, ORDERED(min, width))                                                            \
    DEFINE_COMBINE(max_f##width, type, ORDERED(max, width))                                                            \
    static void settle_f##width(void *dst, const void *src, int64_t count)                                             \
    {                                                                                                                  \
        type *const out = dst;                                                                                         \
        const type *const in = src;                                                                                    \
        ELEMENTWISE                                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = canonical_f##width(in[i]);                                                                        \
    }                                                                                                                  \
    static void divide_f##width(void *values, int64_t divisor, int64_t count)                                          \
    {                                                                                                                  \
        type *const out = values;                                                                                      \
        const native by = (native)divisor;                                                                             \
        ELEMENTWISE                                                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            out[i] = canonical_f##width(out[i] / by);                                                                  \
    }                                                                                                                  \
    /* `count` parts, two per number. Products and sums of a block are separate loops: of one loop GCC 12 makes        \
     * vfmaddsub, whatever -ffp-contract says, and the sets of kernels would give different bits. */                   \
    static void prod_complex_f##width(void *dst, const void *a, const void *b, int64_t count)                          \
    {                                                                                                                  \
        native first[COMPLEX_BLOCK], second[COMPLEX_BLOCK];                                                            \
        for (int64_t at = 0; at < count; at += COMPLEX_BLOCK) {                                                        \
            const int64_t parts = count - at < COMPLEX_BLOCK ? count - at : COMPLEX_BLOCK;                             \
            const type *const left = (const type *)a + at, *const right = (const type *)b + at;                        \
            for (int64_t i = 0; i < parts; i += 2) {                                                                   \
                first[i] = left[i] * right[i];                                                                         \
                second[i] = -(left[i + 1] * right[i + 1]);                                                             \
                first[i + 1] = left[i] * right[i + 1];                                                                 \
                second[i + 1] = left[i + 1] * right[i];                                                                \
            }                                                                                                          \
            sum_f##width((type *)dst + at, first, second, parts);                                                      \
        }                                                                                                              \
    }

#define COMPLEX_BLOCK 256

DEFINE_FLOAT(32, tsr_f32, float, uint32_t)
DEFINE_FLOAT(64, tsr_f64, double, uint64_t)

#define BOTH(name)                                                                                                     \
    {                                                                                                                  \
        name, name##_streamed                                                                                          \
    }
#define ORDER(type)    [TSR_MIN] = BOTH(min_##type), [TSR_MAX] = BOTH(max_##type)
#define SUM_PROD(type) [TSR_SUM] = BOTH(sum_##type), [TSR_PROD] = BOTH(prod_##type)
#define FLOAT_OPS(type)                                                                                                \
    {                                                                                                                  \
        SUM_PROD(type), [TSR_AVG] = BOTH(sum_##type), ORDER(type)                                                      \
    }

#define ROW_FLOAT(width)                                                                                               \
    {                                                                                                                  \
        width / 8, 1, .settle = settle_f##width, .divide = divide_f##width, .combine = FLOAT_OPS(f##width)             \
    }
#define ROW_SIGNED(width)                                                                                              \
    {                                                                                                                  \
        width / 8, 1, .combine = { SUM_PROD(u##width), ORDER(i##width) }                                               \
    }
#define ROW_UNSIGNED(width)                                                                                            \
    {                                                                                                                  \
        width / 8, 1, .combine = { SUM_PROD(u##width), ORDER(u##width) }                                               \
    }
#define ROW_COMPLEX(width)                                                                                             \
    {                                                                                                                  \
        width / 4, 2, .settle = settle_f##width, .divide = divide_f##width, .combine = {                               \
            [TSR_SUM] = BOTH(sum_f##width),                                                                            \
            [TSR_AVG] = BOTH(sum_f##width),                                                                            \
            [TSR_PROD] = {prod_complex_f##width, NULL}                                                                 \
        }                                                                                                              \
    }
/* Narrow floats are combined as f32, and narrowing makes their NaNs canonical. */
#define ROW_NARROW                                                                                                     \
    {                                                                                                                  \
        4, 1, .divide = divide_f32, .combine = FLOAT_OPS(f32)                                                          \
    }

static const tsr_arithmetic rows[TSR_DTYPE_END] = {
    [TSR_F64] = ROW_FLOAT(64),    [TSR_F32] = ROW_FLOAT(32),    [TSR_F16] = ROW_NARROW,
    [TSR_BF16] = ROW_NARROW,      [TSR_F8E4M3] = ROW_NARROW,    [TSR_F8E5M2] = ROW_NARROW,
    [TSR_I64] = ROW_SIGNED(64),   [TSR_I32] = ROW_SIGNED(32),   [TSR_I16] = ROW_SIGNED(16),
    [TSR_I8] = ROW_SIGNED(8),     [TSR_U64] = ROW_UNSIGNED(64), [TSR_U32] = ROW_UNSIGNED(32),
    [TSR_U16] = ROW_UNSIGNED(16), [TSR_U8] = ROW_UNSIGNED(8),   [TSR_BOOL] = {1, 1, .combine = {ORDER(u8)}},
    [TSR_C64] = ROW_COMPLEX(32),  [TSR_C128] = ROW_COMPLEX(64),
};

const tsr_arithmetic *KERNEL(arithmetic)(tsr_dtype dtype)
{
    return &rows[dtype];
}
