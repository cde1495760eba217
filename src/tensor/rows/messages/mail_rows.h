/** What rows of messages are made of, on the host and on devices. */
#ifndef TSR_TENSOR_ROWS_MESSAGES_MAIL_ROWS_H
#define TSR_TENSOR_ROWS_MESSAGES_MAIL_ROWS_H

#include "tensor/rows/messages/row_mail.h"

/** Where a row that a rank brings lies: row `k` of the sorted ones. */
static inline const char *tsr_mail_brought(const tsr_row_request *request, int64_t k)
{
    return request->data + (size_t)request->positions[k] * request->stride;
}

/** What rows for table `i` become in a message of `bytes` bytes a row, in the column part of
 * `numbers`. */
static inline tsr_row_apply tsr_mail_packing(const tsr_row_mail *mail, int64_t i, tsr_row_numbers numbers, char *to,
                                             int64_t bytes)
{
    const tsr_row_table *const table = mail->call->requests[i].table;
    const tsr_row_columns *const columns = &table->parts[numbers.columns];
    tsr_row_apply apply = mail->call->applies[i];
    apply.local = to;
    apply.local_stride = (size_t)bytes;
    apply.is_new = true;
    apply.segments = columns->count > 0 ? table->segments + columns->first : NULL;
    apply.segment_count = columns->count;
    return apply;
}

#endif
