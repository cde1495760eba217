/* Nodes that are told apart where there is only one, for programs that are preloaded with this: ranks below TEST_FIRST_NODE are one, the
 * others another. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Not every implementation's header says that it is seen. */
__attribute__((visibility("default"))) int MPI_Get_processor_name(char *name, int *length)
{
    const char *const first = getenv("TEST_FIRST_NODE");
    const int result = PMPI_Get_processor_name(name, length);
    int rank;
    if (first == NULL)
        return result;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *length = snprintf(name, MPI_MAX_PROCESSOR_NAME, "node %d", rank >= atoi(first));
    return result;
}
