/**
 * Which ranks of a communicator share a node, and what they tell one another before they share memory. MPI has a call for that,
 * MPI_Comm_split_type(), which blocks for as long as any rank stays away; here all is told by messages that are polled, and a rank that is
 * not joined within the timeout gives up.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_MATES_H
#define TSR_COMM_ENGINES_MPI_NODE_MATES_H

#include "comm/engines/mpi/calls/together.h"

/** Bytes that a rank tells at a time. */
#define TSR_MPI_ROW_BYTES 32

/** The ranks of this one's node. */
typedef struct tsr_mpi_mates {
    MPI_Comm comm;    /**< borrowed: nothing else is sent over it meanwhile */
    int place, count; /**< of this rank among them */
    int *ranks;       /**< theirs in `comm`, ascending */
    MPI_Request *requests;
    char *rows;   /**< this rank's row, then one a mate */
    void *memory; /**< all of these; MPI's once a mate did not come */
} tsr_mpi_mates;

/**
 * Collective over `comm`: first[r] becomes the lowest rank of r's node. Ranks share one if the names that MPI has for their processors
 * are equal, the system was started once for all of them, and they number processes alike. tsr_mpi_mates_free() ends `*out`, and does
 * nothing to a zeroed one.
 */
tsr_status tsr_mpi_mates_find(const tsr_mpi_together *together, MPI_Comm comm, int *first, tsr_mpi_mates *out);
void tsr_mpi_mates_free(const tsr_mpi_together *together, tsr_mpi_mates *mates);

/** Collective over the mates: the least of what they bring. */
tsr_status tsr_mpi_mates_least(const tsr_mpi_together *together, tsr_mpi_mates *mates, int64_t mine, int64_t *least);

/** Collective over the mates: `bytes` of each, TSR_MPI_ROW_BYTES at most, one after the other in `all`. */
tsr_status tsr_mpi_mates_gather(const tsr_mpi_together *together, tsr_mpi_mates *mates, const void *mine, void *all, size_t bytes);

#endif
