/* Arithmetic of single elements: small floating-point types by scaling doubles, integers modulo
 * 2^64. */
#include "oracle.h"

#include <math.h>
#include <string.h>

typedef enum kind { FLOATING, SIGNED, UNSIGNED, BOOLEAN, COMPLEX } kind;

/* A dtype; `exponent` and `mantissa` are widths of fields in bits. */
typedef struct type {
    const char *name;
    size_t bytes;
    kind kind;
    int exponent, mantissa;
} type;

static const type types[TSR_DTYPE_END] = {
    [TSR_F64] = {"f64", 8, FLOATING, 11, 52},     [TSR_F32] = {"f32", 4, FLOATING, 8, 23},
    [TSR_F16] = {"f16", 2, FLOATING, 5, 10},      [TSR_BF16] = {"bf16", 2, FLOATING, 8, 7},
    [TSR_F8E4M3] = {"f8e4m3", 1, FLOATING, 4, 3}, [TSR_F8E5M2] = {"f8e5m2", 1, FLOATING, 5, 2},
    [TSR_I64] = {"i64", 8, SIGNED, 0, 0},         [TSR_I32] = {"i32", 4, SIGNED, 0, 0},
    [TSR_I16] = {"i16", 2, SIGNED, 0, 0},         [TSR_I8] = {"i8", 1, SIGNED, 0, 0},
    [TSR_U64] = {"u64", 8, UNSIGNED, 0, 0},       [TSR_U32] = {"u32", 4, UNSIGNED, 0, 0},
    [TSR_U16] = {"u16", 2, UNSIGNED, 0, 0},       [TSR_U8] = {"u8", 1, UNSIGNED, 0, 0},
    [TSR_BOOL] = {"bool", 1, BOOLEAN, 0, 0},      [TSR_C64] = {"c64", 8, COMPLEX, 8, 23},
    [TSR_C128] = {"c128", 16, COMPLEX, 11, 52},
};

const char *oracle_dtype_name(tsr_dtype dtype)
{
    return types[dtype].name;
}

size_t oracle_bytes(tsr_dtype dtype)
{
    return types[dtype].bytes;
}

bool oracle_has_op(tsr_dtype dtype, tsr_reduce_op op)
{
    switch (types[dtype].kind) {
    case FLOATING:
        return true;
    case COMPLEX:
        return op == TSR_SUM || op == TSR_AVG || op == TSR_PROD;
    case BOOLEAN:
        return op == TSR_MIN || op == TSR_MAX;
    default:
        return op != TSR_AVG;
    }
}

static uint64_t load(const unsigned char *value, size_t bytes)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < bytes; i++)
        bits |= (uint64_t)value[i] << (8 * i);
    return bits;
}

static void store(unsigned char *value, size_t bytes, uint64_t bits)
{
    for (size_t i = 0; i < bytes; i++)
        value[i] = (unsigned char)(bits >> (8 * i));
}

/* True for e4m3fn, whose greatest exponent is used for numbers: its only NaN is all ones. */
static bool is_fn(const type *t)
{
    return t->exponent == 4;
}

static uint64_t field(int bits)
{
    return (UINT64_C(1) << bits) - 1;
}

/* The greatest code of a number; the next code is infinity (for e4m3fn NaN). */
static uint64_t largest_code(const type *t)
{
    return is_fn(t) ? 0x7e : (field(t->exponent) << t->mantissa) - 1;
}

static uint64_t nan_code(const type *t)
{
    return is_fn(t) ? 0x7f : (field(t->exponent) << t->mantissa) | (UINT64_C(1) << (t->mantissa - 1));
}

/* The value of a code; exact, since a double holds every value of these types. */
static double decode(const type *t, uint64_t bits)
{
    const int width = 1 + t->exponent + t->mantissa;
    const uint64_t code = bits & field(width - 1);
    const bool negative = bits >> (width - 1) & 1;
    const int bias = (1 << (t->exponent - 1)) - 1;
    double magnitude;
    if (code > largest_code(t))
        magnitude = code == largest_code(t) + 1 && !is_fn(t) ? INFINITY : NAN;
    else if (code >> t->mantissa == 0)
        magnitude = ldexp((double)code, 1 - bias - t->mantissa);
    else
        magnitude = ldexp((double)((code & field(t->mantissa)) | (UINT64_C(1) << t->mantissa)),
                          (int)(code >> t->mantissa) - bias - t->mantissa);
    return negative ? -magnitude : magnitude;
}

