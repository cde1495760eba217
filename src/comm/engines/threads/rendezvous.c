#include "comm/engines/threads/rendezvous.h"

#include "base/checked.h"
#include "base/text/text.h"
#include "comm/core/patience.h"
#include "comm/engines/threads/condition.h"

#include <stdio.h>
#include <string.h>

/* Milliseconds of one sleep, unless a wake-up comes. */
#define NAP_MS 1000

/* A sentence names at most this many late ranks. */
#define LATE_NAMED 4

tsr_status tsr_rendezvous_init(tsr_rendezvous *rendezvous, int count, tsr_arrivals *arrivals, const int *ranks,
                               const tsr_patience *patience)
{
    if (!tsr_condition_init(&rendezvous->changed, &rendezvous->mutex))
        return tsr_status_set(TSR_ERROR_MEMORY, "threads: there is no memory for a lock");
    rendezvous->count = count;
    rendezvous->patience = patience;
    rendezvous->ranks = ranks;
    rendezvous->arrivals = arrivals;
    rendezvous->completed = 0;
    atomic_init(&rendezvous->broken, 0);
    atomic_init(&rendezvous->sleepers, 0);
    return TSR_OK;
}

void tsr_rendezvous_finish(tsr_rendezvous *rendezvous)
{
    tsr_condition_finish(&rendezvous->changed, &rendezvous->mutex);
}

const char *tsr_rendezvous_name(const tsr_rendezvous *rendezvous, int member, char *text)
{
    if (rendezvous->ranks[member] != member)
        snprintf(text, 64, "rank %d (rank %d of all)", member, rendezvous->ranks[member]);
    else
        snprintf(text, 64, "rank %d", member);
    return text;
}

/* True if all members from `*from` on have reached `arrival`; else `*from` becomes the first that
 * has not. */
static bool all_came(tsr_rendezvous *rendezvous, uint64_t arrival, int *from)
{
    for (; *from < rendezvous->count; ++*from)
        if (atomic_load(&rendezvous->arrivals[*from].count) < arrival)
            return false;
    return true;
}

static bool is_complete(tsr_rendezvous *rendezvous, uint64_t arrival)
{
    int from = 0;
    return all_came(rendezvous, arrival, &from);
}

/*
 * Under the mutex: decides which arrival is the last that counts as complete. All loads and stores
 * involved are sequentially consistent: a member that saw all members arrive and `broken` still 0
 * did so before the store below, so the counts read after that store include the arrival. A member
 * that sees `broken` not 0 reads the decision under the mutex. So members never disagree on whether
 * an arrival was completed.
 */
static void break_locked(tsr_rendezvous *rendezvous, const char *reason)
{
    if (atomic_load(&rendezvous->broken))
        return;
    atomic_store(&rendezvous->broken, 1);
    uint64_t completed = UINT64_MAX;
    for (int m = 0; m < rendezvous->count; m++) {
        const uint64_t count = atomic_load(&rendezvous->arrivals[m].count);
        completed = count < completed ? count : completed;
    }
    rendezvous->completed = completed;
    snprintf(rendezvous->reason, sizeof rendezvous->reason, "%s", reason);
    pthread_cond_broadcast(&rendezvous->changed);
}

void tsr_rendezvous_break(tsr_rendezvous *rendezvous, const char *reason)
{
    pthread_mutex_lock(&rendezvous->mutex);
    break_locked(rendezvous, reason);
    pthread_mutex_unlock(&rendezvous->mutex);
}

bool tsr_rendezvous_is_waiting(tsr_rendezvous *rendezvous, uint64_t arrival)
{
    return !atomic_load(&rendezvous->broken) && !is_complete(rendezvous, arrival);
}

