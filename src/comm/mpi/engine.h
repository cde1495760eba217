/** The engine over MPI: its tables, and how a communicator is borrowed. */
#ifndef TSR_COMM_MPI_ENGINE_H
#define TSR_COMM_MPI_ENGINE_H

#include "comm/mpi/handle.h"

/** tsr_comm_from_mpi(), for sentences that begin with `call`. `*lost` becomes true if ranks did not come, for whom MPI_Finalize() would
 * wait; NULL is fine. */
tsr_status tsr_mpi_borrow(const char *call, MPI_Comm comm, const tsr_mpi_options *options, bool *lost, tsr_comm **out);

#endif
