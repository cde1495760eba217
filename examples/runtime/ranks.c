#include "ranks.h"

#include "team.h"

#include <tessera/sys/memory.h>

/* The `self` of a handle. */
typedef struct seat {
    team *team;
    int mine;
} seat;

static int rank_of(void *self)
{
    return ((const seat *)self)->mine;
}

static int count_ranks(void *self)
{
    return ((const seat *)self)->team->ranks;
}

static void *slot_of(void *self, int rank)
{
    return ((const seat *)self)->team->places[rank].slot;
}

static tsr_status arrive(void *self)
{
    const seat *const s = self;
    return team_arrive(s->team, s->mine);
}

static tsr_status await(void *self)
{
    const seat *const s = self;
    return team_await(s->team, s->mine);
}

static tsr_status meet(void *self)
{
    TSR_TRY(arrive(self));
    return await(self);
}

static void abort_all(void *self)
{
    const seat *const s = self;
    team_abort(s->team, s->mine);
}

static void destroy(void *self)
{
    const seat s = *(const seat *)self;
    tsr_release(s.team->world->context, self);
    team_leave(s.team, s.mine);
}

static tsr_status take_seat(team *t, int mine, void **out)
{
    TSR_TRY(tsr_allocate(t->world->context, sizeof(seat), out));
    *(seat *)*out = (seat){t, mine};
    return TSR_OK;
}

static bool comes_before(const place *places, int a, int b)
{
    return places[a].color == places[b].color &&
           (places[a].key < places[b].key || (places[a].key == places[b].key && a < b));
}

/* The member at place `at` among those of the color of `mine`, which are ordered by key and then by
 * rank; -1: there are fewer. */
static int member_at(const team *t, int mine, int at)
{
    for (int m = 0; m < t->ranks; m++) {
        int before = 0;
        for (int other = 0; other < t->ranks; other++)
            before += comes_before(t->places, other, m);
        if (t->places[m].color == t->places[mine].color && before == at)
            return m;
    }
    return -1;
}

/* The first member of each color makes the color's team. */
static tsr_status make_team(team *t, int mine, team **out)
{
    void *numbers;
    int count = 0;
    TSR_TRY(tsr_allocate(t->world->context, (size_t)t->ranks * sizeof(int), &numbers));
    for (int member; (member = member_at(t, mine, count)) >= 0; count++)
        ((int *)numbers)[count] = t->places[member].rank;
    const tsr_status status = team_create(t->world, count, numbers, out);
    tsr_release(t->world->context, numbers);
    return status;
}

static tsr_status enter(const place *first, int at, void **out)
{
    team *const made = first->made;
    if (!made)
        return tsr_status_set(TSR_ERROR_PEER, "rank %d could not make the communicator of this color", first->rank);
    const tsr_status status = take_seat(made, at, out);
    if (status != TSR_OK)
        team_leave(made, at);
    return status;
}

/* All write color and key before the first meeting; teams are made before the second and entered
 * after it. */
static tsr_status split(void *self, int color, int key, void **out)
{
    team *const t = ((const seat *)self)->team;
    const int mine = ((const seat *)self)->mine;
    team *made = NULL;
    int at = 0;
    t->places[mine].color = color;
    t->places[mine].key = key;
    TSR_TRY(meet(self));
    const int first = member_at(t, mine, 0);
    while (member_at(t, mine, at) != mine)
        at++;
    const tsr_status status = color >= 0 && first == mine ? make_team(t, mine, &made) : TSR_OK;
    t->places[mine].made = made;
    const tsr_status met = meet(self);
    if (status != TSR_OK)
        return status;
    for (int seats = made && met != TSR_OK ? made->ranks : 0; seats > 0; seats--)
        team_leave(made, 0);
    TSR_TRY(met);
    *out = NULL;
    return color >= 0 ? enter(&t->places[first], at, out) : TSR_OK;
}

static const tsr_comm_direct ranks_direct = {
    .size = sizeof(tsr_comm_direct), .slot = slot_of, .meet = meet, .arrive = arrive, .await = await};

static const tsr_comm_table ranks_table = {
    .size = sizeof(tsr_comm_table),
    .name = "tasks",
    .rank = rank_of,
    .ranks = count_ranks,
    .abort = abort_all,
    .destroy = destroy,
    .split = split,
    .direct = &ranks_direct,
};

static tsr_status make_handle(team *t, int mine, tsr_comm **out)
{
    void *taken;
    TSR_TRY(take_seat(t, mine, &taken));
    const tsr_status status = tsr_comm_create_from_table(t->world->context, &ranks_table, taken, out);
    if (status != TSR_OK)
        tsr_release(t->world->context, taken);
    return status;
}

tsr_status ranks_create(tsr_context *context, int count, int64_t timeout_ms, atomic_size_t *meetings,
                        tsr_comm **handles)
{
    world *w;
    team *t;
    int made = 0;
    TSR_TRY(world_create(context, timeout_ms, meetings, &w));
    tsr_status status = team_create(w, count, NULL, &t);
    if (status != TSR_OK) {
        world_destroy(w);
        return status;
    }
    for (; made < count && status == TSR_OK; made += status == TSR_OK)
        status = make_handle(t, made, &handles[made]);
    if (status == TSR_OK)
        return TSR_OK;
    for (int r = 0; r < made; r++) {
        tsr_comm_destroy(handles[r]);
        handles[r] = NULL;
    }
    for (int r = made; r < count; r++)
        team_leave(t, r);
    return status;
}
