/* Conversion between floating types, a block at a time, through f32, which holds every narrow type
 * exactly. */
#include "device/host/convert.h"

#include "device/host/copy.h"
#include "device/host/floats.h"
#include "device/host/minifloat.h"
#include "device/host/stream.h"
#include "device/request.h"

/* Elements of a block, which stays in the first-level cache. */
#define BLOCK 1024

static void odd_of_f64(float *restrict dst, const void *restrict src, int64_t count)
{
    const tsr_f64 *const values = src;
    for (int64_t i = 0; i < count; i++)
        dst[i] = f32_odd_of_f64(values[i]);
}

static void load_f32(float *restrict dst, const void *restrict src, int64_t count)
{
    memcpy(dst, src, (size_t)count * sizeof *dst);
}

static void store_f32(void *restrict dst, const float *restrict src, int64_t count)
{
    tsr_f32 *const values = dst;
    for (int64_t i = 0; i < count; i++)
        values[i] = canonical_f32(src[i]);
}

static void store_f64(void *restrict dst, const float *restrict src, int64_t count)
{
    tsr_f64 *const values = dst;
    for (int64_t i = 0; i < count; i++)
        values[i] = canonical_f64((double)src[i]);
}

/* Here f32 is the result, so rounding to odd, as before a second rounding, would be wrong. */
static void convert_f64_to_f32(void *restrict dst, const void *restrict src, int64_t count)
{
    tsr_f32 *const to = dst;
    const tsr_f64 *const from = src;
    for (int64_t i = 0; i < count; i++)
        to[i] = canonical_f32((float)from[i]);
}

static tsr_widen *loader(tsr_dtype dtype)
{
    return dtype == TSR_F64 ? odd_of_f64 : dtype == TSR_F32 ? load_f32 : KERNEL(widen)(dtype);
}

static tsr_narrow *storer(tsr_dtype dtype)
{
    return dtype == TSR_F64 ? store_f64 : dtype == TSR_F32 ? store_f32 : KERNEL(narrow)(dtype);
}

tsr_status KERNEL(host_convert)(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src,
                                tsr_dtype src_dtype, int64_t count, tsr_stream stream)
{
    (void)self, (void)index, (void)stream;
    TSR_TRY(tsr_request_check_conversion("host", dst_dtype, src_dtype, count));
    const size_t dst_bytes = tsr_dtype_bytes(dst_dtype), src_bytes = tsr_dtype_bytes(src_dtype);
    if (dst_dtype == src_dtype) {
        KERNEL(copy_run)(dst, src, (size_t)count * dst_bytes, false);
        return TSR_OK;
    }
    if (src_dtype == TSR_F64 && dst_dtype == TSR_F32) {
        convert_f64_to_f32(dst, src, count);
        return TSR_OK;
    }
    tsr_widen *const load = loader(src_dtype);
    tsr_narrow *const store = storer(dst_dtype);
    float block[BLOCK];
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t piece = count - at < BLOCK ? count - at : BLOCK;
        load(block, (const char *)src + (size_t)at * src_bytes, piece);
        store((char *)dst + (size_t)at * dst_bytes, block, piece);
    }
    return TSR_OK;
}
