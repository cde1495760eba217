/** Groups of ranks within a communicator, made collectively, kept in it, and found again by their ranks. */
#ifndef TSR_COMM_GROUPS_GROUP_H
#define TSR_COMM_GROUPS_GROUP_H

#include "comm/core/call.h"
#include "comm/core/comm.h"

/** A set of ranks of a communicator, ascending, each once. */
typedef struct tsr_rank_set {
    const int *ranks;
    int count;
} tsr_rank_set;

/** The group's rank of a rank of the communicator that is in it. */
static inline int tsr_group_position(const tsr_group *group, int64_t rank)
{
    return group->position ? group->position[rank] : (int)rank;
}

/** What a rank brings to tsr_group_prepare(). */
typedef struct tsr_group_request {
    tsr_rank_set set; /**< that it belongs to: sets of different ranks are equal or disjoint; an empty one takes part, in no group */
    const tsr_group_keeper *keeper; /**< NULL: nothing is wanted in the slot */
    const void *wanted;             /**< in the slot, for the keeper */
    uint64_t fingerprint;           /**< equal within the set */
    int64_t rounds;                 /**< 0 or more: all ranks of the set learn the largest */
    tsr_status local;               /**< a failure with which this rank takes part, or TSR_OK */
    tsr_call_describe *describe;
    const void *arg; /**< of describe */
} tsr_group_request;

/** What it gets back. */
typedef struct tsr_group_answer {
    const tsr_group *group; /**< borrowed from the communicator; NULL for an empty set */
    int64_t rounds;         /**< the largest in the set; 0 for an empty one */
} tsr_group_answer;

/** Collective over `comm`. Groups that all their members hold already are not made again. Disagreement and failures: as tsr_call_begin();
 * ranks in error are those of `comm`. TSR_ERROR_STATE: what was started over the group that this rank names is not finished. */
tsr_status tsr_group_prepare(tsr_comm *comm, const tsr_group_request *request, tsr_group_answer *out);

/** The group whose set has this tsr_rank_set_hash() if it was prepared here, else NULL. Local; no allocation. Prepare refuses a second set
 * with the hash of another, so that the hash alone says which set is meant. */
const tsr_group *tsr_group_find(const tsr_comm *comm, uint64_t hash);

/** The whole communicator if it was prepared as a group, else NULL. */
const tsr_group *tsr_group_whole(const tsr_comm *comm);

/** Never 0. */
uint64_t tsr_rank_set_hash(tsr_rank_set set);

#endif
