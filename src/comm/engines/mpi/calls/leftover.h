/**
 * Communicators of MPI's that could not be freed when their last handle went, because ranks left one by one or a rank was lost. MPI keeps
 * them until MPI_Finalize(), which begins by asking us: there what ranks had yet to tell one another is received, for implementations may
 * complain of messages that nobody took.
 */
#ifndef TSR_COMM_ENGINES_MPI_CALLS_LEFTOVER_H
#define TSR_COMM_ENGINES_MPI_CALLS_LEFTOVER_H

#include <mpi.h>
#include <stdbool.h>
#include <tessera/context.h>

typedef struct tsr_mpi_leftover {
    tsr_context *context; /**< of its own: the world's is not kept until MPI ends */
    MPI_Comm comm;
    MPI_Request barrier; /**< in which others have not come; MPI_REQUEST_NULL: none */
    bool again;          /**< they expect this rank in one more */
} tsr_mpi_leftover;

/** Without memory, or where MPI refuses, it is left to MPI_Finalize() as it is. */
void tsr_mpi_leftover_keep(const tsr_mpi_leftover *leftover);

#endif
