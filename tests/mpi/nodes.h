/** Pretends several nodes on one machine, and makes MPI's calls fail or wait, by intercepting the
 * program's calls of MPI. */
#ifndef TESTS_MPI_NODES_H
#define TESTS_MPI_NODES_H

#include <stdbool.h>
#include <stddef.h>

/** From the next communicator on, ranks below `first` are one node, and the others another. 0:
 * pretends nothing. */
void nodes_pretend(int first);

/** From the next communicator on, rank r is on node r modulo `nodes`. */
void nodes_pretend_turns(int nodes);

/** Bytes that this rank has sent by MPI to ranks of its own node and to others, since the last
 * call. */
void nodes_count(size_t *inside, size_t *between);

/** Makes the `nth` receive from now on fail; 0: none. */
void nodes_fail_receive(int nth);

/** Delays this rank in its `nth` nonblocking barrier from now on (0: none), before the barrier
 * begins or, with `begun`, after. */
void nodes_delay_barrier(int nth, bool begun, int milliseconds);

/** The number of communicators that this rank has freed since the last call. */
int nodes_count_freed(void);

/** From the next communicator on, MPI's tags are at most `bound`; 0: MPI's own bound. */
void nodes_bound_tags(int bound);

#endif
