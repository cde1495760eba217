/**
 * The dtypes in kernels: how an element is stored and widened to an accumulator, how accumulators
 * combine, and how one is rounded back. All bits are those of the host's kernels, whose narrow
 * floats (minifloat.h) are used here.
 */
#ifndef TSR_DEVICE_CUDA_NUMBER_CUH
#define TSR_DEVICE_CUDA_NUMBER_CUH

#include "device/cuda/index.cuh"
#define MINIFLOAT_CALL TSR_BOTH
#include "device/host/minifloat.h"

TSR_BOTH float tsr_cuda_min(float a, float b)
{
    return a != a || b != b ? f32_of_bits(F32_NAN)
           : a == b         ? f32_of_bits(bits_of_f32(a) | bits_of_f32(b))
           : a < b          ? a
                            : b;
}

TSR_BOTH float tsr_cuda_max(float a, float b)
{
    return a != a || b != b ? f32_of_bits(F32_NAN)
           : a == b         ? f32_of_bits(bits_of_f32(a) & bits_of_f32(b))
           : a < b          ? b
                            : a;
}

TSR_BOTH double tsr_cuda_min(double a, double b)
{
    return a != a || b != b ? f64_of_bits(F64_NAN)
           : a == b         ? f64_of_bits(bits_of_f64(a) | bits_of_f64(b))
           : a < b          ? a
                            : b;
}

TSR_BOTH double tsr_cuda_max(double a, double b)
{
    return a != a || b != b ? f64_of_bits(F64_NAN)
           : a == b         ? f64_of_bits(bits_of_f64(a) & bits_of_f64(b))
           : a < b          ? b
                            : a;
}

TSR_BOTH float tsr_cuda_canonical(float value)
{
    return canonical_f32(value);
}

TSR_BOTH double tsr_cuda_canonical(double value)
{
    return canonical_f64(value);
}

/** Accumulators of real numbers. */
template <typename wide_type> struct tsr_cuda_real {
    typedef wide_type wide;

    TSR_BOTH wide combine(int op, wide a, wide b)
    {
        switch (op) {
        case TSR_CUDA_SUM:
            return a + b;
        case TSR_CUDA_PROD:
            return a * b;
        case TSR_CUDA_MIN:
            return tsr_cuda_min(a, b);
        default:
            return tsr_cuda_max(a, b);
        }
    }

    TSR_BOTH wide divide(wide value, int64_t divisor)
    {
        return value / (wide)divisor;
    }
};

/** f32 and f64: accumulators are stored unchanged, but NaNs become canonical. */
template <typename type> struct tsr_cuda_plain : tsr_cuda_real<type> {
    typedef type stored;

    TSR_BOTH type widen(type value)
    {
        return value;
    }

    TSR_BOTH type narrow(type value)
    {
        return tsr_cuda_canonical(value);
    }
};

typedef tsr_cuda_plain<double> tsr_cuda_f64;
typedef tsr_cuda_plain<float> tsr_cuda_f32;

struct tsr_cuda_f16 : tsr_cuda_real<float> {
    typedef uint16_t stored;

    /* PTX converts as IEEE 754 says, subnormals included; a NaN stays a NaN, with unspecified
     * bits. */
    TSR_BOTH float widen(uint16_t code)
    {
#if defined(__CUDA_ARCH__)
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(code));
        return value;
#else
        return f16_widen(code);
#endif
    }

    TSR_BOTH uint16_t narrow(float value)
    {
#if defined(__CUDA_ARCH__)
        uint16_t code;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(value));
        return value != value ? 0x7e00 : code;
#else
        return (uint16_t)f16_narrow(value);
#endif
    }
};

