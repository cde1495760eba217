/** A communicator's life, and the groups that it keeps. */
#ifndef TSR_COMM_CORE_COMM_H
#define TSR_COMM_CORE_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <tessera/comm.h>

/** A group as this rank holds it. The whole communicator is a group too, whose comm is the communicator itself. */
typedef struct tsr_group {
    tsr_comm *comm;      /**< this group's communicator: its ranks are positions in `ranks`; NULL if this rank is not in it */
    const int *ranks;    /**< group rank -> parent rank; NULL for the whole communicator (identity) */
    const int *position; /**< parent rank -> group rank, -1 outside; NULL for identity */
    int count;
    void *scratch; /**< host memory for one call in flight, at least as large as the largest that any prepare asked for */
    size_t scratch_bytes;
    void *shelf;         /**< likewise, where peers reach it; NULL where they reach all memory */
    size_t shelf_bytes;  /**< SIZE_MAX there */
    const void *pending; /**< what was started over this group and is not finished; its owner's to set */
    bool streams;        /**< the tensors of the last execution by messages were on a device with streams; likewise */
} tsr_group;

/** Memory that ranks share (tsr_comm_shares_some()); not collective. Freed with tsr_comm_free(). */
tsr_status tsr_comm_alloc_shared(tsr_comm *comm, size_t bytes, void **out);

/** See object.h. */
typedef struct tsr_group_entry tsr_group_entry;

/** Frees a group, or NULL, that `comm` does not list, and what it holds; peers that are inside are waited for. */
void tsr_group_free(tsr_comm *comm, tsr_group_entry *entry);

/** Frees memory of a group that peers reach; NULL is fine. */
void tsr_group_free_shelf(tsr_comm *comm, void *shelf, size_t bytes);

/** TSR_ERROR_ARGUMENT: `comm` is NULL. */
tsr_status tsr_comm_check(const tsr_comm *comm, const char *call);

/** A rank that has no place for the result takes part as failed, so that its peers are told: TSR_ERROR_ARGUMENT. */
tsr_status tsr_comm_check_out(const void *out, const char *call);

#endif
