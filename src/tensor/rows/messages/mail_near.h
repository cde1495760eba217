/**
 * What the ranks of a node do without messages, in a call over several nodes.
 *
 * A gather reads rows in the shards of ranks near, if all shards of all ranks lie in memory that
 * the ranks of their nodes share. Of an update, requests to ranks near are written to such memory,
 * and read there; their counts alone travel, so that all memory is taken before anything is
 * written.
 */
#ifndef TSR_TENSOR_ROWS_MESSAGES_MAIL_NEAR_H
#define TSR_TENSOR_ROWS_MESSAGES_MAIL_NEAR_H

#include "tensor/rows/messages/row_mail.h"

/** Takes memory that ranks near read. `*hidden`: what they cannot reach of this rank. For a mail
 * that is sorted; sets `near`. Does nothing if the rank has no mates. */
tsr_status tsr_mail_near_offer(tsr_row_mail *mail, uint64_t *hidden);

/** The request to a rank near, in an update. */
char *tsr_mail_near_request(const tsr_row_mail *mail, int64_t rank);

/** Collective over the ranks near; after a success all of them call tsr_mail_near_end(), and until
 * then what they have shown may be read. Does nothing without ranks near. */
tsr_status tsr_mail_near_begin(const tsr_row_mail *mail);

/** Collective over the ranks near, after a successful tsr_mail_near_begin(). Returns `local` if it
 * is a failure. */
tsr_status tsr_mail_near_end(const tsr_row_mail *mail, tsr_status local);

/** The request of a rank near to this one, between begin and end. */
char *tsr_mail_near_asked(const tsr_row_mail *mail, int64_t rank);

/** Of a gather: copies rows of table `i` from the shard of a rank near to all ids that name
 * them. */
void tsr_mail_near_read(const tsr_row_mail *mail, int64_t rank, int64_t i);

#endif
