/**
 * Messages between ranks of a node, without MPI. A rank has a tray for each of its mates, in memory that they share, and lays what it sends
 * there, one message at a time; the mate takes it. A short one lies in the tray itself, so that its sender is done. What lies in shared
 * memory is copied by the mate from where it is. Of any other the tray says no more than that MPI brings it.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_TRAY_H
#define TSR_COMM_ENGINES_MPI_NODE_TRAY_H

#include "comm/engines/mpi/node/node.h"

/** Bytes of a message that lies in its tray. Longer ones that are not in shared memory gain nothing from a third copy. */
#define TSR_MPI_SHORT 8192

typedef struct tsr_mpi_desk tsr_mpi_desk; /**< all trays of a rank */

typedef struct tsr_mpi_trays {
    tsr_mpi_node *node; /**< borrowed; NULL: no trays */
    tsr_context *context;
    int member, count;          /**< count 0: not open yet */
    tsr_mpi_desk *own, **desks; /**< one a member, NULL for those of other nodes */
} tsr_mpi_trays;

typedef enum tsr_mpi_delivery {
    TSR_MPI_NOT_YET, /**< nothing has been laid, or the one before has not been taken */
    TSR_MPI_THROUGH, /**< the sender's memory is its own again; the receiver has what was sent */
    TSR_MPI_LIES,    /**< in the sender's memory until tsr_mpi_trays_is_empty() */
    TSR_MPI_BY_MPI,
    TSR_MPI_WITHDRAWN /**< its sender has given up */
} tsr_mpi_delivery;

/** This member's own desk, with a tray for each of `room` members at most. `node` and `context` are borrowed. tsr_mpi_trays_leave() undoes
 * it, and does nothing to zeroed ones. */
tsr_status tsr_mpi_trays_prepare(tsr_mpi_trays *trays, tsr_mpi_node *node, tsr_context *context, int room);

/** `count` members, this one at `member`; the desks of those that are mates, its own too, are set one by one. */
void tsr_mpi_trays_open(tsr_mpi_trays *trays, int count, int member);
void tsr_mpi_trays_set(tsr_mpi_trays *trays, int member, tsr_mpi_desk *desk);

/** The own desk is given back once no mate looks at it. */
void tsr_mpi_trays_leave(tsr_mpi_trays *trays);

/** The same for trays that are not open here, but may be with mates: they find this member gone. Its desk stays, for them to look at. */
void tsr_mpi_trays_abandon(tsr_mpi_trays *trays);

/** True if that mate did so */
bool tsr_mpi_trays_is_gone(const tsr_mpi_trays *trays, int member);

/** True if that mate has left, or did so. */
bool tsr_mpi_trays_has_left(const tsr_mpi_trays *trays, int member);

/** Shows to mates for whom this member waits, -1: for nobody; and whom that mate waits for, or waited for when it gave up. */
void tsr_mpi_trays_show_awaited(const tsr_mpi_trays *trays, int awaited);
int tsr_mpi_trays_awaited_by(const tsr_mpi_trays *trays, int member);

/** True if there are trays from and to that member. */
bool tsr_mpi_trays_reach(const tsr_mpi_trays *trays, int member);

/** Lays a message for `member`: NOT_YET, THROUGH, LIES or BY_MPI. */
tsr_mpi_delivery tsr_mpi_trays_lay(const tsr_mpi_trays *trays, int member, const void *data, size_t bytes);

/** True once `member` has taken what was laid. */
bool tsr_mpi_trays_is_empty(const tsr_mpi_trays *trays, int member);

/** What LIES is not read any more once this is true: `member` may be about to copy it, and then it is asked again. */
bool tsr_mpi_trays_withdraw(const tsr_mpi_trays *trays, int member);

/** Takes what `member` has laid for this one: NOT_YET, THROUGH, BY_MPI or WITHDRAWN. `*sent` is its length unless that is NOT_YET; only a
 * message of `bytes` is copied. */
tsr_mpi_delivery tsr_mpi_trays_take(const tsr_mpi_trays *trays, int member, void *data, size_t bytes, size_t *sent);

#endif
