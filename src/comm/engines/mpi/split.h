/** Makes groups of a world's ranks, by the engine's own messages. */
#ifndef TSR_COMM_ENGINES_MPI_SPLIT_H
#define TSR_COMM_ENGINES_MPI_SPLIT_H

#include "comm/engines/mpi/calls/together.h"
#include "comm/engines/mpi/handle.h"

/** tsr_comm_table.split. */
tsr_status tsr_mpi_split(void *self, int color, int key, void **out);

/** Collective over a world that no rank has used yet: its first handle becomes that of all ranks,
 * in order, with their seats and desks. */
tsr_status tsr_mpi_seat_all(const tsr_mpi_together *together, tsr_mpi_handle *handle);

#endif
