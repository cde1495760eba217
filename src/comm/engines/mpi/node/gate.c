
#include "comm/engines/mpi/node/gate.h"

#include "comm/core/clock.h"
#include "comm/core/patience.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/log.h>
#include <tessera/sys/memory.h>

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds of a nap: a rank may have aborted, or died before it could wake the sleepers. */
#define NAP_NS 50000000

/* After this many naps a member checks again whether the members that it waits for live, and
 * whether they wait for it. */
#define NAPS_BETWEEN_QUESTIONS 8

#define REASON       256
#define BROKEN_WORDS ", so this communicator is broken"
#define LATE_NAMED   4

typedef enum gate_state { WHOLE, BREAKING, BROKEN } gate_state;

/* Why a gate broke. LEFT: a member has left, after its part of all earlier calls; MISSED: a member
 * has not come and never will. */
typedef enum cause { LEFT, MISSED, OTHER } cause;

struct tsr_mpi_seat {
    _Atomic(uint64_t) arrivals;
    char own_line[128 - sizeof(uint64_t)]; /* to two cache lines: processors fetch them in pairs */
    _Atomic(int32_t) left;                 /* members that no longer use this seat */
    int32_t name;                          /* its member's rank in the world */
    _Atomic(int32_t) gone;                 /* not 0: its member could not open the gate */
    _Atomic(int32_t) missed;               /* not 0: its member had not come when a member that hurried went on */
    /* For the whole gate, used in member 0's seat only: */
    _Atomic(int32_t) sleepers;
    _Atomic(uint32_t) bell;
    _Atomic(int32_t) state; /* gate_state */
    uint64_t completed;     /* once BROKEN: arrivals up to this one count as complete */
    int32_t cause;          /* once BROKEN: why, as `cause` */
    int32_t hurrier;        /* once BROKEN: 1 + the member that gave up before the caller's timeout; 0: none did */
    char reason[REASON];
    _Alignas(64) char slot[TSR_COMM_SLOT_BYTES];
};

_Static_assert(offsetof(struct tsr_mpi_seat, slot) % 64 == 0, "slots are aligned as the table promises");

static tsr_mpi_seat *root_of(const tsr_mpi_gate *gate)
{
    return gate->seats[0];
}

/* True if all members from `*from` on have reached `arrival`; else `*from` becomes the first that
 * has not. */
static bool all_came(const tsr_mpi_gate *gate, uint64_t arrival, int *from)
{
    for (; *from < gate->count; ++*from)
        if (atomic_load(&gate->seats[*from]->arrivals) < arrival)
            return false;
    return true;
}

static bool is_complete(const tsr_mpi_gate *gate, uint64_t arrival)
{
    int from = 0;
    return all_came(gate, arrival, &from);
}

