/**
 * MPI communicators that could not be freed with their last handle, because ranks left one by one
 * or a rank was lost. MPI keeps them until MPI_Finalize(), which calls back here first (by an
 * attribute of MPI_COMM_SELF). Then messages of other ranks that are still pending are received,
 * since implementations may complain of messages that no rank received.
 */
#ifndef TSR_COMM_ENGINES_MPI_CALLS_LEFTOVER_H
#define TSR_COMM_ENGINES_MPI_CALLS_LEFTOVER_H

#include <mpi.h>

#include <tessera/context.h>

#include <stdbool.h>

typedef struct tsr_mpi_leftover {
    tsr_context *context; /**< for the leftover itself: the world's context does not live until MPI_Finalize() */
    MPI_Comm comm;
    MPI_Request barrier; /**< a barrier to which not all ranks have come; MPI_REQUEST_NULL: there is none */
    bool again;          /**< other ranks expect this one in a second barrier */
} tsr_mpi_leftover;

/** Copies `*leftover`, to be settled in MPI_Finalize(). If there is no memory, or MPI refuses, the
 * communicator is left to MPI_Finalize() as it is. */
void tsr_mpi_leftover_keep(const tsr_mpi_leftover *leftover);

#endif
