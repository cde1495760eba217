/** Callers of tsr_comm_from_mpi() in files that include <tessera/mpi.h> before <mpi.h>. */
#ifndef TEST_INCLUDED_BEFORE_H
#define TEST_INCLUDED_BEFORE_H

#include <tessera/mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** tsr_comm_from_mpi() of MPI_COMM_SELF, in C. */
tsr_status included_before_borrow(const tsr_mpi_options *options, tsr_comm **out);

/** tsr_comm_from_mpi() of MPI_COMM_SELF, in C++. */
tsr_status included_before_borrow_cxx(const tsr_mpi_options *options, tsr_comm **out);

#ifdef __cplusplus
}
#endif

#endif