/* The status of an arrival, once all members have arrived or the rendezvous is broken. */
static tsr_status settle_arrival(tsr_rendezvous *rendezvous, uint64_t arrival)
{
    if (!atomic_load(&rendezvous->broken))
        return TSR_OK;
    char reason[TSR_REASON_BYTES];
    pthread_mutex_lock(&rendezvous->mutex);
    const bool completed = arrival <= rendezvous->completed;
    memcpy(reason, rendezvous->reason, sizeof reason);
    pthread_mutex_unlock(&rendezvous->mutex);
    return completed ? TSR_OK : tsr_status_set(TSR_ERROR_PEER, "%s, so this communicator is broken", reason);
}

typedef struct watch {
    tsr_rendezvous *rendezvous;
    uint64_t arrival;
    int from;
} watch;

static bool is_over(void *arg)
{
    watch *w = arg;
    return all_came(w->rendezvous, w->arrival, &w->from) ||
           atomic_load_explicit(&w->rendezvous->broken, memory_order_relaxed);
}

static bool look_at_arrivals(tsr_rendezvous *rendezvous, uint64_t arrival)
{
    watch w = {rendezvous, arrival, 0};
    return tsr_look(rendezvous->patience->looks, rendezvous->patience->crowded, is_over, &w);
}

static void name_late(tsr_rendezvous *rendezvous, uint64_t arrival, char *words, size_t capacity)
{
    tsr_text text = {words, capacity, 0};
    char name[64];
    int late = 0;
    for (int m = 0; m < rendezvous->count; m++) {
        if (atomic_load(&rendezvous->arrivals[m].count) >= arrival)
            continue;
        if (late < LATE_NAMED)
            tsr_text_append(&text, "%s%s", late ? ", " : "", tsr_rendezvous_name(rendezvous, m, name));
        late++;
    }
    if (late > LATE_NAMED)
        tsr_text_append(&text, " and %d more", late - LATE_NAMED);
}

/* Under the mutex: breaks the rendezvous because the timeout has passed. */
static void break_for_time(tsr_rendezvous *rendezvous, uint64_t arrival)
{
    char late[TSR_REASON_BYTES], reason[TSR_REASON_BYTES];
    name_late(rendezvous, arrival, late, sizeof late);
    snprintf(reason, sizeof reason, "%.*s did not come within %lld ms", (int)sizeof reason - 64, late,
             (long long)rendezvous->patience->timeout_ms);
    break_locked(rendezvous, reason);
}

/* A thread that sleeps, and the member for which it does. */
typedef struct sleeper {
    tsr_bed bed;
    int member;
    bool asleep; /* false once it has woken; still true in rise() if it was cancelled */
    tsr_deadline deadline;
    tsr_lateness late; /* begins after the first sleep without a wake-up */
} sleeper;

/* Tells the log for which ranks this member waits. Without the mutex, since the log's sink may take
 * long. */
static void tell_late(sleeper *mine)
{
    tsr_rendezvous *const rendezvous = mine->bed.where;
    char words[TSR_REASON_BYTES] = "";
    name_late(rendezvous, mine->bed.arrival, words, sizeof words);
    if (words[0])
        tsr_lateness_tell(&mine->late, &rendezvous->arrivals[mine->member].late, words);
}

/* Called, without the mutex, after each sleep without a wake-up. */
static void stir_sleeper(sleeper *mine)
{
    const tsr_patience *const patience = mine->bed.where->patience;
    if (mine->late.seconds == 0)
        mine->late = tsr_lateness_begin_after(NAP_MS);
    if (tsr_lateness_is_due(&mine->late))
        tell_late(mine);
    if (patience->sleeps)
        patience->sleeps(patience->world, &mine->bed);
}

/* Sleeps once. Without a wake-up it breaks the rendezvous if the timeout has passed, else stirs. */
static void sleep_locked(tsr_rendezvous *rendezvous, sleeper *mine)
{
    if (tsr_condition_wait(&rendezvous->changed, &rendezvous->mutex,
                           tsr_min_i64(mine->deadline, tsr_deadline_in(NAP_MS))))
        return;
    if (tsr_deadline_passed(mine->deadline) && !is_complete(rendezvous, mine->bed.arrival)) {
        break_for_time(rendezvous, mine->bed.arrival);
        return;
    }
    pthread_mutex_unlock(&rendezvous->mutex);
    stir_sleeper(mine);
    pthread_mutex_lock(&rendezvous->mutex);
}

