/* Nodes that are told apart where there is only one, for programs that are preloaded with this: ranks below TEST_FIRST_NODE are one, the
 * others another. */
#include <mpi.h>
#include <stdlib.h>

/* Not every implementation's header says that it is seen. */
__attribute__((visibility("default"))) int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    const char *const first = getenv("TEST_FIRST_NODE");
    int rank;
    if (first == NULL)
        return PMPI_Comm_split_type(comm, type, key, info, out);
    PMPI_Comm_rank(comm, &rank);
    return PMPI_Comm_split(comm, rank >= atoi(first), key, out);
}
