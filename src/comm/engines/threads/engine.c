#include "comm/engines/threads/engine.h"

#include "base/context.h"
#include "base/memory/memory.h"
#include "base/options.h"
#include "base/settings.h"
#include "comm/core/call.h"
#include "comm/core/object.h"

#include <string.h>

/* The `self` of a handle: one member of a team. */
typedef struct seat {
    tsr_team *team;
    int member;
} seat;

static int rank_of(void *self)
{
    return ((const seat *)self)->member;
}

static int count_ranks(void *self)
{
    return ((const seat *)self)->team->count;
}

static void *slot_of(void *self, int rank)
{
    return ((const seat *)self)->team->slot_list[rank];
}

static void *const *slots_of(void *self)
{
    return ((const seat *)self)->team->slot_list;
}

static tsr_status threads_meet(void *self)
{
    const seat *mine = self;
    return tsr_rendezvous_meet(&mine->team->rendezvous, mine->member);
}

static tsr_status threads_arrive(void *self)
{
    const seat *mine = self;
    tsr_rendezvous_arrive(&mine->team->rendezvous, mine->member);
    return TSR_OK;
}

static tsr_status threads_await(void *self)
{
    const seat *mine = self;
    return tsr_rendezvous_await(&mine->team->rendezvous, mine->member);
}

static void tell_late(void *self, tsr_comm_late *late, void *arg)
{
    const seat *mine = self;
    mine->team->rendezvous.arrivals[mine->member].late = (tsr_late_hook){late, arg};
}

static void abort_world(void *self)
{
    const seat *mine = self;
    tsr_team_abort(mine->team, mine->member);
}

static tsr_status take_seat(tsr_team *team, int member, seat **out)
{
    seat *made;
    TSR_TRY(tsr_allocate(tsr_world_context(team->world), sizeof *made, (void **)&made));
    *made = (seat){team, member};
    *out = made;
    return TSR_OK;
}

static void threads_destroy(void *self)
{
    seat *mine = self;
    const seat held = *mine;
    tsr_release(tsr_world_context(held.team->world), mine);
    tsr_team_leave(held.team, held.member);
}

/* True if members `a` and `b` have the same color and `a` comes first in the new team: by key, then
 * by member. */
static bool comes_before(const tsr_post *posts, int a, int b)
{
    return posts[a].color == posts[b].color && (posts[a].key < posts[b].key || (posts[a].key == posts[b].key && a < b));
}

static int place_of(const tsr_team *team, int member)
{
    int place = 0;
    for (int m = 0; m < team->count; m++)
        place += comes_before(team->posts, m, member);
    return place;
}

static int first_of(const tsr_team *team, int member)
{
    int first = member;
    for (int m = 0; m < team->count; m++)
        if (comes_before(team->posts, m, first))
            first = m;
    return first;
}

static int count_color(const tsr_team *team, int color)
{
    int count = 0;
    for (int m = 0; m < team->count; m++)
        count += team->posts[m].color == color;
    return count;
}

/* Makes the team of all members with this color. */
static tsr_status make_team(const tsr_team *team, int color, int count, tsr_team **out)
{
    tsr_context *context = tsr_world_context(team->world);
    int *ranks;
    TSR_TRY(tsr_allocate_array(context, (size_t)count, sizeof *ranks, (void **)&ranks));
    for (int m = 0; m < team->count; m++)
        if (team->posts[m].color == color)
            ranks[place_of(team, m)] = team->ranks[m];
    const tsr_status status = tsr_team_create(team->world, count, ranks, out);
    tsr_release(context, ranks);
    return status;
}

/* The first member of every color makes its team and shows it to the others at a meet. */
static tsr_status show_team(seat *mine, int color, bool first)
{
    tsr_team *team = mine->team, *made = NULL;
    const int count = count_color(team, color);
    const tsr_status local = first ? make_team(team, color, count, &made) : TSR_OK;
    team->posts[mine->member].made = made;
    const tsr_status met = threads_meet(mine);
    if (met != TSR_OK && made)
        tsr_team_discard(made, count);
    return met != TSR_OK ? met : local;
}

/* A member that cannot get a seat counts as left, so that the team is freed with the others'
 * seats. */
static tsr_status enter_team(tsr_team *made, int place, seat **out)
{
    const tsr_status status = take_seat(made, place, out);
    if (status != TSR_OK)
        tsr_team_leave(made, place);
    return status;
}

/*
 * Colors and keys are read between the first meet and the second, new teams after the second. A
 * fast member may write the color and key of its next split then, but writes its next `made` only
 * after a meet that all members have reached. So no member reads what another is writing.
 */
