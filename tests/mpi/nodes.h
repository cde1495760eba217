/** Nodes that are told apart where there is only one: MPI's calls of this program pass here first. */
#ifndef TESTS_MPI_NODES_H
#define TESTS_MPI_NODES_H

#include <stdbool.h>
#include <stddef.h>

/** From the next communicator on, ranks 0 to `first` - 1 are one node, and the others another. 0: nothing is pretended. */
void nodes_pretend(int first);

/** Likewise, ranks are dealt out to `nodes` nodes in turn: rank r is on node r modulo that. */
void nodes_pretend_turns(int nodes);

/** Bytes that this rank has sent by MPI to ranks of its own node and to others, since the last call. */
void nodes_count(size_t *inside, size_t *between);

/** The `nth` receive from now on fails. 0: none. */
void nodes_fail_receive(int nth);

/** This rank is held up in the `nth` nonblocking barrier from now on, before it begins or once it has. 0: in none. */
void nodes_delay_barrier(int nth, bool begun, int milliseconds);

/** Communicators that this rank has freed since the last call. */
int nodes_count_freed(void);

/** From the next communicator on, MPI has tags up to `bound` alone. 0: as many as it has. */
void nodes_bound_tags(int bound);

#endif
