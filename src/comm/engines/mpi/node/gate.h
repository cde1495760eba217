/**
 * A barrier of the processes of a node, in memory that they share. It can be broken, like that of
 * rank threads (comm/engines/threads/rendezvous.h). A process that dies leaves no lock behind,
 * since there are no locks: waiters sleep on a futex, and wake now and then to check on the others.
 * engines/mpi/engine.h explains the words.
 */
#ifndef TSR_COMM_ENGINES_MPI_NODE_GATE_H
#define TSR_COMM_ENGINES_MPI_NODE_GATE_H

#include "comm/core/lateness.h"
#include "comm/engines/mpi/node/node.h"

typedef struct tsr_mpi_seat tsr_mpi_seat;

typedef struct tsr_mpi_gate {
    tsr_mpi_node *node; /**< borrowed */
    tsr_context *context;
    int member, count; /**< count 0: not open yet */
    int64_t looks, timeout_ms;
    bool crowded, hurried; /**< the node has more ranks than cores; tsr_mpi_gate_hurry() has shortened the timeout */
    tsr_mpi_seat *own, **seats; /**< this member's seat; one per member, each in memory that its member allocated */
    tsr_mpi_resident *sleeper;  /**< where this process shows that it sleeps; NULL: another thread of it may call */
    void (*listen)(void *arg);  /**< called before each nap; may be NULL */
    void *listener;             /**< the argument of `listen` */
    tsr_late_hook late;
} tsr_mpi_gate;

/** Allocates this member's own seat, and room for `count` seats. `name`: this rank's number in the
 * world, by which sentences and the node know it. `alone`: no other thread of this process calls
 * while it waits. `node` and `context` are borrowed. tsr_mpi_gate_leave() undoes it. */
tsr_status tsr_mpi_gate_take_seat(tsr_mpi_gate *gate, tsr_mpi_node *node, tsr_context *context, int count, int name,
                                  bool alone, int64_t timeout_ms);

/** This member's own seat, at an address that is the same for all members; NULL for a zeroed
 * gate. */
tsr_mpi_seat *tsr_mpi_gate_seat(const tsr_mpi_gate *gate);

/** Opens the gate for `count` members, of which this one is `member`. The seat of each must then be
 * set. */
void tsr_mpi_gate_open(tsr_mpi_gate *gate, int count, int member);
void tsr_mpi_gate_set(tsr_mpi_gate *gate, int member, tsr_mpi_seat *seat);

/** Sets what this member calls before each nap while it waits, in order to learn of aborts. `arg`
 * is borrowed. */
void tsr_mpi_gate_listen(tsr_mpi_gate *gate, void (*listen)(void *arg), void *arg);

/** If the gate is open, breaks it on behalf of this member. Frees the seat once no member uses it.
 * Does nothing for a zeroed gate. */
void tsr_mpi_gate_leave(tsr_mpi_gate *gate);

/** For a gate that is not open here, but may be open on other ranks: they find this member gone.
 * Its seat is not freed, since they look at it. Does nothing for a zeroed gate. */
void tsr_mpi_gate_abandon(tsr_mpi_gate *gate);

/** Arrives and waits for all members. TSR_ERROR_PEER: the gate is broken; the sentence says why. */
tsr_status tsr_mpi_gate_meet(tsr_mpi_gate *gate);

/** Shortens this member's timeout to `timeout_ms`. If the gate then breaks because of it, a member
 * that was missed is told that this one went on early, and the others which members were missed. */
void tsr_mpi_gate_hurry(tsr_mpi_gate *gate, int64_t timeout_ms);

/** The two halves of tsr_mpi_gate_meet(). */
void tsr_mpi_gate_arrive(tsr_mpi_gate *gate);
tsr_status tsr_mpi_gate_await(tsr_mpi_gate *gate);

/** The slot of a member: TSR_COMM_SLOT_BYTES bytes. */
void *tsr_mpi_gate_slot(const tsr_mpi_gate *gate, int member);

/** Breaks the gate for `reason` ("rank 1 did not come"), because a rank was lost elsewhere than at
 * the gate. Only the first reason is kept. */
void tsr_mpi_gate_lose(tsr_mpi_gate *gate, const char *reason);

/** True if the gate is broken, or a rank of the node has aborted. */
bool tsr_mpi_gate_is_broken(const tsr_mpi_gate *gate);

/** True if the gate is broken for another reason than that a member has left, or a rank of the node
 * has aborted. A member that has left has done its part of all earlier calls. */
bool tsr_mpi_gate_is_lost(const tsr_mpi_gate *gate);

/** True if the gate is broken because a member did not come in time or has died. */
bool tsr_mpi_gate_has_missed(const tsr_mpi_gate *gate);

/** Returns TSR_ERROR_PEER with the reason why the gate is broken. */
tsr_status tsr_mpi_gate_say_broken(tsr_mpi_gate *gate);

#endif
