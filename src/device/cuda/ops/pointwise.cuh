/** The bodies of the kernels of pointwise ops. Sums, products, quotients, roots, comparisons and
 * choices have the host's bits; functions are those of CUDA's library. */
#ifndef TSR_DEVICE_CUDA_OPS_POINTWISE_CUH
#define TSR_DEVICE_CUDA_OPS_POINTWISE_CUH

#include "device/cuda/number.cuh"
#include "device/cuda/ops/work.h"

#include <math.h>

/** An f64 or f32 within an integer type, without its fraction; NaN is 0. */
template <typename whole> TSR_BOTH whole tsr_cuda_to_whole(double value)
{
    const int digits = 8 * (int)sizeof(whole) - 1;
    const double end = digits == 63 ? 0x1p63 : 0x1p31;
    const whole lowest = digits == 63 ? (whole)INT64_MIN : (whole)INT32_MIN;
    return value != value ? 0 : value <= -end ? lowest : value >= end ? (whole)~lowest : (whole)value;
}

template <typename to, typename from> struct tsr_cuda_cast {
    TSR_BOTH to value(from x)
    {
        return (to)x;
    }
};

template <typename from> struct tsr_cuda_cast<bool, from> {
    TSR_BOTH bool value(from x)
    {
        return x != 0;
    }
};

#define TSR_CUDA_CAST_WHOLE(to, from)                                                                                  \
    template <> struct tsr_cuda_cast<to, from> {                                                                       \
        TSR_BOTH to value(from x)                                                                                      \
        {                                                                                                              \
            return tsr_cuda_to_whole<to>(x);                                                                           \
        }                                                                                                              \
    }
TSR_CUDA_CAST_WHOLE(int64_t, double);
TSR_CUDA_CAST_WHOLE(int64_t, float);
TSR_CUDA_CAST_WHOLE(int32_t, double);
TSR_CUDA_CAST_WHOLE(int32_t, float);

/** An element as a T. */
template <typename T> TSR_BOTH T tsr_cuda_read(const unsigned char *at, int storage)
{
    switch (storage) {
    case TSR_CUDA_AS_F64:
        return tsr_cuda_cast<T, double>::value(*tsr_cuda_at<double>(at));
    case TSR_CUDA_AS_F32:
        return tsr_cuda_cast<T, float>::value(*tsr_cuda_at<float>(at));
    case TSR_CUDA_AS_F16:
        return tsr_cuda_cast<T, float>::value(tsr_cuda_f16::widen(*tsr_cuda_at<uint16_t>(at)));
    case TSR_CUDA_AS_BF16:
        return tsr_cuda_cast<T, float>::value(tsr_cuda_bf16::widen(*tsr_cuda_at<uint16_t>(at)));
    case TSR_CUDA_AS_I64:
        return tsr_cuda_cast<T, int64_t>::value(*tsr_cuda_at<int64_t>(at));
    case TSR_CUDA_AS_I32:
        return tsr_cuda_cast<T, int32_t>::value(*tsr_cuda_at<int32_t>(at));
    default:
        return tsr_cuda_cast<T, bool>::value(*at != 0);
    }
}

/** Stores a T, rounding to nearest even. An f64 becomes an f32 before it becomes narrower, as on
 * the host. */
template <typename T> TSR_BOTH void tsr_cuda_write(unsigned char *at, int storage, T x)
{
    switch (storage) {
    case TSR_CUDA_AS_F64:
        *tsr_cuda_at<double>(at) = tsr_cuda_cast<double, T>::value(x);
        break;
    case TSR_CUDA_AS_F32:
        *tsr_cuda_at<float>(at) = tsr_cuda_cast<float, T>::value(x);
        break;
    case TSR_CUDA_AS_F16:
        *tsr_cuda_at<uint16_t>(at) = tsr_cuda_f16::narrow(tsr_cuda_cast<float, T>::value(x));
        break;
    case TSR_CUDA_AS_BF16:
        *tsr_cuda_at<uint16_t>(at) = tsr_cuda_bf16::narrow(tsr_cuda_cast<float, T>::value(x));
        break;
    case TSR_CUDA_AS_I64:
        *tsr_cuda_at<int64_t>(at) = tsr_cuda_cast<int64_t, T>::value(x);
        break;
    case TSR_CUDA_AS_I32:
        *tsr_cuda_at<int32_t>(at) = tsr_cuda_cast<int32_t, T>::value(x);
        break;
    default:
        *at = tsr_cuda_cast<bool, T>::value(x);
    }
}

/** 1 / (1 + e^-x). */
template <typename T> TSR_BOTH T tsr_cuda_sigmoid(T x)
{
    return 1 / (1 + exp(-x));
}

