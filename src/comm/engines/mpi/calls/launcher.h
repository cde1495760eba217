/** Whether this library, the MPI that the program has, and the launcher that started it are of one implementation. */
#ifndef TSR_COMM_ENGINES_MPI_CALLS_LAUNCHER_H
#define TSR_COMM_ENGINES_MPI_CALLS_LAUNCHER_H

#include <tessera/sys/status.h>

/** More than any implementation writes of its version: MPICH's limit is 8,192, Open MPI's is lower, and the one that answers may not be the
 * one that was compiled for. */
#define TSR_MPI_VERSION_BYTES 16384

/** TSR_ERROR_STATE: calls of MPI's go to another implementation than the one this library was compiled for, whose handles mean something
 * else. Before any other call of MPI's; sentences begin with `call`. */
tsr_status tsr_mpi_check_package(const char *call);

/** TSR_ERROR_STATE: a launcher started several processes, but MPI, which is initialized, knows of this one alone. */
tsr_status tsr_mpi_check_launcher(const char *call);

#endif
