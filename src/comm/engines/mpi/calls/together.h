/**
 * Collectives of MPI's that end, for making communicators: a rank that is not joined within the timeout gives up. MPI cannot take such a
 * call back, so its memory is kept here, and left to MPI with the context that it is from. Where there is no memory for that, the wait has
 * no limit.
 */
#ifndef TSR_COMM_ENGINES_MPI_CALLS_TOGETHER_H
#define TSR_COMM_ENGINES_MPI_CALLS_TOGETHER_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tessera/context.h>

/** What a communicator tells its maker of ranks that are missing. */
typedef struct tsr_mpi_losses {
    bool unmade;        /**< not all ranks came while it was made, and MPI_Finalize() would wait for them */
    atomic_bool missed; /**< not all came to a call, or a process ended */
} tsr_mpi_losses;

typedef struct tsr_mpi_together {
    const char *call; /**< that sentences begin with */
    tsr_context *context;
    int64_t timeout_ms;
    tsr_mpi_losses *losses; /**< of what is made; or NULL */
} tsr_mpi_together;

/** TSR_ERROR_PEER: not all ranks have come. */
tsr_status tsr_mpi_duplicate(const tsr_mpi_together *together, MPI_Comm comm, MPI_Comm *out);

/** The least of what ranks bring. */
tsr_status tsr_mpi_least(const tsr_mpi_together *together, MPI_Comm comm, int64_t mine, int64_t *least);

/** `bytes` of every rank, one after the other in `all`; `mine` is not part of it. */
tsr_status tsr_mpi_gather_all(const tsr_mpi_together *together, MPI_Comm comm, const void *mine, void *all, size_t bytes);

/** For those who wait for ranks by other means: TSR_ERROR_PEER, not all have come within the timeout. */
tsr_status tsr_mpi_say_late(const tsr_mpi_together *together);

#endif
