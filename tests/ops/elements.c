#include "elements.h"

#include <math.h>
#include <stdint.h>

int element_precision(tsr_dtype dtype)
{
    return dtype == TSR_F64 ? 53 : dtype == TSR_F32 ? 24 : dtype == TSR_F16 ? 11 : 8;
}

static double get_short_float(uint16_t code, tsr_dtype dtype)
{
    const int bits = element_precision(dtype) - 1, bias = dtype == TSR_F16 ? 15 : 127;
    const int exponent = (code & 0x7fff) >> bits, fraction = code & ((1 << bits) - 1);
    double size = exponent ? ldexp(fraction + (1 << bits), exponent - bias - bits) : ldexp(fraction, 1 - bias - bits);
    if (exponent == 2 * bias + 1)
        size = fraction ? (double)NAN : (double)INFINITY;
    return code >> 15 ? -size : size;
}

/* `value` is finite and within the dtype's range. */
static uint16_t set_short_float(tsr_dtype dtype, double value)
{
    const int bits = element_precision(dtype) - 1, bias = dtype == TSR_F16 ? 15 : 127;
    int exponent;
    frexp(value, &exponent);
    exponent = value == 0 || exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    /* A subnormal lacks the leading 1, which otherwise raises the exponent by 1. */
    const int code = (int)rint(ldexp(fabs(value), bits - exponent)) + ((exponent + bias - 1) << bits);
    return (uint16_t)((value < 0 ? 0x8000 : 0) | code);
}

double element_get(const void *data, tsr_dtype dtype, int64_t i)
{
    switch (dtype) {
    case TSR_F64:
        return ((const double *)data)[i];
    case TSR_F32:
        return ((const float *)data)[i];
    case TSR_F16:
    case TSR_BF16:
        return get_short_float(((const uint16_t *)data)[i], dtype);
    case TSR_I64:
        return (double)((const int64_t *)data)[i];
    case TSR_I32:
        return ((const int32_t *)data)[i];
    case TSR_I8:
        return ((const int8_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

void element_set(void *data, tsr_dtype dtype, int64_t i, double value)
{
    switch (dtype) {
    case TSR_F64:
        ((double *)data)[i] = value;
        break;
    case TSR_F32:
        ((float *)data)[i] = (float)value;
        break;
    case TSR_F16:
    case TSR_BF16:
        ((uint16_t *)data)[i] = set_short_float(dtype, value);
        break;
    case TSR_I64:
        ((int64_t *)data)[i] = (int64_t)value;
        break;
    case TSR_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case TSR_I8:
        ((int8_t *)data)[i] = (int8_t)value;
        break;
    default:
        ((uint8_t *)data)[i] = value != 0;
    }
}

bool element_near(double x, double y, tsr_dtype dtype)
{
    const int bits = element_precision(dtype);
    return x == y || (x != x && y != y) || fabs(x - y) <= ldexp(bits < 24 ? 64 : bits == 24 ? 128 : 8192, -bits) * (1 + fabs(y));
}

int64_t element_place(const tsr_tensor *tensor, int64_t i)
{
    int64_t place = 0;
    for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
        place += i % tensor->shape[dim] * tensor->strides[dim];
        i /= tensor->shape[dim];
    }
    return place;
}
