/** Index arithmetic of the kernels. Host and device run the same functions, so that tests can run
 * kernels on a processor. */
#ifndef TSR_DEVICE_CUDA_INDEX_CUH
#define TSR_DEVICE_CUDA_INDEX_CUH

#include "device/cuda/work.h"

#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define TSR_BOTH static __host__ __device__ __forceinline__
#else
#define TSR_BOTH static inline
#endif

/** A 16-byte unit. */
struct alignas(16) tsr_cuda_quad {
    uint64_t low, high;
};

TSR_BOTH uint32_t tsr_cuda_high(uint32_t a, uint32_t b)
{
#if defined(__CUDA_ARCH__)
    return __umulhi(a, b);
#else
    return (uint32_t)(((uint64_t)a * b) >> 32);
#endif
}

/** index / by.value for an index below 2^31, so that the sum fits 32 bits. (Granlund and
 * Montgomery, "Division by invariant integers using multiplication", 1994, figure 4.1.) */
TSR_BOTH uint32_t tsr_cuda_divide(tsr_cuda_divisor by, uint32_t index)
{
    return (tsr_cuda_high(index, by.magic) + index) >> by.shift;
}

/** The index of the last box that begins at or before `block`. */
template <typename batch> TSR_BOTH uint32_t tsr_cuda_find_box(const batch &given, uint32_t block)
{
    uint32_t low = 0, high = given.box_count;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (given.box[middle].first_block <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/** Byte offsets of a unit in destination and source. */
struct tsr_cuda_place {
    int64_t dst, src;
};

TSR_BOTH tsr_cuda_place tsr_cuda_locate(const tsr_cuda_dim *dims, int ndim, uint32_t index)
{
    tsr_cuda_place place = {0, 0};
    for (int d = 0; d < ndim; d++) {
        /* The outermost coordinate needs no division, so one dim needs none at all. */
        const uint32_t rest = d + 1 < ndim ? tsr_cuda_divide(dims[d].by, index) : 0;
        const int64_t coordinate = index - rest * dims[d].by.value;
        place.dst += coordinate * dims[d].dst;
        place.src += coordinate * dims[d].src;
        index = rest;
    }
    return place;
}

/** A pointer to the `type` at an aligned address. A device faults if the address is not aligned;
 * here a processor traps too. */
template <typename type> TSR_BOTH type *tsr_cuda_at(unsigned char *address)
{
#if !defined(__CUDACC__)
    if (reinterpret_cast<uintptr_t>(address) % alignof(type) != 0)
        __builtin_trap();
#endif
    return reinterpret_cast<type *>(address);
}

template <typename type> TSR_BOTH const type *tsr_cuda_at(const unsigned char *address)
{
    return tsr_cuda_at<type>(const_cast<unsigned char *>(address));
}

/** Loads an element; `aligned`: its address is a multiple of its alignment. */
template <typename type> TSR_BOTH type tsr_cuda_load(const unsigned char *from, bool aligned)
{
    if (aligned)
        return *tsr_cuda_at<type>(from);
    type value;
    memcpy(&value, from, sizeof value);
    return value;
}

template <typename type> TSR_BOTH void tsr_cuda_store(unsigned char *to, type value, bool aligned)
{
    if (aligned)
        *tsr_cuda_at<type>(to) = value;
    else
        memcpy(to, &value, sizeof value);
}

#endif
