#include "tensor/rows/batch/row_batch.h"

#include "tensor/rows/batch/row_plain.h"

#include <tessera/sys/ops.h>
#include <tessera/sys/status.h>

void tsr_row_batch_begin(tsr_row_batch *batch, const tsr_context *context, tsr_device device, tsr_row_rooms *rooms)
{
    *batch = (tsr_row_batch){.device = device, .ops = tsr_device_resolve(context, device), .rooms = rooms};
}

static void clear(tsr_row_batch *batch)
{
    batch->target_count = batch->source_count = 0;
    batch->bits = 0;
}

tsr_status tsr_row_batch_reserve(tsr_row_batch *batch, int64_t count, int64_t length)
{
    const size_t wanted = (size_t)count > batch->capacity ? (size_t)count : batch->capacity;
    const size_t words = 3 * sizeof(int64_t);
    void *memory;
    if (wanted > SIZE_MAX / words - 1)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for lists of %zu rows", wanted);
    TSR_TRY(tsr_row_room_take(batch->rooms, TSR_ROOM_DEVICE_LISTS, wanted + 1, words, &memory));
    TSR_TRY(tsr_row_plain_reserve(batch, length));
    TSR_TRY(tsr_row_room_take(batch->rooms, TSR_ROOM_LISTS, wanted + 1, words, &memory));
    batch->capacity = wanted;
    batch->targets = memory;
    batch->starts = batch->targets + wanted;
    batch->sources = batch->starts + wanted + 1;
    clear(batch);
    return TSR_OK;
}

void tsr_row_batch_set(tsr_row_batch *batch, const tsr_row_work *work)
{
    batch->work = *work;
}

void tsr_row_batch_add_target(tsr_row_batch *batch, char *to)
{
    batch->bits |= (uintptr_t)to;
    batch->starts[batch->target_count] = (int64_t)batch->source_count;
    batch->targets[batch->target_count++] = (int64_t)(uintptr_t)to;
}

void tsr_row_batch_add_source(tsr_row_batch *batch, const char *from)
{
    batch->bits |= (uintptr_t)from;
    batch->sources[batch->source_count++] = (int64_t)(uintptr_t)from;
}

tsr_status tsr_row_batch_copy(tsr_row_batch *batch, tsr_dtype dtype, int64_t length, char *to, const char *from)
{
    const tsr_row_work *const work = &batch->work;
    if (length == 0)
        return TSR_OK;
    if (work->op != TSR_ROWS_ASSIGN || work->length != length || work->dtype != dtype ||
        batch->source_count == batch->capacity) {
        TSR_TRY(tsr_row_batch_finish(batch));
        tsr_row_batch_set(batch, &(tsr_row_work){.op = TSR_ROWS_ASSIGN, .dtype = dtype, .length = length});
    }
    tsr_row_batch_add_target(batch, to);
    tsr_row_batch_add_source(batch, from);
    return TSR_OK;
}

/* The widest elements in which all rows can be copied. */
static void widen_copies(const tsr_row_batch *batch, tsr_dtype *dtype, int64_t *length)
{
    static const tsr_dtype dtypes[] = {TSR_U8, TSR_U16, TSR_U32, TSR_U64, TSR_C128};
    int log = 0;
    const size_t bytes = (size_t)*length * tsr_dtype_bytes(*dtype), bits = batch->bits | bytes;
    while (log < 4 && bits % ((size_t)2 << log) == 0)
        log++;
    *dtype = dtypes[log];
    *length = (int64_t)(bytes >> log);
}

/* The device's copy of a list; which is `from` on the host. */
static tsr_tensor on_device(const tsr_row_batch *batch, const int64_t *from, size_t count)
{
    const int64_t shape[] = {(int64_t)count};
    int64_t *const lists = batch->rooms->memory[TSR_ROOM_DEVICE_LISTS];
    tsr_tensor list = tsr_tensor_contiguous(lists + (from - batch->targets), TSR_I64, 1, shape);
    list.device = batch->device;
    return list;
}

