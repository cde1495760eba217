/** Groups of a world's ranks, made by messages of its own. */
#ifndef TSR_COMM_ENGINES_MPI_SPLIT_H
#define TSR_COMM_ENGINES_MPI_SPLIT_H

#include "comm/engines/mpi/calls/together.h"
#include "comm/engines/mpi/handle.h"

/** As the table's entry. */
tsr_status tsr_mpi_split(void *self, int color, int key, void **out);

/** Collective over a world that nobody has used: its first handle gets all ranks in order, and their seats. */
tsr_status tsr_mpi_seat_all(const tsr_mpi_together *together, tsr_mpi_handle *handle);

#endif
