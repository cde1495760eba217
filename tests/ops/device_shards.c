#include "device_shards.h"

#include <tessera/sys/status.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void shards_begin(tsr_device_driver *driver, int index, shards_device *out)
{
    out->table = tsr_device_driver_table(driver, &out->self);
    out->device = (tsr_device){driver, index};
}

void shards_destroy(shards_pair *pair)
{
    tsr_dtensor_destroy(pair->host);
    tsr_dtensor_destroy(pair->device);
    *pair = (shards_pair){NULL, NULL};
}

static int64_t count_elements(const tsr_tensor *tensor)
{
    int64_t count = 1;
    for (int dim = 0; dim < tensor->ndim; dim++)
        count *= tensor->shape[dim];
    return count;
}

/* A number that depends on the place alone. */
static uint64_t draw(int64_t i)
{
    return ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
}

/* Floats between 1 and 2 with all bits of their fractions, of both signs, so that sums depend on
 * their order; other dtypes have any bits. */
static void draw_element(char *to, tsr_dtype dtype, int64_t i, int64_t below)
{
    const uint64_t drawn = draw(i), drawn_too = draw(i + 7) << 20 ^ drawn;
    const float f32 = (float)((double)(drawn % 1000003) / 1000003 + 1) * (drawn & 1 ? 1 : -1);
    const double f64 = ((double)(drawn_too >> 11) * 0x1p-53 + 1) * (drawn & 1 ? 1 : -1);
    const int64_t i64 = below > 0 ? (int64_t)(drawn % (uint64_t)below) : (int64_t)drawn_too;
    const int32_t i32 = (int32_t)i64;
    uint32_t bits;
    memcpy(&bits, &f32, sizeof bits);
    const uint16_t bf16 = (uint16_t)(bits >> 16), f16 = (uint16_t)(0x3c00 | (drawn & 0x83ff));
    switch (dtype) {
    case TSR_F64:
        memcpy(to, &f64, sizeof f64);
        break;
    case TSR_F32:
        memcpy(to, &f32, sizeof f32);
        break;
    case TSR_F16:
        memcpy(to, &f16, sizeof f16);
        break;
    case TSR_BF16:
        memcpy(to, &bf16, sizeof bf16);
        break;
    case TSR_I32:
        memcpy(to, &i32, sizeof i32);
        break;
    case TSR_I64:
        memcpy(to, &i64, sizeof i64);
        break;
    default:
        memset(to, (int)(dtype == TSR_BOOL ? drawn & 1 : drawn & 0x3f), tsr_dtype_bytes(dtype));
    }
}

tsr_status shards_copy(const shards_device *on, const tsr_dtensor *host, const tsr_dtensor *device)
{
    const tsr_tensor src = tsr_dtensor_to_local(host), dst = tsr_dtensor_to_local(device);
    const size_t bytes = (size_t)count_elements(&src) * tsr_dtype_bytes(src.dtype);
    TSR_TRY(on->table->copy(on->self, on->device.index, dst.data, src.data, bytes, TSR_COPY_FROM_HOST, NULL));
    return on->table->stream_synchronize(on->self, on->device.index, NULL);
}

/* The layout of which a turned tensor is a view. */
static tsr_status turn_layout(const tsr_layout *layout, tsr_layout **out)
{
    int64_t shape[TSR_MAX_DIMS];
    memcpy(shape, tsr_layout_shape(layout), (size_t)tsr_layout_ndim(layout) * sizeof *shape);
    shape[0] = tsr_layout_shape(layout)[1];
    shape[1] = tsr_layout_shape(layout)[0];
    return tsr_layout_parse(tsr_layout_mesh(layout), "R", tsr_layout_ndim(layout), shape, tsr_layout_dtype(layout),
                            out);
}

static tsr_status turn(tsr_dtensor **x)
{
    tsr_dtensor *turned;
    TSR_TRY(tsr_transpose(*x, 0, 1, &turned));
    tsr_dtensor_destroy(*x);
    *x = turned;
    return TSR_OK;
}

