#include "device/cuda/kernels.h"

#include "device/cuda/runtime.h"

/* One image for each .cu file, made from nvcc's output. */
extern const unsigned long long tsr_cuda_image_copy[], tsr_cuda_image_convert[], tsr_cuda_image_reduce_floats[],
    tsr_cuda_image_reduce_others[], tsr_cuda_image_ops[], tsr_cuda_image_rows[];

static const unsigned long long *const images[TSR_CUDA_IMAGES] = {
    tsr_cuda_image_copy,          tsr_cuda_image_convert, tsr_cuda_image_reduce_floats,
    tsr_cuda_image_reduce_others, tsr_cuda_image_ops,     tsr_cuda_image_rows};

static const struct {
    int image;
    const char *name;
} rows[TSR_CUDA_KERNEL_END] = {
#define CONVERT(source, number) [TSR_CUDA_CONVERT + TSR_CUDA_##source] = {1, "tsr_cuda_convert_" #number}
#define REDUCE(image, enumerator, number)                                                                              \
    [TSR_CUDA_REDUCE_WIDE + TSR_CUDA_NUMBER_##enumerator] = {image, "tsr_cuda_reduce_" #number "_wide"},               \
                            [TSR_CUDA_REDUCE_SINGLE + TSR_CUDA_NUMBER_##                                               \
                                enumerator] = {image, "tsr_cuda_reduce_" #number "_single"}
#define COMBINE(enumerator, number)                                                                                    \
    [TSR_CUDA_COMBINE_ROWS + TSR_CUDA_NUMBER_##enumerator] = {5, "tsr_cuda_combine_rows_" #number}
    [TSR_CUDA_COPY_SMALL] = {0, "tsr_cuda_copy_small"},
    [TSR_CUDA_COPY_LARGE] = {0, "tsr_cuda_copy_large"},
    [TSR_CUDA_FILL_SMALL] = {0, "tsr_cuda_fill_small"},
    [TSR_CUDA_FILL_LARGE] = {0, "tsr_cuda_fill_large"},
    CONVERT(F64, f64),
    CONVERT(F32, f32),
    CONVERT(F16, f16),
    CONVERT(BF16, bf16),
    CONVERT(F8E4M3, f8e4m3),
    CONVERT(F8E5M2, f8e5m2),
    REDUCE(2, F64, f64),
    REDUCE(2, F32, f32),
    REDUCE(2, F16, f16),
    REDUCE(2, BF16, bf16),
    REDUCE(2, F8E4M3, f8e4m3),
    REDUCE(2, F8E5M2, f8e5m2),
    REDUCE(3, U8, u8),
    REDUCE(3, U16, u16),
    REDUCE(3, U32, u32),
    REDUCE(3, U64, u64),
    REDUCE(3, C64, c64),
    REDUCE(3, C128, c128),
    [TSR_CUDA_ELEMENTS_F64] = {4, "tsr_cuda_elements_f64"},
    [TSR_CUDA_ELEMENTS_F32] = {4, "tsr_cuda_elements_f32"},
    [TSR_CUDA_ELEMENTS_I64] = {4, "tsr_cuda_elements_i64"},
    [TSR_CUDA_ELEMENTS_I32] = {4, "tsr_cuda_elements_i32"},
    [TSR_CUDA_ELEMENTS_BOOL] = {4, "tsr_cuda_elements_bool"},
    [TSR_CUDA_UPDATE_F64] = {4, "tsr_cuda_update_f64"},
    [TSR_CUDA_UPDATE_F32] = {4, "tsr_cuda_update_f32"},
    [TSR_CUDA_NORM_ROWS] = {4, "tsr_cuda_norm_rows"},
    [TSR_CUDA_NORM_SUMS] = {4, "tsr_cuda_norm_sums"},
    [TSR_CUDA_FIND_IDS] = {4, "tsr_cuda_find_ids"},
    [TSR_CUDA_REPORT_ID] = {4, "tsr_cuda_report_id"},
    [TSR_CUDA_LINK_IDS] = {4, "tsr_cuda_link_ids"},
    [TSR_CUDA_READ_SLICES] = {4, "tsr_cuda_read_slices"},
    [TSR_CUDA_ADD_F64] = {4, "tsr_cuda_add_slices_f64"},
    [TSR_CUDA_ADD_F32] = {4, "tsr_cuda_add_slices_f32"},
    [TSR_CUDA_ADD_I64] = {4, "tsr_cuda_add_slices_i64"},
    [TSR_CUDA_ADD_I32] = {4, "tsr_cuda_add_slices_i32"},
    [TSR_CUDA_COPY_ROWS] = {5, "tsr_cuda_copy_rows"},
    COMBINE(F64, f64),
    COMBINE(F32, f32),
    COMBINE(F16, f16),
    COMBINE(BF16, bf16),
    COMBINE(F8E4M3, f8e4m3),
    COMBINE(F8E5M2, f8e5m2),
    COMBINE(U8, u8),
    COMBINE(U16, u16),
    COMBINE(U32, u32),
    COMBINE(U64, u64),
    COMBINE(C64, c64),
    COMBINE(C128, c128),
};

static tsr_status load_images(tsr_cuda_kernels *kernels)
{
    for (int i = 0; i < TSR_CUDA_IMAGES; i++)
        TSR_CUDA_TRY(cudaLibraryLoadData(&kernels->library[i], images[i], NULL, NULL, 0, NULL, NULL, 0),
                     "loading kernels");
    for (int i = 0; i < TSR_CUDA_KERNEL_END; i++)
        TSR_CUDA_TRY(cudaLibraryGetKernel(&kernels->kernel[i], kernels->library[rows[i].image], rows[i].name),
                     "looking up a kernel");
    return TSR_OK;
}

tsr_status tsr_cuda_kernels_load(tsr_cuda_kernels *kernels)
{
    const tsr_status status = load_images(kernels);
    if (status != TSR_OK)
        tsr_cuda_kernels_unload(kernels);
    else
        kernels->loaded = true;
    return status;
}

void tsr_cuda_kernels_unload(tsr_cuda_kernels *kernels)
{
    for (int i = 0; i < TSR_CUDA_IMAGES; i++)
        if (kernels->library[i])
            (void)cudaLibraryUnload(kernels->library[i]);
    *kernels = (tsr_cuda_kernels){0};
}
