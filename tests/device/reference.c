#include "reference.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const tsr_dtype reference_narrow[4] = {TSR_F16, TSR_BF16, TSR_F8E4M3, TSR_F8E5M2};

typedef struct format {
    int bits, mantissa, bias;
    bool infinity; /* the greatest exponent is for infinity and NaN; else only the code of all ones is NaN */
    uint32_t nan;
} format;

static format format_of(tsr_dtype dtype)
{
    switch (dtype) {
    case TSR_F16:
        return (format){16, 10, 15, true, 0x7e00};
    case TSR_BF16:
        return (format){16, 7, 127, true, 0x7fc0};
    case TSR_F8E4M3:
        return (format){8, 3, 7, false, 0x7f};
    default:
        return (format){8, 2, 15, true, 0x7e};
    }
}

uint32_t reference_codes(tsr_dtype dtype)
{
    return UINT32_C(1) << format_of(dtype).bits;
}

uint32_t reference_finite(tsr_dtype dtype)
{
    const format f = format_of(dtype);
    const uint32_t positive = UINT32_C(1) << (f.bits - 1);
    return f.infinity ? positive - (UINT32_C(1) << f.mantissa) : positive - 1;
}

/* The value of a positive code by definition; beyond the greatest finite code as if exponents went
 * on. */
static double magnitude_of(format f, uint32_t code)
{
    const int exponent = (int)(code >> f.mantissa);
    const double fraction = code & ((UINT32_C(1) << f.mantissa) - 1);
    const double ones = ldexp(1.0, f.mantissa);
    return exponent == 0 ? ldexp(fraction, 1 - f.bias - f.mantissa)
                         : ldexp(ones + fraction, exponent - f.bias - f.mantissa);
}

double reference_decode(tsr_dtype dtype, uint32_t code)
{
    const format f = format_of(dtype);
    const uint32_t magnitude = code & ((UINT32_C(1) << (f.bits - 1)) - 1);
    const uint32_t finite = reference_finite(dtype);
    const double value = magnitude < finite                  ? magnitude_of(f, magnitude)
                         : f.infinity && magnitude == finite ? (double)INFINITY
                                                             : (double)NAN;
    return code >> (f.bits - 1) ? -value : value;
}

