/** How ranks find out, before data moves, whether all of them are in the same call and none has
 * failed. */
#ifndef TSR_COMM_CORE_AGREE_H
#define TSR_COMM_CORE_AGREE_H

#include "comm/core/call.h"

/** Collective: compares ranks' fingerprints and statuses as tsr_call_begin() does, over any engine,
 * and returns what tsr_call_begin() would; no call is in flight afterwards. A message engine sends
 * 32 bytes per rank to rank 0 and a verdict back: for checks and prepare, not for hot paths. */
tsr_status tsr_comm_agree(tsr_comm *comm, uint64_t fingerprint, tsr_status local, tsr_call_describe *describe,
                          const void *arg);

/** tsr_comm_agree() in which each rank also brings what tsr_balance_of() returned, in `*balance`.
 * On success `*balance` becomes the sum over all ranks. */
tsr_status tsr_comm_agree_balance(tsr_comm *comm, uint64_t fingerprint, tsr_status local, uint64_t *balance,
                                  tsr_call_describe *describe, const void *arg);

/** tsr_comm_agree() over a message engine, in which each rank also says in `*able` whether it can
 * make the native call. On success `*able` becomes true if all ranks can. */
tsr_status tsr_comm_agree_able(tsr_comm *comm, uint64_t fingerprint, tsr_status local, bool *able,
                               tsr_call_describe *describe, const void *arg);

/** tsr_comm_agree() whose fingerprint and description are the name of a call. */
tsr_status tsr_comm_agree_on(tsr_comm *comm, const char *name, tsr_status local);

/** Over a message engine: tsr_comm_agree(), with `balance` tsr_comm_agree_balance(), with `able`
 * tsr_comm_agree_able(). Either may be NULL. */
tsr_status tsr_message_agree(tsr_comm *comm, uint64_t fingerprint, tsr_status local, bool *able, uint64_t *balance,
                             tsr_call_describe *describe, const void *arg);

/** Collective steps of tsr_message_agree(), by the engine's exchange. To root: rank 0 receives
 * `bytes` bytes at `mine` from each rank r, as element r of `all`. From root: all ranks receive the
 * `data` of rank 0. */
tsr_status tsr_message_to_root(tsr_comm *comm, const void *mine, void *all, size_t bytes);
tsr_status tsr_message_from_root(tsr_comm *comm, void *data, size_t bytes);

#endif
