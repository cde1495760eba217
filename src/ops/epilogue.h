/** The last steps of a product on the host, from its f32 sums to c, and conversions to f32. */
#ifndef TSR_OPS_EPILOGUE_H
#define TSR_OPS_EPILOGUE_H

#include <tessera/sys/device.h>

/** The most columns that tsr_epilogue() takes. */
#define TSR_EPILOGUE_COLUMNS 512

/** Converts `count` contiguous elements of a floating type to f32: exactly, unless the type is
 * f64. */
tsr_status tsr_gemm_widen(float *dst, const void *src, tsr_dtype dtype, int64_t count);

/** c[row, column .. column + count) = alpha * sums + beta * c + bias, in f32, rounded to c's dtype
 * once at the end. Changes `sums`. */
tsr_status tsr_epilogue(const tsr_gemm *gemm, double alpha, int64_t row, int64_t column, int64_t count, float *sums);

#endif
