/**
 * One message by MPI: eager if it is short, by rendezvous if it is long.
 *
 * The sender first sends a letter, which has the length of the message, and the message itself if
 * it is short. For a long message the receiver posts its memory and then sends a token; only then
 * the sender sends the data, in pieces as long as the token says. So MPI uses the sender's memory
 * only while the receiver's is posted for it, and what was never matched can be cancelled, for it
 * is a receive: MPI cannot cancel a send. Letters and tokens lie in memory of the engine. Both
 * sides learn of lengths that differ, and then no data is sent.
 *
 * Letters, tokens and data have a tag each, and MPI delivers messages of one tag in the order in
 * which they were posted. All letters are posted at once. Tokens and data are handled one message
 * at a time, on both sides in the order of the messages' numbers: a sender awaits the token of the
 * first message that is not over, and a receiver sends a token for that message alone. So tokens
 * arrive in the order of numbers, and pieces of two messages never mix. A token with another number
 * was for a message that turned out to be short. Letters and tokens that an earlier group with the
 * same tags left behind are recognized by the group's number; if a receive gets another message's
 * letter, the two swap letters.
 */
#ifndef TSR_COMM_ENGINES_MPI_TRANSIT_H
#define TSR_COMM_ENGINES_MPI_TRANSIT_H

#include "comm/engines/mpi/handle.h"

/** Posts the letter of a message. Messages to (from) one peer must begin in their order. */
tsr_status tsr_mpi_transit_begin(tsr_mpi_handle *handle, tsr_mpi_transit *transit);

/** Goes on with the message as far as it can without waiting; `*some` becomes true if anything has
 * come. The message is over when its course is TSR_MPI_IS_OVER. */
tsr_status tsr_mpi_transit_look(tsr_mpi_handle *handle, tsr_mpi_transit *transit, bool *some);

/** Cancels the message's receives, as far as MPI still can. */
void tsr_mpi_transit_cancel(tsr_mpi_transit *transit);

/** True if MPI no longer uses memory of the message: with `data` the caller's memory alone, else
 * all. */
bool tsr_mpi_transit_is_quiet(tsr_mpi_transit *transit, bool data);

/** Notes that a message of `bytes` bytes does not have the length that its receiver expects; an
 * exchange keeps the first of these. Its other messages go on, so that the ranks stay together. */
void tsr_mpi_transit_note_length(tsr_mpi_handle *handle, const tsr_mpi_transit *transit, size_t bytes);

#endif