static tsr_status make_plain(const shards_device *on, const tsr_layout *layout, int64_t below, shards_pair *out)
{
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &out->host));
    TSR_TRY(tsr_dtensor_create(layout, on->device, &out->device));
    const tsr_tensor local = tsr_dtensor_to_local(out->host);
    const size_t bytes = tsr_dtype_bytes(local.dtype);
    for (int64_t i = 0; i < count_elements(&local); i++)
        draw_element((char *)local.data + (size_t)i * bytes, local.dtype, i, below);
    return shards_copy(on, out->host, out->device);
}

tsr_status shards_make(const shards_device *on, const tsr_layout *layout, bool turned, int64_t below, shards_pair *out)
{
    tsr_layout *base;
    if (!turned || tsr_layout_ndim(layout) < 2)
        return make_plain(on, layout, below, out);
    TSR_TRY(turn_layout(layout, &base));
    tsr_status status = make_plain(on, base, below, out);
    tsr_layout_destroy(base);
    if (status == TSR_OK)
        status = turn(&out->host);
    return status == TSR_OK ? turn(&out->device) : status;
}

static tsr_status call_into_turned(const shards_device *on, const tsr_op *row, size_t count,
                                   const tsr_attribute *attributes, const tsr_dtensor *const *host,
                                   const tsr_dtensor *const *device, shards_pair *out)
{
    tsr_dtensor *plain = NULL;
    TSR_TRY(tsr_op_call(row, count, attributes, host, &plain));
    const tsr_status status = shards_make(on, tsr_dtensor_layout(plain), true, 0, out);
    tsr_dtensor_destroy(plain);
    TSR_TRY(status);
    TSR_TRY(tsr_op_call_into(row, count, attributes, host, &out->host));
    return tsr_op_call_into(row, count, attributes, device, &out->device);
}

tsr_status shards_call(const shards_device *on, const char *op, size_t count, const tsr_attribute *attributes,
                       shards_pair *const *operands, bool turned, shards_pair *out)
{
    const tsr_dtensor *host[TSR_OP_MOST_OPERANDS] = {NULL}, *device[TSR_OP_MOST_OPERANDS] = {NULL};
    const tsr_op *row;
    for (int i = 0; operands[i]; i++) {
        host[i] = operands[i]->host;
        device[i] = operands[i]->device;
    }
    TSR_TRY(tsr_op_find(NULL, op, &row));
    if (turned)
        return call_into_turned(on, row, count, attributes, host, device, out);
    TSR_TRY(tsr_op_call(row, count, attributes, host, &out->host));
    return tsr_op_call(row, count, attributes, device, &out->device);
}

/* The bytes from a tensor's first element to its last, which has no holes. */
static tsr_status compare_bytes(const char *what, const tsr_tensor *wanted, const char *got)
{
    const size_t bytes = (size_t)count_elements(wanted) * tsr_dtype_bytes(wanted->dtype);
    for (size_t i = 0; i < bytes; i++) {
        if (got[i] != ((const char *)wanted->data)[i])
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s: byte %zu of %zu, in element %zu, differs", what, i, bytes,
                                  i / tsr_dtype_bytes(wanted->dtype));
    }
    return TSR_OK;
}

tsr_status shards_compare(const shards_device *on, const char *what, const shards_pair *pair)
{
    const tsr_tensor wanted = tsr_dtensor_to_local(pair->host), from = tsr_dtensor_to_local(pair->device);
    const size_t bytes = (size_t)count_elements(&wanted) * tsr_dtype_bytes(wanted.dtype);
    char *const got = malloc(bytes + 1);
    if (!got)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu bytes", bytes);
    tsr_status status = on->table->copy(on->self, on->device.index, got, from.data, bytes, TSR_COPY_TO_HOST, NULL);
    const tsr_status waited = on->table->stream_synchronize(on->self, on->device.index, NULL);
    status = status == TSR_OK ? waited : status;
    if (status == TSR_OK)
        status = compare_bytes(what, &wanted, got);
    free(got);
    return status;
}
