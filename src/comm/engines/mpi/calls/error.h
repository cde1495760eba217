/** Failures of MPI's calls in words. */
#ifndef TSR_COMM_ENGINES_MPI_CALLS_ERROR_H
#define TSR_COMM_ENGINES_MPI_CALLS_ERROR_H

#include <mpi.h>
#include <tessera/sys/status.h>

/** "MPI_Isend: MPI_ERR_OTHER: known error not in list", with the status that says whose fault `result` is. Of communicators and requests
 * that return their errors (MPI_ERRORS_RETURN). */
tsr_status tsr_mpi_check(int result, const char *call);

#endif
