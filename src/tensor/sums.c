/* Sums over all elements of a dtensor: exact, so that they do not depend on layouts and ranks. */
#include "comm/core/agree.h"
#include "comm/core/comm.h"
#include "device/allocation.h"
#include "mesh/mesh.h"
#include "placement/layout.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "tensor/dtensor.h"
#include "tensor/exact.h"
#include "tensor/replicas.h"

#include <tessera/sys/status.h>
#include <tessera/values.h>

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(tsr_exact) == TSR_EXACT_WORDS * sizeof(int64_t), "a sum is int64_t alone, which ranks add up");

/* Real numbers that are converted to f64 at a time. */
enum { PIECE = TSR_EXACT_PIECE };

/* One rank's part of a sum: its share of its shard, contiguous, as real numbers. */
typedef struct part {
    tsr_context *context;
    tsr_device device;
    tsr_dtype dtype; /* of the real numbers */
    size_t bytes;    /* of a real number */
    bool squares;
    const char *data; /* on the device */
    int64_t count;
    tsr_exact *sum;
    tsr_exact_bins *bins; /* for narrow dtypes; NULL: there are too few numbers for it to pay, or the dtype is f64 */
} part;

static int64_t signed_at(const void *data, size_t bytes, int64_t i)
{
    switch (bytes) {
    case 1:
        return ((const int8_t *)data)[i];
    case 2:
        return ((const int16_t *)data)[i];
    case 4:
        return ((const int32_t *)data)[i];
    default:
        return ((const int64_t *)data)[i];
    }
}

static uint64_t unsigned_at(const void *data, size_t bytes, int64_t i)
{
    switch (bytes) {
    case 1:
        return ((const uint8_t *)data)[i];
    case 2:
        return ((const uint16_t *)data)[i];
    case 4:
        return ((const uint32_t *)data)[i];
    default:
        return ((const uint64_t *)data)[i];
    }
}

static void add_integers(const part *p, const void *data, int64_t count)
{
    const bool is_signed = tsr_dtype_get(p->dtype)->kind == TSR_CLASS_SIGNED;
    for (int64_t i = 0; i < count; i++) {
        const int64_t value = is_signed ? signed_at(data, p->bytes, i) : 0;
        const uint64_t magnitude = !is_signed  ? unsigned_at(data, p->bytes, i)
                                   : value < 0 ? 0 - (uint64_t)value
                                               : (uint64_t)value;
        tsr_exact_add_integer(p->sum, magnitude, value < 0, p->squares);
    }
}

/* Adds numbers in host memory. */
static tsr_status add_piece(const part *p, const void *data, int64_t count)
{
    double values[PIECE];
    if (tsr_dtype_get(p->dtype)->kind != TSR_CLASS_FLOAT) {
        add_integers(p, data, count);
        return TSR_OK;
    }
    const tsr_device_ops host = tsr_device_resolve(p->context, tsr_device_host());
    TSR_TRY(host.table->convert(host.self, host.index, values, TSR_F64, data, p->dtype, count, NULL));
    if (p->bins)
        tsr_exact_add_narrow(p->sum, p->bins, values, count, p->squares);
    else
        tsr_exact_add_doubles(p->sum, values, count, p->squares);
    return TSR_OK;
}

static tsr_status fetch_piece(const part *p, const void *data, int64_t count, void *stage)
{
    const tsr_device_ops ops = tsr_device_resolve(p->context, p->device);
    const tsr_status status =
        ops.table->copy(ops.self, ops.index, stage, data, (size_t)count * p->bytes, TSR_COPY_TO_HOST, NULL);
    return tsr_device_settle(&ops, NULL, status);
}

static tsr_status add_pieces(const part *p)
{
    _Alignas(16) char stage[PIECE * sizeof(double)];
    for (int64_t at = 0; at < p->count; at += PIECE) {
        const int64_t count = p->count - at < PIECE ? p->count - at : PIECE;
        const void *data = p->data + (size_t)at * p->bytes;
        if (p->device.driver)
            TSR_TRY(fetch_piece(p, data, count, stage));
        TSR_TRY(add_piece(p, p->device.driver ? stage : data, count));
    }
    return TSR_OK;
}

static tsr_status add_binned(part *p)
{
    tsr_exact_bins bins = {0};
    p->bins = &bins;
    TSR_TRY(add_pieces(p));
    tsr_exact_empty_bins(p->sum, &bins);
    return TSR_OK;
}

static tsr_status add_part(part *p)
{
    const bool narrow = tsr_dtype_get(p->dtype)->kind == TSR_CLASS_FLOAT && p->bytes < sizeof(double);
    return narrow && p->count > PIECE ? add_binned(p) : add_pieces(p);
}