/** x within bounds beyond which e^x says no more. */
template <typename T> TSR_BOTH T tsr_cuda_within(T x, T bound)
{
    return x < -bound ? -bound : x > bound ? bound : x;
}

/** Minus infinity gives -0. */
template <typename T> TSR_BOTH T tsr_cuda_silu(T x)
{
    const T bound = sizeof(T) == 8 ? 800 : 110;
    return (x < -bound ? -bound : x) * tsr_cuda_sigmoid(x);
}

template <typename T> TSR_BOTH T tsr_cuda_silu_slope(T x)
{
    const T within = tsr_cuda_within(x, (T)(sizeof(T) == 8 ? 700 : 80)), s = tsr_cuda_sigmoid(within);
    return s * (1 + within * tsr_cuda_sigmoid(-within));
}

#define TSR_CUDA_GELU_TWICE 1.5957691216057308
#define TSR_CUDA_GELU_CUBED 0.071354816272600249

/** The forms of gelu, in f64 also for f32: the tail is a difference. */
TSR_BOTH double tsr_cuda_gelu(double x, bool by_tanh)
{
    const double low = x < -100 ? -100 : x, c = tsr_cuda_within(x, 30.0);
    return by_tanh ? (x < -30 ? -30 : x) * tsr_cuda_sigmoid(c * (TSR_CUDA_GELU_TWICE + TSR_CUDA_GELU_CUBED * (c * c)))
                   : 0.5 * low * erfc(-x * 0.70710678118654752440);
}

TSR_BOTH double tsr_cuda_gelu_slope(double x, bool by_tanh)
{
    if (by_tanh) {
        const double c = tsr_cuda_within(x, 30.0), square = c * c;
        const double power = c * (TSR_CUDA_GELU_TWICE + TSR_CUDA_GELU_CUBED * square);
        const double factor = c * (TSR_CUDA_GELU_TWICE + 3 * TSR_CUDA_GELU_CUBED * square);
        return tsr_cuda_sigmoid(power) * (1 + factor * tsr_cuda_sigmoid(-power));
    }
    const double c = tsr_cuda_within(x, 100.0);
    return 0.5 * erfc(-c * 0.70710678118654752440) + c * 0.39894228040143267794 * exp(-0.5 * c * c);
}

/** As pow() of C, but 1 for any x to the power of 0 alone. */
template <typename T> TSR_BOTH T tsr_cuda_pow(T x, T y)
{
    return (T)pow((double)x, (double)y);
}

/** The product of two numbers as a sum, as on the host. */
TSR_BOTH double tsr_cuda_product(double x, double y, double *lost)
{
    const double high = x * y, x_big = x * 134217729, y_big = y * 134217729;
    const double x1 = x_big - (x_big - x), y1 = y_big - (y_big - y), x2 = x - x1, y2 = y - y1;
    *lost = ((x1 * y1 - high) + x1 * y2 + x2 * y1) + x2 * y2;
    return high;
}

/** x to the power of a whole number of steps, rounded once, as on the host. */
TSR_BOTH double tsr_cuda_power_of_steps(double x, double steps)
{
    double power = 1, power_rest = 0, square = x, square_rest = 0;
    for (uint64_t n = steps >= 1 ? (steps < 0x1p62 ? (uint64_t)steps : (uint64_t)1 << 62) : 0; n; n >>= 1) {
        double lost;
        if (n & 1) {
            const double high = tsr_cuda_product(power, square, &lost);
            lost += power * square_rest + power_rest * square;
            power = high + lost;
            power_rest = lost - (power - high);
        }
        const double high = tsr_cuda_product(square, square, &lost);
        lost += 2 * (square * square_rest);
        square = high + lost;
        square_rest = lost - (square - high);
    }
    return power;
}