#define TSR_CUDA_NARROW_FLOAT(name, code_type)                                                                         \
    struct tsr_cuda_##name : tsr_cuda_real<float> {                                                                    \
        typedef code_type stored;                                                                                      \
                                                                                                                       \
        TSR_BOTH float widen(code_type code)                                                                           \
        {                                                                                                              \
            return name##_widen(code);                                                                                 \
        }                                                                                                              \
                                                                                                                       \
        TSR_BOTH code_type narrow(float value)                                                                         \
        {                                                                                                              \
            return (code_type)name##_narrow(value);                                                                    \
        }                                                                                                              \
    }

TSR_CUDA_NARROW_FLOAT(bf16, uint16_t);
TSR_CUDA_NARROW_FLOAT(f8e4m3, uint8_t);
TSR_CUDA_NARROW_FLOAT(f8e5m2, uint8_t);

/** Integers of one size. Unsigned arithmetic wraps as signed arithmetic must; only min and max
 * differ. */
template <typename type, typename signed_type> struct tsr_cuda_integer {
    typedef type stored;
    typedef type wide;

    TSR_BOTH type widen(type value)
    {
        return value;
    }

    TSR_BOTH type narrow(type value)
    {
        return value;
    }

    TSR_BOTH type combine(int op, type a, type b)
    {
        switch (op) {
        case TSR_CUDA_SUM:
            return (type)(a + b);
        case TSR_CUDA_PROD: /* without the u64, two u16 would be multiplied as signed ints */
            return (type)(UINT64_C(1) * a * b);
        case TSR_CUDA_MIN:
            return a < b ? a : b;
        case TSR_CUDA_MAX:
            return a < b ? b : a;
        case TSR_CUDA_SIGNED_MIN:
            return (signed_type)a < (signed_type)b ? a : b;
        default:
            return (signed_type)a < (signed_type)b ? b : a;
        }
    }

    /** Never called with a divisor but 1: no integer op divides. */
    TSR_BOTH type divide(type value, int64_t)
    {
        return value;
    }
};

typedef tsr_cuda_integer<uint8_t, int8_t> tsr_cuda_u8;
typedef tsr_cuda_integer<uint16_t, int16_t> tsr_cuda_u16;
typedef tsr_cuda_integer<uint32_t, int32_t> tsr_cuda_u32;
typedef tsr_cuda_integer<uint64_t, int64_t> tsr_cuda_u64;

template <typename part> struct alignas(2 * sizeof(part)) tsr_cuda_pair {
    part re, im;
};

/** Complex numbers; they have no min and max. */
template <typename part> struct tsr_cuda_complex {
    typedef tsr_cuda_pair<part> stored;
    typedef tsr_cuda_pair<part> wide;

    TSR_BOTH wide widen(stored value)
    {
        return value;
    }

    TSR_BOTH stored narrow(wide value)
    {
        return {tsr_cuda_canonical(value.re), tsr_cuda_canonical(value.im)};
    }

    TSR_BOTH wide combine(int op, wide a, wide b)
    {
        if (op == TSR_CUDA_PROD)
            return {a.re * b.re + -(a.im * b.im), a.re * b.im + a.im * b.re};
        return {a.re + b.re, a.im + b.im};
    }

    TSR_BOTH wide divide(wide value, int64_t divisor)
    {
        return {value.re / (part)divisor, value.im / (part)divisor};
    }
};

typedef tsr_cuda_complex<float> tsr_cuda_c64;
typedef tsr_cuda_complex<double> tsr_cuda_c128;

/** `count` neighbouring elements that are read and written together, 16 bytes at a time if they
 * have 16. */
template <typename stored, int count>
struct alignas(count * sizeof(stored) < 16 ? count * sizeof(stored) : 16) tsr_cuda_pack {
    stored element[count];
};

/** X(name) for each type of numbers. */
#define TSR_CUDA_FLOAT_NUMBERS(X) X(f64) X(f32) X(f16) X(bf16) X(f8e4m3) X(f8e5m2)
#define TSR_CUDA_OTHER_NUMBERS(X) X(u8) X(u16) X(u32) X(u64) X(c64) X(c128)

#endif
