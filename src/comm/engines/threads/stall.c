#include "comm/engines/threads/stall.h"

#include "base/checked.h"
#include "base/text/text.h"
#include "comm/engines/threads/process.h"

#include <tessera/sys/log.h>

/* A sentence says of at most this many ranks where they wait. */
#define RANKS_NAMED 3

/* Time between two looks: at least this many nanoseconds, and at least this many times the last
 * look's duration. */
#define BETWEEN_LOOKS_NS   INT64_C(200000000)
#define BETWEEN_LOOKS_LONG 20

static bool is_owner(const tsr_world *world, int rank)
{
    const tsr_resident *resident = &world->residents[rank];
    return resident->seated && pthread_equal(resident->owner, pthread_self());
}

/* The rank whose main the calling thread runs; -1: none. `likely` is tried first: the rank for
 * which the thread calls. */
static int find_own_rank(const tsr_world *world, int likely)
{
    if (is_owner(world, likely))
        return likely;
    int rank = world->count - 1;
    while (rank >= 0 && !is_owner(world, rank))
        rank--;
    return rank;
}

/* Something has changed: the present stillness ends, and the log may be told of the next. */
static void stir_world(tsr_world *world)
{
    world->patient = tsr_deadline_in(world->stall_ms);
    world->told = false;
}

static void list_bed(tsr_world *world, tsr_bed *bed)
{
    bed->owner = find_own_rank(world, bed->rank);
    bed->listed = true;
    bed->next = world->beds;
    if (bed->next)
        bed->next->previous = bed;
    world->beds = bed;
    world->threads++;
    world->owners += bed->owner >= 0;
    if (world->owners == world->left)
        world->look = 0;
    stir_world(world);
}

static void unlist(tsr_world *world, tsr_bed *bed)
{
    if (bed->previous)
        bed->previous->next = bed->next;
    else
        world->beds = bed->next;
    if (bed->next)
        bed->next->previous = bed->previous;
    world->threads--;
    world->owners -= bed->owner >= 0;
    stir_world(world);
}

/* Under the lock: true if the threads of all remaining ranks are listed and no listed thread can go
 * on. Threads leave the list under the lock only, so all of them are still there when the last is
 * looked at. */
static bool all_sleep_in_vain(const tsr_world *world)
{
    if (world->owners < world->left)
        return false;
    for (const tsr_bed *bed = world->beds; bed; bed = bed->next)
        if (!tsr_rendezvous_is_waiting(bed->where, bed->arrival))
            return false;
    return true;
}

/* True if all threads of the process are listed, but for the one that waits in
 * tsr_threads_run(). */
static bool nobody_else_is_there(const tsr_world *world)
{
    return tsr_process_threads() == world->threads + 1;
}

static const tsr_bed *bed_of(const tsr_world *world, int rank)
{
    const tsr_bed *bed = world->beds;
    while (bed && bed->owner != rank)
        bed = bed->next;
    return bed;
}

static void describe_stall(const tsr_world *world, tsr_text *text)
{
    tsr_text_append(text, "ranks wait in different communicators, so that none can go on (");
    for (int r = 0, named = 0; r < world->count && named < RANKS_NAMED; r++) {
        const tsr_bed *bed = bed_of(world, r);
        if (bed)
            tsr_text_append(text, "%srank %d in one of %d ranks", named++ ? ", " : "", r, bed->where->count);
    }
    tsr_text_append(text, "): all must call in the same order");
}

static void break_all(const tsr_world *world)
{
    char reason[TSR_REASON_BYTES];
    tsr_text text = {reason, sizeof reason, 0};
    describe_stall(world, &text);
    tsr_text_append(&text,
                    " (where other threads are still to call for ranks, set stall_ms in tsr_threads_options to 0)");
    for (const tsr_bed *bed = world->beds; bed; bed = bed->next)
        tsr_rendezvous_break(bed->where, reason);
}

/* Under the lock: breaks a world that has stalled. If it may have stalled, writes `words` for the
 * log, once per stillness. */
static void judge_world(tsr_world *world, tsr_text *words)
{
    if (!all_sleep_in_vain(world))
        return;
    if (tsr_deadline_passed(world->patient) || nobody_else_is_there(world)) {
        break_all(world);
    } else if (!world->told) {
        describe_stall(world, words);
        tsr_text_append(words, "; unless another thread calls for one of them they are given up after %lld ms",
                        (long long)world->stall_ms);
        world->told = true;
    }
}

static void look_for_stall(tsr_world *world, tsr_text *words)
{
    const tsr_deadline begin = tsr_deadline_now();
    if (begin < world->look)
        return;
    judge_world(world, words);
    const tsr_deadline end = tsr_deadline_now();
    world->look = end + tsr_max_i64(BETWEEN_LOOKS_NS, BETWEEN_LOOKS_LONG * (end - begin));
}

int tsr_world_lock(tsr_world *world)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&world->lock);
    return state;
}

void tsr_world_unlock(tsr_world *world, int state)
{
    pthread_mutex_unlock(&world->lock);
    pthread_setcancelstate(state, &state);
}

void tsr_stall_sleeps(void *arg, tsr_bed *bed)
{
    tsr_world *world = arg;
    char line[TSR_REASON_BYTES] = "";
    tsr_text words = {line, sizeof line, 0};
    const int state = tsr_world_lock(world);
    if (!bed->listed)
        list_bed(world, bed);
    look_for_stall(world, &words);
    tsr_world_unlock(world, state);
    if (line[0])
        tsr_log(world->context, TSR_LOG_WARN, "%s", line);
}

void tsr_stall_rises(void *arg, tsr_bed *bed)
{
    tsr_world *world = arg;
    const int state = tsr_world_lock(world);
    unlist(world, bed);
    tsr_world_unlock(world, state);
}

void tsr_stall_depart(tsr_world *world)
{
    world->left--;
    stir_world(world);
}
