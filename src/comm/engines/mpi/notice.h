/**
 * What ranks that share no memory tell one another outside of all calls: that one has aborted, or has left. A notice is a message to each
 * of the others. Whoever waits for messages, or sleeps at a gate, looks for notices too, and its mates hear of an abort through the node's
 * memory.
 */
#ifndef TSR_COMM_ENGINES_MPI_NOTICE_H
#define TSR_COMM_ENGINES_MPI_NOTICE_H

#include "comm/engines/mpi/handle.h"
#include "comm/engines/mpi/world.h"

/** True if this thread, whichever it is, may call MPI just now: not where threads take turns, for it need not have its turn, nor once MPI
 * is finalized. */
bool tsr_mpi_may_speak(void);

/** Tells the others that this rank has aborted, the first time that it is called after that. */
void tsr_mpi_notice_abort(tsr_mpi_world *world);

/** Tells the others that this rank leaves. */
void tsr_mpi_notice_departure(const tsr_mpi_world *world);

/** Takes what has come. */
void tsr_mpi_notice_hear(tsr_mpi_world *world);

/** The rank of the group of which was heard first that it has left the world; -1: none. */
int tsr_mpi_notice_gone(const tsr_mpi_handle *handle);

#endif
