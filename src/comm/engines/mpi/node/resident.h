/**
 * The entry of a process in its node's shared memory: by it other processes see whether it lives,
 * and for which rank it sleeps.
 *
 * Ranks sleep at gates, each until all members of its communicator have come. A rank whose process
 * has no other thread that may call shows for which rank it waits. So ranks that called in
 * different orders on different communicators find that they wait in a circle, which never ends.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_RESIDENT_H
#define TSR_COMM_ENGINES_MPI_NODE_RESIDENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of the sentence why a rank can never go on. */
#define TSR_MPI_VERDICT_BYTES 256

typedef enum tsr_mpi_life { TSR_MPI_DEAD = -1, TSR_MPI_STOPPED, TSR_MPI_RUNS } tsr_mpi_life;

typedef struct tsr_mpi_resident {
    int32_t name;    /**< its rank in the world */
    int32_t process; /**< its process id */
    uint64_t start;  /**< when the process started, which tells it from a later one with the same id */

    _Atomic(uint64_t) naps; /**< odd while it sleeps: then the fields below are those of this nap */
    _Atomic(int32_t) awaited;
    _Atomic(int32_t) ranks; /**< how many its communicator has */
    _Atomic(uintptr_t) count, state;
    _Atomic(uint64_t) goal;
    _Atomic(uint64_t) verdict; /**< the value of `naps` for a nap that never ends, once `words` say why */
    char words[TSR_MPI_VERDICT_BYTES];
} tsr_mpi_resident;

/** All entries of a node: they lie `stride` bytes apart, in any order of names. */
typedef struct tsr_mpi_residents {
    char *first;
    size_t stride;
    int count;
} tsr_mpi_residents;

/** The entry of the rank with this name; NULL: there is none. */
tsr_mpi_resident *tsr_mpi_resident_find(tsr_mpi_residents all, int name);

/** Fills in the entry of this process. */
void tsr_mpi_resident_introduce(tsr_mpi_resident *resident, int name);

/** Whether the process of an entry lives. If the system does not tell, it is taken to run. */
tsr_mpi_life tsr_mpi_resident_life(const tsr_mpi_resident *resident);

/** Shows that this process sleeps until rank `awaited` lets `*count` reach `goal`, or `*state` is
 * not 0 any more. Both lie in shared memory. `ranks`: how many its communicator has. */
void tsr_mpi_resident_lie_down(tsr_mpi_resident *resident, int awaited, int ranks, const _Atomic(uint64_t) *count,
                               uint64_t goal, const _Atomic(int32_t) *state);
void tsr_mpi_resident_get_up(tsr_mpi_resident *resident);

/** Checks whether `sleeper` waits in a circle. If so, gives a verdict to all ranks that are in a
 * circle or wait for one that is. */
void tsr_mpi_resident_check_stall(tsr_mpi_residents all, tsr_mpi_resident *sleeper);

/** Why this rank's present nap never ends; NULL: no rank has found that it does not. */
const char *tsr_mpi_resident_verdict(const tsr_mpi_resident *resident);

#endif
