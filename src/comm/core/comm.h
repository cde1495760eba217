/** How a communicator is made and destroyed, and the groups that it keeps. */
#ifndef TSR_COMM_CORE_COMM_H
#define TSR_COMM_CORE_COMM_H

#include <tessera/comm.h>
#include <tessera/sys/comm.h>

#include <stdbool.h>
#include <stddef.h>

/** Bytes of a group's slot. */
#define TSR_GROUP_SLOT_BYTES 64

/**
 * The functions of a module that keeps data in the slots of a communicator's groups. A slot is all
 * 0 at first. One module at most uses the groups of a communicator. Every function is given the
 * communicator that holds the groups. Functions without a status communicate with no rank.
 */
typedef struct tsr_group_keeper {
    /** True if the slot's content is not enough for `wanted`. */
    bool (*lacks)(const void *slot, const void *wanted);
    /** Allocates what the slot lacks, and puts it into `made`, a slot that is all 0. After a
     * failure, too, the caller releases `made`. */
    tsr_status (*make)(tsr_comm *comm, const void *slot, const void *wanted, void *made);
    /** Called when `make` has succeeded on all ranks: moves the content of `made` to the slot, and
     * leaves nothing in `made`. */
    void (*take)(tsr_comm *comm, void *slot, void *made);
    /** Frees the content of a slot. */
    void (*release)(tsr_comm *comm, void *slot);
    /** True while an operation is in flight that uses the content of the slot. */
    bool (*is_busy)(const void *slot);
} tsr_group_keeper;

/** A group of ranks as this rank holds it. All ranks of a communicator are a group too, whose
 * `comm` is the communicator itself. */
typedef struct tsr_group {
    /** this group's own: its ranks are positions in `ranks`; NULL if this rank is not in it */
    tsr_comm *comm;
    const int *ranks;    /**< group rank -> parent rank, in any order; NULL for the whole communicator (identity) */
    const int *position; /**< parent rank -> group rank, -1 outside; NULL for identity */
    int count;
    void *choices;                  /**< the rank's tsr_kernel_choices, `self` of the host's kernels */
    const tsr_group_keeper *keeper; /**< functions for the slot; NULL until something is kept there */
    _Alignas(16) char slot[TSR_GROUP_SLOT_BYTES];
} tsr_group;

/** The slot, which its user may change although the group is const. */
static inline void *tsr_group_slot(const tsr_group *group)
{
    return (void *)group->slot;
}

/** True while an operation is in flight that uses the group's slot. */
static inline bool tsr_group_is_busy(const tsr_group *group)
{
    return group->keeper && group->keeper->is_busy(group->slot);
}

/** tsr_comm_create_from_table() for arguments that are known not to be NULL. `parent`: the
 * communicator that this one is split off, whose kernel choices it shares; NULL: it gets choices of
 * its own. */
tsr_status tsr_comm_create_with(tsr_context *context, const tsr_comm_table *table, void *self, const tsr_comm *parent,
                                tsr_comm **out);

/** tsr_comm_wait() without a timeout, within a call that has entered the handle. */
tsr_status tsr_comm_wait_within(tsr_comm *comm, tsr_stream stream);

/** Allocates memory that peers can read in place; only where tsr_comm_shares_some(). Not
 * collective. Freed with tsr_comm_free(). */
tsr_status tsr_comm_alloc_shared(tsr_comm *comm, size_t bytes, void **out);

/** See object.h. */
typedef struct tsr_group_entry tsr_group_entry;

/** Frees a group that is not (or no longer) in the list of `comm`, with its slot's content and its
 * communicator, whose destruction waits for peers that are inside. NULL is allowed. */
void tsr_group_free(tsr_comm *comm, tsr_group_entry *entry);

/** Frees the content of a group's slot. */
void tsr_group_release_slot(tsr_comm *comm, tsr_group *group);

/** The data that src/tensor keeps with the communicator; NULL: none. Not locked: one thread at a
 * time, within a call of the handle. */
void *tsr_comm_kept(const tsr_comm *comm);

/** Sets the data, where there is none yet. tsr_comm_destroy() calls `drop` with it, when no peer
 * reads this rank's memory any more and memory of tsr_comm_alloc() can still be freed. */
void tsr_comm_keep(tsr_comm *comm, void *kept, void (*drop)(void *kept));

/** TSR_ERROR_ARGUMENT: `comm` is NULL. */
tsr_status tsr_comm_check(const tsr_comm *comm, const char *call);

/** TSR_ERROR_ARGUMENT: `out` is NULL. The rank brings this status to the collective call, so that
 * its peers learn of it. */
tsr_status tsr_comm_check_out(const void *out, const char *call);

#endif
