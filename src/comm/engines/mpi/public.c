#include "comm/engines/mpi/engine.h"

#include <tessera/sys/status.h>

#include <string.h>

tsr_status tsr_comm_from_mpi(MPI_Comm comm, const tsr_mpi_options *options, tsr_comm **out)
{
    return tsr_mpi_borrow("tsr_comm_from_mpi", comm, options, NULL, out);
}

tsr_status tsr_comm_from_mpi_handle(const void *comm, size_t bytes, const tsr_mpi_options *options, tsr_comm **out)
{
    MPI_Comm handle;
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_from_mpi: comm is NULL");
    if (bytes != sizeof handle)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "tsr_comm_from_mpi: comm has %zu bytes, but an MPI_Comm of this library's MPI has %zu; compile "
            "the program with the mpi.h of the MPI that libtessera-mpi is for",
            bytes, sizeof handle);
    memcpy(&handle, comm, sizeof handle);
    return tsr_mpi_borrow("tsr_comm_from_mpi", handle, options, NULL, out);
}
