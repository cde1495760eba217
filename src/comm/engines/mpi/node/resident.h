/**
 * What a process of a node shows to the others in memory that they share: whether it lives, and where it sleeps.
 *
 * Ranks sleep at gates, each until all members of its communicator have come. A rank whose thread is the only one that may call shows whom
 * it waits for, so that ranks that called in different orders on different communicators find that they wait in a circle: then none can
 * ever come.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_RESIDENT_H
#define TSR_COMM_ENGINES_MPI_NODE_RESIDENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Room for why a rank can never go on. */
#define TSR_MPI_VERDICT_BYTES 256

typedef enum tsr_mpi_life { TSR_MPI_DEAD = -1, TSR_MPI_STOPPED, TSR_MPI_RUNS } tsr_mpi_life;

typedef struct tsr_mpi_resident {
    int32_t name;    /**< its rank, as sentences count */
    int32_t process; /**< in numbers of the node's */
    uint64_t start;  /**< when that began, which tells it from a later one of the same number */

    _Atomic(uint64_t) naps; /**< odd while it sleeps, and then the fields below are of this nap */
    _Atomic(int32_t) awaited;
    _Atomic(int32_t) ranks; /**< of its communicator */
    _Atomic(uintptr_t) count, state;
    _Atomic(uint64_t) goal;
    _Atomic(uint64_t) verdict; /**< the nap that never ends, once `words` say why */
    char words[TSR_MPI_VERDICT_BYTES];
} tsr_mpi_resident;

/** Those of a node: they lie `stride` bytes apart, in any order of names. */
typedef struct tsr_mpi_residents {
    char *first;
    size_t stride;
    int count;
} tsr_mpi_residents;

/** NULL: nobody has that name. */
tsr_mpi_resident *tsr_mpi_resident_find(tsr_mpi_residents all, int name);

/** This process. */
void tsr_mpi_resident_introduce(tsr_mpi_resident *resident, int name);

/** What has become of a process; one of which nothing is to be learned runs. */
tsr_mpi_life tsr_mpi_resident_life(const tsr_mpi_resident *resident);

/** Sleeps from now on, until resident `awaited` lets `*count` reach `goal`, or `*state` is not 0 any more. Both lie in shared memory. */
void tsr_mpi_resident_lie_down(tsr_mpi_resident *resident, int awaited, int ranks, const _Atomic(uint64_t) *count, uint64_t goal,
                               const _Atomic(int32_t) *state);
void tsr_mpi_resident_get_up(tsr_mpi_resident *resident);

/** Looks whether this sleeper waits in a circle, and then tells all who are in one or wait for one who is. */
void tsr_mpi_resident_check_stall(tsr_mpi_residents all, tsr_mpi_resident *sleeper);

/** Why the nap of this sleeper never ends; NULL: nobody has found that. */
const char *tsr_mpi_resident_verdict(const tsr_mpi_resident *resident);

#endif
