/* Arithmetic of every dtype. Narrow floating-point types are searched for the nearest value to
 * round. */
#include "drill.h"
#include "rules.h"

#include <math.h>
#include <string.h>

typedef enum number_kind { FLOATING, NARROW, SIGNED, UNSIGNED, TRUTH, COMPLEX } number_kind;

/* A dtype. `exponent` and `mantissa` are bits of a narrow type; without infinity (fn) only the
 * greatest encoding is NaN. */
typedef struct number {
    number_kind kind;
    size_t bytes;
    int exponent, mantissa;
    bool infinite;
} number;

static const number numbers[TSR_DTYPE_END] = {
    [TSR_F64] = {FLOATING, 8, 0, 0, true},   [TSR_F32] = {FLOATING, 4, 0, 0, true},
    [TSR_F16] = {NARROW, 2, 5, 10, true},    [TSR_BF16] = {NARROW, 2, 8, 7, true},
    [TSR_F8E4M3] = {NARROW, 1, 4, 3, false}, [TSR_F8E5M2] = {NARROW, 1, 5, 2, true},
    [TSR_I64] = {SIGNED, 8, 0, 0, false},    [TSR_I32] = {SIGNED, 4, 0, 0, false},
    [TSR_I16] = {SIGNED, 2, 0, 0, false},    [TSR_I8] = {SIGNED, 1, 0, 0, false},
    [TSR_U64] = {UNSIGNED, 8, 0, 0, false},  [TSR_U32] = {UNSIGNED, 4, 0, 0, false},
    [TSR_U16] = {UNSIGNED, 2, 0, 0, false},  [TSR_U8] = {UNSIGNED, 1, 0, 0, false},
    [TSR_BOOL] = {TRUTH, 1, 0, 0, false},    [TSR_C64] = {COMPLEX, 8, 0, 0, true},
    [TSR_C128] = {COMPLEX, 16, 0, 0, true},
};

size_t rule_bytes(tsr_dtype dtype)
{
    return numbers[dtype].bytes;
}

bool rule_has_op(tsr_dtype dtype, tsr_reduce_op op)
{
    const number_kind kind = numbers[dtype].kind;
    if (kind == TRUTH)
        return op == TSR_MIN || op == TSR_MAX;
    if (kind == COMPLEX)
        return op == TSR_SUM || op == TSR_AVG || op == TSR_PROD;
    return op != TSR_AVG || kind == FLOATING || kind == NARROW;
}

/* Narrow floats. */

/* The value of an encoding; values ascend with encodings, and go on beyond the last finite one as
 * if there were no infinity. */
static double magnitude(const number *n, unsigned code)
{
    const int bias = (1 << (n->exponent - 1)) - 1;
    const int exponent = (int)(code >> n->mantissa), fraction = (int)(code & ((1u << n->mantissa) - 1));
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - n->mantissa);
    return ldexp(fraction + (1 << n->mantissa), exponent - bias - n->mantissa);
}

/* The first encoding that is not finite: infinity, or the only NaN. */
static unsigned beyond(const number *n)
{
    const unsigned all = (1u << (n->exponent + n->mantissa)) - 1;
    return n->infinite ? all & ~((1u << n->mantissa) - 1) : all;
}

static unsigned quiet_nan(const number *n)
{
    return n->infinite ? beyond(n) | 1u << (n->mantissa - 1) : beyond(n);
}

static float widen(const number *n, unsigned bits)
{
    const unsigned sign = 1u << (n->exponent + n->mantissa), code = bits & (sign - 1);
    float value = (float)magnitude(n, code);
    if (code >= beyond(n))
        value = n->infinite && code == beyond(n) ? INFINITY : NAN;
    return bits & sign ? -value : value;
}

