#include <tessera/products.h>
#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <float.h>
#include <string.h>

#define BLOCK  TSR_Q8_SCALED
#define CALLER "tsr_quantize_q8"

/* The tensors of one call. */
typedef struct quantizing {
    tsr_tensor w, data, scales;
    int last; /* the last dim */
} quantizing;

static tsr_status check_weights(const tsr_dtensor *w, const void *data, const void *scales)
{
    if (!w || !data || !scales)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER ": %s is NULL", !w ? "w" : !data ? "data" : "scales");
    const tsr_layout *const layout = tsr_dtensor_layout(w);
    const int ndim = tsr_layout_ndim(layout);
    if (tsr_dtype_get(tsr_layout_dtype(layout))->kind != TSR_CLASS_FLOAT)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER ": w is %s, but must be of floats",
                              tsr_dtype_name(tsr_layout_dtype(layout)));
    if (ndim == 0 || tsr_layout_shape(layout)[ndim - 1] % BLOCK != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALLER ": the last dim of w has size %lld, but must be a multiple of %d",
                              (long long)(ndim ? tsr_layout_shape(layout)[ndim - 1] : 1), BLOCK);
    if (tsr_dtensor_to_local(w).device.driver)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              CALLER ": w is on a device, but weights are quantized on the host");
    return TSR_OK;
}

/* True if a mesh dim alone cuts the last dim into chunks of whole blocks. */
static bool has_whole_chunks(const tsr_layout *w, int mesh_dim)
{
    const tsr_placement *const p = tsr_layout_placements(w);
    const tsr_mesh *const mesh = tsr_layout_mesh(w);
    const int last = tsr_layout_ndim(w) - 1;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        if (k != mesh_dim && p[k].kind == TSR_SHARD && p[k].dim == last && tsr_mesh_size(mesh, k) > 1)
            return false;
    }
    const int64_t ranks = tsr_mesh_size(mesh, mesh_dim), size = tsr_layout_shape(w)[last];
    return !p[mesh_dim].balanced && p[mesh_dim].interleave <= 1 && (size + ranks - 1) / ranks % BLOCK == 0;
}

/* The cut of the scales of weights that are cut so. */
static tsr_status scale_placement(const tsr_layout *w, int mesh_dim, tsr_placement *p)
{
    char text[128];
    const int last = tsr_layout_ndim(w) - 1;
    const tsr_mesh *const mesh = tsr_layout_mesh(w);
    if (p->kind == TSR_PARTIAL)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER ": w is Partial on mesh dim %d; redistribute it first",
                              mesh_dim);
    if (p->kind != TSR_SHARD || p->dim != last || tsr_mesh_size(mesh, mesh_dim) == 1)
        return TSR_OK;
    const int64_t blocks = p->interleave > 1 ? p->interleave : 1;
    const bool plain = !p->sizes && !p->blocks;
    if (plain && p->unit <= 1 && has_whole_chunks(w, mesh_dim))
        return TSR_OK;
    if (plain && p->unit > 0 && p->unit % BLOCK == 0 && tsr_layout_shape(w)[last] % (blocks * BLOCK) == 0) {
        p->unit /= BLOCK;
        return TSR_OK;
    }
    tsr_layout_print(w, text, sizeof text);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          CALLER
                          ": mesh dim %d of \"%s\" cuts blocks of %d weights, which have one scale; redistribute "
                          "w to \"S(%d;unit=%d)\" there",
                          mesh_dim, text, BLOCK, last, BLOCK);
}

/* The layouts of both results. */
static tsr_status make_layouts(const tsr_layout *w, tsr_layout **data, tsr_layout **scales)
{
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS];
    const tsr_mesh *const mesh = tsr_layout_mesh(w);
    const int ndim = tsr_layout_ndim(w);
    memcpy(shape, tsr_layout_shape(w), (size_t)ndim * sizeof *shape);
    shape[ndim - 1] /= BLOCK;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        placements[k] = tsr_layout_placements(w)[k];
        TSR_TRY(scale_placement(w, k, &placements[k]));
    }
    TSR_TRY(tsr_layout_create(mesh, tsr_layout_placements(w), ndim, tsr_layout_shape(w), TSR_I8, data));
    return tsr_layout_create(mesh, placements, ndim, shape, TSR_F32, scales);
}

