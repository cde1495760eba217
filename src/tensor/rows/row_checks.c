#include "tensor/rows/row_checks.h"

#include "base/checked.h"
#include "device/device.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "tensor/rows/row_ids.h"

#include <tessera/sys/status.h>

#include <stdio.h>

/* True if the elements of each row are contiguous. */
static bool rows_are_dense(const tsr_tensor *tensor)
{
    int64_t expected = 1;
    for (int dim = tensor->ndim - 1; dim > 0; dim--) {
        if (tensor->shape[dim] != 1 && tensor->strides[dim] != expected)
            return false;
        expected *= tensor->shape[dim];
    }
    return true;
}

static int64_t row_elements(const tsr_tensor *tensor)
{
    int64_t elements = 1;
    for (int dim = 1; dim < tensor->ndim; dim++)
        elements *= tensor->shape[dim];
    return elements;
}

static tsr_status check_dense(const char *call, const char *name, const tsr_tensor *tensor, bool written)
{
    if (tsr_shape_is_empty(tensor->ndim, tensor->shape))
        return TSR_OK;
    if (!rows_are_dense(tensor))
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "%s: %s has gaps within its rows: each row must be contiguous, and between rows there may be "
            "gaps",
            call, name);
    if (tensor->strides[0] < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has stride %lld: strides are 0 or more", call, name,
                              (long long)tensor->strides[0]);
    if (written && tensor->shape[0] > 1 && tensor->strides[0] < row_elements(tensor))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: %s is written, but its rows share memory: they are %lld elements long, %lld apart",
                              call, name, (long long)row_elements(tensor), (long long)tensor->strides[0]);
    return TSR_OK;
}

static tsr_status check_device(const char *call, const char *name, const tsr_dtensor *table, const tsr_tensor *tensor,
                               bool may_be_on_host)
{
    const tsr_device wanted = table->local.device;
    char own[64], theirs[64];
    if (!tsr_host_is_meant(tensor->device, NULL))
        return tsr_refuse_host(name, tensor->device, NULL);
    if (tsr_device_same(tensor->device, wanted) || (may_be_on_host && !tensor->device.driver))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is on %s, but the table is on %s: %s", call, name,
                          tsr_device_print(tensor->device, theirs), tsr_device_print(wanted, own),
                          !may_be_on_host ? "rows are where the table is"
                          : wanted.driver ? "ids are there or on the host"
                                          : "ids are on the host, too");
}

tsr_status tsr_row_check_devices(const char *call, size_t count, tsr_dtensor *const *tables)
{
    char first[64], other[64];
    for (size_t i = 1; i < count; i++)
        if (!tsr_device_same(tables[0]->local.device, tables[i]->local.device))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: tables[%zu] is on %s, but tables[0] is on %s: tables that share an exchange are "
                                  "on one device",
                                  call, i, tsr_device_print(tables[i]->local.device, other),
                                  tsr_device_print(tables[0]->local.device, first));
    return TSR_OK;
}

tsr_status tsr_row_check_table(const char *call, const char *name, const tsr_dtensor *table, bool written)
{
    const tsr_layout *const layout = table->layout;
    char text[512];
    if (layout->ndim == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is a scalar, which has no rows", call, name);
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (tsr_layout_kind(layout, i) == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "%s: %s is %s: mesh dim %d holds terms, not rows; redistribute it to R or S first",
                                  call, name, tsr_layout_describe(layout, text, sizeof text), i);
    return check_dense(call, name, &table->local, written);
}

static tsr_status check_shape(const char *call, const char *name, const tsr_layout *layout, int64_t count,
                              const tsr_tensor *data)
{
    int64_t wanted[TSR_MAX_DIMS] = {count}, elements;
    char have[TSR_SHAPE_TEXT], want[TSR_SHAPE_TEXT];
    const tsr_status status = tsr_tensor_count(data, &elements);
    if (status != TSR_OK)
        return tsr_status_set(status, "%s: %s: %s", call, name, tsr_status_message());
    bool same = data->ndim == layout->ndim && data->shape[0] == count;
    for (int dim = 1; dim < layout->ndim; dim++) {
        wanted[dim] = layout->shape[dim];
        same = same && data->shape[dim] == wanted[dim];
    }
    if (!same)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has shape %s: %lld ids of this table have rows of shape %s",
                              call, name, tsr_shape_print(data->ndim, data->shape, have), (long long)count,
                              tsr_shape_print(layout->ndim, wanted, want));
    if (elements > 0 && !data->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has no data, but %lld elements", call, name,
                              (long long)elements);
    return TSR_OK;
}

