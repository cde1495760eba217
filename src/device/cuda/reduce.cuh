/** The body of the reduction kernels: a thread combines one unit of all sources, and writes the
 * result to every destination. */
#ifndef TSR_DEVICE_CUDA_REDUCE_CUH
#define TSR_DEVICE_CUDA_REDUCE_CUH

#include "device/cuda/number.cuh"

TSR_BOTH unsigned char *tsr_cuda_address(const tsr_cuda_reduce_head &head, const int64_t *operand, uint32_t index)
{
    int64_t offset = 0;
    if (head.ndim == 1) /* the common case: shards without gaps */
        return reinterpret_cast<unsigned char *>(operand[0]) + index * operand[1];
#pragma unroll 1
    for (int d = 0; d < head.ndim; d++) {
        const uint32_t rest = d + 1 < head.ndim ? tsr_cuda_divide(head.by[d], index) : 0;
        offset += (int64_t)(index - rest * head.by[d].value) * operand[1 + d];
        index = rest;
    }
    return reinterpret_cast<unsigned char *>(operand[0]) + offset;
}

/** A unit as it is loaded, in words. It is taken apart only when it is combined: else a thread
 * would wait for each load separately. */
template <typename stored, int count> struct alignas(16) tsr_cuda_unit {
    static_assert(count * sizeof(stored) == 16, "several elements are 16 bytes");
    uint32_t word[4];

    TSR_BOTH stored element(const tsr_cuda_unit &unit, int i)
    {
        stored value;
        const uint32_t *const from = unit.word + i * (int)sizeof value / 4;
        if constexpr (sizeof value < 4)
            value = (stored)(*from >> i * 8 * (int)sizeof value % 32);
        else
            memcpy(&value, from, sizeof value);
        return value;
    }
};

template <typename stored> struct tsr_cuda_unit<stored, 1> {
    stored only;

    TSR_BOTH stored element(const tsr_cuda_unit &unit, int)
    {
        return unit.only;
    }
};

/** A thread issues the loads of this many sources before it combines the first. */
#define TSR_CUDA_TOGETHER 4

template <typename number, int count, int op>
TSR_BOTH void tsr_cuda_combine_by(typename number::wide *sum, const tsr_cuda_unit<typename number::stored, count> &unit)
{
#pragma unroll
    for (int i = 0; i < count; i++)
        sum[i] = number::combine(op, sum[i], number::widen(unit.element(unit, i)));
}

/** Combines a unit; the op is tested once per unit, not per element. */
template <typename number, int count>
TSR_BOTH void tsr_cuda_combine(int op, typename number::wide *sum,
                               const tsr_cuda_unit<typename number::stored, count> &unit)
{
    switch (op) {
    case TSR_CUDA_SUM:
        return tsr_cuda_combine_by<number, count, TSR_CUDA_SUM>(sum, unit);
    case TSR_CUDA_PROD:
        return tsr_cuda_combine_by<number, count, TSR_CUDA_PROD>(sum, unit);
    case TSR_CUDA_MIN:
        return tsr_cuda_combine_by<number, count, TSR_CUDA_MIN>(sum, unit);
    case TSR_CUDA_MAX:
        return tsr_cuda_combine_by<number, count, TSR_CUDA_MAX>(sum, unit);
    case TSR_CUDA_SIGNED_MIN:
        return tsr_cuda_combine_by<number, count, TSR_CUDA_SIGNED_MIN>(sum, unit);
    default:
        return tsr_cuda_combine_by<number, count, TSR_CUDA_SIGNED_MAX>(sum, unit);
    }
}

template <typename number, int count>
TSR_BOTH void tsr_cuda_start(typename number::wide *sum, const tsr_cuda_unit<typename number::stored, count> &unit)
{
#pragma unroll
    for (int i = 0; i < count; i++)
        sum[i] = number::widen(unit.element(unit, i));
}

/** Combines unit `index` of all sources, in ascending order of sources. */
template <typename number, int count>
TSR_BOTH void tsr_cuda_reduce_sources(const tsr_cuda_reduce &given, uint32_t index, bool aligned,
                                      typename number::wide *sum)
{
    typedef tsr_cuda_unit<typename number::stored, count> unit;
    const tsr_cuda_reduce_head &head = given.head;
    const int words = 1 + head.ndim;
#pragma unroll 1
    for (int first = 0; first < head.src_count; first += TSR_CUDA_TOGETHER) {
        unit loaded[TSR_CUDA_TOGETHER];
#pragma unroll
        for (int j = 0; j < TSR_CUDA_TOGETHER; j++)
            if (first + j < head.src_count)
                loaded[j] =
                    tsr_cuda_load<unit>(tsr_cuda_address(head, given.word + (first + j) * words, index), aligned);
#pragma unroll
        for (int j = 0; j < TSR_CUDA_TOGETHER; j++) {
            if (j == 0 && first == 0)
                tsr_cuda_start<number, count>(sum, loaded[j]);
            else if (first + j < head.src_count)
                tsr_cuda_combine<number, count>(head.op, sum, loaded[j]);
        }
    }
}

/** Reduces unit `index`, of `count` elements: more than one only if all operands are aligned and
 * contiguous along dim 0. */
template <typename number, int count> TSR_BOTH void tsr_cuda_reduce_unit(const tsr_cuda_reduce &given, uint32_t index)
{
    typedef tsr_cuda_pack<typename number::stored, count> pack;
    const tsr_cuda_reduce_head &head = given.head;
    const bool aligned = count > 1 || head.aligned;
    typename number::wide sum[count] = {}; /* initialised because compilers cannot know that there is a source */
    pack value;
    if (index >= head.units)
        return;
    tsr_cuda_reduce_sources<number, count>(given, index, aligned, sum);
    if (head.divisor != 1) {
#pragma unroll
        for (int i = 0; i < count; i++)
            sum[i] = number::divide(sum[i], head.divisor);
    }
#pragma unroll
    for (int i = 0; i < count; i++)
        value.element[i] = number::narrow(sum[i]);
    const int words = 1 + head.ndim;
    for (int d = 0; d < head.dst_count; d++)
        tsr_cuda_store<pack>(tsr_cuda_address(head, given.word + (head.src_count + d) * words, index), value, aligned);
}

/** Elements of a 16-byte unit. */
template <typename number> struct tsr_cuda_per_quad {
    static constexpr int count = 16 / sizeof(typename number::stored);
};

#endif
