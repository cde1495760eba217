#include "hosts/tvm/disco/world.h"

#include <tessera/sys/status.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct tsr_disco_world {
    pthread_mutex_t lock;
    int workers, left; /* workers that have not given their seats back */
    tsr_comm **all;    /* by worker, until it takes its seat */
    tsr_comm **pairs;  /* [worker * workers + peer]: the worker's handle, made when first used */
    bool *gone;        /* by worker: it has given its seat back */
};

static void free_world(tsr_disco_world *world)
{
    for (int r = 0; r < world->workers && world->all; r++)
        tsr_comm_destroy(world->all[r]);
    pthread_mutex_destroy(&world->lock);
    free(world->all);
    free(world->pairs);
    free(world->gone);
    free(world);
}

tsr_status tsr_disco_world_create(int workers, tsr_disco_world **out)
{
    const size_t count = (size_t)workers;
    tsr_disco_world *const world = calloc(1, sizeof *world);
    if (!world)
        return tsr_status_set(TSR_ERROR_MEMORY, "Disco: no memory for %d workers", workers);
    pthread_mutex_init(&world->lock, NULL);
    world->workers = world->left = workers;
    world->all = calloc(count, sizeof *world->all);
    world->pairs = calloc(count * count, sizeof *world->pairs);
    world->gone = calloc(count, sizeof *world->gone);
    const tsr_status status = world->all && world->pairs && world->gone
                                  ? tsr_comm_create_threads(workers, NULL, world->all)
                                  : tsr_status_set(TSR_ERROR_MEMORY, "Disco: no memory for %d workers", workers);
    if (status == TSR_OK)
        *out = world;
    else
        free_world(world);
    return status;
}

/* The last worker to leave frees the world. */
static void leave_world(const tsr_disco_seat *seat)
{
    tsr_disco_world *const world = seat->world;
    pthread_mutex_lock(&world->lock);
    world->gone[seat->id] = true;
    for (int peer = 0; peer < seat->workers; peer++)
        tsr_comm_destroy(world->pairs[seat->id * seat->workers + peer]);
    const int left = --world->left;
    pthread_mutex_unlock(&world->lock);
    if (left == 0)
        free_world(world);
}

void tsr_disco_seat_leave(tsr_disco_seat *seat)
{
    if (!seat)
        return;
    if (seat->group != seat->all)
        tsr_comm_destroy(seat->group);
    tsr_comm_destroy(seat->all);
    leave_world(seat);
    free(seat);
}

tsr_status tsr_disco_seat_take(tsr_disco_world *world, int id, int group_size, tsr_disco_seat **out)
{
    tsr_disco_seat *const seat = calloc(1, sizeof *seat);
    if (!seat)
        return tsr_status_set(TSR_ERROR_MEMORY, "Disco: no memory for worker %d", id);
    *seat = (tsr_disco_seat){world, id, world->workers, group_size, world->all[id], NULL};
    world->all[id] = NULL;
    seat->group = seat->all;
    if (group_size < seat->workers) {
        tsr_comm *group;
        const tsr_status status = tsr_comm_split(seat->all, id / group_size, id, &group);
        if (status != TSR_OK) {
            tsr_disco_seat_leave(seat);
            return status;
        }
        seat->group = group;
    }
    *out = seat;
    return TSR_OK;
}

tsr_status tsr_disco_seat_pair(const tsr_disco_seat *seat, int peer, tsr_comm **out)
{
    tsr_disco_world *const world = seat->world;
    const int first = seat->id < peer ? seat->id : peer, second = seat->id < peer ? peer : seat->id;
    tsr_comm **const mine = &world->pairs[seat->id * seat->workers + peer];
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&world->lock);
    if (!*mine && world->gone[peer]) {
        status = tsr_status_set(TSR_ERROR_PEER, "Disco: worker %d has left", peer);
    } else if (!*mine) {
        tsr_comm *handles[2];
        status = tsr_comm_create_threads(2, NULL, handles);
        if (status == TSR_OK) {
            world->pairs[first * seat->workers + second] = handles[0];
            world->pairs[second * seat->workers + first] = handles[1];
        }
    }
    if (status == TSR_OK)
        *out = *mine;
    pthread_mutex_unlock(&world->lock);
    return status;
}
