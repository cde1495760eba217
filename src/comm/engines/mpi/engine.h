/**
 * The engine over MPI: its tables, and how a communicator is made over a program's MPI_Comm.
 *
 * Words that names use here, in `calls` and in `node`:
 *
 * - world: all ranks of one tsr_comm_from_mpi(), as this rank knows them, and their MPI
 *   communicator. A group is one communicator over some or all of them; handle: one rank's end of a
 *   group.
 * - slot: in the world, the set of MPI tags that one group uses; elsewhere a slot of sys/comm.h.
 * - mate: a peer on the same node.
 * - node: the shared memory of one node. Resident: the entry of one process there. Card: what a
 *   rank tells its mates so that they can map its file.
 * - gate: a barrier of ranks of one node, in shared memory. Seat: what one member has of a gate.
 *   Nap: one sleep at a gate, on a futex, the bell. Hurry: to wait with a shorter timeout.
 * - tray: a mailbox, in shared memory, for one message from one rank to one mate; to lay is to put
 *   a message there, to take is to receive it. Desk: all trays of one sender.
 * - transit: the state of one message. Its course is its stage, its turn a sequence number.
 * - letter: the header of a message by MPI, which holds a short message too (eager protocol).
 * - token: the clear-to-send of a long message by MPI (rendezvous protocol).
 * - notice: a control message that says that a rank has aborted or left.
 * - loss: the failure of a peer. Circle: a deadlock of ranks that wait for one another; verdict:
 *   the sentence that says so.
 * - grave: memory of an exchange that was given up, to be freed when MPI no longer uses it.
 * - leftover: an MPI communicator that is left to MPI_Finalize(). Parcel: the buffers of one
 *   nonblocking MPI collective.
 * - post: what a rank brings to a split. Steps: how far a rank has to search for a free slot.
 * - witness: the communicator over which a job's ranks agree on the outcome of a run.
 */
#ifndef TSR_COMM_ENGINES_MPI_ENGINE_H
#define TSR_COMM_ENGINES_MPI_ENGINE_H

#include "comm/engines/mpi/calls/together.h"
#include "comm/engines/mpi/handle.h"

/** tsr_comm_from_mpi(), with sentences that begin with `call`. `*losses` may be written as long as
 * the communicator, or one that was split off it, exists; NULL: losses are not noted. */
tsr_status tsr_mpi_borrow(const char *call, MPI_Comm comm, const tsr_mpi_options *options, tsr_mpi_losses *losses,
                          tsr_comm **out);

/** tsr_mpi_borrow() that also gives the engine's handle, which the communicator owns. */
tsr_status tsr_mpi_borrow_handle(const char *call, MPI_Comm comm, const tsr_mpi_options *options,
                                 tsr_mpi_losses *losses, tsr_mpi_handle **handle, tsr_comm **out);

#endif
