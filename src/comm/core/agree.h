/** How ranks find out, before bytes travel, whether they are all in one call and able to make it. */
#ifndef TSR_COMM_CORE_AGREE_H
#define TSR_COMM_CORE_AGREE_H

#include "comm/core/call.h"

/** The agreement of tsr_call_begin(), and its end, over any engine: of messages, by 64 bits a rank. For checks and prepare, not for hot
 * paths. */
tsr_status tsr_comm_agree(tsr_comm *comm, uint64_t fingerprint, tsr_status local, tsr_call_describe *describe, const void *arg);

/** The same, in which ranks also bring what tsr_balance_of() gives: `*balance` becomes the sum of all, on success. */
tsr_status tsr_comm_agree_balance(tsr_comm *comm, uint64_t fingerprint, tsr_status local, uint64_t *balance, tsr_call_describe *describe,
                                  const void *arg);

/** tsr_comm_agree() of an engine that has collectives of its own, in which ranks also tell whether they are able to call one: `*able`
 * becomes whether all ranks are, on success. */
tsr_status tsr_comm_agree_able(tsr_comm *comm, uint64_t fingerprint, tsr_status local, bool *able, tsr_call_describe *describe,
                               const void *arg);

/** tsr_comm_agree() on nothing but the name of a call. */
tsr_status tsr_comm_agree_on(tsr_comm *comm, const char *name, tsr_status local);

/** tsr_comm_agree(), tsr_comm_agree_balance() and tsr_comm_agree_able() of a message engine; what is NULL is not asked. */
tsr_status tsr_message_agree(tsr_comm *comm, uint64_t fingerprint, tsr_status local, bool *able, uint64_t *balance,
                             tsr_call_describe *describe, const void *arg);

/** The steps of that, by the engine's own exchange: `mine` of each rank becomes all[r] on rank 0, or `data` of rank 0 everybody's. */
tsr_status tsr_message_to_root(tsr_comm *comm, const void *mine, void *all, size_t bytes);
tsr_status tsr_message_from_root(tsr_comm *comm, void *data, size_t bytes);

#endif
