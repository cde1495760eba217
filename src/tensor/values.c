/* What changes the elements of a dtensor without moving any: filling and accumulating. */
#include "base/checked.h"
#include "device/allocation.h"
#include "mesh/mesh.h"
#include "placement/layout.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "tensor/dtensor.h"

#include <tessera/sys/status.h>
#include <tessera/values.h>

#include <string.h>

tsr_status tsr_dtensor_like(const tsr_dtensor *x, tsr_dtensor **out)
{
    if (!x || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtensor_like: %s is NULL", !x ? "x" : "out");
    TSR_TRY(tsr_check_communicates(x->layout->mesh, "tsr_dtensor_like"));
    return tsr_dtensor_create(x->layout, x->local.device, out);
}

tsr_status tsr_dtensor_like_as(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtensor **out)
{
    if (!x || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtensor_like_as: %s is NULL", !x ? "x" : "out");
    TSR_TRY(tsr_check_communicates(x->layout->mesh, "tsr_dtensor_like_as"));
    const tsr_layout *have = x->layout;
    tsr_layout *layout;
    TSR_TRY(tsr_name_call("tsr_dtensor_like_as",
                          tsr_layout_create(have->mesh, have->placements, have->ndim, have->shape, dtype, &layout)));
    const tsr_status status = tsr_dtensor_create(layout, x->local.device, out);
    tsr_layout_destroy(layout);
    return status;
}

int64_t tsr_dtensor_count(const tsr_dtensor *x)
{
    int64_t count = x ? 1 : 0;
    for (int dim = 0; x && dim < x->layout->ndim; dim++)
        count *= x->layout->shape[dim];
    return count;
}

/* The integers that a dtype holds: from `least` to below `end`. */
static const struct {
    double least, end;
} integers[TSR_DTYPE_END] = {
    [TSR_I64] = {-0x1p63, 0x1p63}, [TSR_I32] = {-0x1p31, 0x1p31}, [TSR_I16] = {-0x1p15, 0x1p15},
    [TSR_I8] = {-0x1p7, 0x1p7},    [TSR_U64] = {0, 0x1p64},       [TSR_U32] = {0, 0x1p32},
    [TSR_U16] = {0, 0x1p16},       [TSR_U8] = {0, 0x1p8},         [TSR_BOOL] = {0, 2},
};

/* Writes the low bytes of an integer in this machine's byte order. */
static void put_integer(uint64_t bits, size_t bytes, unsigned char *out)
{
    const uint8_t byte = (uint8_t)bits;
    const uint16_t half = (uint16_t)bits;
    const uint32_t word = (uint32_t)bits;
    const void *const from[] = {[1] = &byte, [2] = &half, [4] = &word, [8] = &bits};
    memcpy(out, from[bytes], bytes);
}

static tsr_status integer_value(double value, tsr_dtype dtype, unsigned char *out)
{
    const bool fits = value >= integers[dtype].least && value < integers[dtype].end;
    const uint64_t bits = !fits ? 0 : value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
    if (!fits || (value < 0 ? (double)(int64_t)bits : (double)bits) != value)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_dtensor_fill: value is %.17g, which %s does not hold: integers from %.17g to below "
                              "%.17g are its values",
                              value, tsr_dtype_name(dtype), integers[dtype].least, integers[dtype].end);
    put_integer(bits, tsr_dtype_bytes(dtype), out);
    return TSR_OK;
}

/* Writes `value` as an element, of at most 16 bytes. */
static tsr_status element_of(const tsr_layout *layout, double value, unsigned char *out)
{
    const tsr_dtype dtype = layout->dtype;
    const tsr_dtype_class kind = tsr_dtype_get(dtype)->kind;
    if (kind != TSR_CLASS_FLOAT && kind != TSR_CLASS_COMPLEX)
        return integer_value(value, dtype, out);
    const tsr_dtype real = dtype == TSR_C64 ? TSR_F32 : dtype == TSR_C128 ? TSR_F64 : dtype;
    const tsr_device_ops host = tsr_device_resolve(layout->context, tsr_device_host());
    return host.table->convert(host.self, host.index, out, real, &value, TSR_F64, 1, NULL);
}

/* The op of a Partial of which this rank holds the identity; TSR_REDUCE_OP_END: it holds the
 * value. */
static tsr_reduce_op filled_by(const tsr_layout *layout, const int64_t *coordinate)
{
    for (int i = 0; i < layout->mesh_ndim; i++) {
        const tsr_placement *p = &layout->placements[i];
        if (tsr_layout_kind(layout, i) == TSR_PARTIAL && coordinate[i] > 0 && (p->op == TSR_SUM || p->op == TSR_PROD))
            return p->op;
    }
    return TSR_REDUCE_OP_END;
}

static tsr_status check_writable(const char *call, const tsr_dtensor *y, const char *name, tsr_stream stream)
{
    if (!tsr_host_is_meant(y->local.device, stream))
        return tsr_refuse_host(call, y->local.device, stream);
    if (!tsr_tensor_overlaps(&y->local))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: by its strides elements of %s share memory, so that it can only be read", call, name);
}

tsr_status tsr_dtensor_fill(tsr_dtensor *x, double value, tsr_stream stream)
{
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtensor_fill: x is NULL");
    TSR_TRY(check_writable("tsr_dtensor_fill", x, "x", stream));
    const tsr_tensor *local = &x->local;
    tsr_box_fill fill = {.dst = local->data, .element_bytes = x->layout->element_bytes, .ndim = local->ndim};
    TSR_TRY(element_of(x->layout, value, fill.value));
    int64_t coordinate[TSR_MAX_DIMS];
    if (tsr_shape_is_empty(local->ndim, local->shape) ||
        !tsr_mesh_locate(x->layout->mesh, tsr_comm_rank(x->comm), coordinate))
        return TSR_OK;
    const tsr_reduce_op op = filled_by(x->layout, coordinate);
    const tsr_device_ops ops = tsr_device_resolve(x->layout->context, local->device);
    if (op != TSR_REDUCE_OP_END)
        return tsr_device_fill_identity(&ops, local, op, stream);
    memcpy(fill.shape, local->shape, sizeof fill.shape);
    memcpy(fill.dst_strides, local->strides, sizeof fill.dst_strides);
    return ops.table->fill(ops.self, ops.index, &fill, stream);
}

static tsr_status check_dtypes(const tsr_layout *x, const tsr_layout *y)
{
    const tsr_dtype_info *from = tsr_dtype_get(x->dtype), *to = tsr_dtype_get(y->dtype);
    if (!(to->reduce_ops & 1u << TSR_SUM))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "tsr_dtensor_accumulate: %s has no sum", to->name);
    if (from == to || (from->kind == TSR_CLASS_FLOAT && to->kind == TSR_CLASS_FLOAT && from->bytes < to->bytes))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "tsr_dtensor_accumulate: x is of %s, y of %s: x must have y's dtype, or a narrower floating "
                          "one, which is widened exactly",
                          from->name, to->name);
}

