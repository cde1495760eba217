#include "ops/kernels/pointwise_kernels.h"

#include "ops/kernels/functions.h"
#include "ops/kernels/functions_f32.h"
#include "ops/kernels/stream.h"

#define NAME_(kernels) tsr_pointwise_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

#define LOOP _Pragma("omp simd") for (int64_t i = 0; i < n; i++)

/* A loop over elements of type T: `a`, `b` and `c` are those of the operands of types A, B and
 * C. */
#define DEFINE(name, T, A, B, C, value)                                                                                \
    static void name(const void *const *in, void *out, int64_t n, const double *parameters)                            \
    {                                                                                                                  \
        const A *const as = in[0];                                                                                     \
        const B *const bs = in[1];                                                                                     \
        const C *const cs = in[2];                                                                                     \
        T *const to = out;                                                                                             \
        (void)as, (void)bs, (void)cs, (void)parameters;                                                                \
        LOOP                                                                                                           \
        {                                                                                                              \
            to[i] = (T)(value);                                                                                        \
        }                                                                                                              \
    }

#define a as[i]
#define b bs[i]
#define c cs[i]

#define FOR_FLOATS(name, value)                                                                                        \
    DEFINE(name##_f64, double, double, double, double, value)                                                          \
    DEFINE(name##_f32, float, float, float, float, value)

/* A function that f32 has of its own. */
#define FOR_EACH_FLOAT(name, wide, narrow)                                                                             \
    DEFINE(name##_f64, double, double, double, double, wide)                                                           \
    DEFINE(name##_f32, float, float, float, float, narrow)

#define FOR_INTEGERS(name, value)                                                                                      \
    DEFINE(name##_i64, uint64_t, uint64_t, uint64_t, uint64_t, value)                                                  \
    DEFINE(name##_i32, uint32_t, uint32_t, uint32_t, uint32_t, value)
#define FOR_SIGNED(name, value)                                                                                        \
    DEFINE(name##_i64, int64_t, int64_t, int64_t, int64_t, value)                                                      \
    DEFINE(name##_i32, int32_t, int32_t, int32_t, int32_t, value)

#define FOR_CONDITION(T, suffix)                                                                                       \
    DEFINE(where_##suffix, T, uint8_t, T, T, a ? b : c)                                                                \
    DEFINE(keep_##suffix, T, uint8_t, T, T, a ? b : 0)                                                                 \
    DEFINE(drop_##suffix, T, uint8_t, T, T, a ? 0 : b)                                                                 \
    DEFINE(copy_##suffix, T, T, T, T, a)

FOR_FLOATS(add, a + b)
FOR_FLOATS(sub, a - b)
FOR_FLOATS(mul, a *b)
FOR_FLOATS(div, a / b)
FOR_FLOATS(neg, -a)
FOR_FLOATS(abs, a < 0 ? -a : a == 0 ? 0 : a)
FOR_FLOATS(sign, a > 0 ? 1 : a < 0 ? -1 : a)
/* Where both are equal only the signs of zeros may differ: a sum has +0, a negated sum of negated
 * ones -0. NaNs pass through the sum. */
FOR_FLOATS(maximum, a > b ? a : b > a ? b : a == b ? (a == 0 ? a + b : a) : a + b)
FOR_FLOATS(minimum, a < b ? a : b < a ? b : a == b ? (a == 0 ? -(-a - b) : a) : a + b)
FOR_FLOATS(share_max, b > c ? a : b == c ? a / 2 : 0)
FOR_FLOATS(share_min, b < c ? a : b == c ? a / 2 : 0)
FOR_FLOATS(relu, a > 0 ? a : a == a ? 0 : a)
FOR_FLOATS(relu_backward, b > 0 ? a : 0)
FOR_FLOATS(scale, a *parameters[0])
FOR_EACH_FLOAT(exp, tsr_f64_exp(a), tsr_f32_exp(a))
FOR_EACH_FLOAT(log, tsr_f64_log(a), tsr_f32_log(a))
FOR_EACH_FLOAT(sqrt, sqrt(a), sqrtf(a))
FOR_EACH_FLOAT(rsqrt, 1 / sqrt(a), 1 / sqrtf(a))
FOR_EACH_FLOAT(tanh, tsr_f64_tanh(a), tsr_f32_tanh(a))
FOR_FLOATS(tanh_backward, a *((1 - b) * (1 + b)))
FOR_EACH_FLOAT(sigmoid, tsr_f64_sigmoid(a), tsr_f32_sigmoid(a))
FOR_FLOATS(sigmoid_backward, a *((1 - b) * b))
FOR_EACH_FLOAT(silu, tsr_f64_silu(a), tsr_f32_silu(a))
FOR_EACH_FLOAT(silu_backward, a *tsr_f64_silu_slope(b), a *tsr_f32_silu_slope(b))
FOR_EACH_FLOAT(silu_mul, tsr_f64_silu(a) * b, tsr_f32_silu(a) * b)
FOR_EACH_FLOAT(gelu_by_tanh, tsr_f64_gelu_tanh(a), tsr_f32_gelu_tanh(a))
FOR_EACH_FLOAT(gelu_by_erf, tsr_f64_gelu_erf(a), tsr_f32_gelu_erf(a))
FOR_EACH_FLOAT(gelu_by_tanh_backward, a *tsr_f64_gelu_tanh_slope(b), a *tsr_f32_gelu_tanh_slope(b))
FOR_EACH_FLOAT(gelu_by_erf_backward, a *tsr_f64_gelu_erf_slope(b), a *tsr_f32_gelu_erf_slope(b))

#define DEFINE_EITHER(name, suffix)                                                                                    \
    static void gelu##name##_##suffix(const void *const *in, void *out, int64_t n, const double *parameters)           \
    {                                                                                                                  \
        (parameters[0] != 0 ? gelu_by_tanh##name##_##suffix : gelu_by_erf##name##_##suffix)(in, out, n, parameters);   \
    }

DEFINE_EITHER(, f64)
DEFINE_EITHER(, f32)
DEFINE_EITHER(_backward, f64)
DEFINE_EITHER(_backward, f32)

/* Loops that stream lines of f32 results while they compute them, of the first operands. */
#define DEFINE_LINES(name, operands, value)                                                                            \
    static void name##_lines(const void *const *in, void *out, int64_t n, const double *parameters)                    \
    {                                                                                                                  \
        enum { LENGTH = STREAM_LINE / sizeof(float) };                                                                 \
        const float *as = in[0], *bs = in[(operands)-1];                                                               \
        float *to = out;                                                                                               \
        (void)parameters;                                                                                              \
        for (float *const end = to + n; to < end; to += LENGTH, as += LENGTH, bs += LENGTH) {                          \
            _Alignas(STREAM_LINE) float line[LENGTH];                                                                  \
            stream_fetch(as);                                                                                          \
            if ((operands) > 1)                                                                                        \
                stream_fetch(bs);                                                                                      \
            _Pragma("omp simd") for (int i = 0; i < LENGTH; i++) line[i] = value;                                      \
            stream_line(line, to);                                                                                     \
        }                                                                                                              \
    }

DEFINE_LINES(add, 2, a + b)
DEFINE_LINES(sub, 2, a - b)
DEFINE_LINES(mul, 2, a *b)
DEFINE_LINES(div, 2, a / b)
DEFINE_LINES(relu, 1, a > 0 ? a : a == a ? 0 : a)
DEFINE_LINES(scale, 1, (float)(a *parameters[0]))
DEFINE_LINES(exp, 1, tsr_f32_exp(a))
DEFINE_LINES(tanh, 1, tsr_f32_tanh(a))
DEFINE_LINES(sigmoid, 1, tsr_f32_sigmoid(a))
DEFINE_LINES(silu, 1, tsr_f32_silu(a))
DEFINE_LINES(silu_mul, 2, tsr_f32_silu(a) * b)
DEFINE_LINES(gelu_by_tanh, 1, tsr_f32_gelu_tanh(a))
DEFINE_LINES(gelu_by_erf, 1, tsr_f32_gelu_erf(a))

static void gelu_lines(const void *const *in, void *out, int64_t n, const double *parameters)
{
    (parameters[0] != 0 ? gelu_by_tanh_lines : gelu_by_erf_lines)(in, out, n, parameters);
}

FOR_INTEGERS(add, a + b)
FOR_INTEGERS(sub, a - b)
FOR_INTEGERS(mul, a *b)
FOR_INTEGERS(neg, 0 - a)
FOR_SIGNED(maximum, a > b ? a : b)
FOR_SIGNED(minimum, a < b ? a : b)
DEFINE(abs_i64, uint64_t, int64_t, int64_t, int64_t, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)
DEFINE(abs_i32, uint32_t, int32_t, int32_t, int32_t, a < 0 ? 0 - (uint32_t)a : (uint32_t)a)

/* Parameters of integers: the nearest integer within the type; NaN is 0. */
#define DEFINE_BOUND(name, T, least, largest)                                                                          \
    static inline T name(double value)                                                                                 \
    {                                                                                                                  \
        return value != value                ? 0                                                                       \
               : value <= (double)(least)    ? (least)                                                                 \
               : value >= -(double)(least)-1 ? (largest)                                                               \
                                             : (T)value;                                                               \
    }
DEFINE_BOUND(bound_i64, int64_t, INT64_MIN, INT64_MAX)
DEFINE_BOUND(bound_i32, int32_t, INT32_MIN, INT32_MAX)

/* x within bounds, of which the larger one counts last; NaN passes. */
#define CLAMPED_TO(T, low, high)                                                                                       \
    (a < (T)(low) ? ((T)(low) > (T)(high) ? (T)(high) : (T)(low)) : a > (T)(high) ? (T)(high) : a)

FOR_FLOATS(pow, tsr_f64_pow(a, b))
FOR_FLOATS(pow_backward, a *(c == 0 ? 0 : c * tsr_f64_pow(b, c - 1)))
FOR_FLOATS(exponent_backward, b == 0 ? 0 : a * tsr_f64_pow(b, c) * tsr_f64_log(b))
DEFINE(clamp_f64, double, double, double, double, CLAMPED_TO(double, parameters[0], parameters[1]))
DEFINE(clamp_f32, float, float, float, float, CLAMPED_TO(float, parameters[0], parameters[1]))
DEFINE(clamp_i64, int64_t, int64_t, int64_t, int64_t,
       CLAMPED_TO(int64_t, bound_i64(parameters[0]), bound_i64(parameters[1])))
DEFINE(clamp_i32, int32_t, int32_t, int32_t, int32_t,
       CLAMPED_TO(int32_t, bound_i32(parameters[0]), bound_i32(parameters[1])))
FOR_FLOATS(clamp_backward,
           (b > parameters[0] || parameters[0] == -INFINITY) && (b < parameters[1] || parameters[1] == INFINITY) ? a
                                                                                                                 : 0)
DEFINE(fill_f64, double, double, uint8_t, double, b ? parameters[0] : a)
DEFINE(fill_f32, float, float, uint8_t, float, b ? (float)parameters[0] : a)
DEFINE(fill_i64, int64_t, int64_t, uint8_t, int64_t, b ? bound_i64(parameters[0]) : a)
DEFINE(fill_i32, int32_t, int32_t, uint8_t, int32_t, b ? bound_i32(parameters[0]) : a)
DEFINE(fill_bool, uint8_t, uint8_t, uint8_t, uint8_t, b ? parameters[0] != 0 : a)
FOR_FLOATS(reciprocal, 1 / a)
FOR_FLOATS(square, a *a)
FOR_INTEGERS(square, a *a)
FOR_SIGNED(sign, (a > 0) - (a < 0))
FOR_EACH_FLOAT(floor, floor(a), floorf(a))
FOR_EACH_FLOAT(ceil, ceil(a), ceilf(a))
FOR_EACH_FLOAT(round, rint(a), rintf(a))
FOR_FLOATS(expm1, tsr_f64_expm1(a))
FOR_FLOATS(log1p, tsr_f64_log1p(a))
FOR_FLOATS(log1p_backward, a / (1 + b))
FOR_FLOATS(erf, tsr_f64_erf(a))
FOR_FLOATS(erf_backward, a *(1.1283791670955126 * tsr_f64_exp(-(double)b * b)))

/* Sine and cosine: beyond TSR_ANGLE_MAX by libm, for which a loop is not vectorized. */
#define DEFINE_TURN(name, T, suffix)                                                                                   \
    DEFINE(name##_small_##suffix, T, T, T, T, tsr_f64_##name(a))                                                       \
    static void name##_##suffix(const void *const *in, void *out, int64_t n, const double *parameters)                 \
    {                                                                                                                  \
        const T *const from = in[0];                                                                                   \
        T *const to = out;                                                                                             \
        int large = 0;                                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                                \
            large |= fabs((double)from[i]) > TSR_ANGLE_MAX;                                                            \
        if (!large)                                                                                                    \
            name##_small_##suffix(in, out, n, parameters);                                                             \
        for (int64_t i = 0; i < n && large; i++) {                                                                     \
            const double x = from[i];                                                                                  \
            to[i] = (T)(fabs(x) > TSR_ANGLE_MAX ? name(x) : tsr_f64_##name(x));                                        \
        }                                                                                                              \
    }

DEFINE_TURN(sin, double, f64)
DEFINE_TURN(sin, float, f32)
DEFINE_TURN(cos, double, f64)
DEFINE_TURN(cos, float, f32)
FOR_FLOATS(softplus, tsr_f64_softplus(a))
FOR_FLOATS(leaky_relu, a > 0 ? a : a * parameters[0])
FOR_FLOATS(leaky_relu_backward, b > 0 ? a : a * parameters[0])
FOR_FLOATS(elu, a > 0 ? a : parameters[0] * tsr_f64_expm1(a))
FOR_FLOATS(elu_backward, b > 0 ? a : a * (parameters[0] * tsr_f64_exp(b)))

/* Not a vector's work: the number of rounds is data. */
#define DEFINE_CORRECTION(T, suffix)                                                                                   \
    static void correction_##suffix(const void *const *in, void *out, int64_t n, const double *parameters)             \
    {                                                                                                                  \
        const T *const from = in[0];                                                                                   \
        T *const to = out;                                                                                             \
        for (int64_t i = 0; i < n; i++)                                                                                \
            to[i] = (T)(1 - tsr_f64_power_of_steps(parameters[0], from[i]));                                           \
    }

DEFINE_CORRECTION(double, f64)
DEFINE_CORRECTION(float, f32)

/* Division of integers, rounded down. A divisor of 0 gives 0; the quotient of the least integer
 * and -1 wraps. */
#define DEFINE_DIVISION(suffix, T, U)                                                                                  \
    static inline T quotient_##suffix(T x, T y)                                                                        \
    {                                                                                                                  \
        if (y == 0)                                                                                                    \
            return 0;                                                                                                  \
        if (y == -1)                                                                                                   \
            return (T)(0 - (U)x);                                                                                      \
        return x / y - (x % y != 0 && (x % y < 0) != (y < 0));                                                         \
    }                                                                                                                  \
    DEFINE(floor_divide_##suffix, T, T, T, T, quotient_##suffix(a, b))                                                 \
    DEFINE(remainder_##suffix, T, T, T, T, b == 0 ? 0 : (T)((U)a - (U)quotient_##suffix(a, b) * (U)b))

DEFINE_DIVISION(i64, int64_t, uint64_t)
DEFINE_DIVISION(i32, int32_t, uint32_t)

#define FOR_TEST(name, T, suffix, value) DEFINE(name##_##suffix, uint8_t, T, T, T, value)
#define FOR_TESTS(T, suffix)                                                                                           \
    FOR_TEST(eq, T, suffix, a == b)                                                                                    \
    FOR_TEST(ne, T, suffix, a != b)                                                                                    \
    FOR_TEST(lt, T, suffix, a < b)                                                                                     \
    FOR_TEST(le, T, suffix, a <= b)                                                                                    \
    FOR_TEST(gt, T, suffix, a > b)                                                                                     \
    FOR_TEST(ge, T, suffix, a >= b)

FOR_TESTS(double, f64)
FOR_TESTS(float, f32)
FOR_TESTS(int64_t, i64)
FOR_TESTS(int32_t, i32)
FOR_TESTS(uint8_t, bool)
FOR_TEST(isnan, double, f64, a != a)
FOR_TEST(isnan, float, f32, a != a)
FOR_TEST(isinf, double, f64, fabs(a) > 0x1.fffffffffffffp1023)
FOR_TEST(isinf, float, f32, fabsf(a) > 0x1.fffffep127f)
FOR_TEST(isfinite, double, f64, fabs(a) <= 0x1.fffffffffffffp1023)
FOR_TEST(isfinite, float, f32, fabsf(a) <= 0x1.fffffep127f)
FOR_TEST(and, uint8_t, bool, a &b)
FOR_TEST(or, uint8_t, bool, a | b)
FOR_TEST(not, uint8_t, bool, !a)

FOR_CONDITION(double, f64)
FOR_CONDITION(float, f32)
FOR_CONDITION(int64_t, i64)
FOR_CONDITION(int32_t, i32)
FOR_CONDITION(uint8_t, bool)

/* Floats become the nearest integer that the type has; NaN becomes 0. */
#define CLAMPED(low, high) a != a ? 0 : a <= (low) ? (low) : a >= (high) ? (high) : a

#define DEFINE_CONVERT(from, to, F, T, value) DEFINE(from##_to_##to, T, F, F, F, value)
DEFINE_CONVERT(f64, f32, double, float, a)
DEFINE_CONVERT(f32, f64, float, double, a)
DEFINE_CONVERT(i64, f64, int64_t, double, a)
DEFINE_CONVERT(i64, f32, int64_t, float, a)
DEFINE_CONVERT(i32, f64, int32_t, double, a)
DEFINE_CONVERT(i32, f32, int32_t, float, a)
DEFINE_CONVERT(i64, i32, int64_t, int32_t, a)
DEFINE_CONVERT(i32, i64, int32_t, int64_t, a)
DEFINE_CONVERT(bool, f64, uint8_t, double, a)
DEFINE_CONVERT(bool, f32, uint8_t, float, a)
DEFINE_CONVERT(bool, i64, uint8_t, int64_t, a)
DEFINE_CONVERT(bool, i32, uint8_t, int32_t, a)
DEFINE_CONVERT(f64, bool, double, uint8_t, a != 0)
DEFINE_CONVERT(f32, bool, float, uint8_t, a != 0)
DEFINE_CONVERT(i64, bool, int64_t, uint8_t, a != 0)
DEFINE_CONVERT(i32, bool, int32_t, uint8_t, a != 0)
DEFINE_CONVERT(f64, i32, double, int32_t, CLAMPED(-0x1p31, 2147483647.0))
DEFINE_CONVERT(f32, i32, float, int32_t,
               (a != a          ? 0
                : a <= -0x1p31f ? INT32_MIN
                : a >= 0x1p31f  ? INT32_MAX
                                : (int32_t)a))
DEFINE_CONVERT(f64, i64, double, int64_t,
               (a != a         ? 0
                : a <= -0x1p63 ? INT64_MIN
                : a >= 0x1p63  ? INT64_MAX
                               : (int64_t)a))
DEFINE_CONVERT(f32, i64, float, int64_t,
               (a != a          ? 0
                : a <= -0x1p63f ? INT64_MIN
                : a >= 0x1p63f  ? INT64_MAX
                                : (int64_t)a))

#undef a
#undef b
#undef c

static inline float widen_bf16(uint16_t code)
{
    const uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A subnormal has the smallest normal's exponent but no leading 1; it is given one, which the
 * subtraction takes away. */
static inline float widen_f16(uint16_t code)
{
    const uint32_t magnitude = code & 0x7fffu, shifted = magnitude << 13;
    const uint32_t normal = shifted + (magnitude > 0x7bff ? UINT32_C(224) << 23 : UINT32_C(112) << 23);
    const uint32_t with_one = shifted + (UINT32_C(113) << 23);
    float value, subnormal;
    memcpy(&value, &normal, sizeof value);
    memcpy(&subnormal, &with_one, sizeof subnormal);
    value = magnitude < 0x400 ? subnormal - 0x1p-14f : value;
    return code & 0x8000 ? -value : value;
}

static inline uint16_t round_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(value != value ? 0x7fc0 : rounded);
}

/* Adding 0.5 to a small magnitude leaves the f16's subnormal in the low bits, rounded to nearest
 * even. */
static inline uint16_t round_f16(float value)
{
    uint32_t bits, small_bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    float size;
    memcpy(&size, &magnitude, sizeof size);
    size += 0.5f;
    memcpy(&small_bits, &size, sizeof small_bits);
    const uint32_t normal = (magnitude - (UINT32_C(112) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    const uint32_t subnormal = small_bits - (UINT32_C(126) << 23);
    const uint32_t finite = magnitude < UINT32_C(113) << 23 ? subnormal : normal;
    const uint32_t code = magnitude >= UINT32_C(0x477ff000) ? 0x7c00 : finite;
    return (uint16_t)(magnitude > 0x7f800000 ? 0x7e00 : sign | code);
}

#define DEFINE_MOVES(dtype, M, C, load, store)                                                                         \
    static void gather_##dtype(const void *from, void *to, int64_t n, int64_t stride)                                  \
    {                                                                                                                  \
        const M *const source = from;                                                                                  \
        C *const array = to;                                                                                           \
        if (stride == 1)                                                                                               \
            LOOP                                                                                                       \
            {                                                                                                          \
                array[i] = load(source[i]);                                                                            \
            }                                                                                                          \
        else if (stride == 0) {                                                                                        \
            const C value = load(*source);                                                                             \
            LOOP                                                                                                       \
            {                                                                                                          \
                array[i] = value;                                                                                      \
            }                                                                                                          \
        } else                                                                                                         \
            for (int64_t i = 0; i < n; i++)                                                                            \
                array[i] = load(source[i * stride]);                                                                   \
    }                                                                                                                  \
    static void scatter_##dtype(const void *from, void *to, int64_t n, int64_t stride)                                 \
    {                                                                                                                  \
        const C *const array = from;                                                                                   \
        M *const target = to;                                                                                          \
        if (stride == 1)                                                                                               \
            LOOP                                                                                                       \
            {                                                                                                          \
                target[i] = store(array[i]);                                                                           \
            }                                                                                                          \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                target[i * stride] = store(array[i]);                                                                  \
    }

DEFINE_MOVES(f64, double, double, , )
DEFINE_MOVES(f32, float, float, , )
DEFINE_MOVES(i64, int64_t, int64_t, , )
DEFINE_MOVES(i32, int32_t, int32_t, , )
DEFINE_MOVES(bool, uint8_t, uint8_t, , )
DEFINE_MOVES(f16, uint16_t, float, widen_f16, round_f16)
DEFINE_MOVES(bf16, uint16_t, float, widen_bf16, round_bf16)

#define DEFINE_SUMS(dtype, T)                                                                                          \
    static void add_rows_##dtype(const void *terms, void *sums, int64_t n)                                             \
    {                                                                                                                  \
        const T *const from = terms;                                                                                   \
        T *const to = sums;                                                                                            \
        LOOP                                                                                                           \
        {                                                                                                              \
            to[i] += from[i];                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void add_lanes_##dtype(const void *terms, void *sums, int64_t n)                                            \
    {                                                                                                                  \
        int64_t done = 0;                                                                                              \
        for (; done + TSR_POINTWISE_LANES <= n; done += TSR_POINTWISE_LANES)                                           \
            add_rows_##dtype((const T *)terms + done, sums, TSR_POINTWISE_LANES);                                      \
        add_rows_##dtype((const T *)terms + done, sums, n - done);                                                     \
    }

DEFINE_SUMS(f64, double)
DEFINE_SUMS(i64, uint64_t)

#define DEFINE_SCALED(dtype, T)                                                                                        \
    static void start_scaled_##dtype(const void *terms, double factor, void *sums, int64_t n)                          \
    {                                                                                                                  \
        const T *const from = terms, by = (T)factor;                                                                   \
        T *const to = sums;                                                                                            \
        LOOP                                                                                                           \
        {                                                                                                              \
            to[i] = from[i] * by;                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    static void add_scaled_##dtype(const void *terms, double factor, void *sums, int64_t n)                            \
    {                                                                                                                  \
        const T *const from = terms, by = (T)factor;                                                                   \
        T *const to = sums;                                                                                            \
        LOOP                                                                                                           \
        {                                                                                                              \
            to[i] += from[i] * by;                                                                                     \
        }                                                                                                              \
    }

DEFINE_SCALED(f64, double)
DEFINE_SCALED(f32, float)

#define FLOATS(name)                                                                                                   \
    {                                                                                                                  \
        [TSR_F64] = name##_f64, [TSR_F32] = name##_f32                                                                 \
    }
#define NUMBERS(name)                                                                                                  \
    {                                                                                                                  \
        [TSR_F64] = name##_f64, [TSR_F32] = name##_f32, [TSR_I64] = name##_i64, [TSR_I32] = name##_i32                 \
    }
#define ANY(name)                                                                                                      \
    {                                                                                                                  \
        [TSR_F64] = name##_f64, [TSR_F32] = name##_f32, [TSR_I64] = name##_i64, [TSR_I32] = name##_i32,                \
        [TSR_BOOL] = name##_bool                                                                                       \
    }
#define INTEGERS(name)                                                                                                 \
    {                                                                                                                  \
        [TSR_I64] = name##_i64, [TSR_I32] = name##_i32                                                                 \
    }
#define MOVES(way)                                                                                                     \
    {                                                                                                                  \
        [TSR_F64] = way##_f64, [TSR_F32] = way##_f32, [TSR_F16] = way##_f16, [TSR_BF16] = way##_bf16,                  \
        [TSR_I64] = way##_i64, [TSR_I32] = way##_i32, [TSR_BOOL] = way##_bool                                          \
    }

#define LINES                                                                                                          \
    {                                                                                                                  \
        [TSR_POINTWISE_ADD] = add_lines, [TSR_POINTWISE_SUB] = sub_lines, [TSR_POINTWISE_MUL] = mul_lines,             \
        [TSR_POINTWISE_DIV] = div_lines, [TSR_POINTWISE_EXP] = exp_lines, [TSR_POINTWISE_TANH] = tanh_lines,           \
        [TSR_POINTWISE_SIGMOID] = sigmoid_lines, [TSR_POINTWISE_SILU] = silu_lines,                                    \
        [TSR_POINTWISE_SILU_MUL] = silu_mul_lines, [TSR_POINTWISE_RELU] = relu_lines,                                  \
        [TSR_POINTWISE_GELU] = gelu_lines, [TSR_POINTWISE_SCALE] = scale_lines                                         \
    }

const tsr_pointwise_kernels NAME(TSR_KERNELS) = {
    .loops =
        {
            [TSR_POINTWISE_ADD] = NUMBERS(add),
            [TSR_POINTWISE_SUB] = NUMBERS(sub),
            [TSR_POINTWISE_MUL] = NUMBERS(mul),
            [TSR_POINTWISE_DIV] = FLOATS(div),
            [TSR_POINTWISE_MAXIMUM] = NUMBERS(maximum),
            [TSR_POINTWISE_MINIMUM] = NUMBERS(minimum),
            [TSR_POINTWISE_SHARE_MAX] = FLOATS(share_max),
            [TSR_POINTWISE_SHARE_MIN] = FLOATS(share_min),
            [TSR_POINTWISE_NEG] = NUMBERS(neg),
            [TSR_POINTWISE_ABS] = NUMBERS(abs),
            [TSR_POINTWISE_SIGN] = NUMBERS(sign),
            [TSR_POINTWISE_EXP] = FLOATS(exp),
            [TSR_POINTWISE_LOG] = FLOATS(log),
            [TSR_POINTWISE_SQRT] = FLOATS(sqrt),
            [TSR_POINTWISE_RSQRT] = FLOATS(rsqrt),
            [TSR_POINTWISE_TANH] = FLOATS(tanh),
            [TSR_POINTWISE_TANH_BACKWARD] = FLOATS(tanh_backward),
            [TSR_POINTWISE_SIGMOID] = FLOATS(sigmoid),
            [TSR_POINTWISE_SIGMOID_BACKWARD] = FLOATS(sigmoid_backward),
            [TSR_POINTWISE_SILU] = FLOATS(silu),
            [TSR_POINTWISE_SILU_BACKWARD] = FLOATS(silu_backward),
            [TSR_POINTWISE_SILU_MUL] = FLOATS(silu_mul),
            [TSR_POINTWISE_RELU] = FLOATS(relu),
            [TSR_POINTWISE_RELU_BACKWARD] = FLOATS(relu_backward),
            [TSR_POINTWISE_GELU] = FLOATS(gelu),
            [TSR_POINTWISE_GELU_BACKWARD] = FLOATS(gelu_backward),
            [TSR_POINTWISE_SCALE] = FLOATS(scale),
            [TSR_POINTWISE_WHERE] = ANY(where),
            [TSR_POINTWISE_KEEP] = ANY(keep),
            [TSR_POINTWISE_DROP] = ANY(drop),
            [TSR_POINTWISE_COPY] = ANY(copy),
            [TSR_POINTWISE_POW] = FLOATS(pow),
            [TSR_POINTWISE_POW_BACKWARD] = FLOATS(pow_backward),
            [TSR_POINTWISE_EXPONENT_BACKWARD] = FLOATS(exponent_backward),
            [TSR_POINTWISE_CLAMP] = NUMBERS(clamp),
            [TSR_POINTWISE_CLAMP_BACKWARD] = FLOATS(clamp_backward),
            [TSR_POINTWISE_FILL] = ANY(fill),
            [TSR_POINTWISE_RECIPROCAL] = FLOATS(reciprocal),
            [TSR_POINTWISE_SQUARE] = NUMBERS(square),
            [TSR_POINTWISE_FLOOR] = FLOATS(floor),
            [TSR_POINTWISE_CEIL] = FLOATS(ceil),
            [TSR_POINTWISE_ROUND] = FLOATS(round),
            [TSR_POINTWISE_EXPM1] = FLOATS(expm1),
            [TSR_POINTWISE_LOG1P] = FLOATS(log1p),
            [TSR_POINTWISE_LOG1P_BACKWARD] = FLOATS(log1p_backward),
            [TSR_POINTWISE_SOFTPLUS] = FLOATS(softplus),
            [TSR_POINTWISE_SIN] = FLOATS(sin),
            [TSR_POINTWISE_COS] = FLOATS(cos),
            [TSR_POINTWISE_ERF] = FLOATS(erf),
            [TSR_POINTWISE_ERF_BACKWARD] = FLOATS(erf_backward),
            [TSR_POINTWISE_LEAKY_RELU] = FLOATS(leaky_relu),
            [TSR_POINTWISE_LEAKY_RELU_BACKWARD] = FLOATS(leaky_relu_backward),
            [TSR_POINTWISE_ELU] = FLOATS(elu),
            [TSR_POINTWISE_ELU_BACKWARD] = FLOATS(elu_backward),
            [TSR_POINTWISE_CORRECTION] = FLOATS(correction),
            [TSR_POINTWISE_FLOOR_DIVIDE] = INTEGERS(floor_divide),
            [TSR_POINTWISE_REMAINDER] = INTEGERS(remainder),
            [TSR_POINTWISE_EQ] = ANY(eq),
            [TSR_POINTWISE_NE] = ANY(ne),
            [TSR_POINTWISE_LT] = ANY(lt),
            [TSR_POINTWISE_LE] = ANY(le),
            [TSR_POINTWISE_GT] = ANY(gt),
            [TSR_POINTWISE_GE] = ANY(ge),
            [TSR_POINTWISE_ISNAN] = FLOATS(isnan),
            [TSR_POINTWISE_ISINF] = FLOATS(isinf),
            [TSR_POINTWISE_ISFINITE] = FLOATS(isfinite),
            [TSR_POINTWISE_AND] = {[TSR_BOOL] = and_bool},
            [TSR_POINTWISE_OR] = {[TSR_BOOL] = or_bool},
            [TSR_POINTWISE_NOT] = {[TSR_BOOL] = not_bool},
        },
    .lines = LINES,
    .gather = MOVES(gather),
    .stream = stream_bytes,
    .finish = stream_finish,
    .scatter = MOVES(scatter),
    .add_rows = {[TSR_F64] = add_rows_f64, [TSR_I64] = add_rows_i64},
    .start_scaled = {[TSR_F64] = start_scaled_f64, [TSR_F32] = start_scaled_f32},
    .add_scaled = {[TSR_F64] = add_scaled_f64, [TSR_F32] = add_scaled_f32},
    .add_lanes = {[TSR_F64] = add_lanes_f64, [TSR_I64] = add_lanes_i64},
    .convert =
        {
            [TSR_F64] = {[TSR_F64] = copy_f64,
                         [TSR_F32] = f64_to_f32,
                         [TSR_I64] = f64_to_i64,
                         [TSR_I32] = f64_to_i32,
                         [TSR_BOOL] = f64_to_bool},
            [TSR_F32] = {[TSR_F64] = f32_to_f64,
                         [TSR_F32] = copy_f32,
                         [TSR_I64] = f32_to_i64,
                         [TSR_I32] = f32_to_i32,
                         [TSR_BOOL] = f32_to_bool},
            [TSR_I64] = {[TSR_F64] = i64_to_f64,
                         [TSR_F32] = i64_to_f32,
                         [TSR_I64] = copy_i64,
                         [TSR_I32] = i64_to_i32,
                         [TSR_BOOL] = i64_to_bool},
            [TSR_I32] = {[TSR_F64] = i32_to_f64,
                         [TSR_F32] = i32_to_f32,
                         [TSR_I64] = i32_to_i64,
                         [TSR_I32] = copy_i32,
                         [TSR_BOOL] = i32_to_bool},
            [TSR_BOOL] = {[TSR_F64] = bool_to_f64,
                          [TSR_F32] = bool_to_f32,
                          [TSR_I64] = bool_to_i64,
                          [TSR_I32] = bool_to_i32,
                          [TSR_BOOL] = copy_bool},
        },
};
