/**
 * Arrays of one element a rank that calls over a communicator work with. A process may hold a handle for each of many ranks, so a handle
 * has what its calls have needed so far and no more. The first call that needs an array makes it, later ones allocate nothing.
 */
#ifndef TSR_COMM_CORE_ARRAYS_H
#define TSR_COMM_CORE_ARRAYS_H

#include "comm/core/object.h"

/** What every call needs: comm->slots of a direct engine, comm->messages and comm->agreements of all that exchange. */
tsr_status tsr_arrays_create(tsr_comm *comm);

/** Before a call that reduces: comm->sources and comm->destinations, and with `ones` comm->ones. */
tsr_status tsr_terms_reserve(tsr_comm *comm, bool ones);

/** Before an exchange of a direct engine, and before records are sorted: comm->cursors. */
tsr_status tsr_cursors_reserve(tsr_comm *comm);

/** All of these at 0. */
void tsr_cursors_rewind(tsr_comm *comm);

/** For one tsr_group_prepare(): comm->records, and their end. */
tsr_status tsr_records_create(tsr_comm *comm);
void tsr_records_destroy(tsr_comm *comm);

void tsr_arrays_destroy(tsr_comm *comm);

#endif
