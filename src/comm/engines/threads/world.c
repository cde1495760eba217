#include "comm/engines/threads/world.h"

#include "base/memory/memory.h"
#include "base/processor.h"
#include "comm/core/patience.h"
#include "comm/engines/threads/stall.h"

#include <stdio.h>
#include <string.h>

static void set_patience(tsr_world *world, const tsr_threads_options *options, bool watched)
{
    tsr_patience *patience = &world->patience;
    patience->crowded = world->count > tsr_processor_count();
    patience->looks = options->spin >= 0 ? options->spin : patience->crowded ? TSR_LOOKS_CROWDED : TSR_LOOKS_ALONE;
    patience->timeout_ms = options->timeout_ms;
    if (watched && options->stall_ms > 0) {
        patience->sleeps = tsr_stall_sleeps;
        patience->rises = tsr_stall_rises;
    }
    patience->world = world;
    world->stall_ms = options->stall_ms;
}

static tsr_status make_world(tsr_context *context, int nranks, const tsr_threads_options *options, bool watched,
                             tsr_world **out)
{
    tsr_world *world;
    TSR_TRY(tsr_allocate_zeroed(context, sizeof *world, (void **)&world));
    tsr_status status =
        tsr_allocate_array(context, (size_t)nranks, sizeof *world->residents, (void **)&world->residents);
    if (status != TSR_OK)
        goto free_world;
    if (pthread_mutex_init(&world->lock, NULL) != 0) {
        status = tsr_status_set(TSR_ERROR_MEMORY, "threads: there is no memory for a lock");
        goto free_residents;
    }
    world->context = tsr_context_retain(context);
    world->count = nranks;
    world->left = nranks;
    set_patience(world, options, watched);
    *out = world;
    return TSR_OK;

free_residents:
    tsr_release(context, world->residents);
free_world:
    tsr_release(context, world);
    return status;
}

static void free_world(tsr_world *world)
{
    tsr_context *context = world->context;
    pthread_mutex_destroy(&world->lock);
    tsr_release(context, world->residents);
    tsr_release(context, world);
    tsr_context_destroy(context);
}

tsr_status tsr_world_create(tsr_context *context, int nranks, const tsr_threads_options *options, bool watched,
                            tsr_team **out)
{
    tsr_world *world = NULL;
    TSR_TRY(make_world(context, nranks, options, watched, &world));
    const tsr_status status = tsr_team_create(world, nranks, NULL, out);
    if (status != TSR_OK)
        free_world(world);
    else
        world->first = *out;
    return status;
}

void tsr_world_seat(tsr_world *world, int rank)
{
    tsr_resident *resident = &world->residents[rank];
    const int state = tsr_world_lock(world);
    resident->owner = pthread_self();
    resident->seated = true;
    world->seated++;
    tsr_world_unlock(world, state);
}

void tsr_world_unseat(tsr_world *world, int rank)
{
    const int state = tsr_world_lock(world);
    world->residents[rank].ended = true;
    tsr_world_unlock(world, state);
}

tsr_context *tsr_world_context(tsr_world *world)
{
    return world->context;
}

static void free_team(tsr_team *team)
{
    tsr_context *context = team->world->context;
    tsr_release(context, team->arrivals);
    tsr_release(context, team->posts);
    tsr_release(context, team->slots);
    tsr_release(context, team->slot_list);
    tsr_release(context, team->ranks);
    tsr_release(context, team);
}

static tsr_status allocate_team(tsr_team *team, size_t count)
{
    tsr_context *context = team->world->context;
    TSR_TRY(tsr_allocate_array(context, count, sizeof *team->ranks, (void **)&team->ranks));
    TSR_TRY(tsr_allocate_array(context, count, TSR_COMM_SLOT_BYTES, &team->slots));
    TSR_TRY(tsr_allocate_array(context, count, sizeof *team->slot_list, (void **)&team->slot_list));
    TSR_TRY(tsr_allocate_array(context, count, sizeof *team->posts, (void **)&team->posts));
    return tsr_allocate_array(context, count, sizeof(tsr_arrivals), &team->arrivals);
}

