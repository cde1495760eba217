#include "comm/engines/mpi/calls/error.h"

static tsr_status status_of(int result)
{
    int class;
    if (MPI_Error_class(result, &class) != MPI_SUCCESS)
        return TSR_ERROR_DEVICE;
    switch (class) {
    case MPI_ERR_ARG:
    case MPI_ERR_COMM:
    case MPI_ERR_TRUNCATE:
        return TSR_ERROR_ARGUMENT;
    case MPI_ERR_NO_MEM:
        return TSR_ERROR_MEMORY;
    default:
        /* Most other failures of MPI come from a peer or the network. */
        return TSR_ERROR_PEER;
    }
}

/* MPICH writes a stack of calls, one per line. */
static void make_one_line(char *words)
{
    for (char *c = words; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
}

tsr_status tsr_mpi_check(int result, const char *call)
{
    if (result == MPI_SUCCESS)
        return TSR_OK;
    char words[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    if (MPI_Error_string(result, words, &length) != MPI_SUCCESS)
        return tsr_status_set(TSR_ERROR_DEVICE, "%s failed with MPI's error %d", call, result);
    make_one_line(words);
    return tsr_status_set(status_of(result), "%s: %s", call, words);
}