/* A call of the device's kernel, for a list. */
typedef struct row_launch {
    tsr_kernel_call call;
    tsr_attribute attributes[2];
    tsr_tensor lists[3], rows;
    const tsr_layout *none[3];
    int64_t query;
} row_launch;

static void describe_launch(const tsr_row_batch *batch, row_launch *out)
{
    static const char *const names[TSR_ROWS_OP_END] = {[TSR_ROWS_ASSIGN] = "rows_assign",
                                                       [TSR_ROWS_ADD] = "rows_add",
                                                       [TSR_ROWS_MEAN] = "rows_mean",
                                                       [TSR_ROWS_MAX] = "rows_max"};
    tsr_dtype dtype = batch->work.dtype;
    int64_t shape[] = {(int64_t)batch->target_count, batch->work.length};
    if (batch->work.op == TSR_ROWS_ASSIGN)
        widen_copies(batch, &dtype, &shape[1]);
    *out = (row_launch){.attributes = {{.name = "keeps", .kind = TSR_ATTRIBUTE_INT, .integer = batch->work.keeps}},
                        .lists = {on_device(batch, batch->targets, batch->target_count),
                                  on_device(batch, batch->starts, batch->target_count + 1),
                                  on_device(batch, batch->sources, batch->source_count)},
                        .rows = tsr_tensor_contiguous(NULL, dtype, 2, shape)};
    out->rows.device = batch->device;
    out->call = (tsr_kernel_call){.op = names[batch->work.op],
                                  .attributes = out->attributes,
                                  .input_count = 3,
                                  .output_count = 1,
                                  .inputs = out->lists,
                                  .outputs = &out->rows,
                                  .layouts = out->none,
                                  .result_layouts = out->none,
                                  .stage = TSR_STAGE_WHOLE,
                                  .query = &out->query};
}

/* True if the device has a kernel for the list. */
static bool has_kernel(const tsr_row_batch *batch, const row_launch *launch)
{
    const bool aligned = batch->bits % tsr_dtype_bytes(launch->rows.dtype) == 0;
    tsr_kept_sentence kept;
    if (!batch->ops.table->launch || !aligned)
        return false;
    tsr_status_keep(&kept);
    if (batch->ops.table->launch(batch->ops.self, batch->ops.index, &launch->call, NULL) == TSR_OK &&
        launch->query == 0)
        return true;
    (void)tsr_status_restore(&kept, TSR_OK);
    return false;
}

static tsr_status upload(const tsr_row_batch *batch, const tsr_tensor *to, const int64_t *from)
{
    return batch->ops.table->copy(batch->ops.self, batch->ops.index, to->data, from,
                                  (size_t)to->shape[0] * sizeof *from, TSR_COPY_FROM_HOST, NULL);
}

static tsr_status launch_list(const tsr_row_batch *batch, row_launch *launch)
{
    TSR_TRY(upload(batch, &launch->lists[0], batch->targets));
    TSR_TRY(upload(batch, &launch->lists[1], batch->starts));
    TSR_TRY(upload(batch, &launch->lists[2], batch->sources));
    launch->call.query = NULL;
    return batch->ops.table->launch(batch->ops.self, batch->ops.index, &launch->call, NULL);
}

static tsr_status run_list(const tsr_row_batch *batch)
{
    row_launch launch;
    batch->starts[batch->target_count] = (int64_t)batch->source_count;
    describe_launch(batch, &launch);
    return has_kernel(batch, &launch) ? launch_list(batch, &launch) : tsr_row_plain_run(batch);
}

tsr_status tsr_row_batch_finish(tsr_row_batch *batch)
{
    if (batch->target_count == 0)
        return TSR_OK;
    const tsr_status status = tsr_row_rooms_settle(&batch->ops, run_list(batch));
    clear(batch);
    return status;
}
