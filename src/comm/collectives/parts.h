/** An exchange of bytes whose numbers both sides know already. */
#ifndef TSR_COMM_COLLECTIVES_PARTS_H
#define TSR_COMM_COLLECTIVES_PARTS_H

#include <tessera/comm.h>

/**
 * Collective, over a communicator with messages, within a call on which ranks have agreed: the
 * send_bytes[j] bytes of part j of rank i's `send` become part i of rank j's `receive`, which are
 * receive_bytes[i] bytes. Parts follow one another without gaps; empty ones are not sent. `device`
 * has both; on a device the exchange goes by its default stream, and the call waits until it is
 * done. Compares nothing, and does not enter the handle.
 */
tsr_status tsr_parts_exchange(tsr_comm *comm, const void *send, const int64_t *send_bytes, void *receive,
                              const int64_t *receive_bytes, tsr_device device);

/** Parts of memory, one for each rank. */
typedef struct tsr_parts {
    void *memory;
    int64_t *begins, *bytes; /**< where each begins, and how long it is */
} tsr_parts;

/** Collective: tsr_parts_exchange() of bytes `from` to below `to` of each part alone, or of as many
 * of them as a part has, which must be the same on both sides. On the host. */
tsr_status tsr_parts_exchange_range(tsr_comm *comm, const tsr_parts *send, const tsr_parts *receive, int64_t from,
                                    int64_t to);

/** Collective, as tsr_parts_exchange() is: an exchange of nothing. Fails where the engine does not
 * move memory of this rank's `device`; other ranks do not hear of it. */
tsr_status tsr_parts_probe(tsr_comm *comm, tsr_device device);

#endif
