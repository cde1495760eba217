/**
 * Collectives of MPI with a timeout, for making communicators: if not all ranks come in time, a
 * rank gives up. MPI cannot cancel a collective. So its buffers are allocated here, and if a rank
 * gives up they are left to MPI, with the context that they are from. If there is no memory for
 * them, the wait has no timeout.
 */
#ifndef TSR_COMM_ENGINES_MPI_CALLS_TOGETHER_H
#define TSR_COMM_ENGINES_MPI_CALLS_TOGETHER_H

#include <mpi.h>

#include <tessera/context.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a communicator tells its maker about lost ranks. */
typedef struct tsr_mpi_losses {
    bool unmade; /**< not all ranks came while the communicator was made, and MPI_Finalize() would wait for them */
    atomic_bool missed; /**< not all ranks came to a call, or a process ended */
} tsr_mpi_losses;

typedef struct tsr_mpi_together {
    const char *call; /**< sentences begin with it */
    tsr_context *context;
    int64_t timeout_ms;
    tsr_mpi_losses *losses; /**< of the communicator that is made; or NULL */
} tsr_mpi_together;

/** MPI_Comm_dup(). TSR_ERROR_PEER, here and below: not all ranks came in time. */
tsr_status tsr_mpi_duplicate(const tsr_mpi_together *together, MPI_Comm comm, MPI_Comm *out);

/** `*least` becomes the minimum of `mine` over all ranks. */
tsr_status tsr_mpi_least(const tsr_mpi_together *together, MPI_Comm comm, int64_t mine, int64_t *least);

/** An all-gather: `bytes` bytes of every rank, in rank order, in `all`, which does not overlap
 * `mine`. */
tsr_status tsr_mpi_gather_all(const tsr_mpi_together *together, MPI_Comm comm, const void *mine, void *all,
                              size_t bytes);

/** For waits by other means: returns TSR_ERROR_PEER with the sentence that not all ranks came
 * within the timeout, and notes the loss. */
tsr_status tsr_mpi_say_late(const tsr_mpi_together *together);

#endif