/** Ops that floats alone have; p and q are parameters. */
template <typename T> TSR_BOTH T tsr_cuda_function(int code, T a, T b, T c, double p, double q)
{
    switch (code) {
    case TSR_CUDA_DIV:
        return a / b;
    case TSR_CUDA_SHARE_MAX:
        return b > c ? a : b == c ? a / 2 : 0;
    case TSR_CUDA_SHARE_MIN:
        return b < c ? a : b == c ? a / 2 : 0;
    case TSR_CUDA_EXP:
        return exp(a);
    case TSR_CUDA_LOG:
        return log(a);
    case TSR_CUDA_SQRT:
        return sqrt(a);
    case TSR_CUDA_RSQRT:
        return 1 / sqrt(a);
    case TSR_CUDA_TANH:
        return tanh(a);
    case TSR_CUDA_TANH_BACKWARD:
        return a * ((1 - b) * (1 + b));
    case TSR_CUDA_SIGMOID:
        return tsr_cuda_sigmoid(a);
    case TSR_CUDA_SIGMOID_BACKWARD:
        return a * ((1 - b) * b);
    case TSR_CUDA_SILU:
        return tsr_cuda_silu(a);
    case TSR_CUDA_SILU_BACKWARD:
        return a * tsr_cuda_silu_slope(b);
    case TSR_CUDA_SILU_MUL:
        return tsr_cuda_silu(a) * b;
    case TSR_CUDA_RELU:
        return a > 0 ? a : a == a ? 0 : a;
    case TSR_CUDA_RELU_BACKWARD:
        return b > 0 ? a : 0;
    case TSR_CUDA_GELU:
        return (T)tsr_cuda_gelu(a, p != 0);
    case TSR_CUDA_GELU_BACKWARD:
        return a * (T)tsr_cuda_gelu_slope(b, p != 0);
    case TSR_CUDA_SCALE:
        return (T)(a * p);
    case TSR_CUDA_POW:
        return tsr_cuda_pow(a, b);
    case TSR_CUDA_POW_BACKWARD:
        return (T)(a * (c == 0 ? 0 : c * pow((double)b, (double)c - 1)));
    case TSR_CUDA_EXPONENT_BACKWARD:
        return (T)(b == 0 ? 0 : a * pow((double)b, (double)c) * log((double)b));
    case TSR_CUDA_CLAMP_BACKWARD:
        return (b > p || p == -INFINITY) && (b < q || q == INFINITY) ? a : 0;
    case TSR_CUDA_RECIPROCAL:
        return 1 / a;
    case TSR_CUDA_FLOOR:
        return floor(a);
    case TSR_CUDA_CEIL:
        return ceil(a);
    case TSR_CUDA_ROUND:
        return rint(a);
    case TSR_CUDA_EXPM1:
        return (T)expm1((double)a);
    case TSR_CUDA_LOG1P:
        return (T)log1p((double)a);
    case TSR_CUDA_LOG1P_BACKWARD:
        return a / (1 + b);
    case TSR_CUDA_SOFTPLUS:
        return (T)((a > 0 ? a : a == a ? 0 : a) + log1p(exp(-fabs((double)a))));
    case TSR_CUDA_LEAKY_RELU:
        return (T)(a > 0 ? a : a * p);
    case TSR_CUDA_LEAKY_RELU_BACKWARD:
        return (T)(b > 0 ? a : a * p);
    case TSR_CUDA_ELU:
        return (T)(a > 0 ? a : p * expm1((double)a));
    case TSR_CUDA_CORRECTION:
        return (T)(1 - tsr_cuda_power_of_steps(p, (double)a));
    case TSR_CUDA_ELU_BACKWARD:
        return (T)(b > 0 ? a : a * (p * exp((double)b)));
    default:
        return a;
    }
}

/** Ops that floats and integers have. */
template <typename T> struct tsr_cuda_arithmetic {
    TSR_BOTH T value(int code, T a, T b, T c, double p, double q)
    {
        switch (code) {
        case TSR_CUDA_ADD:
            return a + b;
        case TSR_CUDA_SUB:
            return a - b;
        case TSR_CUDA_MUL:
            return a * b;
        case TSR_CUDA_NEG:
            return -a;
        case TSR_CUDA_ABS:
            return a < 0 ? -a : a == 0 ? 0 : a;
        case TSR_CUDA_SIGN:
            return a > 0 ? 1 : a < 0 ? -1 : a;
        case TSR_CUDA_SQUARE:
            return a * a;
        case TSR_CUDA_MAXIMUM: /* of equal zeros a sum has +0; NaNs pass through it */
            return a > b ? a : b > a ? b : a == b ? (a == 0 ? a + b : a) : a + b;
        case TSR_CUDA_MINIMUM:
            return a < b ? a : b < a ? b : a == b ? (a == 0 ? -(-a - b) : a) : a + b;
        case TSR_CUDA_CLAMP: /* the upper bound counts last */
            return a < (T)p ? ((T)p > (T)q ? (T)q : (T)p) : a > (T)q ? (T)q : a;
        case TSR_CUDA_FILL:
            return b != 0 ? (T)p : a;
        default:
            return tsr_cuda_function<T>(code, a, b, c, p, q);
        }
    }
};

