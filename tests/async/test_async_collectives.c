/* Every collective on devices with streams, compared bit for bit with the same call on host memory.
 * Several rounds are enqueued before a rank waits, and each overwrites what the round before it
 * read. */
#include "fixture.h"
#include "oracle_random.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST_RANKS = 8, ROUNDS = 3, MOST = 17 };

typedef enum kind {
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    SCATTER,
    GATHER,
    EXCHANGE,
    HALVES,
    KINDS
} kind;

typedef struct call {
    kind kind;
    int64_t count, counts[MOST_RANKS], receive_counts[MOST_RANKS];
    bool uneven;
    tsr_dtype dtype;
    tsr_reduce_op op;
    int root;
    bool along; /* among pairs of ranks, along a mesh dim, if it is a call that meshes have */
} call;

/* Sends to the next rank and receives from the one before; in the other direction goes an empty
 * message. */
static tsr_status exchange(tsr_comm *comm, const call *c, void *send, void *receive, tsr_device device,
                           tsr_stream stream)
{
    const int n = tsr_comm_size(comm), rank = tsr_comm_rank(comm);
    const size_t bytes = (size_t)c->count * tsr_dtype_bytes(c->dtype);
    const tsr_message sends[] = {{(rank + 1) % n, send, bytes}, {(rank + n - 1) % n, NULL, 0}};
    const tsr_message receives[] = {{(rank + n - 1) % n, receive, bytes}, {(rank + 1) % n, NULL, 0}};
    const size_t count = n > 1 ? 2 : 0;
    if (c->kind == EXCHANGE)
        return tsr_comm_exchange(comm, sends, count, receives, count, device, stream);
    TSR_TRY(tsr_comm_exchange_start(comm, sends, count, receives, count, device, stream));
    return tsr_comm_exchange_finish(comm);
}

/* Pairs of ranks along the second dim. */
static tsr_status collective_along(const tsr_mesh *mesh, const call *c, void *send, void *receive, tsr_device device,
                                   tsr_stream stream)
{
    const int64_t *counts = c->uneven ? c->counts : NULL;
    switch (c->kind) {
    case ALL_GATHER:
        return tsr_mesh_all_gather(mesh, "1", send, receive, c->count, counts, c->dtype, device, stream);
    case REDUCE_SCATTER:
        return tsr_mesh_reduce_scatter(mesh, "1", send, receive, c->count, counts, c->dtype, c->op, device, stream);
    case ALL_REDUCE:
        return tsr_mesh_all_reduce(mesh, "1", c->uneven ? receive : send, receive, c->count, c->dtype, c->op, device,
                                   stream);
    case ALL_TO_ALL:
        return tsr_mesh_all_to_all(mesh, "1", send, receive, c->count, NULL, NULL, c->dtype, device, stream);
    default:
        return tsr_mesh_broadcast(mesh, "1", receive, c->count, c->dtype, c->root % 2, device, stream);
    }
}

static tsr_status collective(const tsr_mesh *mesh, const call *c, void *send, void *receive, tsr_device device,
                             tsr_stream stream)
{
    tsr_comm *const comm = tsr_mesh_comm(mesh);
    if (c->along)
        return collective_along(mesh, c, send, receive, device, stream);
    const int64_t *counts = c->uneven ? c->counts : NULL;
    switch (c->kind) {
    case ALL_GATHER:
        return tsr_comm_all_gather(comm, send, receive, c->count, counts, c->dtype, device, stream);
    case REDUCE_SCATTER:
        return tsr_comm_reduce_scatter(comm, send, receive, c->count, counts, c->dtype, c->op, device, stream);
    case ALL_REDUCE:
        return tsr_comm_all_reduce(comm, c->uneven ? receive : send, receive, c->count, c->dtype, c->op, device,
                                   stream);
    case ALL_TO_ALL:
        return tsr_comm_all_to_all(comm, send, receive, c->count, counts, c->uneven ? c->receive_counts : NULL,
                                   c->dtype, device, stream);
    case BROADCAST:
        return tsr_comm_broadcast(comm, receive, c->count, c->dtype, c->root, device, stream);
    case SCATTER:
        return tsr_comm_scatter(comm, send, receive, c->count, counts, c->dtype, c->root, device, stream);
    case GATHER:
        return tsr_comm_gather(comm, send, receive, c->count, counts, c->dtype, c->root, device, stream);
    default:
        return exchange(comm, c, send, receive, device, stream);
    }
}

/* The memory of one rank on the host: its input, the expected output, and the output of each
 * round. */
typedef struct memory {
    size_t bytes;
    unsigned char *given[ROUNDS], *base[ROUNDS], *wanted[ROUNDS], *got[ROUNDS];
    void *send, *receive;
} memory;

static void fill(unsigned char *bytes, size_t count, const call *c, uint64_t seed)
{
    const size_t element = oracle_bytes(c->dtype);
    for (size_t i = 0; i < count / element; i++)
        oracle_element(c->dtype, seed, (int64_t)i, (int64_t)(seed % 7), bytes + i * element);
}

