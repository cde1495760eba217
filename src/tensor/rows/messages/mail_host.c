#include "tensor/rows/messages/mail_host.h"

#include "tensor/rows/messages/mail_rows.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Combines equal rows of table `i` for the ranks of `numbers` in a message. */
static tsr_status write_combined(const tsr_row_mail *mail, int64_t i, tsr_row_numbers numbers, char *to, int64_t bytes)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const tsr_row_apply apply = tsr_mail_packing(mail, i, numbers, to, bytes);
    const int64_t *const indices = mail->unique[i].indices;
    int64_t written = 0;
    for (int64_t k = request->starts[numbers.rows]; k < request->starts[numbers.rows + 1]; k++)
        if (indices[k] == written)
            tsr_row_collect(request->table, &request->table->parts[numbers.columns], to + written++ * bytes,
                            tsr_mail_brought(request, k));
        else
            TSR_TRY(tsr_row_apply_one(&apply, to + indices[k] * bytes, tsr_mail_brought(request, k)));
    return TSR_OK;
}

tsr_status tsr_mail_host_pack(const tsr_row_mail *mail, int64_t rank, int64_t i, char *to)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const tsr_row_numbers numbers = request->table->ranks[rank];
    const int64_t bytes = tsr_row_mail_row_bytes(mail, rank, i);
    if (tsr_row_mail_combines(mail, i))
        return write_combined(mail, i, numbers, to, bytes);
    for (int64_t k = request->starts[numbers.rows]; k < request->starts[numbers.rows + 1]; k++, to += bytes)
        if (tsr_row_mail_sends_whole(mail))
            memcpy(to, tsr_mail_brought(request, k), (size_t)bytes);
        else
            tsr_row_collect(request->table, &request->table->parts[numbers.columns], to, tsr_mail_brought(request, k));
    return TSR_OK;
}

void tsr_mail_host_answer(const tsr_row_mail *mail, int64_t i, const int64_t *locals, int64_t count, char *to)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const size_t bytes = (size_t)tsr_row_mail_row_bytes(mail, tsr_comm_rank(mail->comm), i);
    for (int64_t k = 0; k < count && bytes > 0; k++, to += bytes)
        memcpy(to, request->local + (size_t)locals[k] * request->local_stride, bytes);
}

void tsr_mail_host_read(const tsr_row_mail *mail, int64_t rank, int64_t i, const char *rows)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const tsr_row_numbers numbers = request->table->ranks[rank];
    const int64_t bytes = tsr_row_mail_row_bytes(mail, rank, i);
    for (int64_t k = request->starts[numbers.rows]; k < request->starts[numbers.rows + 1] && bytes > 0; k++)
        tsr_row_scatter(request->table, &request->table->parts[numbers.columns],
                        request->data + (size_t)request->positions[k] * request->stride,
                        rows + mail->unique[i].indices[k] * bytes);
}
