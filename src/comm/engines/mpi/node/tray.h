/**
 * Messages between ranks of a node, without MPI, through mailboxes in shared memory. A rank has one
 * mailbox, a tray, for each of its mates. It lays a message there, one at a time, and the mate
 * takes it. A short message is copied into the tray, so that its sender is done. A longer one in
 * shared memory is copied by the mate from where it is. Of any other message the tray says only
 * that it comes by MPI. engines/mpi/engine.h explains the words.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_TRAY_H
#define TSR_COMM_ENGINES_MPI_NODE_TRAY_H

#include "comm/engines/mpi/node/node.h"

/** The most bytes of a message that is copied into its tray. For longer ones outside shared memory
 * a further copy would gain nothing over MPI. */
#define TSR_MPI_SHORT 8192

typedef struct tsr_mpi_desk tsr_mpi_desk; /**< all trays in which one rank lays messages */

typedef struct tsr_mpi_trays {
    tsr_mpi_node *node; /**< borrowed; NULL: there are no trays */
    tsr_context *context;
    int member, count;          /**< count 0: not open yet */
    tsr_mpi_desk *own, **desks; /**< this member's desk; one per member, NULL for members on other nodes */
} tsr_mpi_trays;

typedef enum tsr_mpi_delivery {
    TSR_MPI_NOT_YET, /**< to a receiver: nothing was laid; to a sender: the message before has not been taken */
    TSR_MPI_THROUGH, /**< the sender may reuse its memory; the receiver has the message */
    TSR_MPI_LIES,    /**< the message stays in the sender's memory, until tsr_mpi_trays_is_empty() */
    TSR_MPI_BY_MPI,
    TSR_MPI_WITHDRAWN /**< the sender has given the message up */
} tsr_mpi_delivery;

/** Allocates this member's own desk, with a tray for each of at most `room` members. `node` and
 * `context` are borrowed. tsr_mpi_trays_leave() undoes it. */
tsr_status tsr_mpi_trays_prepare(tsr_mpi_trays *trays, tsr_mpi_node *node, tsr_context *context, int room);

/** Opens the trays for `count` members, of which this one is `member`. The desks of its mates, and
 * its own, must then be set. */
void tsr_mpi_trays_open(tsr_mpi_trays *trays, int count, int member);
void tsr_mpi_trays_set(tsr_mpi_trays *trays, int member, tsr_mpi_desk *desk);

/** Leaves: this member's desk is freed once no mate uses it. Does nothing for zeroed trays. */
void tsr_mpi_trays_leave(tsr_mpi_trays *trays);

/** For trays that are not open here, but may be open on mates: they find this member gone. Its desk
 * is not freed, since they look at it. */
void tsr_mpi_trays_abandon(tsr_mpi_trays *trays);

/** True if mate `member` has abandoned its trays. */
bool tsr_mpi_trays_is_gone(const tsr_mpi_trays *trays, int member);

/** True if mate `member` has left or abandoned its trays. */
bool tsr_mpi_trays_has_left(const tsr_mpi_trays *trays, int member);

/** Show: lets mates see for which member this one waits; -1: for none. By: for which member mate
 * `member` waits, or waited when it gave up; -1: for none. */
void tsr_mpi_trays_show_awaited(const tsr_mpi_trays *trays, int awaited);
int tsr_mpi_trays_awaited_by(const tsr_mpi_trays *trays, int member);

/** True if this member and `member` have trays for each other. */
bool tsr_mpi_trays_reach(const tsr_mpi_trays *trays, int member);

/** Lays a message for `member`. Returns NOT_YET, THROUGH, LIES or BY_MPI. */
tsr_mpi_delivery tsr_mpi_trays_lay(const tsr_mpi_trays *trays, int member, const void *data, size_t bytes);

/** True if `member` has taken the last message that was laid for it. */
bool tsr_mpi_trays_is_empty(const tsr_mpi_trays *trays, int member);

/** Withdraws a message that LIES. True if `member` does not read it any more. False if `member` may
 * be copying it: to be called again. */
bool tsr_mpi_trays_withdraw(const tsr_mpi_trays *trays, int member);

/** Takes what `member` has laid for this member. Returns NOT_YET, THROUGH, BY_MPI or WITHDRAWN.
 * With THROUGH and BY_MPI `*sent` becomes the message's length; only a message of `bytes` bytes is
 * copied to `data`. */
tsr_mpi_delivery tsr_mpi_trays_take(const tsr_mpi_trays *trays, int member, void *data, size_t bytes, size_t *sent);

#endif
