/* Executions that are all enqueued before any of them has run. Each overwrites, in stream order,
 * what the one before it read and wrote, and every result is compared with the oracle. A library
 * that forgets to wait is found out. */
#include "fixture.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROUNDS = 4 };

/* One pair of layouts, and how it is moved; shared by the ranks. */
typedef struct trial {
    oracle_layout src, dst;
    oracle_numbers numbers;
    oracle_move move;
    uint64_t seed;
    tsr_mode mode;
    bool halves;
    int64_t ranks_per_node;
} trial;

/* One side of a move on this rank: memory on the device, and for each round memory on the host,
 * which is copied to or from the device. */
typedef struct side {
    tsr_layout *layout;
    tsr_tensor tensor;
    size_t bytes;
    unsigned char *rounds;
} side;

typedef struct actor {
    const fixture *f;
    const trial *t;
    tsr_comm *comm;
    int rank;
    tsr_plan *plan;
    void *workspace;
    side src, dst;
    unsigned char *wanted;
} actor;

static tsr_status make_side(const actor *a, const oracle_layout *model, side *out)
{
    tsr_mesh *mesh = NULL;
    oracle_shard shard;
    TSR_TRY(tsr_mesh_create(a->comm, model->mesh.ndim, model->mesh.shape, NULL, model->mesh.ranks, &mesh));
    const tsr_status status =
        tsr_layout_create(mesh, model->placements, model->ndim, model->shape, model->dtype, &out->layout);
    tsr_mesh_destroy(mesh);
    TSR_TRY(status);
    oracle_shard_create(model, a->rank, &shard);
    out->tensor = tsr_tensor_contiguous(NULL, model->dtype, shard.ndim, shard.shape);
    out->tensor.device = fixture_device(a->f, a->rank);
    out->bytes = (size_t)shard.count * oracle_bytes(model->dtype);
    oracle_shard_destroy(&shard);
    out->rounds = calloc(ROUNDS, out->bytes + 1);
    return fixture_alloc(a->f, a->rank, out->bytes, &out->tensor.data);
}

static void free_side(const actor *a, side *s)
{
    fixture_free(a->f, a->rank, s->tensor.data, s->bytes);
    free(s->rounds);
    tsr_layout_destroy(s->layout);
}

static tsr_status make_plan(actor *a)
{
    static const tsr_cost_profile quick_inside = {{0.0, 1e15}, {1e-3, 1e3}};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = a->t->mode;
    options.nodes.ranks_per_node = a->t->ranks_per_node;
    options.profile = a->t->ranks_per_node > 0 ? &quick_inside : NULL;
    TSR_TRY(tsr_plan_create(a->src.layout, a->dst.layout, &options, &a->plan));
    TSR_TRY(tsr_plan_prepare(a->plan, a->comm));
    return fixture_alloc(a->f, a->rank, tsr_plan_workspace_bytes(a->plan), &a->workspace);
}

static tsr_status execute(const actor *a)
{
    const size_t bytes = tsr_plan_workspace_bytes(a->plan);
    const tsr_stream stream = a->f->device.streams[a->rank];
    if (!a->t->halves)
        return tsr_plan_execute(a->plan, a->comm, &a->src.tensor, &a->dst.tensor, a->workspace, bytes, stream);
    TSR_TRY(tsr_plan_start(a->plan, a->comm, &a->src.tensor, &a->dst.tensor, a->workspace, bytes, stream));
    return tsr_plan_finish(a->plan, a->comm);
}

static tsr_status fly(actor *a)
{
    for (int k = 0; k < ROUNDS; k++) {
        unsigned char *given = a->src.rounds + (size_t)k * a->src.bytes;
        oracle_fill(&a->t->move, a->t->seed + (uint64_t)k, false, a->rank, given);
        TSR_TRY(fixture_put(a->f, a->rank, a->src.tensor.data, given, a->src.bytes));
        const int64_t before = async_held_up();
        TSR_TRY(execute(a));
        CHECK(k == 0 || async_held_up() == before);
        TSR_TRY(fixture_get(a->f, a->rank, a->dst.rounds + (size_t)k * a->dst.bytes, a->dst.tensor.data, a->dst.bytes));
    }
    return fixture_wait(a->f, a->rank);
}

/* Compares the results; only ranks of the destination's mesh have some. */
static tsr_status land(actor *a)
{
    if (oracle_mesh_position(&a->t->dst.mesh, a->rank) < 0)
        return TSR_OK;
    a->wanted = calloc(1, a->dst.bytes + 1);
    for (int k = 0; k < ROUNDS; k++) {
        oracle_fill(&a->t->move, a->t->seed + (uint64_t)k, true, a->rank, a->wanted);
        CHECK(memcmp(a->wanted, a->dst.rounds + (size_t)k * a->dst.bytes, a->dst.bytes) == 0);
    }
    return TSR_OK;
}

static tsr_status take_off(actor *a)
{
    TSR_TRY(make_side(a, &a->t->src, &a->src));
    TSR_TRY(make_side(a, &a->t->dst, &a->dst));
    TSR_TRY(make_plan(a));
    TSR_TRY(fly(a));
    return land(a);
}

