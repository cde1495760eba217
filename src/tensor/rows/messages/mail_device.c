#include "tensor/rows/messages/mail_device.h"

#include "tensor/rows/messages/mail_rows.h"

#include <tessera/sys/status.h>

tsr_status tsr_mail_device_reserve(const tsr_row_mail *mail)
{
    tsr_row_batch *const batch = mail->call->batch;
    for (int64_t i = 0; i < mail->tables && batch; i++) {
        TSR_TRY(tsr_row_batch_reserve(batch, mail->call->requests[i].count, 0));
        for (int64_t rank = 0; rank < mail->ranks && mail->call->gathers; rank++)
            TSR_TRY(tsr_row_batch_reserve(batch, tsr_row_mail_counts(mail, mail->received, rank)[i], 0));
    }
    return TSR_OK;
}

/* Combines equal rows of table `i` for the ranks of `numbers` in a message. */
static tsr_status combine(const tsr_row_mail *mail, int64_t i, tsr_row_numbers numbers, char *to, int64_t bytes)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const int64_t begin = request->starts[numbers.rows];
    tsr_row_source source = {.count = request->starts[numbers.rows + 1] - begin,
                             .locals = mail->unique[i].indices + begin,
                             .positions = request->positions + begin,
                             .data = request->data,
                             .stride = request->stride};
    tsr_row_apply apply = tsr_mail_packing(mail, i, numbers, to, bytes);
    apply.sources = &source;
    apply.source_count = 1;
    TSR_TRY(tsr_row_batch_finish(mail->call->batch));
    TSR_TRY(tsr_row_apply_prepare(&apply));
    return tsr_row_apply_run(&apply);
}

/* Copies rows to a message. */
static tsr_status pack(const tsr_row_mail *mail, int64_t i, tsr_row_numbers numbers, char *to, int64_t bytes)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const tsr_row_table *const table = request->table;
    const tsr_row_columns *const columns = &table->parts[numbers.columns];
    const int64_t begin = request->starts[numbers.rows], end = request->starts[numbers.rows + 1];
    for (size_t s = 0; s < columns->count; s++) {
        const tsr_row_segment *const segment = &table->segments[columns->first + s];
        for (int64_t k = begin; k < end; k++)
            TSR_TRY(tsr_row_batch_copy(mail->call->batch, table->layout->dtype, segment->length,
                                       to + (k - begin) * bytes + (size_t)segment->local * table->element_bytes,
                                       tsr_mail_brought(request, k) + (size_t)segment->whole * table->element_bytes));
    }
    return TSR_OK;
}

tsr_status tsr_mail_device_pack(const tsr_row_mail *mail, int64_t rank, int64_t i, char *to)
{
    const tsr_row_numbers numbers = mail->call->requests[i].table->ranks[rank];
    const int64_t bytes = tsr_row_mail_row_bytes(mail, rank, i);
    return tsr_row_mail_combines(mail, i) ? combine(mail, i, numbers, to, bytes) : pack(mail, i, numbers, to, bytes);
}

tsr_status tsr_mail_device_answer(const tsr_row_mail *mail, int64_t i, const int64_t *locals, int64_t count, char *to)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const int64_t width = tsr_row_own_columns(request->table)->width;
    const size_t bytes = (size_t)width * request->table->element_bytes;
    for (int64_t k = 0; k < count; k++)
        TSR_TRY(tsr_row_batch_copy(mail->call->batch, request->table->layout->dtype, width, to + (size_t)k * bytes,
                                   request->local + (size_t)locals[k] * request->local_stride));
    return TSR_OK;
}

tsr_status tsr_mail_device_read(const tsr_row_mail *mail, int64_t rank, int64_t i, const char *rows)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const tsr_row_table *const table = request->table;
    const tsr_row_numbers numbers = table->ranks[rank];
    const tsr_row_columns *const columns = &table->parts[numbers.columns];
    const int64_t bytes = tsr_row_mail_row_bytes(mail, rank, i);
    for (size_t s = 0; s < columns->count; s++) {
        const tsr_row_segment *const segment = &table->segments[columns->first + s];
        for (int64_t k = request->starts[numbers.rows]; k < request->starts[numbers.rows + 1]; k++)
            TSR_TRY(tsr_row_batch_copy(
                mail->call->batch, table->layout->dtype, segment->length,
                (char *)tsr_mail_brought(request, k) + (size_t)segment->whole * table->element_bytes,
                rows + mail->unique[i].indices[k] * bytes + (size_t)segment->local * table->element_bytes));
    }
    return TSR_OK;
}
