/** What this rank knows of all ranks that were brought together, whatever groups they make: who shares its node, who is lost, which tags
 * are taken. */
#ifndef TSR_COMM_ENGINES_MPI_WORLD_H
#define TSR_COMM_ENGINES_MPI_WORLD_H

#include <stdatomic.h>
#include <tessera/mpi.h>

#include "comm/engines/mpi/calls/together.h"
#include "comm/engines/mpi/node/node.h"

/** Tags of a group: one a way. */
#define TSR_MPI_TAGS 4

/** See handle.h. */
typedef struct tsr_mpi_grave tsr_mpi_grave;

/** Groups with tags of their own, at most. */
#define TSR_MPI_SLOTS 8192

/**
 * What tsr_comm_from_mpi() makes: one MPI communicator, for that and all that is split off it, which differ in the tags of their messages.
 * So what a lost rank has sent never meets a later communicator, and MPI's numbers for communicators do not run out.
 */
typedef struct tsr_mpi_world {
    MPI_Comm comm; /**< our own; errors return */
    tsr_context *context;
    tsr_mpi_options options; /**< `context` apart, and with nothing left to defaults */
    int rank, ranks;
    tsr_mpi_node *node;                          /**< NULL: everything goes by messages of MPI's */
    int *first;                                  /**< one a rank: the lowest rank of its node */
    bool shares;                                 /**< on every node ranks share memory */
    bool alone;                                  /**< no other thread of this process may call at the same time */
    bool apart;                                  /**< some ranks share no memory with this one */
    atomic_int *gone;                            /**< one a rank: when it was heard that it has left, counted from 1; 0: not */
    atomic_int leavers;                          /**< that have been heard of */
    atomic_bool told;                            /**< this rank has aborted, and the others have been told */
    int next_group;                              /**< no group of this rank has this number or a higher one */
    int slots;                                   /**< groups that have tags of their own: TSR_MPI_SLOTS, or less where MPI has fewer */
    _Atomic(uint64_t) taken[TSR_MPI_SLOTS / 64]; /**< those of this rank's groups: a bit each */
    tsr_mpi_grave *graves;
    int handles;                      /**< that are left, or whoever else holds it; atomic */
    atomic_int aborter;               /**< one more than a rank that has aborted; 0: nobody that this rank knows of without its node */
    bool broken;                      /**< messages may be under way that nobody waits for */
    _Atomic(tsr_mpi_losses *) losses; /**< of the world's maker; NULL: the maker does not ask, or asks no more */
} tsr_mpi_world;

/** True if that rank of the world and this one share memory. */
bool tsr_mpi_world_is_mate(const tsr_mpi_world *world, int rank);

/** Whether none of this rank's groups has that slot, and to take it and give it back; below 0: nothing. A broken group keeps its own. */
bool tsr_mpi_world_has_slot(const tsr_mpi_world *world, int slot);
void tsr_mpi_world_take_slot(tsr_mpi_world *world, int slot);
void tsr_mpi_world_free_slot(tsr_mpi_world *world, int slot);

/** Rank `who` has aborted: this rank and its mates know. Any thread. */
void tsr_mpi_world_abort(tsr_mpi_world *world, int who);

/** The rank that has; -1: none. Any thread. */
int tsr_mpi_world_aborter(const tsr_mpi_world *world);

/** Its maker learns that a rank did not come, or has died. */
void tsr_mpi_world_note_loss(tsr_mpi_world *world);

#endif
