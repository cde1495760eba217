/** Which communicators descend from which by splits, and how ranks of one are numbered in another.
 * No function here communicates. */
#ifndef TSR_COMM_CORE_LINEAGE_H
#define TSR_COMM_CORE_LINEAGE_H

#include <tessera/comm.h>

/** The nearest common ancestor, which may be `a` or `b`; NULL: there is none. Borrowed from `a` and
 * `b`. */
tsr_comm *tsr_comm_common(tsr_comm *a, tsr_comm *b);

/** The rank in `ancestor`, from which `comm` descends, of rank `rank` of `comm`. */
int tsr_comm_rank_in(const tsr_comm *comm, int rank, const tsr_comm *ancestor);

/** A number from 1 up that no other communicator with the same oldest ancestor has, now or
 * later. */
uint64_t tsr_comm_number(const tsr_comm *comm);

/** Gives `made`, whose parent is set, its number. Any thread. */
void tsr_comm_be_numbered(tsr_comm *made);

#endif
