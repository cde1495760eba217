#include "team.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

tsr_status world_create(tsr_context *context, int64_t timeout_ms, atomic_size_t *meetings, world **out)
{
    pthread_condattr_t monotonic;
    void *made;
    TSR_TRY(tsr_allocate(context, sizeof(world), &made));
    world *const w = made;
    *w = (world){.context = tsr_context_retain(context), .timeout_ms = timeout_ms, .meetings = meetings, .aborted = -1};
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = w;
    return TSR_OK;
}

void world_destroy(world *w)
{
    tsr_context *const context = w->context;
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    tsr_release(context, w);
    tsr_context_destroy(context);
}

tsr_status team_create(world *w, int ranks, const int *numbers, team **out)
{
    void *made;
    TSR_TRY(tsr_allocate(w->context, sizeof(team) + (size_t)ranks * sizeof(place), &made));
    team *const t = made;
    memset(made, 0, sizeof(team) + (size_t)ranks * sizeof(place));
    t->world = w;
    t->ranks = t->seats = ranks;
    for (int r = 0; r < ranks; r++)
        t->places[r].rank = numbers ? numbers[r] : r;
    pthread_mutex_lock(&w->lock);
    w->teams++;
    pthread_mutex_unlock(&w->lock);
    *out = t;
    return TSR_OK;
}

/* With the lock. The first reason stays. */
static void break_team(team *t, int rank, const char *what)
{
    if (!t->broken[0])
        snprintf(t->broken, sizeof t->broken, "rank %d %s", rank, what);
    pthread_cond_broadcast(&t->world->changed);
}

void team_leave(team *t, int mine)
{
    world *const w = t->world;
    pthread_mutex_lock(&w->lock);
    break_team(t, mine, "has returned");
    const bool last = --t->seats == 0;
    w->teams -= last;
    const bool empty = w->teams == 0;
    pthread_mutex_unlock(&w->lock);
    if (last)
        tsr_release(w->context, t);
    if (last && empty)
        world_destroy(w);
}

void team_abort(team *t, int mine)
{
    world *const w = t->world;
    pthread_mutex_lock(&w->lock);
    if (w->aborted < 0)
        w->aborted = t->places[mine].rank;
    break_team(t, mine, "has aborted");
    pthread_mutex_unlock(&w->lock);
}

/* With the lock: whether the team can meet no more. */
static bool is_broken(team *t)
{
    if (t->world->aborted >= 0)
        break_team(t, t->world->aborted, "has aborted");
    return t->broken[0] != '\0';
}

/* With the lock, which it gives back: TSR_ERROR_PEER if the round that the member waits for has not
 * ended. */
static tsr_status conclude(team *t, bool ended)
{
    char why[sizeof t->broken];
    snprintf(why, sizeof why, "%s", t->broken);
    pthread_mutex_unlock(&t->world->lock);
    return ended ? TSR_OK : tsr_status_set(TSR_ERROR_PEER, "%s", why);
}

tsr_status team_arrive(team *t, int mine)
{
    pthread_mutex_lock(&t->world->lock);
    if (is_broken(t))
        return conclude(t, false);
    t->places[mine].arrivals++;
    if (++t->arrived == t->ranks) {
        t->arrived = 0;
        t->round++;
        pthread_cond_broadcast(&t->world->changed);
    }
    return conclude(t, true);
}

/* With the lock: says which members have not come. */
static void give_up(team *t)
{
    size_t length = 0;
    if (t->broken[0])
        return;
    for (int r = 0; r < t->ranks && length < 100; r++)
        if (t->places[r].arrivals <= t->round)
            length +=
                (size_t)snprintf(t->broken + length, sizeof t->broken - length, "%srank %d", length > 0 ? ", " : "", r);
    snprintf(t->broken + length, sizeof t->broken - length, " did not come within %lld ms",
             (long long)t->world->timeout_ms);
    pthread_cond_broadcast(&t->world->changed);
}

tsr_status team_await(team *t, int mine)
{
    world *const w = t->world;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += w->timeout_ms / 1000;
    end.tv_nsec += w->timeout_ms % 1000 * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    const uint64_t wanted = t->places[mine].arrivals;
    while (t->round < wanted && !is_broken(t)) {
        if (w->timeout_ms == 0)
            pthread_cond_wait(&w->changed, &w->lock);
        else if (pthread_cond_timedwait(&w->changed, &w->lock, &end) == ETIMEDOUT && t->round < wanted)
            give_up(t);
    }
    const bool ended = t->round >= wanted;
    if (ended && w->meetings)
        atomic_fetch_add(w->meetings, 1);
    return conclude(t, ended);
}