/* Rounds to nearest, ties to even: scales the value so that one unit in the last place is 1, and
 * rounds to an integer. */
static uint64_t encode(const type *t, double value)
{
    const uint64_t sign = (uint64_t)(signbit(value) != 0) << (t->exponent + t->mantissa);
    const int bias = (1 << (t->exponent - 1)) - 1;
    if (isnan(value))
        return nan_code(t);
    if (isinf(value))
        return is_fn(t) ? nan_code(t) : sign | (largest_code(t) + 1);
    if (value == 0)
        return sign;
    int exponent = ilogb(value);
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    const double units = nearbyint(ldexp(fabs(value), t->mantissa - exponent));
    /* Addition of codes also handles a carry into the next exponent, and a subnormal that becomes
     * normal. */
    const uint64_t code = ((uint64_t)(exponent + bias - 1) << t->mantissa) + (uint64_t)units;
    if (code > largest_code(t))
        return is_fn(t) ? nan_code(t) : sign | (largest_code(t) + 1);
    return sign | code;
}

static bool accumulates_in_double(const type *t)
{
    return t->mantissa == 52;
}

/* Rounds the result of an operation to the accumulator's type: f64 for f64 and c128, else f32.
 * Volatile, because gcc 12 with -O2 leaves out the rounding where it computes both parts of a
 * complex number in one vector. */
static double round_to_accumulator(const type *t, double value)
{
    const volatile float rounded = (float)value;
    return accumulates_in_double(t) ? value : (double)rounded;
}

/* Sums, products and quotients of two f32 computed in double and rounded to f32 equal the f32
 * operation: 53 >= 2 * 24 + 2 bits. */
static double combine(const type *t, tsr_reduce_op op, double a, double b)
{
    return round_to_accumulator(t, op == TSR_PROD ? a * b : a + b);
}

/* The minimum or maximum: NaN if either is NaN, and -0 is less than +0. */
static double pick(tsr_reduce_op op, double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    const bool a_less = a < b || (a == b && signbit(a) && !signbit(b));
    return (op == TSR_MIN) == a_less ? a : b;
}

/* A key that orders integers like their values: the sign bit of signed types is flipped. */
static uint64_t order_key(const type *t, uint64_t bits)
{
    return t->kind == SIGNED ? bits ^ (UINT64_C(1) << (8 * t->bytes - 1)) : bits;
}

static void add_floating(oracle_reduction *r, const type *t, const unsigned char *term)
{
    const double number = decode(t, load(term, t->bytes));
    if (r->count == 0)
        r->real = number;
    else if (r->op == TSR_MIN || r->op == TSR_MAX)
        r->real = pick(r->op, r->real, number);
    else
        r->real = combine(t, r->op, r->real, number);
}

static void add_complex(oracle_reduction *r, const type *t, const unsigned char *term)
{
    const size_t half = t->bytes / 2;
    const double x = decode(t, load(term, half)), y = decode(t, load(term + half, half));
    const double a = r->real, b = r->imaginary;
    if (r->count == 0) {
        r->real = x;
        r->imaginary = y;
    } else if (r->op == TSR_PROD) {
        r->real = round_to_accumulator(t, combine(t, r->op, a, x) - combine(t, r->op, b, y));
        r->imaginary = round_to_accumulator(t, combine(t, r->op, a, y) + combine(t, r->op, b, x));
    } else {
        r->real = combine(t, r->op, a, x);
        r->imaginary = combine(t, r->op, b, y);
    }
}

