#include "weights.h"

#include "checkpoint.h"
#include "random.h"

#include <tessera/sys/device.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random tensors are `center` plus a uniform deviation of at most `width`. */
typedef struct spread {
    float center, width;
} spread;

/* Writes f32 values to `to`, rounding once. */
static tsr_status write_row(const float *row, const tsr_tensor *to, int64_t first, int64_t count)
{
    void *self;
    char *const at = (char *)to->data + first * (int64_t)tsr_dtype_bytes(to->dtype);
    return tsr_device_driver_table(NULL, &self)->convert(self, 0, at, to->dtype, row, TSR_F32, count, NULL);
}

/* The tensor's indices that this rank has along each dim, all in one array. */
typedef struct owned {
    int64_t count[TSR_MAX_DIMS];
    int64_t *indices[TSR_MAX_DIMS];
} owned;

/* Lists the indices along one dim. */
static tsr_status list_dim(const tsr_layout *layout, int dim, int64_t *to)
{
    size_t count;
    TSR_TRY(tsr_layout_intervals(layout, NULL, dim, NULL, 0, &count));
    tsr_interval *const intervals = calloc(count + 1, sizeof *intervals);
    if (!intervals)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu intervals", count);
    const tsr_status status = tsr_layout_intervals(layout, NULL, dim, intervals, count, &count);
    for (size_t i = 0; i < count && status == TSR_OK; i++)
        for (int64_t index = intervals[i].begin; index < intervals[i].end; index++)
            *to++ = index;
    free(intervals);
    return status;
}

/* Lists the indices; the caller frees the first list. */
static tsr_status list_owned(const tsr_layout *layout, owned *out)
{
    int64_t offset[TSR_MAX_DIMS], total = 0;
    const int ndim = tsr_layout_ndim(layout);
    TSR_TRY(tsr_layout_local(layout, NULL, out->count, offset));
    for (int dim = 0; dim < ndim; dim++)
        total += out->count[dim];
    int64_t *next = calloc((size_t)total + 1, sizeof *next);
    if (!next)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %lld indices", (long long)total);
    tsr_status status = TSR_OK;
    out->indices[0] = next;
    for (int dim = 0; dim < ndim && status == TSR_OK; dim++) {
        out->indices[dim] = next;
        status = list_dim(layout, dim, next);
        next += out->count[dim];
    }
    if (status != TSR_OK)
        free(out->indices[0]);
    return status;
}

/* Makes a row, which is the rank's part of the last dim: every element from its global index, so
 * that all meshes get the same tensor. `row` counts the rank's own. */
static void make_row(const owned *o, const tsr_layout *layout, int64_t row, uint64_t stream, spread values,
                     float *elements)
{
    const int last = tsr_layout_ndim(layout) - 1;
    int64_t first = 0, stride = tsr_layout_shape(layout)[last];
    for (int dim = last - 1; dim >= 0; dim--) {
        first += o->indices[dim][row % o->count[dim]] * stride;
        row /= o->count[dim];
        stride *= tsr_layout_shape(layout)[dim];
    }
    for (int64_t i = 0; i < o->count[last]; i++)
        elements[i] =
            values.center + values.width * llama_random_symmetric(stream, (uint64_t)(first + o->indices[last][i]));
}

static tsr_status make_random(uint64_t seed, const char *name, const tsr_layout *layout, spread values,
                              tsr_dtensor **out)
{
    const int last = tsr_layout_ndim(layout) - 1;
    const uint64_t stream = llama_random_stream(seed, name);
    owned o;
    tsr_dtensor *made;
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made));
    tsr_status status = list_owned(layout, &o);
    if (status != TSR_OK) {
        tsr_dtensor_destroy(made);
        return status;
    }
    const tsr_tensor local = tsr_dtensor_to_local(made);
    float *const elements = malloc((size_t)(o.count[last] + 1) * sizeof(float));
    int64_t rows = o.count[last] > 0;
    for (int dim = 0; dim < last; dim++)
        rows *= o.count[dim];
    if (!elements)
        status = tsr_status_set(TSR_ERROR_MEMORY, "no memory for a row of %s", name);
    for (int64_t row = 0; row < rows && status == TSR_OK; row++) {
        make_row(&o, layout, row, stream, values, elements);
        status = write_row(elements, &local, row * o.count[last], o.count[last]);
    }
    free(elements);
    free(o.indices[0]);
    if (status == TSR_OK)
        *out = made;
    else
        tsr_dtensor_destroy(made);
    return status;
}