/* Ends a sleep, with the mutex held: a thread that is cancelled holds it too, and runs this as its
 * cleanup. */
static void rise(void *arg)
{
    sleeper *mine = arg;
    tsr_rendezvous *rendezvous = mine->bed.where;
    if (mine->asleep) {
        char name[64], reason[TSR_REASON_BYTES];
        snprintf(reason, sizeof reason, "%s was cancelled while it waited",
                 tsr_rendezvous_name(rendezvous, mine->member, name));
        break_locked(rendezvous, reason);
    }
    atomic_fetch_sub(&rendezvous->sleepers, 1);
    pthread_mutex_unlock(&rendezvous->mutex);
    if (mine->bed.listed)
        rendezvous->patience->rises(rendezvous->patience->world, &mine->bed);
}

static void sleep_until_met(tsr_rendezvous *rendezvous, int member, uint64_t arrival)
{
    sleeper mine = {
        .bed = {.where = rendezvous, .arrival = arrival, .rank = rendezvous->ranks[member]},
        .member = member,
        .asleep = true,
        .deadline = tsr_deadline_in(rendezvous->patience->timeout_ms),
    };
    pthread_mutex_lock(&rendezvous->mutex);
    atomic_fetch_add(&rendezvous->sleepers, 1);
    pthread_cleanup_push(rise, &mine);
    while (tsr_rendezvous_is_waiting(rendezvous, arrival))
        sleep_locked(rendezvous, &mine);
    mine.asleep = false;
    pthread_cleanup_pop(1);
}

/* Called by the member that stored its count last and so saw all the others. No sleeper misses the
 * wake-up: it raised `sleepers` before its last look at the counts. */
static void wake_sleepers(tsr_rendezvous *rendezvous)
{
    if (!atomic_load(&rendezvous->sleepers))
        return;
    pthread_mutex_lock(&rendezvous->mutex);
    pthread_cond_broadcast(&rendezvous->changed);
    pthread_mutex_unlock(&rendezvous->mutex);
}

/* Counts an arrival of `member`. Returns true if it came last. */
static bool arrive_at_rendezvous(tsr_rendezvous *rendezvous, int member, uint64_t *arrival)
{
    tsr_arrivals *mine = &rendezvous->arrivals[member];
    *arrival = atomic_load_explicit(&mine->count, memory_order_relaxed) + 1;
    atomic_store(&mine->count, *arrival);
    if (!is_complete(rendezvous, *arrival))
        return false;
    wake_sleepers(rendezvous);
    return true;
}

static tsr_status wait_for_all(tsr_rendezvous *rendezvous, int member, uint64_t arrival)
{
    if (!look_at_arrivals(rendezvous, arrival))
        sleep_until_met(rendezvous, member, arrival);
    return settle_arrival(rendezvous, arrival);
}

tsr_status tsr_rendezvous_meet(tsr_rendezvous *rendezvous, int member)
{
    uint64_t arrival;
    const bool last = arrive_at_rendezvous(rendezvous, member, &arrival);
    return last ? settle_arrival(rendezvous, arrival) : wait_for_all(rendezvous, member, arrival);
}

void tsr_rendezvous_arrive(tsr_rendezvous *rendezvous, int member)
{
    uint64_t arrival;
    arrive_at_rendezvous(rendezvous, member, &arrival);
}

tsr_status tsr_rendezvous_await(tsr_rendezvous *rendezvous, int member)
{
    return wait_for_all(rendezvous, member,
                        atomic_load_explicit(&rendezvous->arrivals[member].count, memory_order_relaxed));
}