static void add_integer(oracle_reduction *r, const type *t, const unsigned char *term)
{
    const uint64_t number = load(term, t->bytes);
    const bool less = order_key(t, number) < order_key(t, r->integer);
    if (r->count == 0)
        r->integer = number;
    else if (r->op == TSR_SUM)
        r->integer += number;
    else if (r->op == TSR_PROD)
        r->integer *= number;
    else if (less == (r->op == TSR_MIN))
        r->integer = number;
}

void oracle_reduction_add(oracle_reduction *r, const unsigned char *term)
{
    const type *t = &types[r->dtype];
    if (t->kind == FLOATING)
        add_floating(r, t, term);
    else if (t->kind == COMPLEX)
        add_complex(r, t, term);
    else
        add_integer(r, t, term);
    r->count++;
}

static double quotient(const oracle_reduction *r, const type *t, double sum)
{
    return r->divisor > 1 ? round_to_accumulator(t, sum / (double)r->divisor) : sum;
}

void oracle_reduction_finish(const oracle_reduction *r, unsigned char *value)
{
    const type *t = &types[r->dtype];
    const size_t part = t->kind == COMPLEX ? t->bytes / 2 : t->bytes;
    if (t->kind != FLOATING && t->kind != COMPLEX) {
        store(value, part, r->integer);
        return;
    }
    store(value, part, encode(t, quotient(r, t, r->real)));
    if (t->kind == COMPLEX)
        store(value + part, part, encode(t, quotient(r, t, r->imaginary)));
}

void oracle_reduce(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const unsigned char *terms, int64_t count,
                   unsigned char *value)
{
    oracle_reduction r = {dtype, op, divisor, 0, 0, 0, 0};
    for (int64_t i = 0; i < count; i++)
        oracle_reduction_add(&r, terms + (size_t)i * types[dtype].bytes);
    oracle_reduction_finish(&r, value);
}

void oracle_integer(tsr_dtype dtype, int64_t number, unsigned char *value)
{
    const type *t = &types[dtype];
    const size_t part = t->kind == COMPLEX ? t->bytes / 2 : t->bytes;
    const bool floats = t->kind == FLOATING || t->kind == COMPLEX;
    memset(value, 0, t->bytes);
    store(value, part, floats ? encode(t, (double)number) : (uint64_t)number);
}

void oracle_identity(tsr_dtype dtype, tsr_reduce_op op, unsigned char *value)
{
    const type *t = &types[dtype];
    const size_t part = t->kind == COMPLEX ? t->bytes / 2 : t->bytes;
    oracle_integer(dtype, op == TSR_PROD, value);
    if (op != TSR_PROD && (t->kind == FLOATING || t->kind == COMPLEX))
        for (size_t at = 0; at < t->bytes; at += part)
            store(value + at, part, encode(t, -0.0));
}

void oracle_convert(tsr_dtype from, const unsigned char *value, tsr_dtype to, unsigned char *out)
{
    store(out, types[to].bytes, encode(&types[to], decode(&types[from], load(value, types[from].bytes))));
}

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Half of the elements are arbitrary bits; the others are numbers whose sums depend on the order,
 * and special values. */
static uint64_t floating_bits(const type *t, uint64_t random)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, 448.0, 65504.0};
    const int choice = (int)(random >> 60);
    if (choice < 8)
        return mix(random);
    if (choice == 8)
        return encode(t, special[random & 7]);
    return encode(t, ldexp((double)(int64_t)(random >> 11 & field(24)) - 0x1p23, -26 + (int)(random & 7)));
}

void oracle_element(tsr_dtype dtype, uint64_t seed, int64_t global, int64_t term, unsigned char *value)
{
    const type *t = &types[dtype];
    const uint64_t random = mix(mix(mix(seed) + (uint64_t)global) + (uint64_t)term);
    if (t->kind == FLOATING) {
        store(value, t->bytes, floating_bits(t, random));
    } else if (t->kind == COMPLEX) {
        store(value, t->bytes / 2, floating_bits(t, random));
        store(value + t->bytes / 2, t->bytes / 2, floating_bits(t, mix(random)));
    } else {
        store(value, t->bytes, t->kind == BOOLEAN ? random & 1 : random);
    }
}
