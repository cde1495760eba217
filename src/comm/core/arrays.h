/**
 * The arrays of a handle that have one element per rank. A call makes an array when it first needs
 * it; later calls allocate nothing. A process may hold a handle for each of many ranks, so arrays
 * that no call needs would cost much memory.
 */
#ifndef TSR_COMM_CORE_ARRAYS_H
#define TSR_COMM_CORE_ARRAYS_H

#include "comm/core/object.h"

/** Makes the arrays that every call needs: comm->slots for a direct engine; comm->messages and
 * comm->agreements unless ranks share all memory. */
tsr_status tsr_arrays_create(tsr_comm *comm);

/** To be called before a reduction: makes comm->sources and comm->destinations, and with `ones`
 * comm->ones. */
tsr_status tsr_terms_reserve(tsr_comm *comm, bool ones);

/** To be called before an exchange of a direct engine, and before records are sorted: makes
 * comm->cursors. */
tsr_status tsr_cursors_reserve(tsr_comm *comm);

/** Sets every element of comm->cursors to 0. */
void tsr_cursors_rewind(tsr_comm *comm);

/** Makes and frees comm->records, which exist only during a tsr_group_prepare(). */
tsr_status tsr_records_create(tsr_comm *comm);
void tsr_records_destroy(tsr_comm *comm);

void tsr_arrays_destroy(tsr_comm *comm);

#endif
