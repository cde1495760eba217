/** Rows of messages of calls by id whose tables are on a device. tsr_row_batch_finish() must follow
 * before messages are sent. */
#ifndef TSR_TENSOR_ROWS_MESSAGES_MAIL_DEVICE_H
#define TSR_TENSOR_ROWS_MESSAGES_MAIL_DEVICE_H

#include "tensor/rows/messages/row_mail.h"

/** Takes the memory of lists of rows, which are as long as the longest of those that are listed
 * together. Does nothing on the host. */
tsr_status tsr_mail_device_reserve(const tsr_row_mail *mail);

/** Writes rows of table `i` that change those of `rank` to a message. */
tsr_status tsr_mail_device_pack(const tsr_row_mail *mail, int64_t rank, int64_t i, char *to);

/** Copies `count` rows of this rank's shard of table `i` to a message. */
tsr_status tsr_mail_device_answer(const tsr_row_mail *mail, int64_t i, const int64_t *locals, int64_t count, char *to);

/** Copies the rows that `rank` has sent for table `i` to all ids that name them. */
tsr_status tsr_mail_device_read(const tsr_row_mail *mail, int64_t rank, int64_t i, const char *rows);

#endif
