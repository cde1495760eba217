/** The body of the conversion kernels. All conversions go through f32, which holds every narrow
 * type exactly. */
#ifndef TSR_DEVICE_CUDA_CONVERT_CUH
#define TSR_DEVICE_CUDA_CONVERT_CUH

#include "device/cuda/number.cuh"

/** The f32 through which an element of `source` becomes one of `target`. An f64 is rounded to odd,
 * because narrow targets round again. */
template <typename source, typename target> struct tsr_cuda_way {
    TSR_BOTH float through(typename source::stored value)
    {
        return source::widen(value);
    }
};

template <typename target> struct tsr_cuda_way<tsr_cuda_f64, target> {
    TSR_BOTH float through(double value)
    {
        return f32_odd_of_f64(value);
    }
};

template <> struct tsr_cuda_way<tsr_cuda_f64, tsr_cuda_f32> {
    TSR_BOTH float through(double value)
    {
        return (float)value;
    }
};

/** Converts `count` elements from `first` on: a whole run with wide loads if both addresses are
 * aligned, else one element at a time. */
template <typename source, typename target>
TSR_BOTH void tsr_cuda_convert_run(const tsr_cuda_convert &given, int64_t first, int count)
{
    typedef tsr_cuda_pack<typename source::stored, TSR_CUDA_CONVERT_RUN> from_pack;
    typedef tsr_cuda_pack<typename target::stored, TSR_CUDA_CONVERT_RUN> to_pack;
    const unsigned char *const src = given.src + first * (int64_t)sizeof(typename source::stored);
    unsigned char *const dst = given.dst + first * (int64_t)sizeof(typename target::stored);
    if (given.aligned && count == TSR_CUDA_CONVERT_RUN) {
        const from_pack from = tsr_cuda_load<from_pack>(src, true);
        to_pack to;
#pragma unroll
        for (int i = 0; i < TSR_CUDA_CONVERT_RUN; i++)
            to.element[i] = target::narrow(tsr_cuda_way<source, target>::through(from.element[i]));
        tsr_cuda_store(dst, to, true);
        return;
    }
    for (int i = 0; i < count; i++) {
        const auto value =
            tsr_cuda_load<typename source::stored>(src + i * (int)sizeof(typename source::stored), false);
        tsr_cuda_store(dst + i * (int)sizeof(typename target::stored),
                       target::narrow(tsr_cuda_way<source, target>::through(value)), false);
    }
}

template <typename source> TSR_BOTH void tsr_cuda_convert_from(const tsr_cuda_convert &given, int64_t run)
{
    const int64_t first = run * TSR_CUDA_CONVERT_RUN, left = given.count - first;
    if (left <= 0)
        return;
    const int count = left < TSR_CUDA_CONVERT_RUN ? (int)left : TSR_CUDA_CONVERT_RUN;
    switch (given.dst_type) {
    case TSR_CUDA_F64:
        return tsr_cuda_convert_run<source, tsr_cuda_f64>(given, first, count);
    case TSR_CUDA_F32:
        return tsr_cuda_convert_run<source, tsr_cuda_f32>(given, first, count);
    case TSR_CUDA_F16:
        return tsr_cuda_convert_run<source, tsr_cuda_f16>(given, first, count);
    case TSR_CUDA_BF16:
        return tsr_cuda_convert_run<source, tsr_cuda_bf16>(given, first, count);
    case TSR_CUDA_F8E4M3:
        return tsr_cuda_convert_run<source, tsr_cuda_f8e4m3>(given, first, count);
    default:
        return tsr_cuda_convert_run<source, tsr_cuda_f8e5m2>(given, first, count);
    }
}

#endif
