/** How a communicator breaks, and what its calls return from then on. */
#ifndef TSR_COMM_ENGINES_MPI_LOSS_H
#define TSR_COMM_ENGINES_MPI_LOSS_H

#include "comm/engines/mpi/handle.h"

/** A rank's name in sentences: "rank 1", or "rank 1 (rank 3 of all)" if it has another rank in the
 * world. Writes it to `text`, 64 bytes, and returns that. */
const char *tsr_mpi_name(const tsr_mpi_handle *handle, int rank, char *text);

/** Breaks the communicator with this thread's sentence, which later calls repeat; does nothing if
 * it is broken already. Returns `status`. */
tsr_status tsr_mpi_break(tsr_mpi_handle *handle, tsr_status status);

/** TSR_ERROR_PEER if the communicator is broken or a rank has aborted. */
tsr_status tsr_mpi_check_whole(tsr_mpi_handle *handle);

#endif