/* Reads the weights of one block as f32. */
static tsr_status read_block(const quantizing *q, int64_t offset, float values[BLOCK])
{
    void *self;
    const tsr_device_table *const table = tsr_device_driver_table(NULL, &self);
    const int64_t stride = q->w.strides[q->last], bytes = (int64_t)tsr_dtype_bytes(q->w.dtype);
    const int count = stride == 1 ? BLOCK : 1;
    for (int i = 0; i < BLOCK; i += count)
        TSR_TRY(table->convert(self, 0, values + i, TSR_F32, (const char *)q->w.data + (offset + i * stride) * bytes,
                               q->w.dtype, count, NULL));
    return TSR_OK;
}

/* Rounds to the nearest integer, halves to even, what is below 2^22 in size. */
static inline float round_nearest(float x)
{
    const float shift = 0x1.8p23f;
    return (x + shift) - shift;
}

static tsr_status quantize_block(const quantizing *q, int64_t from, int64_t data, int64_t scale)
{
    float values[BLOCK], largest = 0;
    int finite = 1;
    TSR_TRY(read_block(q, from, values));
    for (int i = 0; i < BLOCK; i++) {
        const float size = values[i] < 0 ? -values[i] : values[i];
        finite &= size <= FLT_MAX;
        largest = size > largest ? size : largest;
    }
    if (!finite)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER ": w has infinities, NaNs or numbers beyond f32");
    const float step = largest / 127, divisor = step > 0 ? step : 1;
    int8_t *const to = (int8_t *)q->data.data + data;
    for (int i = 0; i < BLOCK; i++) {
        /* Subnormal steps are rounded so coarsely that a quotient may be beyond 127. */
        const float quotient = values[i] / divisor, most = quotient > 127 ? 127 : quotient;
        to[i] = (int8_t)(int)round_nearest(most < -127 ? -127 : most);
    }
    ((float *)q->scales.data)[scale] = step;
    return TSR_OK;
}

/* Quantizes this rank's weights; the results are contiguous. */
static tsr_status quantize(const quantizing *q)
{
    int64_t count = 1;
    for (int dim = 0; dim < q->scales.ndim; dim++)
        count *= q->scales.shape[dim];
    for (int64_t scale = 0; scale < count; scale++) {
        int64_t rest = scale, from = 0;
        for (int dim = q->last; dim >= 0; dim--) {
            const int64_t at = rest % q->scales.shape[dim];
            rest /= q->scales.shape[dim];
            from += at * q->w.strides[dim] * (dim == q->last ? BLOCK : 1);
        }
        TSR_TRY(quantize_block(q, from, scale * BLOCK, scale));
    }
    return TSR_OK;
}

tsr_status tsr_quantize_q8(const tsr_dtensor *w, tsr_dtensor **data, tsr_dtensor **scales)
{
    tsr_layout *data_layout = NULL, *scale_layout = NULL;
    tsr_dtensor *integers = NULL, *steps = NULL;
    TSR_TRY(check_weights(w, data, scales));
    tsr_status status = make_layouts(tsr_dtensor_layout(w), &data_layout, &scale_layout);
    if (status == TSR_OK)
        status = tsr_dtensor_create(data_layout, tsr_device_host(), &integers);
    if (status == TSR_OK)
        status = tsr_dtensor_create(scale_layout, tsr_device_host(), &steps);
    if (status == TSR_OK) {
        const quantizing q = {.w = tsr_dtensor_to_local(w),
                              .data = tsr_dtensor_to_local(integers),
                              .scales = tsr_dtensor_to_local(steps),
                              .last = tsr_layout_ndim(data_layout) - 1};
        status = quantize(&q);
    }
    tsr_layout_destroy(data_layout);
    tsr_layout_destroy(scale_layout);
    if (status == TSR_OK) {
        *data = integers;
        *scales = steps;
        return TSR_OK;
    }
    tsr_dtensor_destroy(integers);
    tsr_dtensor_destroy(steps);
    return status;
}