/* Rounds to the nearest value, to the even encoding in a tie. */
static unsigned narrow(const number *n, float value)
{
    const unsigned sign = signbit(value) ? 1u << (n->exponent + n->mantissa) : 0;
    const double size = fabs((double)value);
    if (isnan(value))
        return quiet_nan(n);
    if (isinf(value))
        return n->infinite ? sign | beyond(n) : quiet_nan(n);
    unsigned low = 0, high = beyond(n);
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        *(magnitude(n, middle) <= size ? &low : &high) = middle;
    }
    const double down = size - magnitude(n, low), up = magnitude(n, high) - size;
    const unsigned code = down < up || (down == up && low % 2 == 0) ? low : high;
    return code == beyond(n) && !n->infinite ? quiet_nan(n) : sign | code;
}

/* Reading and writing. */

static uint64_t get_bits(const unsigned char *at, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, at, bytes);
    return bits;
}

static void put_double(unsigned char *out, double value)
{
    const uint64_t nan = UINT64_C(0x7ff8000000000000);
    memcpy(out, isnan(value) ? (const void *)&nan : (const void *)&value, 8);
}

static void put_float(unsigned char *out, float value)
{
    const uint32_t nan = 0x7fc00000;
    memcpy(out, isnan(value) ? (const void *)&nan : (const void *)&value, 4);
}

