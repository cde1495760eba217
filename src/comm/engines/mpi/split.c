#include "comm/engines/mpi/split.h"

#include "comm/engines/mpi/calls/error.h"
#include "comm/engines/mpi/exchange.h"
#include "comm/engines/mpi/notice.h"
#include "comm/engines/mpi/world.h"

/* True if ranks `a` and `b` have the same color and `a` comes first in the new group: by key, then
 * by rank. */
static bool comes_before(const tsr_mpi_post *posts, int a, int b)
{
    return posts[a].color == posts[b].color && (posts[a].key < posts[b].key || (posts[a].key == posts[b].key && a < b));
}

static int place_of(const tsr_mpi_post *posts, int ranks, int rank)
{
    int place = 0;
    for (int r = 0; r < ranks; r++)
        place += comes_before(posts, r, rank);
    return place;
}

/* A number that no rank of the parent has used for a group yet. All colors of a split use the same
 * one, since no rank is in two of their groups. */
static int next_group(const tsr_mpi_post *posts, int ranks)
{
    int next = 0;
    for (int r = 0; r < ranks; r++)
        next = posts[r].next_group > next ? posts[r].next_group : next;
    return next;
}

/* The lowest rank of this color that could not make its handle; -1: none. */
static int find_unable(const tsr_mpi_post *posts, int ranks, int color)
{
    for (int r = 0; r < ranks; r++)
        if (posts[r].color == color && !posts[r].able)
            return r;
    return -1;
}

/* Sets the seat and the desk of the rank at `place`. */
static void introduce(tsr_mpi_handle *handle, int place, const tsr_mpi_post *post)
{
    if (handle->gated)
        tsr_mpi_gate_set(&handle->gate, place, post->seat);
    if (tsr_mpi_world_is_mate(handle->world, handle->names[place]))
        tsr_mpi_trays_set(&handle->trays, place, post->desk);
}

static void hear(void *world)
{
    tsr_mpi_notice_hear(world);
}

/* After `names` is filled: opens the trays, and the gate if all ranks are on this node. */
static void open_up(tsr_mpi_handle *handle)
{
    handle->gated = handle->world->node;
    for (int place = 0; place < handle->ranks; place++)
        handle->gated = handle->gated && tsr_mpi_world_is_mate(handle->world, handle->names[place]);
    if (handle->gated) {
        tsr_mpi_gate_open(&handle->gate, handle->ranks, handle->rank);
        tsr_mpi_gate_listen(&handle->gate, hear, handle->world);
    } else {
        tsr_mpi_gate_leave(&handle->gate);
    }
    tsr_mpi_trays_open(&handle->trays, handle->ranks, handle->rank);
}

/* Makes `made` the group of all ranks of `parent` with this rank's color. */
static void meet_peers(tsr_mpi_handle *made, const tsr_mpi_handle *parent, int group)
{
    const tsr_mpi_post *posts = parent->posts;
    const int color = posts[parent->rank].color;
    made->group = group;
    made->rank = place_of(posts, parent->ranks, parent->rank);
    made->ranks = 0;
    for (int r = 0; r < parent->ranks; r++)
        if (posts[r].color == color) {
            made->names[place_of(posts, parent->ranks, r)] = parent->names[r];
            made->ranks++;
        }
    open_up(made);
    for (int r = 0; r < parent->ranks; r++)
        if (posts[r].color == color)
            introduce(made, place_of(posts, parent->ranks, r), &posts[r]);
}

/* Steps from `slot` to the first one that no group of this rank uses; world->slots: all are
 * used. */
static int count_taken(const tsr_mpi_world *world, int slot)
{
    int steps = 0;
    while (steps < world->slots && !tsr_mpi_world_slot_is_free(world, (slot + steps) % world->slots))
        steps++;
    return steps;
}

/* Collective: how many steps each rank has to take from `slot` to a slot that it does not use;
 * `*out` is the most. */
static tsr_status agree_on_steps(tsr_mpi_handle *parent, int slot, int *out)
{
    int most = 0;
    int32_t *const steps = parent->steps;
    steps[parent->rank] = count_taken(parent->world, slot);
    TSR_TRY(tsr_mpi_gather_and_spread(parent, steps, sizeof *steps));
    for (int r = 0; r < parent->ranks; r++)
        most = steps[r] > most ? steps[r] : most;
    *out = most;
    return TSR_OK;
}

