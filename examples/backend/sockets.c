#include "sockets.h"

#include "wire.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

#include <stdlib.h>

/* The arguments of one rank's split. */
typedef struct seat {
    int color, key;
} seat;

static int rank_of(void *self)
{
    return ((const wire *)self)->rank;
}

static int count_ranks(void *self)
{
    return ((const wire *)self)->ranks;
}

static tsr_status exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                           size_t receive_count, tsr_device device, tsr_stream stream)
{
    (void)stream;
    if (device.driver)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "sockets: messages lie in memory of the host, and this is on another device");
    return wire_exchange(self, sends, send_count, receives, receive_count);
}

/* Sends `mine` to every other rank; rank r's arrives in all[r]. With `bytes` 0 it is a barrier. */
static tsr_status gather(wire *w, void *mine, void *all, size_t bytes)
{
    const size_t others = (size_t)w->ranks - 1;
    tsr_message *sends = calloc(2 * others + 1, sizeof *sends), *receives = sends + others;
    if (!sends)
        return wire_break(w, tsr_status_set(TSR_ERROR_MEMORY, "sockets: rank %d has no memory for messages", w->rank));
    for (int r = 0, i = 0; r < w->ranks; r++) {
        if (r == w->rank)
            continue;
        sends[i] = (tsr_message){r, mine, bytes};
        receives[i++] = (tsr_message){r, bytes > 0 ? (char *)all + (size_t)r * bytes : NULL, bytes};
    }
    const tsr_status status = wire_exchange(w, sends, others, receives, others);
    free(sends);
    return status;
}

static tsr_status barrier(void *self)
{
    return gather(self, NULL, NULL, 0);
}

static void abort_all(void *self)
{
    wire_shut(self);
}

static void destroy(void *self)
{
    wire_destroy(self);
}

/* The rank that `r` gets among the ranks of `color`, which are ordered by key and then by rank. For
 * r == ranks, the number of ranks of that color. */
static int place_of(const wire *w, const seat *seats, int color, int r)
{
    int place = 0;
    for (int other = 0; other < w->ranks; other++) {
        const seat *s = &seats[other];
        place += s->color == color && (r == w->ranks || s->key < seats[r].key || (s->key == seats[r].key && other < r));
    }
    return place;
}

/*
 * For every two ranks of the group, the lower makes a connection and gives the other one end of it.
 */
static tsr_status connect_group(const wire *w, const seat *seats, wire *group)
{
    const int color = seats[w->rank].color;
    for (int r = w->rank + 1; r < w->ranks; r++)
        if (seats[r].color == color)
            TSR_TRY(wire_give(w, r, &group->sockets[place_of(w, seats, color, r)]));
    for (int r = 0; r < w->rank; r++)
        if (seats[r].color == color)
            TSR_TRY(wire_take(w, r, &group->sockets[place_of(w, seats, color, r)]));
    return TSR_OK;
}

static tsr_status join_group(const wire *w, const seat *seats, void **out)
{
    const int color = seats[w->rank].color;
    wire *group = NULL;
    if (color < 0) {
        *out = NULL;
        return TSR_OK;
    }
    TSR_TRY(
        wire_create(place_of(w, seats, color, w->rank), place_of(w, seats, color, w->ranks), w->timeout_ms, &group));
    const tsr_status status = connect_group(w, seats, group);
    if (status == TSR_OK)
        *out = group;
    else
        wire_destroy(group);
    return status;
}

static tsr_status split(void *self, int color, int key, void **out)
{
    wire *w = self;
    seat *seats = calloc((size_t)w->ranks, sizeof *seats);
    if (!seats)
        return wire_break(w, tsr_status_set(TSR_ERROR_MEMORY, "sockets: rank %d has no memory for a split", w->rank));
    seats[w->rank] = (seat){color, key};
    tsr_status status = gather(w, &seats[w->rank], seats, sizeof *seats);
    if (status == TSR_OK)
        status = join_group(w, seats, out);
    free(seats);
    return status == TSR_OK ? TSR_OK : wire_break(w, status);
}

static const tsr_comm_messages sockets_messages = {
    .size = sizeof(tsr_comm_messages),
    .exchange = exchange,
    .barrier = barrier,
};

static const tsr_comm_table sockets_table = {
    .size = sizeof(tsr_comm_table),
    .name = "sockets",
    .rank = rank_of,
    .ranks = count_ranks,
    .abort = abort_all,
    .destroy = destroy,
    .split = split,
    .messages = &sockets_messages,
};

tsr_status sockets_create(const char *directory, int rank, int ranks, int64_t timeout_ms, tsr_comm **out)
{
    wire *w = NULL;
    if (ranks < 1 || rank < 0 || rank >= ranks)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "sockets_create: rank is %d of %d ranks", rank, ranks);
    TSR_TRY(wire_create(rank, ranks, timeout_ms, &w));
    tsr_status status = wire_connect(w, directory);
    if (status == TSR_OK)
        status = tsr_comm_create_from_table(NULL, &sockets_table, w, out);
    if (status != TSR_OK)
        wire_destroy(w);
    return status;
}

/* The symbol that tessera-conformance loads. */
TSR_API tsr_comm_conformance tessera_conformance;

tsr_status tessera_conformance(const char *directory, int rank, int ranks, int64_t timeout_ms, tsr_comm **out)
{
    return sockets_create(directory, rank, ranks, timeout_ms, out);
}
