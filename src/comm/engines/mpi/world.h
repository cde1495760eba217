/** What this rank knows of all ranks of one tsr_comm_from_mpi(), whatever groups they form: which
 * of them share its node, which are lost, which tags are in use. */
#ifndef TSR_COMM_ENGINES_MPI_WORLD_H
#define TSR_COMM_ENGINES_MPI_WORLD_H

#include "comm/engines/mpi/calls/together.h"
#include "comm/engines/mpi/node/node.h"

#include <tessera/mpi.h>

#include <stdatomic.h>

/** Tags of a group: one for each tsr_mpi_way, and one more, which in the first group is that of
 * notices (notice.c). */
#define TSR_MPI_TAGS 4

/** See handle.h. */
typedef struct tsr_mpi_grave tsr_mpi_grave;

/** At most this many groups have tags at the same time. */
#define TSR_MPI_SLOTS 8192

/**
 * What tsr_comm_from_mpi() makes: one MPI communicator for that communicator and all that are split
 * off it, whose messages differ in their tags. So messages of a lost rank never match receives of a
 * later communicator, and MPI does not run out of ids for communicators.
 */
typedef struct tsr_mpi_world {
    MPI_Comm comm; /**< a duplicate that the world owns; its errors return */
    tsr_context *context;
    tsr_mpi_options options; /**< with defaults filled in; its `context` is not used */
    int rank, ranks;
    tsr_mpi_node *node; /**< NULL: this rank shares no memory, and all its messages go by MPI */
    int *first;         /**< one per rank: the lowest rank of its node */
    bool shares;        /**< on every node the ranks share memory */
    bool alone;         /**< MPI's thread level allows no other thread of this process to call meanwhile */
    bool apart;         /**< some ranks share no memory with this one */
    atomic_int *gone;   /**< one per rank: 1 if its departure was heard first, 2 if second, ..; 0: not heard */
    atomic_int leavers; /**< how many departures have been heard */
    atomic_bool told;   /**< this rank has aborted and sent notices of it */
    int next_group;     /**< no group of this rank has this number or a higher one */
    int slots;          /**< how many sets of tags there are: TSR_MPI_SLOTS, or fewer if MPI has fewer tags */
    _Atomic(uint64_t) taken[TSR_MPI_SLOTS / 64]; /**< one bit per set of tags: a group of this rank uses it */
    tsr_mpi_grave *graves;
    int handles;                      /**< atomic; handles and other holds (tsr_mpi_world_hold()) */
    atomic_int aborter;               /**< 1 + the rank that has aborted; 0: none is known, but the node may know one */
    bool broken;                      /**< messages may be under way that no rank waits for */
    _Atomic(tsr_mpi_losses *) losses; /**< where losses are noted; NULL: nowhere */
} tsr_mpi_world;

/** True if rank `rank` of the world shares memory with this rank. */
bool tsr_mpi_world_is_mate(const tsr_mpi_world *world, int rank);

/** `has`: true if no group of this rank uses the set of tags `slot`. `take` marks it as used;
 * `free` undoes that, and does nothing if `slot` is below 0. A broken group never frees its
 * slot. */
bool tsr_mpi_world_slot_is_free(const tsr_mpi_world *world, int slot);
void tsr_mpi_world_take_slot(tsr_mpi_world *world, int slot);
void tsr_mpi_world_free_slot(tsr_mpi_world *world, int slot);

/** Notes that rank `who` has aborted, for this rank and its mates. Any thread. */
void tsr_mpi_world_abort(tsr_mpi_world *world, int who);

/** The rank that has aborted; -1: none is known. Any thread. */
int tsr_mpi_world_aborter(const tsr_mpi_world *world);

/** Notes in `losses` that a rank did not come, or has died. */
void tsr_mpi_world_note_loss(tsr_mpi_world *world);

#endif
