/** Messages by MPI: every message a nonblocking send or receive, in pieces where it is long, and waits that end. */
#ifndef TSR_COMM_ENGINES_MPI_EXCHANGE_H
#define TSR_COMM_ENGINES_MPI_EXCHANGE_H

#include "comm/engines/mpi/handle.h"
#include "comm/engines/mpi/world.h"

/** Room for `count` messages. */
tsr_status tsr_mpi_exchange_reserve(tsr_mpi_handle *handle, size_t count);
void tsr_mpi_exchange_free(tsr_mpi_handle *handle);

/** As the table's entries. */
tsr_status tsr_mpi_exchange_all(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives, size_t receive_count,
                                tsr_device device, tsr_stream stream);
tsr_status tsr_mpi_exchange_start(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                  size_t receive_count, tsr_device device, tsr_stream stream);
tsr_status tsr_mpi_exchange_finish(void *self);
tsr_status tsr_mpi_barrier(void *self);

/** Collective: row r of `rows`, one a rank, becomes what rank r had there, on every rank. */
tsr_status tsr_mpi_gather_and_spread(tsr_mpi_handle *handle, void *rows, size_t row_bytes);

/** Gives up what is under way; the communicator is broken then. Waits for what both sides have begun, for two seconds at most in all:
 * memory of what has not ended by then, because a rank is dead, stopped or cut off or has given up at the same time, stays MPI's. */
void tsr_mpi_exchange_drop(tsr_mpi_handle *handle);

/** Frees the memory of exchanges that were given up; false if MPI still has some of it. */
bool tsr_mpi_exchange_dig(tsr_mpi_world *world);

#endif
