/** Turns failures of MPI's calls into sentences. */
#ifndef TSR_COMM_ENGINES_MPI_CALLS_ERROR_H
#define TSR_COMM_ENGINES_MPI_CALLS_ERROR_H

#include <mpi.h>

#include <tessera/sys/status.h>

/** TSR_OK if `result` is MPI_SUCCESS, else a failure with a sentence such as "MPI_Isend:
 * MPI_ERR_OTHER: known error not in list", and the status that fits MPI's class of error. For
 * communicators and requests that return their errors (MPI_ERRORS_RETURN). */
tsr_status tsr_mpi_check(int result, const char *call);

#endif
