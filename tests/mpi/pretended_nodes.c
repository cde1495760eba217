/* Pretends two nodes on one machine, for programs that preload this library: ranks below
 * TEST_FIRST_NODE are on one, the other ranks on the other. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

/* Exported here because the headers of some MPI implementations do not. */
__attribute__((visibility("default"))) int MPI_Get_processor_name(char *name, int *length)
{
    const char *const first = getenv("TEST_FIRST_NODE");
    const int result = PMPI_Get_processor_name(name, length);
    int rank;
    if (!first)
        return result;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *length = snprintf(name, MPI_MAX_PROCESSOR_NAME, "node %d", rank >= atoi(first));
    return result;
}
