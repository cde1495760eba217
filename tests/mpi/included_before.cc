/* clang-format off: the order of these headers is what is tried */
#include "included_before.h"

#include <mpi.h>
/* clang-format on */

tsr_status included_before_borrow_cxx(const tsr_mpi_options *options, tsr_comm **out)
{
    return tsr_comm_from_mpi(MPI_COMM_SELF, options, out);
}
