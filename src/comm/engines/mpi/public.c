#include "comm/engines/mpi/engine.h"

tsr_status tsr_comm_from_mpi(MPI_Comm comm, const tsr_mpi_options *options, tsr_comm **out)
{
    return tsr_mpi_borrow("tsr_comm_from_mpi", comm, options, NULL, out);
}
