/** The body of the reduction kernels: a thread combines what all sources hold of one unit, and writes it to every destination. */
#ifndef TSR_DEVICE_CUDA_REDUCE_CUH
#define TSR_DEVICE_CUDA_REDUCE_CUH

#include "device/cuda/number.cuh"

TSR_BOTH unsigned char *tsr_cuda_address(const tsr_cuda_reduce_head &head, const int64_t *operand, uint32_t index)
{
    int64_t offset = 0;
    for (int d = 0; d < head.ndim; d++) {
        const uint32_t rest = d + 1 < head.ndim ? tsr_cuda_divide(head.by[d], index) : 0;
        offset += (int64_t)(index - rest * head.by[d].value) * operand[1 + d];
        index = rest;
    }
    return reinterpret_cast<unsigned char *>(operand[0]) + offset;
}

template <typename number, int count>
TSR_BOTH void tsr_cuda_combine(int op, typename number::wide *sum, const tsr_cuda_pack<typename number::stored, count> &pack)
{
#pragma unroll
    for (int i = 0; i < count; i++)
        sum[i] = number::combine(op, sum[i], number::widen(pack.element[i]));
}

/** `count` elements a unit; more than one where all operands are aligned and contiguous along dim 0. */
template <typename number, int count> TSR_BOTH void tsr_cuda_reduce_unit(const tsr_cuda_reduce &given, uint32_t index)
{
    typedef tsr_cuda_pack<typename number::stored, count> pack;
    const tsr_cuda_reduce_head &head = given.head;
    if (index >= head.units)
        return;
    const int words = 1 + head.ndim;
    const int64_t *operand = given.word;
    const bool aligned = count > 1 || head.aligned;
    /* The next source's load is on its way while one is combined. */
    pack value = tsr_cuda_load<pack>(tsr_cuda_address(head, operand, index), aligned), next = value;
    typename number::wide sum[count];
    if (head.src_count > 1)
        next = tsr_cuda_load<pack>(tsr_cuda_address(head, operand + words, index), aligned);
#pragma unroll
    for (int i = 0; i < count; i++)
        sum[i] = number::widen(value.element[i]);
#pragma unroll 1
    for (int s = 1; s < head.src_count; s++) {
        value = next;
        if (s + 1 < head.src_count)
            next = tsr_cuda_load<pack>(tsr_cuda_address(head, operand + (s + 1) * words, index), aligned);
        tsr_cuda_combine<number, count>(head.op, sum, value);
    }
#pragma unroll
    for (int i = 0; i < count; i++)
        value.element[i] = number::narrow(head.divisor == 1 ? sum[i] : number::divide(sum[i], head.divisor));
    operand += head.src_count * words;
    for (int d = 0; d < head.dst_count; d++)
        tsr_cuda_store<pack>(tsr_cuda_address(head, operand + d * words, index), value, aligned);
}

/** Elements of a 16-byte unit. */
template <typename number> struct tsr_cuda_per_quad {
    static constexpr int count = 16 / sizeof(typename number::stored);
};

#endif
