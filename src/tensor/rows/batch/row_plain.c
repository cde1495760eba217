/* A copy of rows is a copy of boxes. A sum is a reduction whose last term is the row itself, so
 * that it is rounded once; sums that are divided, or have many terms, go by an accumulator. */
#include "tensor/rows/batch/row_plain.h"

#include "base/checked.h"

#include <tessera/sys/status.h>

/* Boxes of one copy, and terms of one reduction. */
#define TOGETHER 32

static tsr_dtype accumulator_of(tsr_dtype dtype)
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    return info->kind == TSR_CLASS_FLOAT && info->bytes < 4 ? TSR_F32 : dtype;
}

tsr_status tsr_row_plain_reserve(const tsr_row_batch *batch, int64_t length)
{
    void *memory;
    /* Two accumulators, of 16 bytes an element at most. */
    return tsr_row_room_take(batch->rooms, TSR_ROOM_DEVICE_SUM, 2 * (size_t)length, 16, &memory);
}

static char *target(const tsr_row_batch *batch, size_t t)
{
    return (char *)(uintptr_t)batch->targets[t];
}

static const char *source(const tsr_row_batch *batch, int64_t s)
{
    return (const char *)(uintptr_t)batch->sources[s];
}

static tsr_status copy_rows(const tsr_row_batch *batch)
{
    tsr_box_copy boxes[TOGETHER];
    size_t count = 0;
    for (size_t t = 0; t < batch->target_count; t++) {
        boxes[count++] = (tsr_box_copy){.dst = target(batch, t),
                                        .src = source(batch, (int64_t)t),
                                        .element_bytes = tsr_dtype_bytes(batch->work.dtype),
                                        .ndim = 1,
                                        .shape = {batch->work.length},
                                        .dst_strides = {1},
                                        .src_strides = {1}};
        if (count < TOGETHER && t + 1 < batch->target_count)
            continue;
        TSR_TRY(batch->ops.table->copy_boxes(batch->ops.self, batch->ops.index, boxes, count, NULL));
        count = 0;
    }
    return TSR_OK;
}

/* Terms of a reduction; there are at most TOGETHER. */
typedef struct term_list {
    const void *at[TOGETHER];
    int count;
} term_list;

/* `to` becomes the sum, or the largest, of the terms, divided by `divisor`. */
static tsr_status reduce(const tsr_row_batch *batch, tsr_dtype dtype, const term_list *terms, int64_t divisor, void *to)
{
    int64_t ones[TOGETHER][TSR_MAX_DIMS];
    for (int i = 0; i < terms->count; i++)
        ones[i][0] = 1;
    void *const dst[] = {to};
    const tsr_box_reduce given = {.dtype = dtype,
                                  .op = batch->work.op == TSR_ROWS_MAX ? TSR_MAX
                                        : divisor > 1                  ? TSR_AVG
                                                                       : TSR_SUM,
                                  .divisor = divisor,
                                  .ndim = 1,
                                  .shape = {batch->work.length},
                                  .src_count = terms->count,
                                  .dst_count = 1,
                                  .src = terms->at,
                                  .src_strides = (const int64_t(*)[TSR_MAX_DIMS])ones,
                                  .dst = dst,
                                  .dst_strides = (const int64_t(*)[TSR_MAX_DIMS])ones};
    return batch->ops.table->reduce(batch->ops.self, batch->ops.index, &given, NULL);
}

static tsr_status convert(const tsr_row_batch *batch, void *to, tsr_dtype to_dtype, const void *from,
                          tsr_dtype from_dtype)
{
    return batch->ops.table->convert(batch->ops.self, batch->ops.index, to, to_dtype, from, from_dtype,
                                     batch->work.length, NULL);
}

/* The sources of row `t` in one reduction, and the row itself as the last term. */
static tsr_status reduce_at_once(const tsr_row_batch *batch, size_t t)
{
    term_list terms = {.count = 0};
    for (int64_t s = batch->starts[t]; s < batch->starts[t + 1]; s++)
        terms.at[terms.count++] = source(batch, s);
    if (batch->work.keeps)
        terms.at[terms.count++] = target(batch, t);
    return reduce(batch, batch->work.dtype, &terms, 1, target(batch, t));
}

/* The sources of row `t`, some at a time, which gives the same bits for integers and maxima. */
static tsr_status reduce_by_turns(const tsr_row_batch *batch, size_t t)
{
    bool begun = batch->work.keeps;
    term_list terms = {.count = 0};
    for (int64_t s = batch->starts[t]; s < batch->starts[t + 1];) {
        terms.count = 0;
        if (begun)
            terms.at[terms.count++] = target(batch, t);
        while (s < batch->starts[t + 1] && terms.count < TOGETHER)
            terms.at[terms.count++] = source(batch, s++);
        TSR_TRY(reduce(batch, batch->work.dtype, &terms, 1, target(batch, t)));
        begun = true;
    }
    return TSR_OK;
}

/* A row as accumulators, which are converted to `room` unless rows have them. */
static tsr_status widen(const tsr_row_batch *batch, const void *row, char *room, const void **out)
{
    const tsr_dtype dtype = batch->work.dtype, wide = accumulator_of(dtype);
    *out = wide == dtype ? row : room;
    return wide == dtype ? TSR_OK : convert(batch, room, wide, row, dtype);
}

/* A sum of floats of two sources or more, which is added to the row. */
static tsr_status sum_widely(const tsr_row_batch *batch, size_t t)
{
    const tsr_dtype dtype = batch->work.dtype, wide = accumulator_of(dtype);
    const int64_t begin = batch->starts[t], count = batch->starts[t + 1] - begin;
    char *const sum = batch->rooms->memory[TSR_ROOM_DEVICE_SUM], *const room = sum + 16 * batch->work.length;
    term_list terms = {.count = 2};
    TSR_TRY(widen(batch, source(batch, begin), sum, &terms.at[0]));
    for (int64_t i = 1; i < count; i++, terms.at[0] = sum) {
        TSR_TRY(widen(batch, source(batch, begin + i), room, &terms.at[1]));
        TSR_TRY(reduce(batch, wide, &terms, 1, sum));
    }
    if (batch->work.op == TSR_ROWS_MEAN)
        TSR_TRY(reduce(batch, wide, &(term_list){.at = {sum}, .count = 1}, count, sum));
    TSR_TRY(widen(batch, target(batch, t), room, &terms.at[1]));
    TSR_TRY(reduce(batch, wide, &terms, 1, wide == dtype ? target(batch, t) : sum));
    return wide == dtype ? TSR_OK : convert(batch, target(batch, t), dtype, sum, wide);
}

static tsr_status reduce_row(const tsr_row_batch *batch, size_t t)
{
    const int64_t count = batch->starts[t + 1] - batch->starts[t];
    const tsr_dtype_class kind = tsr_dtype_get(batch->work.dtype)->kind;
    const bool floats = kind == TSR_CLASS_FLOAT || kind == TSR_CLASS_COMPLEX;
    if (batch->work.op == TSR_ROWS_MAX || !floats)
        return reduce_by_turns(batch, t);
    if (count < TOGETHER && (count == 1 || batch->work.op == TSR_ROWS_ADD))
        return reduce_at_once(batch, t);
    return sum_widely(batch, t);
}

tsr_status tsr_row_plain_run(const tsr_row_batch *batch)
{
    if (batch->work.op == TSR_ROWS_ASSIGN)
        return copy_rows(batch);
    for (size_t t = 0; t < batch->target_count; t++)
        TSR_TRY(reduce_row(batch, t));
    return TSR_OK;
}
