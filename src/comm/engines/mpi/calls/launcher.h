/** Checks that this library, the MPI of the program, and the launcher that started it are of one
 * implementation. */
#ifndef TSR_COMM_ENGINES_MPI_CALLS_LAUNCHER_H
#define TSR_COMM_ENGINES_MPI_CALLS_LAUNCHER_H

#include <tessera/sys/status.h>

/** Bytes for a version's text in any implementation: MPICH's limit is 8,192, Open MPI's is lower,
 * and the program's MPI may not be the one that this was compiled for. */
#define TSR_MPI_VERSION_BYTES 16384

/** TSR_ERROR_STATE: the program's MPI is another implementation than the one that this library was
 * compiled for, so handles mean something else. To be called before any other call of MPI;
 * sentences begin with `call`. */
tsr_status tsr_mpi_check_package(const char *call);

/** TSR_ERROR_STATE: a launcher started several processes, but MPI finds only this one. MPI must be
 * initialized; sentences begin with `call`. */
tsr_status tsr_mpi_check_launcher(const char *call);

#endif
