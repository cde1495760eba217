/**
 * Memory that all ranks of a node have at the same addresses.
 *
 * Every rank brings a file of its own without a name (memfd_create), as large as it may ever become and of which only touched pages are
 * memory; all map all files side by side, at an address that is free in each process. So an address means the same everywhere, memory is
 * given out without asking anybody, and what a rank has mapped outlives the process that brought it.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_NODE_H
#define TSR_COMM_ENGINES_MPI_NODE_NODE_H

#include "comm/engines/mpi/node/mates.h"
#include "comm/engines/mpi/node/resident.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tessera/context.h>

typedef struct tsr_mpi_node tsr_mpi_node;

/** Collective over the mates. `*out` is NULL on all ranks where one of them could not; `reason`, 256 bytes, then
 * says why. TSR_OK in both cases; errors are MPI's. */
tsr_status tsr_mpi_node_create(const tsr_mpi_together *together, tsr_mpi_mates *mates, tsr_mpi_node **out, char *reason);

/** References of this process; the last one unmaps. */
tsr_mpi_node *tsr_mpi_node_retain(tsr_mpi_node *node);
void tsr_mpi_node_release(tsr_mpi_node *node);

/** Memory of this rank's own file, aligned to a page and zero unless it was used before. Any thread. TSR_ERROR_MEMORY: there is no room. */
tsr_status tsr_mpi_node_alloc(tsr_mpi_node *node, size_t bytes, void **out);

/** NULL is fine. */
void tsr_mpi_node_free(tsr_mpi_node *node, void *memory);

/** The same once `*left`, in that memory, has become `count`: peers count there when they do not look any more. */
void tsr_mpi_node_free_later(tsr_mpi_node *node, void *memory, const int32_t *left, int32_t count);

/** True if all ranks have these bytes at this address. */
bool tsr_mpi_node_holds(const tsr_mpi_node *node, const void *memory, size_t bytes);

/** How many ranks the communicator has of which the node was made. */
int tsr_mpi_node_ranks(const tsr_mpi_node *node);

/** Its processes, by their ranks in the communicator over which mates were found. */
tsr_mpi_residents tsr_mpi_node_residents(const tsr_mpi_node *node);

/** Everybody on the node learns that rank `who` has aborted, as its caller counts ranks; the first one stays. */
void tsr_mpi_node_abort(tsr_mpi_node *node, int who);

/** The rank that has; -1: none. Any thread. */
int tsr_mpi_node_aborter(const tsr_mpi_node *node);

#endif