static tsr_status run_rounds(const tsr_mesh *mesh, const fixture *f, const call *c, memory *m)
{
    const int rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    for (int k = 0; k < ROUNDS; k++) {
        TSR_TRY(fixture_put(f, rank, m->send, m->given[k], m->bytes));
        TSR_TRY(fixture_put(f, rank, m->receive, m->base[k], m->bytes));
        const int64_t before = async_held_up();
        TSR_TRY(collective(mesh, c, m->send, m->receive, fixture_device(f, rank), f->device.streams[rank]));
        CHECK(k == 0 || async_held_up() == before);
        TSR_TRY(fixture_get(f, rank, m->got[k], m->receive, m->bytes));
    }
    return fixture_wait(f, rank);
}

static tsr_status compare(const tsr_mesh *mesh, const fixture *f, const call *c, memory *m)
{
    for (int k = 0; k < ROUNDS; k++) {
        memcpy(m->wanted[k], m->base[k], m->bytes);
        TSR_TRY(collective(mesh, c, m->given[k], m->wanted[k], tsr_device_host(), NULL));
    }
    TSR_TRY(run_rounds(mesh, f, c, m));
    for (int k = 0; k < ROUNDS; k++)
        CHECK(memcmp(m->got[k], m->wanted[k], m->bytes) == 0);
    return TSR_OK;
}

static tsr_status play(const tsr_mesh *mesh, const fixture *f, const call *c)
{
    const int rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    memory m = {.bytes = (size_t)MOST * MOST_RANKS * tsr_dtype_bytes(c->dtype)};
    unsigned char *block = calloc(4 * ROUNDS, m.bytes);
    for (int k = 0; k < ROUNDS; k++) {
        unsigned char **const parts[] = {&m.given[k], &m.base[k], &m.wanted[k], &m.got[k]};
        for (size_t i = 0; i < 4; i++)
            *parts[i] = block + ((size_t)k * 4 + i) * m.bytes;
        fill(m.given[k], m.bytes, c, (uint64_t)(rank * 100 + k));
        fill(m.base[k], m.bytes, c, (uint64_t)(rank * 100 + k + 50));
    }
    TSR_TRY(fixture_alloc(f, rank, m.bytes, &m.send));
    TSR_TRY(fixture_alloc(f, rank, m.bytes, &m.receive));
    const tsr_status status = compare(mesh, f, c, &m);
    fixture_free(f, rank, m.send, m.bytes);
    fixture_free(f, rank, m.receive, m.bytes);
    free(block);
    return status;
}

/* Draws a call, which is equal on all ranks but for the counts of an all-to-all. */
static call draw(uint64_t number, int ranks, int rank)
{
    oracle_random random = {.state = test_seed() * 7919 + number};
    call c = {.kind = (kind)(number % KINDS),
              .count = oracle_random_below(&random, MOST),
              .uneven = oracle_random_below(&random, 2) == 1};
    do {
        c.dtype = oracle_random_dtype(&random);
        c.op = (tsr_reduce_op)oracle_random_below(&random, TSR_REDUCE_OP_END);
    } while (!oracle_has_op(c.dtype, c.op));
    c.along = ranks % 2 == 0 && c.kind <= BROADCAST && oracle_random_below(&random, 2) == 1;
    c.root = (int)oracle_random_below(&random, ranks);
    for (int r = 0; r < ranks; r++) {
        c.counts[r] =
            c.kind == ALL_TO_ALL ? (rank * 5 + r * 3 + (int64_t)number) % 7 : oracle_random_below(&random, MOST);
        c.receive_counts[r] = (r * 5 + rank * 3 + (int64_t)number) % 7;
    }
    return c;
}

typedef struct trial {
    uint64_t first, count;
} trial;

static tsr_status run_calls(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const trial *t = f->arg;
    const int ranks = tsr_comm_size(comm);
    const int64_t shape[] = {ranks % 2 ? ranks : ranks / 2, ranks % 2 ? 1 : 2};
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_create(comm, 2, shape, NULL, NULL, &mesh));
    for (uint64_t number = t->first; number < t->first + t->count; number++) {
        const call c = draw(number, ranks, tsr_comm_rank(comm));
        if (tsr_comm_rank(comm) == 0)
            test_case("collective %d, number %llu of %d ranks on %d devices, seed %llu", (int)c.kind,
                      (unsigned long long)number, ranks, f->device.devices, (unsigned long long)test_seed());
        TSR_TRY(play(mesh, f, &c));
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void collectives_give_the_bits_of_the_host(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        trial t = {(uint64_t)ranks * 1000, 5 * KINDS};
        fixture_run(ranks, (async_options){.devices = 1 + ranks % 3, .seed = (uint64_t)ranks, .lazy = ranks % 2 == 0},
                    run_calls, &t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_give_the_bits_of_the_host),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