/* Adds this rank's share of its local tensor, which has `count` elements. */
static tsr_status add_local(const tsr_dtensor *x, const int64_t *coordinate, int64_t count, bool squares,
                            tsr_exact *sum)
{
    const tsr_tensor *local = &x->local;
    const tsr_device_ops ops = tsr_device_resolve(x->layout->context, local->device);
    const size_t bytes = tsr_tensor_is_contiguous(local) ? 0 : (size_t)count * x->layout->element_bytes;
    void *packed;
    TSR_TRY(tsr_device_allocate(x->layout->context, local->device, bytes, &packed));
    const tsr_tensor to = tsr_tensor_contiguous(packed, local->dtype, local->ndim, local->shape);
    tsr_status status = packed ? tsr_device_copy_tensor(&ops, local, &to, NULL) : TSR_OK;
    int64_t begin, end;
    tsr_replica_share(tsr_replica_at(x->layout, coordinate), count, &begin, &end);
    const int64_t halves = tsr_dtype_get(local->dtype)->kind == TSR_CLASS_COMPLEX ? 2 : 1;
    const tsr_dtype real = local->dtype == TSR_C64 ? TSR_F32 : local->dtype == TSR_C128 ? TSR_F64 : local->dtype;
    part share = {.context = x->layout->context,
                  .device = local->device,
                  .dtype = real,
                  .bytes = tsr_dtype_bytes(real),
                  .squares = squares,
                  .data = (const char *)(packed ? packed : local->data) + (size_t)begin * x->layout->element_bytes,
                  .count = (end - begin) * halves,
                  .sum = sum};
    if (status == TSR_OK)
        status = add_part(&share);
    tsr_device_release(x->layout->context, local->device, packed, bytes);
    return status;
}

static tsr_status sum_local(const tsr_dtensor *x, bool squares, tsr_exact *sum)
{
    int64_t coordinate[TSR_MAX_DIMS], count;
    TSR_TRY(tsr_tensor_count(&x->local, &count));
    if (count > 0 && tsr_mesh_locate(x->layout->mesh, tsr_comm_rank(x->comm), coordinate))
        TSR_TRY(add_local(x, coordinate, count, squares, sum));
    tsr_exact_carry(sum);
    return TSR_OK;
}

/* Adds up the ranks' sums, in memory of the tensor's device, `memory` if that is not the host. */
static tsr_status add_ranks(const tsr_dtensor *x, tsr_exact *sum, void *memory)
{
    const tsr_device device = x->local.device;
    const tsr_device_ops ops = tsr_device_resolve(x->layout->context, device);
    if (!memory)
        return tsr_comm_all_reduce(x->comm, sum, sum, TSR_EXACT_WORDS, TSR_I64, TSR_SUM, device, NULL);
    TSR_TRY(ops.table->copy(ops.self, ops.index, memory, sum, sizeof *sum, TSR_COPY_FROM_HOST, NULL));
    tsr_status status = tsr_comm_all_reduce(x->comm, memory, memory, TSR_EXACT_WORDS, TSR_I64, TSR_SUM, device, NULL);
    if (status == TSR_OK)
        status = ops.table->copy(ops.self, ops.index, sum, memory, sizeof *sum, TSR_COPY_TO_HOST, NULL);
    return tsr_device_settle(&ops, NULL, status);
}

static tsr_status check_summable(const char *call, const tsr_dtensor *x, bool squares, const void *out)
{
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, squares ? "norm" : "sum");
    if (!squares && tsr_dtype_get(x->layout->dtype)->kind == TSR_CLASS_COMPLEX)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: x is of %s: only real dtypes have a sum here", call,
                              tsr_dtype_name(x->layout->dtype));
    char text[512];
    for (int i = 0; i < x->layout->mesh_ndim; i++)
        if (tsr_layout_kind(x->layout, i) == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "%s: x is %s: its elements are known once the Partial of mesh dim %d is reduced, for "
                                  "instance by tsr_redistribute_to() with R there",
                                  call, tsr_layout_describe(x->layout, text, sizeof text), i);
    return TSR_OK;
}

typedef struct described {
    const char *call;
    const tsr_layout *layout;
} described;

static void describe_sum(const void *arg, char *text, size_t capacity)
{
    const described *d = arg;
    char layout[512];
    snprintf(text, capacity, "%s of %s", d->call, tsr_layout_describe(d->layout, layout, sizeof layout));
}

/* Collective: compares the ranks' calls. `status` is this rank's status so far. */
static tsr_status agree_on_sum(const char *call, const tsr_dtensor *x, bool squares, tsr_status status)
{
    const described words = {call, x->layout};
    TSR_TRY(tsr_comm_enter(x->comm, call));
    return tsr_comm_leave(x->comm, tsr_comm_agree(x->comm, x->layout->hash + squares, status, describe_sum, &words));
}

/* `status` is this rank's status so far; after a failure it still tells its peers. */
static tsr_status sum_together(const char *call, const tsr_dtensor *x, bool squares, tsr_status status, double *out)
{
    tsr_exact sum = {0};
    void *memory = NULL;
    const size_t bytes = x->local.device.driver ? sizeof sum : 0;
    if (status == TSR_OK)
        status = sum_local(x, squares, &sum);
    if (status == TSR_OK)
        status = tsr_device_allocate(x->layout->context, x->local.device, bytes, &memory);
    status = agree_on_sum(call, x, squares, status);
    if (status == TSR_OK)
        status = add_ranks(x, &sum, memory);
    tsr_device_release(x->layout->context, x->local.device, memory, bytes);
    if (status == TSR_OK)
        *out = squares ? tsr_exact_root(&sum) : tsr_exact_round(&sum);
    return status;
}

static tsr_status sum_elements(const char *call, const tsr_dtensor *x, bool squares, double *out)
{
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: x is NULL", call);
    TSR_TRY(tsr_comm_hold(x->comm, call));
    const tsr_status fault = check_summable(call, x, squares, out);
    return tsr_comm_let_go(x->comm, sum_together(call, x, squares, fault, out));
}

tsr_status tsr_dtensor_sum(const tsr_dtensor *x, double *sum)
{
    return sum_elements("tsr_dtensor_sum", x, false, sum);
}

tsr_status tsr_dtensor_norm(const tsr_dtensor *x, double *norm)
{
    return sum_elements("tsr_dtensor_norm", x, true, norm);
}
