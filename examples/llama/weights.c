#include "weights.h"

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

/* "512x192" */
static void print_shape(int ndim, const int64_t *shape, char text[TSR_MAX_DIMS * 21])
{
    const size_t capacity = TSR_MAX_DIMS * 21;
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < ndim && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%lld", i > 0 ? "x" : "", (long long)shape[i]);
}

static tsr_status check_entry(const tsr_safetensors_entry *entry, const tsr_layout *layout)
{
    const int ndim = tsr_layout_ndim(layout);
    const int64_t *const shape = tsr_layout_shape(layout);
    if (entry->ndim != ndim || memcmp(entry->shape, shape, (size_t)ndim * sizeof shape[0]) != 0) {
        char found[TSR_MAX_DIMS * 21], wanted[TSR_MAX_DIMS * 21];
        print_shape(entry->ndim, entry->shape, found);
        print_shape(ndim, shape, wanted);
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %s has shape (%s), but config.json asks for (%s)",
                              entry->path, entry->name, found, wanted);
    }
    if (entry->dtype != TSR_F32 && entry->dtype != TSR_F16 && entry->dtype != TSR_BF16)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: tensor %s is of dtype %s; this program reads f32, f16 and bf16", entry->path,
                              entry->name, tsr_dtype_name(entry->dtype));
    return TSR_OK;
}

static tsr_status read_file(const tsr_safetensors *checkpoint, const char *name, const tsr_layout *layout,
                            llama_loaded *loaded, tsr_dtensor **out)
{
    const tsr_safetensors_entry *const entry = tsr_safetensors_find(checkpoint, name);
    int64_t bytes_read = 0;
    if (entry)
        TSR_TRY(check_entry(entry, layout));
    TSR_TRY(tsr_safetensors_distribute(checkpoint, name, layout, &bytes_read, out));
    loaded->bytes_read += bytes_read;
    return TSR_OK;
}

/* Writes f32 values to `to`, rounding once. */
static tsr_status write_row(const float *row, const tsr_tensor *to, int64_t first, int64_t count)
{
    void *self;
    char *const at = (char *)to->data + first * (int64_t)tsr_dtype_bytes(to->dtype);
    return tsr_device_driver_table(NULL, &self)->convert(self, 0, at, to->dtype, row, TSR_F32, count, NULL);
}

/* Makes every element from its global index, so that all meshes get the same tensor. Assumes that a
 * rank has one interval per dim, as with all cuts of this program. */
static tsr_status make_random(uint64_t seed, const char *name, const tsr_layout *layout, spread values,
                              tsr_dtensor **out)
{
    const int matrix = tsr_layout_ndim(layout) > 1;
    const int64_t width = matrix ? tsr_layout_shape(layout)[1] : 1;
    const uint64_t stream = llama_random_stream(seed, name);
    int64_t shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(layout, NULL, shape, offset));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), out));
    const int64_t columns = matrix ? shape[1] : 1, first_column = matrix ? offset[1] : 0;
    const tsr_tensor local = tsr_dtensor_to_local(*out);
    float *const elements = malloc((size_t)(columns + 1) * sizeof(float));
    tsr_status status = elements ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "no memory for a row of %s", name);
    for (int64_t row = 0; row < shape[0] && status == TSR_OK; row++) {
        for (int64_t column = 0; column < columns; column++) {
            const int64_t index = (offset[0] + row) * width + first_column + column;
            elements[column] = values.center + values.width * llama_random_symmetric(stream, (uint64_t)index);
        }
        status = write_row(elements, &local, row * columns, columns);
    }
    free(elements);
    return status;
}

/* Norms are about 1, and matrices keep the norm of vectors: a uniform deviation of variance 1 /
 * in. */
static spread spread_of(const char *name, const tsr_layout *layout)
{
    if (tsr_layout_ndim(layout) > 1)
        return (spread){0, (float)sqrt(3.0 / (double)tsr_layout_shape(layout)[1])};
    return (spread){strstr(name, "norm") ? 1 : 0, 0.1f};
}

static tsr_status load(const llama_source *source, const char *name, const tsr_layout *layout, llama_loaded *loaded,
                       tsr_dtensor **out)
{
    return source->checkpoint ? read_file(source->checkpoint, name, layout, loaded, out)
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
