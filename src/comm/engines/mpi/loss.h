/** How a communicator loses a rank, and what its calls say from then on. */
#ifndef TSR_COMM_ENGINES_MPI_LOSS_H
#define TSR_COMM_ENGINES_MPI_LOSS_H

#include "comm/engines/mpi/handle.h"

/** "rank 1", or "rank 1 (rank 3 of all)" in a group, where a sentence names rank 1. `text` has 64 bytes. */
const char *tsr_mpi_name(const tsr_mpi_handle *handle, int rank, char *text);

/** The communicator's first loss: keeps this thread's sentence for later calls. Returns `status`. */
tsr_status tsr_mpi_break(tsr_mpi_handle *handle, tsr_status status);

/** TSR_ERROR_PEER if it is broken or aborted. */
tsr_status tsr_mpi_check_whole(tsr_mpi_handle *handle);

#endif
