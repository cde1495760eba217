/* Random redistributions among processes, compared byte for byte with the oracle that rank threads
 * are compared with. Plans read peers' memory or send; tensors lie in memory that the ranks share
 * and in memory that they do not. */
#include "actor.h"
#include "launched.h"
#include "nodes.h"
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CASES = 80, ELEMENTS = 500, POOL_BYTES = 8 << 20, LINE = 64 };

/* Sharing within a node costs next to nothing. */
static const tsr_cost_profile quick_inside = {{0.0, 1e15}, {1e-3, 1e3}};

/* What cases are drawn from. */
typedef struct recipe {
    int batch; /* upper bound of the tensors moved together; 0: one */
    bool two_meshes;
    tsr_nodes nodes;
    bool shares; /* ranks of a node share whatever they can */
    tsr_mpi_options options;
} recipe;

/* Memory that all ranks reach, given out until everything is back; every second buffer of a rank is
 * not of it. */
static struct {
    char *base;
    size_t used;
    int out, turn;
} pool;

static void *take(size_t bytes)
{
    const size_t room = (bytes + LINE) / LINE * LINE;
    if (pool.turn++ % 2 == 0 || POOL_BYTES - pool.used < room)
        return malloc(room);
    void *memory = pool.base + pool.used;
    pool.used += room;
    pool.out++;
    return memory;
}

static void give_back(void *memory, size_t bytes)
{
    (void)bytes;
    const uintptr_t at = (uintptr_t)memory, base = (uintptr_t)pool.base;
    if (at < base || at >= base + POOL_BYTES)
        free(memory);
    else if (--pool.out == 0)
        pool.used = 0;
}

static const sweep_device shared_and_own = {.devices = 1, .take = take, .give_back = give_back};

static void draw_pair(oracle_random *random, const recipe *r, int world, oracle_layout *src, oracle_layout *dst,
                      oracle_numbers *numbers)
{
    src->dtype = oracle_random_dtype(random);
    oracle_random_shape(random, 4, ELEMENTS, src);
    src->mesh = oracle_random_mesh(random, 3, 1 + oracle_random_below(random, world), world);
    *dst = *src;
    if (r->two_meshes)
        dst->mesh = oracle_random_mesh(random, 3, 1 + oracle_random_below(random, world), world);
    oracle_random_placements(random, src, numbers);
    oracle_random_placements(random, dst, numbers);
}

/* Draws a case, the same on every rank. */
static void draw(stage *s, const recipe *r, int world, int64_t number)
{
    static sweep_pair others[SWEEP_TENSORS - 1];
    oracle_random random = {.state = test_seed() * UINT64_C(1000000007) + (uint64_t)(number * 64 + world)};
    sweep_case *c = &s->current;
    memset(c, 0, sizeof *c);
    memset(others, 0, sizeof others);
    c->seed = random.state;
    c->others = others;
    c->way = WAY_PLAN;
    draw_pair(&random, r, world, &c->src, &c->dst, &c->numbers);
    while (c->more < r->batch - 1 && oracle_random_below(&random, 4) > 0) {
        sweep_pair *pair = &others[c->more++];
        draw_pair(&random, r, world, &pair->src, &pair->dst, &pair->numbers);
    }
    c->mode = oracle_random_below(&random, 3) ? TSR_MODE_DIRECT : TSR_MODE_MESSAGE;
    c->strided = oracle_random_below(&random, 2);
    c->halves = oracle_random_below(&random, 3) == 0;
    c->no_split = oracle_random_below(&random, 5) == 0;
    c->nodes = r->nodes;
    c->profile = r->shares ? &quick_inside : NULL;
    for (int i = 0; i <= c->more; i++)
        oracle_move_make(sweep_source(c, i), sweep_destination(c, i), &s->moves[i]);
}

