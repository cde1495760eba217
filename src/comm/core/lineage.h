/** Which communicators descend from one, and what ranks of one are called in another. None of these calls communicates. */
#ifndef TSR_COMM_CORE_LINEAGE_H
#define TSR_COMM_CORE_LINEAGE_H

#include <tessera/comm.h>

/** The nearest communicator from which both descend, perhaps one of the two; NULL: there is none. Borrowed from `a` and `b`. */
tsr_comm *tsr_comm_common(tsr_comm *a, tsr_comm *b);

/** What `ancestor`, from which `comm` descends, calls rank `rank` of `comm`. */
int tsr_comm_rank_in(const tsr_comm *comm, int rank, const tsr_comm *ancestor);

/** A number that no other communicator which descends from the same eldest one has, now or later; from 1 up. */
uint64_t tsr_comm_number(const tsr_comm *comm);

/** Gives `made` one, once its parent is known. Any thread. */
void tsr_comm_be_numbered(tsr_comm *made);

#endif
