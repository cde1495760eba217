/** Exchanges: messages go through trays within a node (node/tray.h) and by nonblocking MPI calls
 * otherwise (transit.h), and every wait has a timeout. */
#ifndef TSR_COMM_ENGINES_MPI_EXCHANGE_H
#define TSR_COMM_ENGINES_MPI_EXCHANGE_H

#include "comm/engines/mpi/handle.h"
#include "comm/engines/mpi/world.h"

/** Makes room for `count` messages. */
tsr_status tsr_mpi_exchange_reserve(tsr_mpi_handle *handle, size_t count);
void tsr_mpi_exchange_free(tsr_mpi_handle *handle);

/** Entries of tsr_comm_messages. */
tsr_status tsr_mpi_exchange_all(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                size_t receive_count, tsr_device device, tsr_stream stream);
tsr_status tsr_mpi_exchange_start(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                  size_t receive_count, tsr_device device, tsr_stream stream);
tsr_status tsr_mpi_exchange_finish(void *self);
tsr_status tsr_mpi_barrier(void *self);

/** Collective: an all-gather. `rows` has one row of `row_bytes` bytes per rank; row r of rank r is
 * copied to all ranks. */
tsr_status tsr_mpi_gather_and_spread(tsr_mpi_handle *handle, void *rows, size_t row_bytes);

/** Gives up the exchange in flight; the caller then breaks the communicator. Transfers that both
 * sides have begun are waited for, for two seconds at most in all. MPI may go on using memory of
 * the transfers that have not ended by then: their peer is dead, stopped, cut off, or gave up
 * too. */
void tsr_mpi_exchange_drop(tsr_mpi_handle *handle);

/** Frees the memory of exchanges that were given up, if MPI no longer uses it; false if some
 * remains. */
bool tsr_mpi_exchange_dig(tsr_mpi_world *world);

#endif
