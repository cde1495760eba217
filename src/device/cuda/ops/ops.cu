/* Kernels of ops. */
#include "device/cuda/ops/indexing.cuh"
#include "device/cuda/ops/updates.cuh"

#define DEFINE_ELEMENTS(name, type)                                                                                    \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)                                                     \
        tsr_cuda_elements_##name(const __grid_constant__ tsr_cuda_elements given)                                      \
    {                                                                                                                  \
        tsr_cuda_element<type>(given, blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);                                    \
    }

TSR_CUDA_ELEMENT_TYPES(DEFINE_ELEMENTS)

#define DEFINE_UPDATE(name, type)                                                                                      \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)                                                     \
        tsr_cuda_update_##name(const __grid_constant__ tsr_cuda_update given)                                          \
    {                                                                                                                  \
        tsr_cuda_update_element<type>(given, blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);                             \
    }

TSR_CUDA_UPDATE_TYPES(DEFINE_UPDATE)

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_norm_rows(const __grid_constant__ tsr_cuda_norm given)
{
    __shared__ tsr_cuda_row_memory memory;
    tsr_cuda_norm_row(given, blockIdx.x, threadIdx.x, TSR_CUDA_MEASURE, &memory);
    __syncthreads();
    tsr_cuda_norm_row(given, blockIdx.x, threadIdx.x, TSR_CUDA_MERGE, &memory);
    __syncthreads();
    tsr_cuda_norm_row(given, blockIdx.x, threadIdx.x, TSR_CUDA_MAKE, &memory);
}

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_norm_sums(const __grid_constant__ tsr_cuda_norm given)
{
    __shared__ tsr_cuda_sum_memory memory;
    tsr_cuda_sum_rows(given, blockIdx.x, threadIdx.x, 0, &memory);
    __syncthreads();
    tsr_cuda_sum_rows(given, blockIdx.x, threadIdx.x, 1, &memory);
}

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_find_ids(const __grid_constant__ tsr_cuda_ids given)
{
    __shared__ tsr_cuda_id_memory memory;
    tsr_cuda_find_ids_in(given, blockIdx.x, threadIdx.x, 0, &memory);
    __syncthreads();
    tsr_cuda_find_ids_in(given, blockIdx.x, threadIdx.x, 1, &memory);
}

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_report_id(const __grid_constant__ tsr_cuda_report given)
{
    __shared__ tsr_cuda_id_memory memory;
    tsr_cuda_report_id_in(given, threadIdx.x, 0, &memory);
    __syncthreads();
    tsr_cuda_report_id_in(given, threadIdx.x, 1, &memory);
}

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_link_ids(const __grid_constant__ tsr_cuda_links given)
{
    __shared__ tsr_cuda_link_memory memory;
    for (uint32_t chunk = tsr_cuda_chunks(given); chunk-- > 0;)
        for (int phase = 0; phase < 3; phase++) {
            tsr_cuda_link_chunk(given, blockIdx.x, chunk, threadIdx.x, phase, &memory);
            __syncthreads();
        }
}

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_read_slices(const __grid_constant__ tsr_cuda_slices given)
{
    tsr_cuda_read_slice(given, blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);
}

#define DEFINE_SUMS(name, type)                                                                                        \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)                                                     \
        tsr_cuda_add_slices_##name(const __grid_constant__ tsr_cuda_slices given)                                      \
    {                                                                                                                  \
        tsr_cuda_add_slice<type>(given, blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);                                  \
    }

TSR_CUDA_SUM_TYPES(DEFINE_SUMS)
