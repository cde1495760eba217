/** One rank's connections: a stream socket to each of the others. */
#ifndef WIRE_H
#define WIRE_H

#include <poll.h>
#include <stdbool.h>
#include <tessera/comm.h>

/** How far one direction of a connection is in the exchange in flight. A message is its length in 8 bytes, then its bytes. */
typedef struct lane {
    const tsr_message *at, *end; /**< messages from `at` on are not done; those of other peers are passed over */
    size_t done;                 /**< bytes of `at`, its length included */
    uint64_t length;
} lane;

typedef struct wire {
    int rank, ranks;
    int64_t timeout_ms;
    bool broken;
    int *sockets; /**< one a rank; -1: this rank */
    lane *sends, *receives;
    struct pollfd *polls;
} wire;

/** Without connections. */
tsr_status wire_create(int rank, int ranks, int64_t timeout_ms, wire **out);
void wire_destroy(wire *w);

/** From any thread: this rank and its peers wait for nothing any more. */
void wire_shut(const wire *w);

/** Ends a call that has failed: what is on its way is lost, so nothing can be sent any more. Returns `status`. */
tsr_status wire_break(wire *w, tsr_status status);

/** Until the socket of `peer` can be read (POLLIN) or written (POLLOUT). TSR_ERROR_PEER: not in time. */
tsr_status wire_wait(const wire *w, int peer, short events);

/** As the entry `exchange` of tsr_comm_messages, of host memory. */
tsr_status wire_exchange(wire *w, const tsr_message *sends, size_t send_count, const tsr_message *receives, size_t receive_count);

/** Connects all ranks, which find one another in `directory`. */
tsr_status wire_connect(wire *w, const char *directory);

/** Gives `peer` one end of a new connection, or takes what it gives. */
tsr_status wire_give(const wire *w, int peer, int *kept);
tsr_status wire_take(const wire *w, int peer, int *taken);

/** TSR_ERROR_IO, or TSR_ERROR_PEER where `peer` has gone, in a sentence with `what` and errno. */
tsr_status wire_fail(const char *what, int peer);

#endif
