/** A back end of a third party, built on installed headers alone: ranks are processes of one
 * machine, connected by Unix sockets. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <tessera/comm.h>

/**
 * Collective: this process is rank `rank` of `ranks`. Ranks find one another in `directory`, which
 * is empty at first and the same for all. A rank waits for another for at most `timeout_ms`, 0: for
 * ever. TSR_ERROR_PEER: a rank did not come in time. TSR_ERROR_IO: a socket could not be made. The
 * caller ends `*out` with tsr_comm_destroy().
 */
TSR_API tsr_status sockets_create(const char *directory, int rank, int ranks, int64_t timeout_ms, tsr_comm **out);

#endif
