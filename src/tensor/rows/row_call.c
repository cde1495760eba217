#include "tensor/rows/row_call.h"

#include "placement/print.h"

#include <tessera/context.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

void tsr_row_call_describe(const void *arg, char *text, size_t capacity)
{
    const tsr_row_call *const call = arg;
    char layout[512];
    const char *const words = call->step ? call->step->words : call->gathers ? "" : tsr_rows_op_name(call->op);
    snprintf(text, capacity, "%s%s%s of %zu table%s, the first %s%s%s", call->name, words[0] ? " " : "", words,
             call->count, call->count == 1 ? "" : "s",
             call->first ? tsr_layout_describe(call->first, layout, sizeof layout) : "unknown",
             call->batch ? ", on " : "", call->batch ? call->batch->ops.table->name : "");
}

tsr_status tsr_row_call_begin_apply(const tsr_row_call *call, size_t i)
{
    const tsr_row_request *const request = &call->requests[i];
    const tsr_row_table *const table = request->table;
    void *memory;
    TSR_TRY(tsr_row_room_take(request->rooms, TSR_ROOM_SOURCES, (size_t)call->group->count, sizeof(tsr_row_source),
                              &memory));
    const tsr_row_columns *const own = tsr_row_own_columns(table);
    call->applies[i] = (tsr_row_apply){
        .local = request->local,
        .local_stride = request->local_stride,
        .dtype = table->layout->dtype,
        .element_bytes = table->element_bytes,
        .arithmetic = tsr_row_arithmetic_of(tsr_context_kernels(table->layout->context), table->layout->dtype),
        .op = call->op,
        .step = call->step,
        .table = i,
        .width = table->width,
        .own_width = own->width,
        .segments = own->count > 0 ? table->segments + own->first : NULL,
        .segment_count = own->count,
        .ops = call->ops,
        .sources = memory,
        .source_count = call->group->count,
        .rooms = request->rooms,
        .batch = call->batch};
    return TSR_OK;
}

void tsr_row_scatter(const tsr_row_table *table, const tsr_row_columns *columns, char *whole, const char *part)
{
    const size_t bytes = table->element_bytes;
    const tsr_row_segment *const segments = table->segments + columns->first;
    for (size_t i = 0; i < columns->count; i++)
        memcpy(whole + (size_t)segments[i].whole * bytes, part + (size_t)segments[i].local * bytes,
               (size_t)segments[i].length * bytes);
}

void tsr_row_collect(const tsr_row_table *table, const tsr_row_columns *columns, char *part, const char *whole)
{
    const size_t bytes = table->element_bytes;
    const tsr_row_segment *const segments = table->segments + columns->first;
    for (size_t i = 0; i < columns->count; i++)
        memcpy(part + (size_t)segments[i].local * bytes, whole + (size_t)segments[i].whole * bytes,
               (size_t)segments[i].length * bytes);
}
