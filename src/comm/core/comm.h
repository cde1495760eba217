/** A communicator's life, and the groups that it keeps. */
#ifndef TSR_COMM_CORE_COMM_H
#define TSR_COMM_CORE_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <tessera/comm.h>

/** Bytes of a group's slot. */
#define TSR_GROUP_SLOT_BYTES 64

/**
 * What the user of a communicator's groups keeps in their slots. A slot is 0 at first. One communicator has one user, whose calls all get
 * the communicator that has the groups; those that may not fail communicate with nobody.
 */
typedef struct tsr_group_keeper {
    /** True if what the slot holds is too little for `wanted`. */
    bool (*lacks)(const void *slot, const void *wanted);
    /** Makes what is lacking, in `made`, a slot that is 0. What it has made when it fails is released as what it has made when it succeeds.
     */
    tsr_status (*make)(tsr_comm *comm, const void *slot, const void *wanted, void *made);
    /** Once all ranks have made theirs: moves what is in `made` to the slot. Nothing is left in `made`. */
    void (*take)(tsr_comm *comm, void *slot, void *made);
    /** Frees what a slot holds. */
    void (*release)(tsr_comm *comm, void *slot);
    /** True while something is under way that lives in what the slot holds. */
    bool (*is_busy)(const void *slot);
} tsr_group_keeper;

/** A group as this rank holds it. The whole communicator is a group too, whose comm is the communicator itself. */
typedef struct tsr_group {
    tsr_comm *comm;      /**< this group's communicator: its ranks are positions in `ranks`; NULL if this rank is not in it */
    const int *ranks;    /**< group rank -> parent rank; NULL for the whole communicator (identity) */
    const int *position; /**< parent rank -> group rank, -1 outside; NULL for identity */
    int count;
    const tsr_group_keeper *keeper; /**< of the slot; NULL until somebody has kept something there */
    _Alignas(16) char slot[TSR_GROUP_SLOT_BYTES];
} tsr_group;

/** The slot is its user's to change, whoever holds the group. */
static inline void *tsr_group_slot(const tsr_group *group)
{
    return (void *)group->slot;
}

/** True while its user has something under way in its slot. */
static inline bool tsr_group_is_busy(const tsr_group *group)
{
    return group->keeper && group->keeper->is_busy(group->slot);
}

/** Memory that ranks share (tsr_comm_shares_some()); not collective. Freed with tsr_comm_free(). */
tsr_status tsr_comm_alloc_shared(tsr_comm *comm, size_t bytes, void **out);

/** See object.h. */
typedef struct tsr_group_entry tsr_group_entry;

/** Frees a group, or NULL, that `comm` does not list, and what it holds; peers that are inside are waited for. */
void tsr_group_free(tsr_comm *comm, tsr_group_entry *entry);

/** Frees what is kept in a group's slot. */
void tsr_group_release_slot(tsr_comm *comm, tsr_group *group);

/** TSR_ERROR_ARGUMENT: `comm` is NULL. */
tsr_status tsr_comm_check(const tsr_comm *comm, const char *call);

/** A rank that has no place for the result takes part as failed, so that its peers are told: TSR_ERROR_ARGUMENT. */
tsr_status tsr_comm_check_out(const void *out, const char *call);

#endif