/* The greatest code from 0 to `last` whose value is at most `value`. */
static uint32_t bisect(format f, double value, uint32_t last)
{
    uint32_t low = 0, high = last;
    while (low < high) {
        const uint32_t middle = (low + high + 1) / 2;
        if (magnitude_of(f, middle) <= value)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

uint32_t reference_encode(tsr_dtype dtype, double value)
{
    const format f = format_of(dtype);
    const uint32_t finite = reference_finite(dtype), sign = signbit(value) ? UINT32_C(1) << (f.bits - 1) : 0;
    const uint32_t overflow = f.infinity ? sign | finite : f.nan;
    if (isnan(value))
        return f.nan;
    if (isinf(value))
        return overflow;
    uint32_t code = bisect(f, fabs(value), finite - 1);
    /* exact: narrow values have few bits */
    const double middle = (magnitude_of(f, code) + magnitude_of(f, code + 1)) / 2;
    if (fabs(value) > middle || (fabs(value) == middle && code % 2 == 1))
        code++;
    return code < finite ? sign | code : overflow;
}

double reference_load(tsr_dtype dtype, const void *from)
{
    double wide;
    float single;
    uint16_t half;
    uint8_t byte;
    switch (tsr_dtype_bytes(dtype)) {
    case 8:
        memcpy(&wide, from, sizeof wide);
        return wide;
    case 4:
        memcpy(&single, from, sizeof single);
        return (double)single;
    case 2:
        memcpy(&half, from, sizeof half);
        return reference_decode(dtype, half);
    default:
        memcpy(&byte, from, sizeof byte);
        return reference_decode(dtype, byte);
    }
}

void reference_store(tsr_dtype dtype, double value, void *to)
{
    const uint64_t wide_nan = UINT64_C(0x7ff8000000000000);
    const uint32_t single_nan = 0x7fc00000;
    const float single = (float)value;
    switch (tsr_dtype_bytes(dtype)) {
    case 8:
        memcpy(to, isnan(value) ? (const void *)&wide_nan : &value, 8);
        return;
    case 4:
        memcpy(to, isnan(value) ? (const void *)&single_nan : &single, 4);
        return;
    case 2:
        memcpy(to, &(uint16_t){(uint16_t)reference_encode(dtype, value)}, 2);
        return;
    default:
        memcpy(to, &(uint8_t){(uint8_t)reference_encode(dtype, value)}, 1);
    }
}

static double pick(tsr_reduce_op op, double a, double b)
{
    if (isnan(a) || isnan(b))
        return (double)NAN;
    if (a == b)
        return (op == TSR_MIN) == (signbit(a) != 0) ? a : b;
    return (op == TSR_MIN) == (a < b) ? a : b;
}

/* Combines in the accumulator's type, f64 for f64 and else f32; volatile, so that every step is
 * rounded. */
static double combine_float(tsr_dtype dtype, tsr_reduce_op op, double a, double b)
{
    if (op == TSR_MIN || op == TSR_MAX)
        return pick(op, a, b);
    if (dtype == TSR_F64) {
        volatile const double result = op == TSR_PROD ? a * b : a + b;
        return result;
    }
    const float x = (float)a, y = (float)b;
    volatile const float result = op == TSR_PROD ? x * y : x + y;
    return (double)result;
}

static double divide_float(tsr_dtype dtype, double value, int64_t divisor)
{
    volatile const float single = (float)value / (float)divisor;
    return dtype == TSR_F64 ? value / (double)divisor : (double)single;
}

static void reduce_float(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const void *const *terms, int count,
                         void *out)
{
    double value = reference_load(dtype, terms[0]);
    for (int i = 1; i < count; i++)
        value = combine_float(dtype, op, value, reference_load(dtype, terms[i]));
    if (divisor != 1)
        value = divide_float(dtype, value, divisor);
    reference_store(dtype, value, out);
}

static void reduce_complex(tsr_dtype part, tsr_reduce_op op, int64_t divisor, const void *const *terms, int count,
                           void *out)
{
    const size_t bytes = tsr_dtype_bytes(part);
    double re = reference_load(part, terms[0]), im = reference_load(part, (const char *)terms[0] + bytes);
    for (int i = 1; i < count; i++) {
        const double x = reference_load(part, terms[i]), y = reference_load(part, (const char *)terms[i] + bytes);
        if (op == TSR_PROD) {
            const double rr = combine_float(part, TSR_PROD, re, x), ii = combine_float(part, TSR_PROD, im, y);
            const double ri = combine_float(part, TSR_PROD, re, y), ir = combine_float(part, TSR_PROD, im, x);
            re = combine_float(part, TSR_SUM, rr, -ii);
            im = combine_float(part, TSR_SUM, ri, ir);
        } else {
            re = combine_float(part, TSR_SUM, re, x);
            im = combine_float(part, TSR_SUM, im, y);
        }
    }
    reference_store(part, divisor == 1 ? re : divide_float(part, re, divisor), out);
    reference_store(part, divisor == 1 ? im : divide_float(part, im, divisor), (char *)out + bytes);
}

static uint64_t load_integer(size_t bytes, const void *from)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)((const unsigned char *)from)[i] << (8 * i);
    return value;
}

/* `sign_bit` is flipped to compare signed integers as unsigned ones. */
static uint64_t combine_integer(tsr_reduce_op op, uint64_t sign_bit, uint64_t a, uint64_t b)
{
    const bool less = (a ^ sign_bit) < (b ^ sign_bit);
    switch (op) {
    case TSR_PROD:
        return a * b;
    case TSR_MIN:
        return less ? a : b;
    case TSR_MAX:
        return less ? b : a;
    default:
        return a + b;
    }
}

static void reduce_integer(const tsr_dtype_info *info, tsr_reduce_op op, const void *const *terms, int count, void *out)
{
    const uint64_t mask = UINT64_MAX >> (64 - 8 * info->bytes);
    const uint64_t sign_bit = info->kind == TSR_CLASS_SIGNED ? UINT64_C(1) << (8 * info->bytes - 1) : 0;
    uint64_t value = load_integer(info->bytes, terms[0]);
    for (int i = 1; i < count; i++)
        value = combine_integer(op, sign_bit, value, load_integer(info->bytes, terms[i])) & mask;
    for (size_t i = 0; i < info->bytes; i++)
        ((unsigned char *)out)[i] = (unsigned char)(value >> (8 * i));
}

void reference_reduce(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const void *const *terms, int count,
                      void *out)
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    if (info->kind == TSR_CLASS_FLOAT)
        reduce_float(dtype, op, divisor, terms, count, out);
    else if (info->kind == TSR_CLASS_COMPLEX)
        reduce_complex(dtype == TSR_C64 ? TSR_F32 : TSR_F64, op, divisor, terms, count, out);
    else
        reduce_integer(info, op, terms, count, out);
}
