/**
 * The bodies of the kernels of lists of rows: a thread for each element, or unit, of each row. It
 * combines the elements of all sources in their order, so that results have the host's bits and
 * nothing is atomic.
 */
#ifndef TSR_DEVICE_CUDA_OPS_ROWS_CUH
#define TSR_DEVICE_CUDA_OPS_ROWS_CUH

#include "device/cuda/number.cuh"
#include "device/cuda/ops/work.h"

/** Where element `at`, of type T, of a row lies, of which a list has the address. */
template <typename T> TSR_BOTH T *tsr_cuda_row_at(int64_t address, uint32_t at)
{
    return tsr_cuda_at<T>(reinterpret_cast<unsigned char *>(address)) + at;
}

template <typename T> TSR_BOTH void tsr_cuda_copy_row_unit(const tsr_cuda_rows &given, uint32_t row, uint32_t at)
{
    *tsr_cuda_row_at<T>(given.targets[row], at) = *tsr_cuda_row_at<T>(given.sources[given.starts[row]], at);
}

TSR_BOTH void tsr_cuda_copy_row(const tsr_cuda_rows &given, uint32_t index)
{
    if (index >= given.units)
        return;
    const uint32_t row = tsr_cuda_divide(given.by, index), at = index - row * given.by.value;
    switch (given.log_width) {
    case 0:
        return tsr_cuda_copy_row_unit<uint8_t>(given, row, at);
    case 1:
        return tsr_cuda_copy_row_unit<uint16_t>(given, row, at);
    case 2:
        return tsr_cuda_copy_row_unit<uint32_t>(given, row, at);
    case 3:
        return tsr_cuda_copy_row_unit<uint64_t>(given, row, at);
    default:
        return tsr_cuda_copy_row_unit<tsr_cuda_quad>(given, row, at);
    }
}

/** Combines the elements of all sources of a row in their order; the row's own is the last term. */
template <typename number> TSR_BOTH void tsr_cuda_combine_row(const tsr_cuda_rows &given, uint32_t index)
{
    typedef typename number::stored stored;
    if (index >= given.units)
        return;
    const uint32_t row = tsr_cuda_divide(given.by, index), at = index - row * given.by.value;
    const int64_t begin = given.starts[row], end = given.starts[row + 1];
    stored *const to = tsr_cuda_row_at<stored>(given.targets[row], at);
    typename number::wide sum = number::widen(*tsr_cuda_row_at<stored>(given.sources[begin], at));
    for (int64_t s = begin + 1; s < end; s++)
        sum = number::combine(given.op, sum, number::widen(*tsr_cuda_row_at<stored>(given.sources[s], at)));
    if (given.divides && end - begin > 1)
        sum = number::divide(sum, end - begin);
    if (given.keeps)
        sum = number::combine(given.op, sum, number::widen(*to));
    *to = number::narrow(sum);
}

#endif