/*
 * Collective: finds a slot, a set of tags, that no rank of the parent uses for another group; below
 * 0: there is none. Group numbers only rise, so the first groups have the slots of their own
 * numbers. After that the ranks search, from the same slot on, for one that all of them have free.
 * After an error ranks may disagree on what was found.
 */
static tsr_status find_slot(tsr_mpi_handle *parent, int group, int *out)
{
    const int slots = parent->world->slots, first = group % slots;
    int gone = 0;
    for (int steps = group >= slots; steps > 0 && gone < slots; gone += steps)
        TSR_TRY(agree_on_steps(parent, (first + gone) % slots, &steps));
    *out = gone < slots ? (first + gone) % slots : -1;
    return TSR_OK;
}

static tsr_status agree_on_group(tsr_mpi_handle *parent, int *group, int *slot)
{
    TSR_TRY(tsr_mpi_gather_and_spread(parent, parent->posts, sizeof *parent->posts));
    *group = next_group(parent->posts, parent->ranks);
    parent->world->next_group = *group + 1;
    return find_slot(parent, *group, slot);
}

/* `local`: the status of making this rank's handle. All ranks have the same posts, so all ranks of
 * a color get their peers, or none does. */
static tsr_status join_group(tsr_mpi_handle *parent, tsr_mpi_handle *made, int group, int slot, tsr_status local)
{
    const tsr_mpi_post *posts = parent->posts;
    const int color = posts[parent->rank].color, unable = find_unable(posts, parent->ranks, color);
    if (local != TSR_OK || color < 0)
        return local;
    if (slot < 0)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "mpi: all %d groups of tags that MPI has room for are in use; destroy communicators first",
            parent->world->slots);
    if (unable >= 0)
        return tsr_status_set(TSR_ERROR_PEER, "rank %d failed: it could not make the communicator of this color",
                              unable);
    tsr_mpi_world_take_slot(parent->world, slot);
    made->slot = slot;
    meet_peers(made, parent, group);
    return TSR_OK;
}

/* A rank that cannot make its handle tells the others so, and returns its own sentence. */
tsr_status tsr_mpi_split(void *self, int color, int key, void **out)
{
    tsr_mpi_handle *parent = self, *made = NULL;
    const tsr_status local = color >= 0 ? tsr_mpi_handle_create(parent->world, parent->ranks, &made) : TSR_OK;
    parent->posts[parent->rank] = (tsr_mpi_post){.color = color < 0 ? -1 : color,
                                                 .key = key,
                                                 .next_group = parent->world->next_group,
                                                 .able = local == TSR_OK,
                                                 .seat = made ? tsr_mpi_gate_seat(&made->gate) : NULL,
                                                 .desk = made ? made->trays.own : NULL};
    int group, slot;
    const tsr_status agreed = agree_on_group(parent, &group, &slot);
    const tsr_status status = agreed == TSR_OK ? join_group(parent, made, group, slot, local) : agreed;
    if (status == TSR_OK)
        *out = made;
    else if (made && agreed == TSR_OK)
        tsr_mpi_handle_destroy(made);
    else if (made)
        tsr_mpi_handle_abandon(made);
    return status;
}

tsr_status tsr_mpi_seat_all(const tsr_mpi_together *together, tsr_mpi_handle *handle)
{
    tsr_mpi_world *world = handle->world;
    const tsr_mpi_post mine = {.seat = tsr_mpi_gate_seat(&handle->gate), .desk = handle->trays.own};
    TSR_TRY(tsr_mpi_gather_all(together, world->comm, &mine, handle->posts, sizeof mine));
    handle->rank = world->rank;
    world->next_group = 1;
    tsr_mpi_world_take_slot(world, handle->slot = 0);
    for (int r = 0; r < world->ranks; r++)
        handle->names[r] = r;
    open_up(handle);
    for (int r = 0; r < world->ranks; r++)
        introduce(handle, r, &handle->posts[r]);
    return TSR_OK;
}
