/**
 * Finds which ranks of a communicator share a node (mates), and lets them exchange a few bytes
 * before they share memory. MPI has a call to find them, MPI_Comm_split_type(), but it blocks as
 * long as any rank stays away. Here messages are polled, and a rank that is not joined within the
 * timeout gives up.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_MATES_H
#define TSR_COMM_ENGINES_MPI_NODE_MATES_H

#include "comm/engines/mpi/calls/together.h"

/** The most bytes that a rank brings to one exchange. */
#define TSR_MPI_ROW_BYTES 32

/** The ranks of this rank's node, this one included. */
typedef struct tsr_mpi_mates {
    MPI_Comm comm;    /**< borrowed; nothing else is sent over it meanwhile */
    int place, count; /**< this rank's index in `ranks`, and how many `ranks` has */
    int *ranks;       /**< the mates' ranks in `comm`, ascending */
    MPI_Request *requests;
    char *rows;   /**< this rank's row, then one per mate */
    void *memory; /**< the block with all these arrays; NULL, for it is left to MPI, once a mate did not come */
} tsr_mpi_mates;

/**
 * Collective over `comm`: first[r] becomes the lowest rank of r's node, `*out` the mates of this
 * rank. Two ranks share a node if MPI has the same name for their processors, their kernels have
 * the same boot id, and they are in the same namespace of process ids. tsr_mpi_mates_free() frees
 * `*out`; it does nothing to a zeroed one.
 */
tsr_status tsr_mpi_mates_find(const tsr_mpi_together *together, MPI_Comm comm, int *first, tsr_mpi_mates *out);
void tsr_mpi_mates_free(const tsr_mpi_together *together, tsr_mpi_mates *mates);

/** Collective over the mates: `*least` becomes the minimum of `mine`. */
tsr_status tsr_mpi_mates_least(const tsr_mpi_together *together, tsr_mpi_mates *mates, int64_t mine, int64_t *least);

/** Collective over the mates: an all-gather of `bytes` bytes each, at most TSR_MPI_ROW_BYTES, in
 * the order of `ranks`. */
tsr_status tsr_mpi_mates_gather(const tsr_mpi_together *together, tsr_mpi_mates *mates, const void *mine, void *all,
                                size_t bytes);

#endif
