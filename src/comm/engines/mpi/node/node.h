/**
 * Memory that all ranks of a node share, at the same addresses.
 *
 * Every rank makes an unnamed file (memfd_create), as large as it may ever become; only touched
 * pages take memory. Every rank maps all files side by side, at an address that is free in each
 * process. So an address means the same on all ranks, a rank allocates from its own file without
 * asking another, and memory that a rank has mapped outlives the process that made the file.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_NODE_H
#define TSR_COMM_ENGINES_MPI_NODE_NODE_H

#include "comm/engines/mpi/node/mates.h"
#include "comm/engines/mpi/node/resident.h"

#include <tessera/context.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tsr_mpi_node tsr_mpi_node;

/** Collective over the mates. If one of them cannot share memory, `*out` becomes NULL on all of
 * them, `reason` (256 bytes) says why, and TSR_OK is returned all the same. Errors: a call of MPI
 * failed, or a mate did not come. */
tsr_status tsr_mpi_node_create(const tsr_mpi_together *together, tsr_mpi_mates *mates, tsr_mpi_node **out,
                               char *reason);

/** References within this process; the last release unmaps the memory. */
tsr_mpi_node *tsr_mpi_node_retain(tsr_mpi_node *node);
void tsr_mpi_node_release(tsr_mpi_node *node);

/** Allocates memory of this rank's own file, aligned to a page, and 0 unless it was used before.
 * Any thread. TSR_ERROR_MEMORY: there is no room. */
tsr_status tsr_mpi_node_alloc(tsr_mpi_node *node, size_t bytes, void **out);

/** NULL is allowed. Any thread. */
void tsr_mpi_node_free(tsr_mpi_node *node, void *memory);

/** Frees memory once `*left`, which lies in that memory, has become `count`: peers count there when
 * they no longer use it. */
void tsr_mpi_node_free_later(tsr_mpi_node *node, void *memory, const int32_t *left, int32_t count);

/** True if these bytes lie in the shared memory: all ranks have them at this address. */
bool tsr_mpi_node_holds(const tsr_mpi_node *node, const void *memory, size_t bytes);

/** How many ranks the node has: the mates with which it was made. */
int tsr_mpi_node_ranks(const tsr_mpi_node *node);

/** The entries of the node's processes, named by their ranks in the communicator over which mates
 * were found. */
tsr_mpi_residents tsr_mpi_node_residents(const tsr_mpi_node *node);

/** Tells all ranks of the node that rank `who` of the world has aborted. Only the first one is
 * kept. */
void tsr_mpi_node_abort(tsr_mpi_node *node, int who);

/** The rank that has aborted; -1: none. Any thread. */
int tsr_mpi_node_aborter(const tsr_mpi_node *node);

#endif
