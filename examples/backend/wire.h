/** One rank's connections: a stream socket to each of the others. */
#ifndef WIRE_H
#define WIRE_H

#include <tessera/comm.h>

#include <poll.h>
#include <stdbool.h>

/** The progress of one direction of a connection in the exchange in flight. On the wire a message
 * is its length in 8 bytes, then its data. */
typedef struct lane {
    const tsr_message *at, *end; /**< messages from `at` on are not done; messages of other peers are skipped */
    size_t done;                 /**< bytes of `at` transferred so far, its length included */
    uint64_t length;
} lane;

typedef struct wire {
    int rank, ranks;
    int64_t timeout_ms;
    bool broken;
    int *sockets; /**< one per rank; -1 for this rank */
    lane *sends, *receives;
    struct pollfd *polls;
} wire;

/** Makes a wire without connections. */
tsr_status wire_create(int rank, int ranks, int64_t timeout_ms, wire **out);
void wire_destroy(wire *w);

/** Ends all waits of this rank and its peers, now and later. Any thread. */
void wire_shut(const wire *w);

/** Breaks the connections after a call has failed in mid-transfer, so that nothing can be sent any
 * more. Returns `status`. */
tsr_status wire_break(wire *w, tsr_status status);

/** Waits until the socket of `peer` can be read (POLLIN) or written (POLLOUT). TSR_ERROR_PEER: not
 * in time. */
tsr_status wire_wait(const wire *w, int peer, short events);

/** The entry `exchange` of tsr_comm_messages, for host memory. */
tsr_status wire_exchange(wire *w, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                         size_t receive_count);

/** Connects all ranks, which find one another in `directory`. */
tsr_status wire_connect(wire *w, const char *directory);

/** Give makes a connection, keeps one end in `*kept`, gives `peer` the other; take receives it. */
tsr_status wire_give(const wire *w, int peer, int *kept);
tsr_status wire_take(const wire *w, int peer, int *taken);

/** Returns TSR_ERROR_IO, or TSR_ERROR_PEER if `peer` has gone, with a sentence made of `what` and
 * errno. */
tsr_status wire_fail(const char *what, int peer);

#endif