/** Integers wrap: sums and products are those of unsigned ones. */
template <typename T, typename U> struct tsr_cuda_whole_arithmetic {
    TSR_BOTH T quotient(T x, T y)
    {
        if (y == 0)
            return 0;
        if (y == -1)
            return (T)(0 - (U)x);
        return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
    }

    TSR_BOTH T value(int code, T a, T b, T, double p, double q)
    {
        const T low = tsr_cuda_to_whole<T>(p), high = tsr_cuda_to_whole<T>(q);
        switch (code) {
        case TSR_CUDA_ADD:
            return (T)((U)a + (U)b);
        case TSR_CUDA_SUB:
            return (T)((U)a - (U)b);
        case TSR_CUDA_MUL:
            return (T)((U)a * (U)b);
        case TSR_CUDA_NEG:
            return (T)(0 - (U)a);
        case TSR_CUDA_ABS:
            return a < 0 ? (T)(0 - (U)a) : a;
        case TSR_CUDA_SIGN:
            return (a > 0) - (a < 0);
        case TSR_CUDA_SQUARE:
            return (T)((U)a * (U)a);
        case TSR_CUDA_MAXIMUM:
            return a > b ? a : b;
        case TSR_CUDA_MINIMUM:
            return a < b ? a : b;
        case TSR_CUDA_CLAMP:
            return a < low ? (low > high ? high : low) : a > high ? high : a;
        case TSR_CUDA_FILL:
            return b != 0 ? low : a;
        case TSR_CUDA_FLOOR_DIVIDE:
            return quotient(a, b);
        case TSR_CUDA_REMAINDER: /* 0 where the divisor is 0 */
            return b == 0 ? 0 : (T)((U)a - (U)quotient(a, b) * (U)b);
        default:
            return a;
        }
    }
};

template <> struct tsr_cuda_arithmetic<int64_t> : tsr_cuda_whole_arithmetic<int64_t, uint64_t> {
};
template <> struct tsr_cuda_arithmetic<int32_t> : tsr_cuda_whole_arithmetic<int32_t, uint32_t> {
};

template <> struct tsr_cuda_arithmetic<bool> {
    TSR_BOTH bool value(int code, bool a, bool b, bool, double p, double)
    {
        switch (code) {
        case TSR_CUDA_AND:
            return a && b;
        case TSR_CUDA_OR:
            return a || b;
        case TSR_CUDA_NOT:
            return !a;
        case TSR_CUDA_FILL:
            return b ? p != 0 : a;
        default:
            return a;
        }
    }
};

/** Tests and choices, which every type has, and all others. */
template <typename T> TSR_BOTH T tsr_cuda_compute(int code, T a, T b, T c, double p, double q)
{
    switch (code) {
    case TSR_CUDA_WHERE:
        return a != 0 ? b : c;
    case TSR_CUDA_KEEP:
        return a != 0 ? b : 0;
    case TSR_CUDA_DROP:
        return a != 0 ? 0 : b;
    case TSR_CUDA_COPY:
        return a;
    case TSR_CUDA_EQ:
        return a == b;
    case TSR_CUDA_NE:
        return a != b;
    case TSR_CUDA_LT:
        return a < b;
    case TSR_CUDA_LE:
        return a <= b;
    case TSR_CUDA_GT:
        return a > b;
    case TSR_CUDA_GE:
        return a >= b;
    case TSR_CUDA_ISNAN:
        return a != a;
    case TSR_CUDA_ISINF: /* the difference of equal infinities is NaN */
        return a == a && !(a - a == 0);
    case TSR_CUDA_ISFINITE:
        return a - a == 0;
    default:
        return tsr_cuda_arithmetic<T>::value(code, a, b, c, p, q);
    }
}

/** Computes one element in T. */
template <typename T> TSR_BOTH void tsr_cuda_element(const tsr_cuda_elements &given, uint32_t index)
{
    if (index >= given.units)
        return;
    int64_t at[4] = {0, 0, 0, 0};
    for (int d = 0; d < given.ndim; d++) {
        const uint32_t rest = d + 1 < given.ndim ? tsr_cuda_divide(given.by[d], index) : 0;
        const int64_t coordinate = index - rest * given.by[d].value;
#pragma unroll
        for (int i = 0; i < 4; i++)
            at[i] += coordinate * given.tensors[i].strides[d];
        index = rest;
    }
    T value[3] = {0, 0, 0};
#pragma unroll
    for (int i = 0; i < 3; i++)
        if (i < given.inputs)
            value[i] = tsr_cuda_read<T>(given.tensors[i].data + at[i], given.tensors[i].storage);
    tsr_cuda_write<T>(
        given.tensors[3].data + at[3], given.tensors[3].storage,
        tsr_cuda_compute<T>(given.code, value[0], value[1], value[2], given.parameters[0], given.parameters[1]));
}

/** X(name, type) for each type in which pointwise ops compute. */
#define TSR_CUDA_ELEMENT_TYPES(X) X(f64, double) X(f32, float) X(i64, int64_t) X(i32, int32_t) X(bool, bool)

#endif
