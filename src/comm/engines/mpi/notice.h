/**
 * Notices: control messages outside of all calls, to every other rank of the world, which say that
 * a rank has aborted or left. They are sent if some ranks share no memory with this one. A rank
 * that waits for messages, or sleeps at a gate, polls for notices too; its mates learn of an abort
 * through shared memory.
 */
#ifndef TSR_COMM_ENGINES_MPI_NOTICE_H
#define TSR_COMM_ENGINES_MPI_NOTICE_H

#include "comm/engines/mpi/handle.h"
#include "comm/engines/mpi/world.h"

/** True if the calling thread, whichever it is, may call MPI now. False with MPI_THREAD_SERIALIZED,
 * since another thread may be in MPI, and once MPI is finalized. */
bool tsr_mpi_may_speak(void);

/** Sends notices that this rank has aborted; does nothing if it has not, or has sent them
 * already. */
void tsr_mpi_notice_abort(tsr_mpi_world *world);

/** Sends notices that this rank leaves. */
void tsr_mpi_notice_departure(const tsr_mpi_world *world);

/** Receives the notices that have come, and notes what they say. */
void tsr_mpi_notice_hear(tsr_mpi_world *world);

/** The rank of the group whose departure from the world was heard first; -1: none has left. */
int tsr_mpi_notice_gone(const tsr_mpi_handle *handle);

#endif
