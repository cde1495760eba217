/**
 * The host's communicator: ranks are tasks of one process, which read each other's memory between
 * two barriers. It is a table of operations, as tessera/sys/comm.h has them.
 */
#ifndef EXAMPLES_RUNTIME_RANKS_H
#define EXAMPLES_RUNTIME_RANKS_H

#include <tessera/comm.h>

#include <stdatomic.h>

/**
 * Makes handles[0..count), one for each rank. A rank that waits for another for more than
 * `timeout_ms` gives up; 0: it waits for ever. Each time that a rank has met the others `*meetings`
 * grows by 1, where it is not NULL; it must outlive the handles.
 */
tsr_status ranks_create(tsr_context *context, int count, int64_t timeout_ms, atomic_size_t *meetings,
                        tsr_comm **handles);

#endif