static tsr_status check_data(const char *call, const char *name, const tsr_dtensor *table, int64_t count,
                             const tsr_tensor *data, bool written)
{
    const tsr_layout *const layout = table->layout;
    if (!data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
    TSR_TRY(check_device(call, name, table, data, false));
    if (data->dtype != layout->dtype)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is of %s, but the table is of %s", call, name,
                              tsr_dtype_name(data->dtype), tsr_dtype_name(layout->dtype));
    TSR_TRY(check_shape(call, name, layout, count, data));
    return check_dense(call, name, data, written);
}

/* Bytes from the first element of rows to behind the last. */
static size_t span_of(const tsr_tensor *rows)
{
    if (tsr_shape_is_empty(rows->ndim, rows->shape))
        return 0;
    return (size_t)((rows->shape[0] - 1) * rows->strides[0] + row_elements(rows)) * tsr_dtype_bytes(rows->dtype);
}

static size_t stride_of(const tsr_tensor *rows)
{
    return (size_t)rows->strides[0] * tsr_dtype_bytes(rows->dtype);
}

tsr_status tsr_row_check_operands(const char *call, const tsr_dtensor *table, bool written, int64_t capacity,
                                  const tsr_tensor *ids, const tsr_tensor *data, tsr_row_request *out)
{
    const tsr_layout *const layout = table->layout;
    const char *const data_name = written ? "out" : "rows";
    int64_t id = 0;
    TSR_TRY(tsr_row_ids_check(call, "ids", ids));
    TSR_TRY(check_device(call, "ids", table, ids, true));
    if (ids->shape[0] > capacity)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: ids has %lld elements, but the plan is for %lld", call,
                              (long long)ids->shape[0], (long long)capacity);
    if (ids->device.driver) {
        TSR_TRY(tsr_row_ids_bring(ids, out->rooms, &out->brought));
        ids = &out->brought;
    }
    const int64_t at = tsr_row_ids_find_outside(ids, layout->shape[0], &id);
    if (at >= 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: ids of rank %d at position %lld is %lld: there are %lld rows, counted from 0", call,
                              tsr_comm_rank(table->comm), (long long)at, (long long)id, (long long)layout->shape[0]);
    TSR_TRY(check_data(call, data_name, table, ids->shape[0], data, written));
    out->local = table->local.data;
    out->local_stride = stride_of(&table->local);
    out->local_bytes = span_of(&table->local);
    out->ids = ids;
    out->count = ids->shape[0];
    out->data = data->data;
    out->stride = stride_of(data);
    return TSR_OK;
}

/* The memory of a tensor's rows: `count` runs of `length` bytes. */
typedef struct runs {
    uintptr_t begin;
    size_t count, length, stride;
} runs;

static runs runs_of(const tsr_tensor *rows)
{
    if (tsr_shape_is_empty(rows->ndim, rows->shape))
        return (runs){.count = 0};
    return (runs){.begin = (uintptr_t)rows->data,
                  .count = (size_t)rows->shape[0],
                  .length = (size_t)row_elements(rows) * tsr_dtype_bytes(rows->dtype),
                  .stride = stride_of(rows)};
}

static uintptr_t end_of(const runs *r)
{
    return r->begin + (r->count - 1) * r->stride + r->length;
}

/* True if no byte is in both tensors, as far as their ends and, if these overlap, equal strides
 * tell: as of ids and rows that lie side by side in records. */
static bool are_apart(const tsr_tensor *one, const tsr_tensor *other)
{
    const runs a = runs_of(one), b = runs_of(other);
    if (a.count == 0 || b.count == 0 || !tsr_device_same(one->device, other->device) || end_of(&a) <= b.begin ||
        end_of(&b) <= a.begin)
        return true;
    if (a.stride != b.stride || a.stride == 0)
        return false;
    const size_t behind =
        a.begin <= b.begin ? (b.begin - a.begin) % a.stride : (a.stride - (a.begin - b.begin) % a.stride) % a.stride;
    return behind >= a.length && behind + b.length <= a.stride;
}

/* `name` in a call of one table, "out[1]" in one of several. */
static const char *name_operand(const char *name, size_t count, size_t i, char text[32])
{
    if (count > 1)
        snprintf(text, 32, "%s[%zu]", name, i);
    return count > 1 ? text : name;
}

tsr_status tsr_row_check_apart(const char *call, bool gathers, size_t count, tsr_dtensor *const *tables,
                               const tsr_tensor *ids, const tsr_tensor *data)
{
    const char *const name = gathers ? "out" : "rows";
    char own[32], text[32];
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            const char *other = NULL;
            if (!are_apart(&data[i], &tables[k]->local))
                other = count > 1 ? "tables" : "the table";
            else if (gathers && !are_apart(&data[i], &ids[k]))
                other = "ids";
            if (other)
                return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s overlaps %s", call, name_operand(name, count, i, own),
                                      name_operand(other, count, k, text));
        }
    return TSR_OK;
}