static double get_double(const unsigned char *at)
{
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static float get_float(const unsigned char *at)
{
    float value;
    memcpy(&value, at, sizeof value);
    return value;
}

static float get_single(const number *n, const unsigned char *at)
{
    return n->kind == NARROW ? widen(n, (unsigned)get_bits(at, n->bytes)) : get_float(at);
}

static void put_single(const number *n, unsigned char *out, float value)
{
    const unsigned bits = n->kind == NARROW ? narrow(n, value) : 0;
    if (n->kind == NARROW)
        memcpy(out, &bits, n->bytes);
    else
        put_float(out, value);
}

/* Reductions. */

/* True if `next` replaces the result so far: NaN wins, and -0 is less than +0. */
static bool takes(tsr_reduce_op op, double so_far, double next)
{
    if (isnan(so_far) || isnan(next))
        return !isnan(so_far);
    if (so_far == 0 && next == 0)
        return op == TSR_MIN ? signbit(next) : signbit(so_far);
    return op == TSR_MIN ? next < so_far : next > so_far;
}

static float reduce_single(const number *n, tsr_reduce_op op, float divisor, const unsigned char *terms, int64_t count)
{
    float value = get_single(n, terms);
    for (int64_t i = 1; i < count; i++) {
        const float next = get_single(n, terms + (size_t)i * n->bytes);
        if (op == TSR_SUM)
            value = value + next;
        else if (op == TSR_PROD)
            value = value * next;
        else if (takes(op, value, next))
            value = next;
    }
    return divisor > 1 ? value / divisor : value;
}

static double reduce_double(tsr_reduce_op op, double divisor, const unsigned char *terms, int64_t count)
{
    double value = get_double(terms);
    for (int64_t i = 1; i < count; i++) {
        const double next = get_double(terms + i * 8);
        if (op == TSR_SUM)
            value = value + next;
        else if (op == TSR_PROD)
            value = value * next;
        else if (takes(op, value, next))
            value = next;
    }
    return divisor > 1 ? value / divisor : value;
}

static void reduce_c64(tsr_reduce_op op, float divisor, const unsigned char *terms, int64_t count, unsigned char *out)
{
    float re = get_float(terms), im = get_float(terms + 4);
    for (int64_t i = 1; i < count; i++) {
        const float x = get_float(terms + i * 8), y = get_float(terms + i * 8 + 4), a = re, b = im;
        re = op == TSR_SUM ? a + x : a * x - b * y;
        im = op == TSR_SUM ? b + y : a * y + b * x;
    }
    put_float(out, divisor > 1 ? re / divisor : re);
    put_float(out + 4, divisor > 1 ? im / divisor : im);
}

static void reduce_c128(tsr_reduce_op op, double divisor, const unsigned char *terms, int64_t count, unsigned char *out)
{
    double re = get_double(terms), im = get_double(terms + 8);
    for (int64_t i = 1; i < count; i++) {
        const double x = get_double(terms + i * 16), y = get_double(terms + i * 16 + 8), a = re, b = im;
        re = op == TSR_SUM ? a + x : a * x - b * y;
        im = op == TSR_SUM ? b + y : a * y + b * x;
    }
    put_double(out, divisor > 1 ? re / divisor : re);
    put_double(out + 8, divisor > 1 ? im / divisor : im);
}

static int64_t signed_value(uint64_t bits, size_t bytes)
{
    const int unused = 64 - 8 * (int)bytes;
    return (int64_t)(bits << unused) >> unused;
}

static void reduce_integers(const number *n, tsr_reduce_op op, const unsigned char *terms, int64_t count,
                            unsigned char *out)
{
    uint64_t value = get_bits(terms, n->bytes);
    for (int64_t i = 1; i < count; i++) {
        const uint64_t next = get_bits(terms + (size_t)i * n->bytes, n->bytes);
        const bool less =
            n->kind == SIGNED ? signed_value(next, n->bytes) < signed_value(value, n->bytes) : next < value;
        if (op == TSR_SUM)
            value += next;
        else if (op == TSR_PROD)
            value *= next;
        else if (next != value && less == (op == TSR_MIN))
            value = next;
    }
    memcpy(out, &value, n->bytes);
}

void rule_reduce(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const unsigned char *terms, int64_t count,
                 unsigned char *out)
{
    const number *n = &numbers[dtype];
    if (dtype == TSR_C64)
        reduce_c64(op, (float)divisor, terms, count, out);
    else if (dtype == TSR_C128)
        reduce_c128(op, (double)divisor, terms, count, out);
    else if (dtype == TSR_F64)
        put_double(out, reduce_double(op, (double)divisor, terms, count));
    else if (n->kind == FLOATING || n->kind == NARROW)
        put_single(n, out, reduce_single(n, op, (float)divisor, terms, count));
    else
        reduce_integers(n, op, terms, count, out);
}

/* Drawn values. */

/* Writes a number of any dtype; `imaginary` for complex ones. */
static void put_number(const number *n, double value, double imaginary, unsigned char *out)
{
    const uint64_t whole = (uint64_t)(int64_t)value;
    if (n->kind == COMPLEX && n->bytes == 16) {
        put_double(out, value);
        put_double(out + 8, imaginary);
    } else if (n->kind == COMPLEX) {
        put_float(out, (float)value);
        put_float(out + 4, (float)imaginary);
    } else if (n->kind == FLOATING && n->bytes == 8) {
        put_double(out, value);
    } else if (n->kind == FLOATING || n->kind == NARROW) {
        put_single(n, out, (float)value);
    } else {
        memcpy(out, &whole, n->bytes);
    }
}

void rule_fill(tsr_dtype dtype, tsr_reduce_op op, unsigned char *out)
{
    put_number(&numbers[dtype], op == TSR_PROD ? 1 : -0.0, op == TSR_PROD ? 0 : -0.0, out);
}

void rule_element(tsr_dtype dtype, rule_values values, int64_t global, int64_t term, unsigned char *out)
{
    const number *n = &numbers[dtype];
    drill_draws draws = drill_draws_of(values.seed + (uint64_t)term * UINT64_C(0x632be59bd9b4e019), (uint64_t)global);
    const uint64_t low = drill_draw(&draws), high = drill_draw(&draws);
    if (n->kind == TRUTH) {
        *out = low % 2;
    } else if (values.drawing == RULE_SMALL_NUMBERS) {
        put_number(n, (double)(low % 64) - 31.5 + (n->kind == SIGNED || n->kind == UNSIGNED ? 32 : 0),
                   (double)(high % 64) / 4, out);
    } else {
        memcpy(out, &low, n->bytes < 8 ? n->bytes : 8);
        if (n->bytes == 16)
            memcpy(out + 8, &high, 8);
    }
}
