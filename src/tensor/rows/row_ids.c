#include "tensor/rows/row_ids.h"

#include "base/checked.h"
#include "device/device.h"

#include <tessera/sys/status.h>

tsr_status tsr_row_ids_check(const char *call, const char *name, const tsr_tensor *ids)
{
    int64_t count;
    if (!ids)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
    if (ids->dtype != TSR_I32 && ids->dtype != TSR_I64)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is of %s: i32 and i64 are fine", call, name,
                              tsr_dtype_name(ids->dtype));
    if (ids->ndim != 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims: it must have one", call, name, ids->ndim);
    const tsr_status status = tsr_tensor_count(ids, &count);
    if (status != TSR_OK)
        return tsr_status_set(status, "%s: %s: %s", call, name, tsr_status_message());
    if (ids->strides[0] < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has stride %lld: strides are 0 or more", call, name,
                              (long long)ids->strides[0]);
    if (count > 0 && !ids->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has no data, but %lld elements", call, name,
                              (long long)count);
    return TSR_OK;
}

/* Where the ids are without gaps: there, or in a room to which they are copied. */
static tsr_status pack_ids(const tsr_tensor *ids, const tsr_device_ops *ops, tsr_row_rooms *rooms, size_t bytes,
                           const void **out)
{
    void *packed;
    *out = ids->data;
    if (ids->strides[0] == 1 || ids->shape[0] < 2)
        return TSR_OK;
    TSR_TRY(tsr_row_room_take(rooms, TSR_ROOM_DEVICE_IDS, bytes, 1, &packed));
    *out = packed;
    const tsr_tensor to = tsr_tensor_contiguous(packed, ids->dtype, 1, ids->shape);
    return tsr_device_copy_tensor(ops, ids, &to, NULL);
}

tsr_status tsr_row_ids_bring(const tsr_tensor *ids, tsr_row_rooms *rooms, tsr_tensor *out)
{
    const tsr_device_ops ops = tsr_device_resolve(rooms->context, ids->device);
    const size_t bytes = (size_t)ids->shape[0] * tsr_dtype_bytes(ids->dtype);
    const void *from = NULL;
    void *memory;
    TSR_TRY(tsr_row_room_take(rooms, TSR_ROOM_IDS, bytes, 1, &memory));
    if (bytes > 0) {
        TSR_TRY(pack_ids(ids, &ops, rooms, bytes, &from));
        const tsr_status copied = ops.table->copy(ops.self, ops.index, memory, from, bytes, TSR_COPY_TO_HOST, NULL);
        TSR_TRY(tsr_row_rooms_settle(&ops, copied));
    }
    *out = tsr_tensor_contiguous(memory, ids->dtype, 1, ids->shape);
    return TSR_OK;
}

void tsr_row_ids_read(const tsr_tensor *ids, int64_t first, int64_t count, int64_t *out)
{
    const int64_t stride = ids->strides[0];
    const int64_t *const wide = ids->data;
    const int32_t *const narrow = ids->data;
    for (int64_t i = 0; i < count && ids->dtype == TSR_I64; i++)
        out[i] = wide[(first + i) * stride];
    for (int64_t i = 0; i < count && ids->dtype == TSR_I32; i++)
        out[i] = narrow[(first + i) * stride];
}

int64_t tsr_row_ids_find_outside(const tsr_tensor *ids, int64_t end, int64_t *id)
{
    int64_t block[TSR_ROW_BLOCK];
    for (int64_t first = 0; first < ids->shape[0]; first += TSR_ROW_BLOCK) {
        const int64_t count = tsr_min_i64(TSR_ROW_BLOCK, ids->shape[0] - first);
        bool fits = true;
        tsr_row_ids_read(ids, first, count, block);
        for (int64_t i = 0; i < count; i++)
            fits &= (uint64_t)block[i] < (uint64_t)end;
        for (int64_t i = 0; i < count && !fits; i++) {
            *id = block[i];
            if ((uint64_t)block[i] >= (uint64_t)end)
                return first + i;
        }
    }
    return -1;
}