static void ring(const tsr_mpi_gate *gate)
{
    tsr_mpi_seat *root = root_of(gate);
    atomic_fetch_add(&root->bell, 1);
    syscall(SYS_futex, &root->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/*
 * Decides which arrival is the last that counts as complete. The argument of rendezvous.c holds
 * here too: a member that saw all members arrive and the state still WHOLE did so before the
 * exchange below, so the counts read after it include that arrival. A member that finds another one
 * deciding waits for its decision, which only the death of the deciding process can prevent.
 */
static void break_gate(const tsr_mpi_gate *gate, const char *reason, cause why)
{
    tsr_mpi_seat *root = root_of(gate);
    int32_t whole = WHOLE;
    if (!atomic_compare_exchange_strong(&root->state, &whole, BREAKING))
        return;
    uint64_t completed = UINT64_MAX;
    for (int m = 0; m < gate->count; m++) {
        const uint64_t arrivals = atomic_load(&gate->seats[m]->arrivals);
        completed = arrivals < completed ? arrivals : completed;
    }
    root->completed = completed;
    root->cause = (int32_t)why;
    root->hurrier = why == MISSED && gate->hurried ? gate->member + 1 : 0;
    snprintf(root->reason, sizeof root->reason, "%s", reason);
    atomic_store(&root->state, BROKEN);
    ring(gate);
}

/* True if a rank of the node has aborted; then this breaks the gate. */
static bool heed_abort(const tsr_mpi_gate *gate)
{
    const int aborter = tsr_mpi_node_aborter(gate->node);
    char reason[REASON];
    if (aborter < 0)
        return false;
    snprintf(reason, sizeof reason, "rank %d of all has aborted", aborter);
    break_gate(gate, reason, OTHER);
    return true;
}

/* Writes "rank 1", or "rank 1 (rank 3 of all)". Returns the length. */
static int print_name(const tsr_mpi_gate *gate, int member, char *text, size_t capacity)
{
    const int all = gate->seats[member]->name;
    return all == member ? snprintf(text, capacity, "rank %d", member)
                         : snprintf(text, capacity, "rank %d (rank %d of all)", member, all);
}

/* True if a member could not open the gate; then this breaks it. */
static bool heed_gone(const tsr_mpi_gate *gate)
{
    for (int m = 0; m < gate->count; m++) {
        char name[64], reason[REASON];
        if (!atomic_load(&gate->seats[m]->gone))
            continue;
        print_name(gate, m, name, sizeof name);
        snprintf(reason, sizeof reason, "%s could not make the communicator", name);
        break_gate(gate, reason, OTHER);
        return true;
    }
    return false;
}

/* True if the process of a member that has not come has ended; then this breaks the gate. `from`:
 * the first member to check. */
static bool heed_death(const tsr_mpi_gate *gate, uint64_t arrival, int from)
{
    for (int m = from; m < gate->count; m++) {
        char name[64], reason[REASON];
        const tsr_mpi_resident *const resident =
            tsr_mpi_resident_find(tsr_mpi_node_residents(gate->node), gate->seats[m]->name);
        if (atomic_load(&gate->seats[m]->arrivals) >= arrival || !resident ||
            tsr_mpi_resident_life(resident) != TSR_MPI_DEAD || atomic_load(&gate->seats[m]->arrivals) >= arrival)
            continue;
        print_name(gate, m, name, sizeof name);
        snprintf(reason, sizeof reason, "the process of %s has ended", name);
        break_gate(gate, reason, MISSED);
        return true;
    }
    return false;
}

/* True if this member was found to wait in a circle; then this breaks the gate. If it was broken
 * before, for example because a rank of the circle has left, that reason stays. */
static bool heed_stall(const tsr_mpi_gate *gate)
{
    const char *const words = gate->sleeper ? tsr_mpi_resident_verdict(gate->sleeper) : NULL;
    if (words)
        break_gate(gate, words, OTHER);
    return words;
}

/* The status of a member that came too late only because another one had shortened its timeout. */
static tsr_status say_hurried(const tsr_mpi_gate *gate)
{
    char name[64];
    print_name(gate, root_of(gate)->hurrier - 1, name, sizeof name);
    return tsr_status_set(TSR_ERROR_PEER, "%s went on after a loss, before this rank came" BROKEN_WORDS, name);
}

static tsr_status settle_at_gate(const tsr_mpi_gate *gate, uint64_t arrival)
{
    tsr_mpi_seat *root = root_of(gate);
    if (atomic_load(&root->state) == WHOLE)
        return TSR_OK;
    const tsr_deadline deadline = tsr_deadline_in(1000);
    while (atomic_load(&root->state) == BREAKING && !tsr_deadline_passed(deadline))
        sched_yield();
    if (atomic_load(&root->state) == BREAKING)
        return tsr_status_set(TSR_ERROR_PEER, "a rank died while it left, so this communicator is broken");
    if (arrival <= root->completed)
        return TSR_OK;
    if (root->hurrier > 0 && atomic_load(&gate->seats[gate->member]->missed))
        return say_hurried(gate);
    const bool said = strstr(root->reason, BROKEN_WORDS);
    return tsr_status_set(TSR_ERROR_PEER, "%s%s", root->reason, said ? "" : BROKEN_WORDS);
}

static bool is_over(const tsr_mpi_gate *gate, uint64_t arrival, int *from)
{
    return all_came(gate, arrival, from) || atomic_load_explicit(&root_of(gate)->state, memory_order_relaxed) != WHOLE;
}

typedef struct watch {
    const tsr_mpi_gate *gate;
    uint64_t arrival;
    int from;
} watch;

static bool is_seen(void *arg)
{
    watch *w = arg;
    return is_over(w->gate, w->arrival, &w->from);
}

static bool look_at_gate(const tsr_mpi_gate *gate, uint64_t arrival)
{
    watch w = {gate, arrival, 0};
    return tsr_look(gate->looks, gate->crowded, is_seen, &w);
}

/* Writes the members that have not come: "rank 1, rank 2 (rank 5 of all) and 7 more". Returns the
 * length. */
static size_t name_late(const tsr_mpi_gate *gate, uint64_t arrival, char *words)
{
    size_t used = 0;
    int late = 0;
    for (int m = 0; m < gate->count; m++) {
        if (atomic_load(&gate->seats[m]->arrivals) >= arrival)
            continue;
        if (late++ >= LATE_NAMED)
            continue;
        if (used)
            used += (size_t)snprintf(words + used, REASON - used, ", ");
        used += (size_t)print_name(gate, m, words + used, REASON - used);
    }
    if (late > LATE_NAMED)
        used += (size_t)snprintf(words + used, REASON - used, " and %d more", late - LATE_NAMED);
    return used;
}

static void mark_missed(const tsr_mpi_gate *gate, uint64_t arrival)
{
    for (int m = 0; m < gate->count; m++)
        if (atomic_load(&gate->seats[m]->arrivals) < arrival)
            atomic_store(&gate->seats[m]->missed, 1);
}

/* True if the timeout has passed; then this breaks the gate. */
static bool heed_time(const tsr_mpi_gate *gate, uint64_t arrival, tsr_deadline deadline)
{
    char reason[REASON];
    if (!tsr_deadline_passed(deadline))
        return false;
    const size_t used = name_late(gate, arrival, reason);
    snprintf(reason + used, REASON - used, " did not come within %lld ms%s", (long long)gate->timeout_ms,
             gate->hurried ? " after a loss" : "");
    if (gate->hurried)
        mark_missed(gate, arrival);
    break_gate(gate, reason, MISSED);
    return true;
}

static void nap(tsr_mpi_seat *root, uint32_t bell)
{
    const struct timespec time = {0, NAP_NS};
    syscall(SYS_futex, &root->bell, FUTEX_WAIT, bell, &time, NULL, 0);
}

/* The state of one wait. */
typedef struct sleep_state {
    uint64_t arrival;
    int from, shown; /* the first member that has not come; the member that this process shows as awaited, or -1 */
    int naps;
    tsr_deadline deadline;
    tsr_lateness late;
} sleep_state;

static void show_awaited(const tsr_mpi_gate *gate, sleep_state *s)
{
    if (!gate->sleeper || s->from == s->shown)
        return;
    if (s->shown >= 0)
        tsr_mpi_resident_get_up(gate->sleeper);
    const tsr_mpi_seat *const seat = gate->seats[s->from];
    tsr_mpi_resident_lie_down(gate->sleeper, seat->name, gate->count, &seat->arrivals, s->arrival,
                              &root_of(gate)->state);
    s->shown = s->from;
}

/* Tells the log for which ranks this member waits, if it is time. */
static void tell_late(const tsr_mpi_gate *gate, sleep_state *s)
{
    char words[REASON];
    if (tsr_lateness_is_due(&s->late) && name_late(gate, s->arrival, words) > 0)
        tsr_lateness_tell(&s->late, &gate->late, words);
}

/* Everything that a member checks before a nap. True if the gate is broken. */
static bool heed_all(const tsr_mpi_gate *gate, sleep_state *s)
{
    const bool asks = s->naps % NAPS_BETWEEN_QUESTIONS == NAPS_BETWEEN_QUESTIONS - 1;
    if (gate->listen)
        gate->listen(gate->listener);
    if (heed_abort(gate) || heed_gone(gate) || (asks && heed_death(gate, s->arrival, s->from)))
        return true;
    show_awaited(gate, s);
    if (asks && gate->sleeper)
        tsr_mpi_resident_check_stall(tsr_mpi_node_residents(gate->node), gate->sleeper);
    tell_late(gate, s);
    return heed_stall(gate) || heed_time(gate, s->arrival, s->deadline);
}

/* Ends what this process shows of its sleep. TSR_ERROR_PEER if it was found to wait in a circle. */
static tsr_status wake_from_sleep(const tsr_mpi_gate *gate, const sleep_state *s)
{
    if (s->shown < 0)
        return TSR_OK;
    const char *const words = tsr_mpi_resident_verdict(gate->sleeper);
    const tsr_status status = words ? tsr_status_set(TSR_ERROR_PEER, "%s" BROKEN_WORDS, words) : TSR_OK;
    tsr_mpi_resident_get_up(gate->sleeper);
    return status;
}

/* No wake-up is missed: the member that stores its count last sees that there are sleepers, or they
 * see its count, since both are sequentially consistent. */
static tsr_status sleep_until_met(const tsr_mpi_gate *gate, uint64_t arrival)
{
    tsr_mpi_seat *root = root_of(gate);
    sleep_state s = {arrival, 0, -1, 0, tsr_deadline_in(gate->timeout_ms), tsr_lateness_begin()};
    atomic_fetch_add(&root->sleepers, 1);
    for (;; s.naps++) {
        const uint32_t bell = atomic_load(&root->bell);
        if (is_over(gate, arrival, &s.from) || heed_all(gate, &s))
            break;
        nap(root, bell);
    }
    atomic_fetch_sub(&root->sleepers, 1);
    return wake_from_sleep(gate, &s);
}

/* Counts an arrival; true if this member came last. An abort that is known by now breaks the gate
 * before the arrival counts. */
static bool arrive_at_gate(const tsr_mpi_gate *gate, uint64_t *arrival)
{
    tsr_mpi_seat *mine = gate->seats[gate->member];
    heed_abort(gate);
    *arrival = atomic_load_explicit(&mine->arrivals, memory_order_relaxed) + 1;
    atomic_store(&mine->arrivals, *arrival);
    if (!is_complete(gate, *arrival))
        return false;
    if (atomic_load(&root_of(gate)->sleepers) > 0)
        ring(gate);
    return true;
}

static tsr_status wait_for_all(const tsr_mpi_gate *gate, uint64_t arrival)
{
    if (!look_at_gate(gate, arrival))
        TSR_TRY(sleep_until_met(gate, arrival));
    return settle_at_gate(gate, arrival);
}

tsr_status tsr_mpi_gate_meet(tsr_mpi_gate *gate)
{
    uint64_t arrival;
    const bool last = arrive_at_gate(gate, &arrival);
    return last ? settle_at_gate(gate, arrival) : wait_for_all(gate, arrival);
}

void tsr_mpi_gate_hurry(tsr_mpi_gate *gate, int64_t timeout_ms)
{
    if (gate->timeout_ms > 0 && gate->timeout_ms <= timeout_ms)
        return;
    gate->timeout_ms = timeout_ms;
    gate->hurried = true;
}

void tsr_mpi_gate_arrive(tsr_mpi_gate *gate)
{
    uint64_t arrival;
    arrive_at_gate(gate, &arrival);
}

tsr_status tsr_mpi_gate_await(tsr_mpi_gate *gate)
{
    return wait_for_all(gate, atomic_load_explicit(&gate->seats[gate->member]->arrivals, memory_order_relaxed));
}

void *tsr_mpi_gate_slot(const tsr_mpi_gate *gate, int member)
{
    return gate->seats[member]->slot;
}

bool tsr_mpi_gate_is_broken(const tsr_mpi_gate *gate)
{
    return atomic_load(&root_of(gate)->state) != WHOLE || tsr_mpi_node_aborter(gate->node) >= 0;
}

bool tsr_mpi_gate_is_lost(const tsr_mpi_gate *gate)
{
    const tsr_mpi_seat *root = root_of(gate);
    return (atomic_load(&root->state) == BROKEN && root->cause != LEFT) || tsr_mpi_node_aborter(gate->node) >= 0;
}

bool tsr_mpi_gate_has_missed(const tsr_mpi_gate *gate)
{
    const tsr_mpi_seat *root = root_of(gate);
    return atomic_load(&root->state) == BROKEN && root->cause == MISSED;
}

void tsr_mpi_gate_lose(tsr_mpi_gate *gate, const char *reason)
{
    break_gate(gate, reason, OTHER);
}

tsr_status tsr_mpi_gate_say_broken(tsr_mpi_gate *gate)
{
    heed_abort(gate);
    return settle_at_gate(gate, UINT64_MAX);
}

/* True if the node has more ranks than cores: cores of the machine, not those that this process may
 * use, since launchers bind each rank to a core of its own. */
static bool is_crowded(const tsr_mpi_node *node)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > 0 && tsr_mpi_node_ranks(node) > cores;
}

tsr_status tsr_mpi_gate_take_seat(tsr_mpi_gate *gate, tsr_mpi_node *node, tsr_context *context, int count, int name,
                                  bool alone, int64_t timeout_ms)
{
    void *seats;
    *gate = (tsr_mpi_gate){.node = node, .context = context, .timeout_ms = timeout_ms, .crowded = is_crowded(node)};
    gate->looks = gate->crowded ? TSR_LOOKS_CROWDED : TSR_LOOKS_ALONE;
    TSR_TRY(tsr_allocate(context, (size_t)count * sizeof *gate->seats, &seats));
    const tsr_status status = tsr_mpi_node_alloc(node, sizeof *gate->own, (void **)&gate->own);
    if (status != TSR_OK) {
        tsr_release(context, seats);
        return status;
    }
    memset(gate->own, 0, sizeof *gate->own);
    gate->own->name = name;
    gate->sleeper = alone ? tsr_mpi_resident_find(tsr_mpi_node_residents(node), name) : NULL;
    gate->seats = seats;
    return TSR_OK;
}

tsr_mpi_seat *tsr_mpi_gate_seat(const tsr_mpi_gate *gate)
{
    return gate->own;
}

void tsr_mpi_gate_open(tsr_mpi_gate *gate, int count, int member)
{
    gate->count = count;
    gate->member = member;
}

void tsr_mpi_gate_set(tsr_mpi_gate *gate, int member, tsr_mpi_seat *seat)
{
    gate->seats[member] = seat;
}

void tsr_mpi_gate_listen(tsr_mpi_gate *gate, void (*listen)(void *arg), void *arg)
{
    gate->listen = listen;
    gate->listener = arg;
}

static void depart_from_gate(tsr_mpi_gate *gate)
{
    char name[64], reason[REASON];
    print_name(gate, gate->member, name, sizeof name);
    snprintf(reason, sizeof reason, "%s has returned", name);
    break_gate(gate, reason, LEFT);
    tsr_mpi_node_free_later(gate->node, gate->own, (const int32_t *)&gate->own->left, gate->count);
    for (int m = 0; m < gate->count; m++)
        atomic_fetch_add(&gate->seats[m]->left, 1);
}

void tsr_mpi_gate_leave(tsr_mpi_gate *gate)
{
    if (!gate->own)
        return;
    if (gate->count > 0)
        depart_from_gate(gate);
    else
        tsr_mpi_node_free(gate->node, gate->own);
    tsr_release(gate->context, gate->seats);
    *gate = (tsr_mpi_gate){0};
}

void tsr_mpi_gate_abandon(tsr_mpi_gate *gate)
{
    if (!gate->own)
        return;
    atomic_store(&gate->own->gone, 1);
    tsr_release(gate->context, gate->seats);
}
