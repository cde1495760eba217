/**
 * Where processes of a node wait for one another: a barrier that can be broken, like that of rank threads
 * (comm/engines/threads/rendezvous.h), in memory that all of them have. A process that dies leaves no lock behind, for there is none:
 * waiters sleep on a futex, and look up now and then.
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
    bool crowded, hurried;      /**< see tsr_mpi_gate_hurry() */
    tsr_mpi_seat *own, **seats; /**< one a member, in its own memory */
    tsr_mpi_resident *sleeper;  /**< where this process shows that it sleeps; NULL: it has threads that may call meanwhile */
    void (*listen)(void *arg);  /**< what a member does now and then while it waits; NULL: nothing */
    void *listener;             /**< its argument */
    tsr_late_hook late;
} tsr_mpi_gate;

/** This member's own seat, and room for `count`; `name` is what sentences call it beside its number as a member, and the node. `alone`:
 * nobody else in this process calls while it waits. `node` and `context` are borrowed. tsr_mpi_gate_leave() undoes it. */
tsr_status tsr_mpi_gate_take_seat(tsr_mpi_gate *gate, tsr_mpi_node *node, tsr_context *context, int count, int name, bool alone,
                                  int64_t timeout_ms);

/** That seat, as all members know it; NULL of a zeroed gate. */
tsr_mpi_seat *tsr_mpi_gate_seat(const tsr_mpi_gate *gate);

/** The members, `count` of them, this one at `member`: their seats are set one by one. */
void tsr_mpi_gate_open(tsr_mpi_gate *gate, int count, int member);
void tsr_mpi_gate_set(tsr_mpi_gate *gate, int member, tsr_mpi_seat *seat);

/** What this member does before each nap while it waits, in whose course somebody on the node may turn out to have aborted. `arg` is
 * borrowed. */
void tsr_mpi_gate_listen(tsr_mpi_gate *gate, void (*listen)(void *arg), void *arg);

/** Breaks it on behalf of this member if it is open, and gives the seat back once nobody looks at it. Nothing for a zeroed gate. */
void tsr_mpi_gate_leave(tsr_mpi_gate *gate);

/** The same for one that is not open here, but may be with others: they find this member gone. Its seat stays, for them to look at.
 * Nothing for a zeroed gate. */
void tsr_mpi_gate_abandon(tsr_mpi_gate *gate);

/** Arrives and waits for the others. TSR_ERROR_PEER says why it is broken. */
tsr_status tsr_mpi_gate_meet(tsr_mpi_gate *gate);

/** This member waits no longer than that from now on, less than the caller's timeout. A member that it misses is told of its hurry, and
 * the others are told of those that it missed. */
void tsr_mpi_gate_hurry(tsr_mpi_gate *gate, int64_t timeout_ms);

/** The two halves of tsr_mpi_gate_meet(). */
void tsr_mpi_gate_arrive(tsr_mpi_gate *gate);
tsr_status tsr_mpi_gate_await(tsr_mpi_gate *gate);

/** TSR_COMM_SLOT_BYTES of a member. */
void *tsr_mpi_gate_slot(const tsr_mpi_gate *gate, int member);

/** Breaks it for `reason` ("rank 1 did not come"): a rank is lost, in what does not go through the gate. The first reason stays. */
void tsr_mpi_gate_lose(tsr_mpi_gate *gate, const char *reason);

/** True once it is broken, or somebody on the node has aborted. */
bool tsr_mpi_gate_is_broken(const tsr_mpi_gate *gate);

/** The same for other reasons than that a rank has left, who has done its part of everything before. */
bool tsr_mpi_gate_is_lost(const tsr_mpi_gate *gate);

/** True if a member did not come in time, or has died. */
bool tsr_mpi_gate_has_missed(const tsr_mpi_gate *gate);

/** Why, as TSR_ERROR_PEER. */
tsr_status tsr_mpi_gate_say_broken(tsr_mpi_gate *gate);

#endif