static tsr_status threads_split(void *self, int color, int key, void **out)
{
    seat *mine = self, *taken = NULL;
    tsr_team *team = mine->team;
    tsr_post *post = &team->posts[mine->member];
    post->color = color;
    post->key = key;
    TSR_TRY(threads_meet(self));
    const int first = first_of(team, mine->member), place = place_of(team, mine->member);
    TSR_TRY(show_team(mine, color, color >= 0 && first == mine->member));
    if (color >= 0) {
        tsr_team *made = team->posts[first].made;
        if (!made)
            return tsr_peer_failed(first, "it could not make the communicator of this color");
        TSR_TRY(enter_team(made, place, &taken));
    }
    *out = taken;
    return TSR_OK;
}

static const tsr_comm_direct threads_direct = {
    .size = sizeof(tsr_comm_direct),
    .slot = slot_of,
    .meet = threads_meet,
    .arrive = threads_arrive,
    .await = threads_await,
    .slots = slots_of,
};

static const tsr_comm_table threads_table = {
    .size = sizeof(tsr_comm_table),
    .name = "threads",
    .rank = rank_of,
    .ranks = count_ranks,
    .abort = abort_world,
    .destroy = threads_destroy,
    .split = threads_split,
    .tell_late = tell_late,
    .direct = &threads_direct,
};

static tsr_status make_handle(tsr_context *context, tsr_team *team, int rank, tsr_comm **out)
{
    seat *taken;
    TSR_TRY(take_seat(team, rank, &taken));
    const tsr_status status = tsr_comm_create_from_table(context, &threads_table, taken, out);
    if (status != TSR_OK)
        tsr_release(context, taken);
    return status;
}

/* Makes handles[r] for all ranks of a new team. On failure there are none, and the team is
 * freed. */
static tsr_status make_handles(tsr_context *context, tsr_team *team, tsr_comm **handles)
{
    const int nranks = team->count;
    tsr_status status = TSR_OK;
    int made = 0;
    for (; made < nranks; made++) {
        status = make_handle(context, team, made, &handles[made]);
        if (status != TSR_OK)
            break;
    }
    if (made == nranks)
        return TSR_OK;
    /* Handles that were never made are given back first, so that destroying the last of the others
     * frees the team. */
    tsr_team_discard(team, nranks - made);
    for (int r = 0; r < made; r++)
        tsr_comm_destroy(handles[r]);
    return status;
}

static tsr_status read_options(const char *call, int nranks, const tsr_threads_options *given,
                               tsr_threads_options *options)
{
    if (nranks < 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: nranks is %d; it must be at least 1", call, nranks);
    TSR_TRY(tsr_options_read(call, given, options, sizeof *options));
    if (options->timeout_ms < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.timeout_ms is %lld; 0 waits for ever", call,
                              (long long)options->timeout_ms);
    if (options->spin < -1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: options.spin is %lld; -1 goes by the number of cores, 0 sleeps at once", call,
                              (long long)options->spin);
    if (options->stall_ms < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.stall_ms is %lld; 0 waits for ever", call,
                              (long long)options->stall_ms);
    return TSR_OK;
}

static void override(const tsr_context *context, tsr_threads_options *options)
{
    const tsr_settings *settings = tsr_context_settings(context);
    options->timeout_ms = tsr_context_timeout_ms(context, options->timeout_ms);
    options->spin = tsr_setting_or(settings->spin, options->spin);
    options->stall_ms = tsr_setting_or(settings->stall_ms, options->stall_ms);
}

tsr_status tsr_threads_decide(const char *call, int nranks, const tsr_threads_options *given, tsr_threads_options *out)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    TSR_TRY(read_options(call, nranks, given, &options));
    TSR_TRY(tsr_context_resolve(options.context, &options.context));
    override(options.context, &options);
    *out = options;
    return TSR_OK;
}

tsr_status tsr_threads_create(int nranks, const tsr_threads_options *options, bool watched, tsr_comm ***handles)
{
    tsr_context *context = options->context;
    tsr_comm **made;
    tsr_team *team;
    TSR_TRY(tsr_allocate_array(context, (size_t)nranks, sizeof *made, (void **)&made));
    tsr_status status = tsr_world_create(context, nranks, options, watched, &team);
    if (status == TSR_OK)
        status = make_handles(context, team, made);
    if (status != TSR_OK) {
        tsr_release(context, made);
        return status;
    }
    *handles = made;
    return TSR_OK;
}

tsr_world *tsr_threads_seat(tsr_comm *comm)
{
    const seat *mine = comm->self;
    tsr_world_seat(mine->team->world, mine->member);
    return mine->team->world;
}

tsr_status tsr_comm_create_threads(int nranks, const tsr_threads_options *options, tsr_comm *out[])
{
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_comm_create_threads: out is NULL; it needs room for %d handles",
                              nranks);
    tsr_threads_options mine;
    tsr_comm **handles;
    TSR_TRY(tsr_threads_decide("tsr_comm_create_threads", nranks, options, &mine));
    const tsr_status status = tsr_threads_create(nranks, &mine, false, &handles);
    if (status == TSR_OK) {
        memcpy(out, handles, (size_t)nranks * sizeof *out);
        tsr_release(mine.context, handles);
    }
    tsr_context_destroy(mine.context);
    return status;
}