static void link_team(tsr_world *world, tsr_team *team)
{
    const int state = tsr_world_lock(world);
    team->next = world->teams;
    if (team->next)
        team->next->previous = team;
    world->teams = team;
    tsr_world_unlock(world, state);
}

tsr_status tsr_team_create(tsr_world *world, int count, const int *ranks, tsr_team **out)
{
    tsr_team *team;
    TSR_TRY(tsr_allocate_zeroed(world->context, sizeof *team, (void **)&team));
    team->world = world;
    team->count = count;
    team->handles = count;
    tsr_status status = allocate_team(team, (size_t)count);
    if (status != TSR_OK)
        goto free_team;
    for (int m = 0; m < count; m++) {
        team->ranks[m] = ranks ? ranks[m] : m;
        team->slot_list[m] = (char *)team->slots + (size_t)m * TSR_COMM_SLOT_BYTES;
    }
    status = tsr_rendezvous_init(&team->rendezvous, count, team->arrivals, team->ranks, &world->patience);
    if (status != TSR_OK)
        goto free_team;
    link_team(world, team);
    *out = team;
    return TSR_OK;

free_team:
    free_team(team);
    return status;
}

static int member_of(const tsr_team *team, int rank)
{
    for (int m = 0; m < team->count; m++)
        if (team->ranks[m] == rank)
            return m;
    return -1;
}

static void break_team(tsr_team *team, int member, const char *what)
{
    char name[64], reason[TSR_REASON_BYTES];
    snprintf(reason, sizeof reason, "%s has %s", tsr_rendezvous_name(&team->rendezvous, member, name), what);
    tsr_rendezvous_break(&team->rendezvous, reason);
}

static const char *tell_end(const tsr_world *world, int rank)
{
    return world->residents[rank].ended ? "ended its thread (pthread_exit or cancellation)" : "returned";
}

/* Under the lock: breaks every team that rank `rank` is in. */
static void leave_all(tsr_world *world, int rank)
{
    for (tsr_team *team = world->teams; team; team = team->next) {
        const int member = team == world->first ? rank : member_of(team, rank);
        if (member >= 0)
            break_team(team, member, tell_end(world, rank));
    }
}

/* Under the lock: true if the world can be freed. */
static bool is_over(const tsr_world *world)
{
    return !world->teams && world->seated == 0;
}

void tsr_world_depart(tsr_world *world, int rank)
{
    const int state = tsr_world_lock(world);
    world->seated--;
    leave_all(world, rank);
    tsr_stall_depart(world);
    const bool last = is_over(world);
    tsr_world_unlock(world, state);
    if (last)
        free_world(world);
}

/* Under the lock: gives back `handles` handles, and frees the team with the last. True if the world
 * can be freed then. */
static bool give_back(tsr_team *team, int handles)
{
    tsr_world *world = team->world;
    team->handles -= handles;
    if (team->handles > 0)
        return false;
    if (team->previous)
        team->previous->next = team->next;
    else
        world->teams = team->next;
    if (team->next)
        team->next->previous = team->previous;
    if (team == world->first)
        world->first = NULL;
    tsr_rendezvous_finish(&team->rendezvous);
    free_team(team);
    return is_over(world);
}

void tsr_team_leave(tsr_team *team, int member)
{
    tsr_world *world = team->world;
    const int state = tsr_world_lock(world);
    break_team(team, member, tell_end(world, team->ranks[member]));
    const bool last = give_back(team, 1);
    tsr_world_unlock(world, state);
    if (last)
        free_world(world);
}

void tsr_team_discard(tsr_team *team, int count)
{
    tsr_world *world = team->world;
    const int state = tsr_world_lock(world);
    const bool last = give_back(team, count);
    tsr_world_unlock(world, state);
    if (last)
        free_world(world);
}

void tsr_team_abort(tsr_team *team, int member)
{
    tsr_world *world = team->world;
    char reason[TSR_REASON_BYTES];
    snprintf(reason, sizeof reason, "rank %d of all has aborted", team->ranks[member]);
    const int state = tsr_world_lock(world);
    for (tsr_team *each = world->teams; each; each = each->next)
        tsr_rendezvous_break(&each->rendezvous, reason);
    tsr_world_unlock(world, state);
}
