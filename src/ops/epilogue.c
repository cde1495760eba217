#include "ops/epilogue.h"

static tsr_status convert(void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype, int64_t count)
{
    void *self;
    return tsr_device_driver_table(NULL, &self)->convert(self, 0, dst, dst_dtype, src, src_dtype, count, NULL);
}

tsr_status tsr_gemm_widen(float *dst, const void *src, tsr_dtype dtype, int64_t count)
{
    return convert(dst, TSR_F32, src, dtype, count);
}

/* sums += factor * added, for `count` elements, at most TSR_EPILOGUE_COLUMNS. */
static tsr_status add_scaled(float *sums, double factor, const void *added, tsr_dtype dtype, int64_t count)
{
    float terms[TSR_EPILOGUE_COLUMNS];
    TSR_TRY(tsr_gemm_widen(terms, added, dtype, count));
    for (int64_t i = 0; i < count; i++)
        sums[i] += (float)factor * terms[i];
    return TSR_OK;
}

tsr_status tsr_epilogue(const tsr_gemm *gemm, double alpha, int64_t row, int64_t column, int64_t count, float *sums)
{
    char *const c = (char *)gemm->c + (row * gemm->ldc + column) * (int64_t)tsr_dtype_bytes(gemm->c_dtype);
    for (int64_t i = 0; i < count && alpha != 1; i++)
        sums[i] *= (float)alpha;
    if (gemm->beta != 0)
        TSR_TRY(add_scaled(sums, gemm->beta, c, gemm->c_dtype, count));
    if (gemm->bias)
        TSR_TRY(add_scaled(sums, 1, (const char *)gemm->bias + column * (int64_t)tsr_dtype_bytes(gemm->bias_dtype),
                           gemm->bias_dtype, count));
    return convert(c, gemm->c_dtype, sums, TSR_F32, count);
}
