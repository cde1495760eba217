/** Groups of ranks of a communicator: made collectively, kept in the communicator, and found again
 * by their ranks. */
#ifndef TSR_COMM_GROUPS_GROUP_H
#define TSR_COMM_GROUPS_GROUP_H

#include "comm/core/call.h"
#include "comm/core/comm.h"

/** Ranks of a communicator, each once. Their order is that of the ranks in the group, so the same
 * ranks in another order are another set. */
typedef struct tsr_rank_set {
    const int *ranks;
    int count;
} tsr_rank_set;

/** The rank within the group of rank `rank` of the communicator, which must be in the group. */
static inline int tsr_group_position(const tsr_group *group, int64_t rank)
{
    return group->position ? group->position[rank] : (int)rank;
}

/** What a rank brings to tsr_group_prepare(). */
typedef struct tsr_group_request {
    tsr_rank_set set; /**< has this rank; two ranks' sets are equal or disjoint; empty: the rank is in no group */
    const tsr_group_keeper *keeper; /**< of the slot; NULL: the slot is not used */
    const void *wanted;             /**< what the slot must be enough for; the keeper reads it */
    uint64_t fingerprint;           /**< must be equal on all ranks of the set */
    int64_t rounds;                 /**< 0 or more; the answer has the largest in the set */
    tsr_status local;               /**< TSR_OK, or a failure with which this rank takes part */
    tsr_call_describe *describe;
    const void *arg; /**< of `describe` */
} tsr_group_request;

/** What tsr_group_prepare() gives a rank. */
typedef struct tsr_group_answer {
    const tsr_group *group; /**< borrowed from the communicator; NULL for an empty set */
    int64_t rounds;         /**< the largest in the set; 0 for an empty one */
} tsr_group_answer;

/** Collective over `comm`: makes the groups of all sets, and what their slots lack. A group that
 * all its members hold is not made again. Disagreement and failures are told as by
 * tsr_call_begin(), with ranks of `comm`. TSR_ERROR_STATE: an operation over this rank's group is
 * not finished. */
tsr_status tsr_group_prepare(tsr_comm *comm, const tsr_group_request *request, tsr_group_answer *out);

/** Collective over `comm`: compares sets and fingerprints as tsr_group_prepare() does, and makes
 * nothing; `keeper`, `wanted` and `rounds` of the request are not used. */
tsr_status tsr_group_compare(tsr_comm *comm, const tsr_group_request *request);

/** The group whose set has this tsr_rank_set_hash(), or NULL if it was not prepared. Neither
 * communicates nor allocates. Prepare refuses a set that has the hash of a different one, so the
 * hash identifies the set. */
const tsr_group *tsr_group_find(const tsr_comm *comm, uint64_t hash);

/** The group of all ranks in their own order if it was prepared, else NULL. */
const tsr_group *tsr_group_whole(const tsr_comm *comm);

/** A hash of the set; never 0. */
uint64_t tsr_rank_set_hash(tsr_rank_set set);

#endif