static tsr_status check_terms(const tsr_layout *y)
{
    for (int i = 0; i < y->mesh_ndim; i++) {
        const tsr_placement *p = &y->placements[i];
        if (tsr_layout_kind(y, i) == TSR_PARTIAL && p->op != TSR_SUM && p->op != TSR_AVG)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "tsr_dtensor_accumulate: y is P(%s) on mesh dim %d: adding terms does not add what "
                                  "they reduce to; redistribute both to R first",
                                  tsr_reduce_op_name(p->op), i);
    }
    return TSR_OK;
}

static tsr_status check_pair(const tsr_dtensor *x, const tsr_dtensor *y)
{
    char from[512], to[512];
    if (!tsr_layout_alike(x->layout, y->layout) || !tsr_mesh_congruent(x->layout->mesh, y->layout->mesh))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "tsr_dtensor_accumulate: x is %s, y is %s: both must have the same shape, placements and mesh",
            tsr_layout_describe(x->layout, from, sizeof from), tsr_layout_describe(y->layout, to, sizeof to));
    if (!tsr_device_same(x->local.device, y->local.device))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_dtensor_accumulate: x is on device %s, y on %s: both must be on one device",
                              tsr_device_print(x->local.device, from), tsr_device_print(y->local.device, to));
    TSR_TRY(check_dtypes(x->layout, y->layout));
    return check_terms(y->layout);
}

/* The first byte of a tensor and the one behind its last. */
static void find_ends(const tsr_tensor *tensor, uintptr_t *begin, uintptr_t *end)
{
    int64_t last = 0;
    for (int dim = 0; dim < tensor->ndim; dim++)
        last += (tensor->shape[dim] - 1) * tensor->strides[dim];
    *begin = (uintptr_t)tensor->data;
    *end = *begin + (size_t)(last + 1) * tsr_dtype_bytes(tensor->dtype);
}

/* True if tensors of one shape have each element at the same place; the stride of a dim of size 1
 * does not count. */
static bool is_same(const tsr_tensor *x, const tsr_tensor *y)
{
    bool same = x->data == y->data && x->dtype == y->dtype;
    for (int dim = 0; dim < x->ndim; dim++)
        same = same && (x->shape[dim] == 1 || x->strides[dim] == y->strides[dim]);
    return same;
}

/* True if both are the same elements, or tensors of which none is in the other's range. */
static bool is_same_or_apart(const tsr_tensor *x, const tsr_tensor *y)
{
    uintptr_t x_begin, x_end, y_begin, y_end;
    if (is_same(x, y))
        return true;
    find_ends(x, &x_begin, &x_end);
    find_ends(y, &y_begin, &y_end);
    return x_end <= y_begin || y_end <= x_begin;
}