/* Norms are about 1, and matrices keep the norm of vectors: a uniform deviation of variance 1 /
 * in. */
static spread spread_of(const char *name, const tsr_layout *layout)
{
    const int last = tsr_layout_ndim(layout) - 1;
    if (last > 0)
        return (spread){0, (float)sqrt(3.0 / (double)tsr_layout_shape(layout)[last])};
    return (spread){strstr(name, "norm") ? 1 : 0, 0.1f};
}

static tsr_status load(const llama_source *source, const char *name, const tsr_layout *layout, llama_loaded *loaded,
                       tsr_dtensor **out)
{
    return source->checkpoint ? llama_checkpoint_read(source->checkpoint, name, layout, &loaded->bytes_read, out)
                              : make_random(source->seed, name, layout, spread_of(name, layout), out);
}

/* Adds up what a row of 8 bits lost. */
static void add_error(const float *was, const int8_t *is, const float *scales, int64_t count, llama_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        const double lost = (double)was[i] - (double)is[i] * (double)scales[i / 32];
        error->lost += lost * lost;
        error->whole += (double)was[i] * (double)was[i];
    }
}

/* Loads in f32, and rounds to 8 bits. */
static tsr_status load_q8(const llama_source *source, const char *name, const tsr_layout *layout, llama_loaded *loaded,
                          tsr_dtensor **out, tsr_dtensor **scales)
{
    tsr_layout *wide;
    tsr_dtensor *w;
    TSR_TRY(tsr_layout_create(tsr_layout_mesh(layout), tsr_layout_placements(layout), 2, tsr_layout_shape(layout),
                              TSR_F32, &wide));
    tsr_status status = load(source, name, wide, loaded, &w);
    tsr_layout_destroy(wide);
    TSR_TRY(status);
    status = tsr_quantize_q8(w, out, scales);
    if (status == TSR_OK) {
        const tsr_tensor was = tsr_dtensor_to_local(w), is = tsr_dtensor_to_local(*out);
        const float *const by = tsr_dtensor_to_local(*scales).data;
        const int64_t columns = was.shape[1];
        for (int64_t row = 0; row < was.shape[0]; row++)
            add_error((const float *)was.data + row * columns, (const int8_t *)is.data + row * columns,
                      by + row * (columns / 32), columns, &loaded->error);
    }
    tsr_dtensor_destroy(w);
    return status;
}

tsr_status llama_weights_load(const llama_source *source, const char *name, const tsr_layout *layout,
                              llama_loaded *loaded, tsr_dtensor **out, tsr_dtensor **scales)
{
    *scales = NULL;
    return tsr_layout_dtype(layout) == TSR_I8 ? load_q8(source, name, layout, loaded, out, scales)
                                              : load(source, name, layout, loaded, out);
}

void llama_weights_scales(const char *name, char *out, size_t capacity)
{
    snprintf(out, capacity, "%.*sscales", (int)(strlen(name) - strlen("weight")), name);
}

bool llama_weights_are_scales(const char *name)
{
    const size_t length = strlen(name), end = strlen(".scales");
    return length > end && strcmp(name + length - end, ".scales") == 0;
}

tsr_dtype llama_weights_dtype(const llama_source *source)
{
    tsr_dtype dtype = TSR_DTYPE_NONE;
    if (source->dtype != TSR_DTYPE_NONE || !source->checkpoint)
        return source->dtype != TSR_DTYPE_NONE ? source->dtype : TSR_F32;
    for (size_t i = 0; i < tsr_safetensors_count(source->checkpoint); i++) {
        const tsr_safetensors_entry *const entry = tsr_safetensors_get(source->checkpoint, i);
        if (strncmp(entry->name, "model.", 6) != 0 && strncmp(entry->name, "lm_head.", 8) != 0)
            continue;
        if (!strstr(entry->name, "norm."))
            dtype = dtype == TSR_DTYPE_NONE || dtype == entry->dtype ? entry->dtype : TSR_F32;
    }
    return dtype == TSR_F16 || dtype == TSR_BF16 ? dtype : TSR_F32;
}
