/** The engine over MPI: its tables, and how a communicator is borrowed. */
#ifndef TSR_COMM_ENGINES_MPI_ENGINE_H
#define TSR_COMM_ENGINES_MPI_ENGINE_H

#include "comm/engines/mpi/calls/together.h"
#include "comm/engines/mpi/handle.h"

/** tsr_comm_from_mpi(), for sentences that begin with `call`. `losses` is written while the communicator or one that was split off it
 * lives; NULL is fine. */
tsr_status tsr_mpi_borrow(const char *call, MPI_Comm comm, const tsr_mpi_options *options, tsr_mpi_losses *losses, tsr_comm **out);

/** tsr_mpi_borrow(), which also gives the engine's handle that the communicator owns. */
tsr_status tsr_mpi_borrow_handle(const char *call, MPI_Comm comm, const tsr_mpi_options *options, tsr_mpi_losses *losses,
                                 tsr_mpi_handle **handle, tsr_comm **out);

#endif