static tsr_status run_trial(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    actor a = {.f = f, .t = f->arg, .comm = comm, .rank = tsr_comm_rank(comm)};
    const tsr_status status = take_off(&a);
    fixture_free(f, a.rank, a.workspace, a.plan ? tsr_plan_workspace_bytes(a.plan) : 0);
    tsr_plan_destroy(a.plan);
    free_side(&a, &a.src);
    free_side(&a, &a.dst);
    free(a.wanted);
    return status;
}

static void draw(trial *t, uint64_t number, int ranks)
{
    oracle_random random = {.state = test_seed() * 104729 + number};
    *t = (trial){.seed = number};
    t->src.dtype = oracle_random_dtype(&random);
    oracle_random_shape(&random, 3, 400, &t->src);
    t->src.mesh = oracle_random_mesh(&random, 3, ranks, ranks);
    t->dst = t->src;
    if (oracle_random_below(&random, 3) == 0)
        t->dst.mesh = oracle_random_mesh(&random, 3, ranks, ranks);
    oracle_random_placements(&random, &t->src, &t->numbers);
    oracle_random_placements(&random, &t->dst, &t->numbers);
    oracle_move_make(&t->src, &t->dst, &t->move);
    t->mode = oracle_random_below(&random, 3) == 0 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    t->halves = oracle_random_below(&random, 2) == 0;
    t->ranks_per_node = oracle_random_below(&random, 3) == 0 ? 2 : 0;
}

static void executions_in_flight_do_not_disturb_each_other(void **state)
{
    (void)state;
    trial *t = malloc(sizeof *t);
    const double end = test_now() + test_seconds(4);
    uint64_t number = 0;
    for (; number < 16 || test_now() < end; number++) {
        const int ranks = 2 + (int)(number % 7);
        char from[400], to[400];
        draw(t, number, ranks);
        test_case("flight %llu of %d ranks, \"%s\" to \"%s\", seed %llu", (unsigned long long)number, ranks,
                  oracle_print_placements(t->src.placements, t->src.mesh.ndim, from, sizeof from),
                  oracle_print_placements(t->dst.placements, t->dst.mesh.ndim, to, sizeof to),
                  (unsigned long long)test_seed());
        fixture_run(ranks, (async_options){.devices = 1 + (int)(number % 3), .seed = number, .lazy = number % 4 != 0},
                    run_trial, t);
    }
    fprintf(stderr, "%llu flights\n", (unsigned long long)number);
    free(t);
}

/* Moves over 4 ranks. In the last one, ranks share the result within nodes of 2. */
static const struct {
    const char *from, *to;
    int64_t ranks_per_node;
} plain[] = {{"S0", "S1", 0}, {"P", "R", 0}, {"S0", "R", 2}};

static tsr_placement placement_of(const char *text)
{
    return text[0] == 'R' ? tsr_replicate() : text[0] == 'P' ? tsr_partial(TSR_SUM) : tsr_shard(text[1] - '0');
}

/* Runs a move on one device that ignores the calls in `mask`. */
static void fly_plain(size_t i, unsigned mask, bool halves, fixture *f)
{
    const int64_t ranks = 4;
    trial t = {.seed = 1, .ranks_per_node = plain[i].ranks_per_node, .halves = halves};
    t.src = (oracle_layout){.mesh = oracle_mesh_make(1, &ranks, 0), .ndim = 2, .shape = {16, 12}, .dtype = TSR_F32};
    t.dst = t.src;
    t.src.placements[0] = placement_of(plain[i].from);
    t.dst.placements[0] = placement_of(plain[i].to);
    oracle_move_make(&t.src, &t.dst, &t.move);
    fixture_start(f, 4, (async_options){.devices = 1, .lazy = true});
    f->arg = &t;
    async_leave_out(f->machine, mask);
    tsr_threads_run(4, run_trial, f, NULL);
}

/* True if the machine finds a fault when events are not recorded, or not waited for. */
static bool is_found_out(size_t i, unsigned mask, bool halves)
{
    fixture f;
    fly_plain(i, mask, halves, &f);
    const bool found = async_fault(f.machine) != NULL;
    fixture_finish(&f);
    return found;
}

static void a_library_that_forgets_to_wait_is_found_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        for (int halves = 0; halves < 2; halves++) {
            assert_false(is_found_out(i, 0, halves));
            assert_true(is_found_out(i, 1u << ASYNC_EVENT_WAIT, halves));
            assert_true(is_found_out(i, 1u << ASYNC_EVENT_RECORD, halves));
        }
}

/* A rank gives all its copies to its device in one call, whichever ranks the bytes come from. */
static void what_a_rank_copies_is_given_to_its_device_at_once(void **state)
{
    fixture f;
    (void)state;
    fly_plain(0, 0, false, &f);
    assert_int_equal(async_count(f.machine, ASYNC_COPY_BOXES), 4 * ROUNDS);
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executions_in_flight_do_not_disturb_each_other),
        cmocka_unit_test(a_library_that_forgets_to_wait_is_found_out),
        cmocka_unit_test(what_a_rank_copies_is_given_to_its_device_at_once),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
