/**
 * One message by MPI.
 *
 * A letter goes first: it says how long the message is, and holds it if it is short. For a long one its receiver sends a token, once it
 * has posted its memory; only then the sender lets go of the data, in pieces as long as the token says. So MPI has a sender's memory only
 * while the receiver's is there for it, and what was never matched can be taken back: a send cannot be cancelled, a receive can. Letters
 * and tokens lie in memory of the engine's own. Both sides learn of lengths that differ, and then no data travels.
 *
 * Letters, tokens and data have a tag each, and MPI brings those of one tag in the order in which they were posted. All letters are posted
 * at once. For the rest, both sides take the messages from one to the other one by one, in the order of their numbers: a sender awaits the
 * token of the first that is not over, and a receiver sends tokens for that alone. So tokens come in the order of numbers, pieces of two
 * messages never meet, and a token with another number was for a message that turned out to be short. What an earlier group with the same
 * tags left behind is told by the group's number; where such a letter has taken the place of another one, letters change places.
 */
#ifndef TSR_COMM_ENGINES_MPI_TRANSIT_H
#define TSR_COMM_ENGINES_MPI_TRANSIT_H

#include "comm/engines/mpi/handle.h"

/** Posts what a message begins with; those to (from) one peer in their order. */
tsr_status tsr_mpi_transit_begin(tsr_mpi_handle *handle, tsr_mpi_transit *transit);

/** Goes on with what has come by now; `*some`: anything has. The course says when it is over. */
tsr_status tsr_mpi_transit_look(tsr_mpi_handle *handle, tsr_mpi_transit *transit, bool *some);

/** Takes back what MPI still can. */
void tsr_mpi_transit_cancel(tsr_mpi_transit *transit);

/** True once MPI has nothing of it any more: of `data` alone, which lies in the caller's memory, or of all. */
bool tsr_mpi_transit_is_quiet(tsr_mpi_transit *transit, bool data);

/** The first message of an exchange that did not fit: of `bytes`. The others go on, so that the ranks stay together. */
void tsr_mpi_transit_note_length(tsr_mpi_handle *handle, const tsr_mpi_transit *transit, size_t bytes);

#endif