static tsr_status play(tsr_comm *comm, const recipe *r)
{
    move_sweep sweep = {.world = tsr_comm_size(comm), .device = &shared_and_own};
    stage *s = calloc(1, sizeof *s);
    CHECK(s);
    s->sweep = &sweep;
    actor a = {.stage = s, .comm = comm, .rank = tsr_comm_rank(comm)};
    a.verdict = &s->verdicts[a.rank];
    tsr_status status = TSR_OK;
    for (int64_t number = 0; number < CASES && status == TSR_OK; number++) {
        draw(s, r, sweep.world, number);
        pool.turn = a.rank + (int)number;
        test_case("case %lld of seed %llu among %d ranks", (long long)number, (unsigned long long)test_seed(),
                  sweep.world);
        actor_play(&a);
        if (a.verdict->failed)
            status = tsr_status_set(TSR_ERROR_INTERNAL, "%s: %s", test_case_text(), a.verdict->text);
    }
    actor_finish(&a);
    free(s);
    return status;
}

static tsr_status move_among_all(tsr_comm *comm, void *arg)
{
    void *memory;
    TSR_TRY(tsr_comm_alloc(comm, POOL_BYTES, &memory));
    pool.base = memory;
    const tsr_status status = play(comm, arg);
    tsr_comm_free(comm, memory, POOL_BYTES);
    return status;
}

static void sweep_all(const recipe *r)
{
    for (int n = 1; n <= launched_ranks(); n++) {
        recipe copy = *r;
        const tsr_status status = launched_run_with(n, move_among_all, &copy, &copy.options);
        if (status != TSR_OK)
            fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    }
}

static void moves_among_processes_that_share_memory(void **state)
{
    (void)state;
    sweep_all(&(recipe){.options = TSR_MPI_OPTIONS_INIT});
}

static void moves_between_two_meshes_of_processes(void **state)
{
    (void)state;
    sweep_all(&(recipe){.two_meshes = true, .options = TSR_MPI_OPTIONS_INIT});
}

static void several_tensors_together(void **state)
{
    (void)state;
    sweep_all(&(recipe){.batch = 4, .options = TSR_MPI_OPTIONS_INIT});
}

/* Messages go in pieces of 100 bytes, as between nodes. */
static void moves_by_messages_in_small_pieces(void **state)
{
    (void)state;
    recipe r = {.batch = 2, .two_meshes = true, .options = TSR_MPI_OPTIONS_INIT};
    r.options.no_sharing = 1;
    r.options.chunk_bytes = 100;
    sweep_all(&r);
}

static void moves_over_nodes_of_two_ranks(void **state)
{
    (void)state;
    recipe r = {.nodes.ranks_per_node = 2, .options = TSR_MPI_OPTIONS_INIT};
    sweep_all(&r);
    r.options.no_sharing = 1;
    r.options.unchecked = 1;
    sweep_all(&r);
}

/* Rank 0 is one node, the others another; then ranks are on two nodes in turn. Every second buffer
 * is in memory that mates share. */
static void moves_over_nodes_of_unequal_size(void **state)
{
    (void)state;
    nodes_pretend(1);
    sweep_all(&(recipe){.batch = 2, .two_meshes = true, .options = TSR_MPI_OPTIONS_INIT});
    sweep_all(&(recipe){.two_meshes = true, .shares = true, .options = TSR_MPI_OPTIONS_INIT});
    nodes_pretend_turns(2);
    sweep_all(&(recipe){.batch = 2, .shares = true, .options = TSR_MPI_OPTIONS_INIT});
    nodes_pretend(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_among_processes_that_share_memory),
        cmocka_unit_test(moves_between_two_meshes_of_processes),
        cmocka_unit_test(several_tensors_together),
        cmocka_unit_test(moves_by_messages_in_small_pieces),
        cmocka_unit_test(moves_over_nodes_of_two_ranks),
        cmocka_unit_test(moves_over_nodes_of_unequal_size),
    };
    test_watchdog(120);
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
