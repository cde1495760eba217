/** Rows of messages of calls by id, on the host. */
#ifndef TSR_TENSOR_ROWS_MESSAGES_MAIL_HOST_H
#define TSR_TENSOR_ROWS_MESSAGES_MAIL_HOST_H

#include "tensor/rows/messages/row_mail.h"

/** Writes rows of table `i` that change those of `rank` to a message. */
tsr_status tsr_mail_host_pack(const tsr_row_mail *mail, int64_t rank, int64_t i, char *to);

/** Copies `count` rows of this rank's shard of table `i` to a message. */
void tsr_mail_host_answer(const tsr_row_mail *mail, int64_t i, const int64_t *locals, int64_t count, char *to);

/** Copies the rows that `rank` has sent for table `i` to all ids that name them. */
void tsr_mail_host_read(const tsr_row_mail *mail, int64_t rank, int64_t i, const char *rows);

#endif