static tsr_status add_tensor(const tsr_device_ops *ops, const tsr_tensor *x, const tsr_tensor *y, tsr_stream stream)
{
    const void *const src[] = {y->data, x->data};
    void *const dst[] = {y->data};
    int64_t src_strides[2][TSR_MAX_DIMS], dst_strides[1][TSR_MAX_DIMS];
    tsr_box_reduce reduce = {.dtype = y->dtype,
                             .op = TSR_SUM,
                             .divisor = 1,
                             .ndim = y->ndim,
                             .src_count = 2,
                             .dst_count = 1,
                             .src = src,
                             .src_strides = (const int64_t(*)[TSR_MAX_DIMS])src_strides,
                             .dst = dst,
                             .dst_strides = (const int64_t(*)[TSR_MAX_DIMS])dst_strides};
    memcpy(reduce.shape, y->shape, sizeof reduce.shape);
    memcpy(src_strides[0], y->strides, sizeof src_strides[0]);
    memcpy(src_strides[1], x->strides, sizeof src_strides[1]);
    memcpy(dst_strides[0], y->strides, sizeof dst_strides[0]);
    return ops->table->reduce(ops->self, ops->index, &reduce, stream);
}

/* Bytes of a contiguous tensor of `count` elements, so that another may follow it. */
static size_t bytes_of(int64_t count, tsr_dtype dtype)
{
    return tsr_round_up((size_t)count * tsr_dtype_bytes(dtype), TSR_LINE);
}

/* A contiguous tensor with the shape and device of `like`. */
static tsr_tensor place_tensor(const tsr_tensor *like, tsr_dtype dtype, void *memory)
{
    tsr_tensor placed = tsr_tensor_contiguous(memory, dtype, like->ndim, like->shape);
    placed.device = like->device;
    return placed;
}

/* Adds `x` to `y`, which has a wider dtype, by way of `wide` and, if x has gaps, `packed`. */
static tsr_status add_by_way(const tsr_device_ops *ops, const tsr_tensor *x, const tsr_tensor *packed,
                             const tsr_tensor *wide, const tsr_tensor *y, tsr_stream stream)
{
    int64_t count;
    TSR_TRY(tsr_tensor_count(x, &count));
    if (packed)
        TSR_TRY(tsr_device_copy_tensor(ops, x, packed, stream));
    TSR_TRY(ops->table->convert(ops->self, ops->index, wide->data, wide->dtype, packed ? packed->data : x->data,
                                x->dtype, count, stream));
    return add_tensor(ops, wide, y, stream);
}

/* Memory for one call on `stream`, in whose order it is freed again. */
static tsr_status take_memory(tsr_context *context, const tsr_device_ops *ops, tsr_device device, size_t bytes,
                              tsr_stream stream, void **out)
{
    if (!device.driver)
        return tsr_device_allocate(context, device, bytes, out);
    return ops->table->alloc(ops->self, ops->index, bytes, stream ? stream : ops->table->default_stream, out);
}

static void give_memory(tsr_context *context, const tsr_device_ops *ops, tsr_device device, void *memory, size_t bytes,
                        tsr_stream stream)
{
    if (device.driver)
        ops->table->free(ops->self, ops->index, memory, bytes, stream ? stream : ops->table->default_stream);
    else
        tsr_device_release(context, device, memory, bytes);
}

static tsr_status add_narrow(tsr_context *context, const tsr_device_ops *ops, const tsr_tensor *x, const tsr_tensor *y,
                             tsr_stream stream)
{
    const bool packs = !tsr_tensor_is_contiguous(x);
    int64_t count;
    TSR_TRY(tsr_tensor_count(x, &count));
    const size_t front = bytes_of(count, y->dtype), bytes = front + (packs ? bytes_of(count, x->dtype) : 0);
    void *memory;
    TSR_TRY(take_memory(context, ops, y->device, bytes, stream, &memory));
    const tsr_tensor wide = place_tensor(y, y->dtype, memory),
                     packed = place_tensor(x, x->dtype, (char *)memory + front);
    const tsr_status status = add_by_way(ops, x, packs ? &packed : NULL, &wide, y, stream);
    give_memory(context, ops, y->device, memory, bytes, stream);
    return status;
}

tsr_status tsr_dtensor_accumulate(const tsr_dtensor *x, tsr_dtensor *y, tsr_stream stream)
{
    if (!x || !y)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtensor_accumulate: %s is NULL", !x ? "x" : "y");
    TSR_TRY(check_pair(x, y));
    TSR_TRY(check_writable("tsr_dtensor_accumulate", y, "y", stream));
    if (tsr_shape_is_empty(y->local.ndim, y->local.shape))
        return TSR_OK;
    if (!is_same_or_apart(&x->local, &y->local))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "tsr_dtensor_accumulate: x and y overlap, each from its first element to its last: they may be "
            "the same elements, or lie one behind the other");
    const tsr_device_ops ops = tsr_device_resolve(y->layout->context, y->local.device);
    if (x->layout->dtype == y->layout->dtype)
        return add_tensor(&ops, &x->local, &y->local, stream);
    return add_narrow(y->layout->context, &ops, &x->local, &y->local, stream);
}
