/*
 * Message engines that have collectives of their own: every byte against the oracle, and the
 * engine's entry called exactly where the move is one collective. Values are reduced by the engine
 * in rank order, so that on meshes in rank order any order has the oracle's bits.
 */
#include "buffer.h"
#include "collective_oracle.h"
#include "counted_memory.h"
#include "layouts.h"
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { GUARD = 64, GUARD_BYTE = 0x3C };

typedef struct trial {
    oracle_layout src, dst;
    oracle_numbers numbers; /* storage for the layouts' sizes and blocks */
    uint64_t seed;
    tsr_reduction_order order;
    bool strided, halves;
} trial;

/* Writes case `number` to `out`, which is all zero; false: there is no such case. */
typedef bool make_trial(const void *arg, int64_t number, trial *out);

typedef struct trials {
    make_trial *make;
    const void *arg;
    int64_t count;
    int64_t ran[5]; /* by collective; rank 0's */
} trials;

/* One rank's objects in one trial. */
typedef struct actor {
    tsr_comm *comm;
    int rank;
    message_engine_tally tally; /* of the engine */
    const trial *trial;
    oracle_move move;
    bool inside;
    tsr_plan *plan;
    local_buffer src, dst;
    unsigned char *given, *wanted;
} actor;

static void name_trial(const trial *t, char *text, size_t capacity)
{
    char mesh[300], shape[100], from[400], to[400];
    snprintf(text, capacity, "mesh %s, %s %s, %s -> %s, %s order%s%s, seed %llu",
             oracle_print_mesh(&t->src.mesh, mesh, sizeof mesh),
             oracle_print_shape(t->src.ndim, t->src.shape, shape, sizeof(shape)), oracle_dtype_name(t->src.dtype),
             oracle_print_placements(t->src.placements, t->src.mesh.ndim, from, sizeof from),
             oracle_print_placements(t->dst.placements, t->dst.mesh.ndim, to, sizeof to),
             t->order == TSR_REDUCTION_ANY_ORDER ? "any" : "rank", t->strided ? ", strided" : "",
             t->halves ? ", in halves" : "", (unsigned long long)t->seed);
}

static tsr_status make_plan(actor *a)
{
    const trial *t = a->trial;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = TSR_MODE_MESSAGE;
    options.reduction = t->order;
    tsr_mesh *mesh = NULL;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_status status = tsr_mesh_create(a->comm, t->src.mesh.ndim, t->src.mesh.shape, NULL, t->src.mesh.ranks, &mesh);
    if (status == TSR_OK)
        status = tsr_layout_create(mesh, t->src.placements, t->src.ndim, t->src.shape, t->src.dtype, &src);
    if (status == TSR_OK)
        status = tsr_layout_create(mesh, t->dst.placements, t->dst.ndim, t->dst.shape, t->dst.dtype, &dst);
    if (status == TSR_OK)
        status = tsr_plan_create(src, dst, &options, &a->plan);
    if (status == TSR_OK)
        status = tsr_plan_prepare(a->plan, a->comm);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    tsr_mesh_destroy(mesh);
    return status;
}

static void make_buffer(actor *a, const oracle_layout *layout, uint64_t salt, local_buffer *buffer,
                        unsigned char **elements)
{
    oracle_random random = {.state = a->trial->seed * 977 + salt + (uint64_t)a->rank};
    oracle_shard shard;
    oracle_shard_create(layout, a->rank, &shard);
    buffer_create(buffer, layout->dtype, shard.ndim, shard.shape, a->trial->strided ? &random : NULL);
    *elements = calloc((size_t)shard.count + 1, oracle_bytes(layout->dtype));
    oracle_shard_destroy(&shard);
}

static tsr_status run_plan(const actor *a, const tsr_tensor *src, const tsr_tensor *dst, void *workspace, size_t bytes)
{
    if (!a->trial->halves)
        return tsr_plan_execute(a->plan, a->comm, src, dst, workspace, bytes, NULL);
    TSR_TRY(tsr_plan_start(a->plan, a->comm, src, dst, workspace, bytes, NULL));
    return tsr_plan_finish(a->plan, a->comm);
}

/* Tensors with gaps may be exchanged instead, on all ranks or on none: ranks that differ get an
 * error. */
static tsr_status check_tally(const actor *a, const message_engine_tally *before)
{
    if (a->trial->strided && memcmp(before, &a->tally, sizeof *before) == 0)
        return TSR_OK;
    const message_engine_tally wanted = oracle_collective_calls(&a->move, a->trial->order, a->rank), *now = &a->tally;
    CHECK(now->all_gathers - before->all_gathers == wanted.all_gathers);
    CHECK(now->reduce_scatters - before->reduce_scatters == wanted.reduce_scatters);
    CHECK(now->all_reduces - before->all_reduces == wanted.all_reduces);
    CHECK(now->broadcasts - before->broadcasts == wanted.broadcasts);
    return TSR_OK;
}

static tsr_status check_held(const local_buffer *buffer, const unsigned char *elements, const char *what)
{
    char text[256];
    if (buffer_holds(buffer, elements, text, sizeof text))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s: %s", what, text);
}

static tsr_status execute(actor *a, const local_buffer *dst)
{
    const size_t bytes = tsr_plan_workspace_bytes(a->plan);
    unsigned char *workspace = aligned_alloc(64, (bytes + 63) / 64 * 64 + GUARD);
    CHECK(workspace);
    memset(workspace, GUARD_BYTE, bytes + GUARD);
    const message_engine_tally before = a->tally;
    const size_t allocated = counted_asked_here();
    const tsr_status status = run_plan(a, a->inside ? &a->src.view : NULL, a->inside ? &dst->view : NULL,
                                       bytes > 0 ? workspace : NULL, bytes);
    const bool quiet = counted_asked_here() == allocated;
    bool kept = true;
    for (int i = 0; i < GUARD; i++)
        kept = kept && workspace[bytes + (size_t)i] == GUARD_BYTE;
    free(workspace);
    TSR_TRY(status);
    CHECK(quiet);
    CHECK(kept);
    TSR_TRY(check_tally(a, &before));
    return a->inside ? check_held(dst, a->wanted, "destination") : TSR_OK;
}

static void set_values(actor *a, uint64_t seed)
{
    oracle_fill(&a->move, seed, false, a->rank, a->given);
    oracle_fill(&a->move, seed, true, a->rank, a->wanted);
    if (a->inside)
        buffer_put(&a->src, a->given);
}

/* Twice with other values, then in place where that is allowed. */
static tsr_status execute_all(actor *a)
{
    for (uint64_t i = 0; i < 2; i++) {
        set_values(a, a->trial->seed + i);
        TSR_TRY(execute(a, &a->dst));
        if (a->inside)
            TSR_TRY(check_held(&a->src, a->given, "source"));
    }
    return tsr_plan_in_place(a->plan) ? execute(a, &a->src) : TSR_OK;
}

static tsr_status run_trial(actor *a, const trial *t)
{
    a->trial = t;
    a->plan = NULL;
    oracle_move_make(&t->src, &t->dst, &a->move);
    a->inside = oracle_mesh_position(&t->src.mesh, a->rank) >= 0;
    make_buffer(a, &t->src, 0, &a->src, &a->given);
    make_buffer(a, &t->dst, 1, &a->dst, &a->wanted);
    tsr_status status = make_plan(a);
    if (status == TSR_OK)
        status = execute_all(a);
    tsr_plan_destroy(a->plan);
    buffer_destroy(&a->src);
    buffer_destroy(&a->dst);
    free(a->given);
    free(a->wanted);
    return status;
}

static tsr_status run_all(actor *a, trials *all)
{
    char text[1400], sentence[600];
    trial *t = calloc(1, sizeof *t);
    CHECK(t);
    tsr_status status = TSR_OK;
    for (int64_t number = 0; number < all->count && status == TSR_OK; number++) {
        memset(t, 0, sizeof *t);
        if (!all->make(all->arg, number, t))
            continue;
        name_trial(t, text, sizeof text);
        if (a->rank == 0)
            test_case("%s", text);
        status = run_trial(a, t);
        if (a->rank == 0)
            all->ran[oracle_collective(&a->move, t->order)]++;
    }
    free(t);
    if (status == TSR_OK)
        return TSR_OK;
    snprintf(sentence, sizeof sentence, "%s", tsr_status_message());
    return tsr_status_set(status, "%s\n   on rank %d of: %s", sentence, a->rank, text);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    actor a = {.rank = tsr_comm_rank(comm)};
    TSR_TRY(message_engine_create_own(comm, NULL, &a.tally, MESSAGE_ENGINE_PLAIN, &a.comm));
    const tsr_status status = run_all(&a, arg);
    tsr_comm_destroy(a.comm);
    return status;
}

/* Fails the test unless each collective was called, those of `without` (one bit each) excepted. */
static void run_trials(int world, trials *all, unsigned without)
{
    counted_memory memory = {0};
    tsr_context_options context_options = TSR_CONTEXT_OPTIONS_INIT;
    context_options.allocator = counted_allocator(&memory);
    test_seed(); /* one thread writes it, before all read it */
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    expect_ok(tsr_context_create(&context_options, &options.context));
    expect_ok(tsr_threads_run(world, run_rank, all, &options));
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
    for (int kind = NO_COLLECTIVE; kind <= BROADCAST; kind++) {
        fprintf(stderr, "%s%s %lld", kind > 0 ? ", " : "", collective_name((collective)kind),
                (long long)all->ran[kind]);
        if (!(without & 1u << kind))
            assert_true(all->ran[kind] > 0);
    }
    fprintf(stderr, "\n");
}

/* Shapes that divide, shapes that do not, one row, nothing. */
static const int64_t shapes[][2] = {{12, 12}, {12, 5}, {7, 12}, {1, 12}, {6, 1}, {0, 4}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static const tsr_dtype dtypes[] = {TSR_I32, TSR_F32, TSR_BOOL, TSR_U8, TSR_BF16, TSR_C64, TSR_F64};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static tsr_placement placement_of(int64_t digit, tsr_dtype dtype, int64_t variant)
{
    const tsr_reduce_op sums[] = {TSR_SUM, TSR_SUM, TSR_PROD}, others[] = {TSR_SUM, TSR_MAX, TSR_AVG};
    tsr_reduce_op op = (variant & 1 ? others : sums)[variant % 3];
    op = dtype == TSR_BOOL ? TSR_MAX : oracle_has_op(dtype, op) ? op : TSR_SUM;
    const tsr_placement all[] = {tsr_replicate(), tsr_shard(0), tsr_shard(1), tsr_partial(op)};
    return all[digit];
}

/* A mesh's pairs of lists over {R, S(0), S(1), P}, in every shape; of those that are no collective
 * a few. */
static bool make_pair(const void *arg, int64_t number, trial *out)
{
    const oracle_mesh *mesh = arg;
    const int64_t variant = number / SHAPES;
    const int64_t *shape = shapes[number % SHAPES];
    out->src = (oracle_layout){
        .mesh = *mesh, .ndim = 2, .shape = {shape[0], shape[1]}, .dtype = dtypes[(number % SHAPES + variant) % DTYPES]};
    out->dst = out->src;
    int64_t pair = variant;
    for (int m = 0; m < mesh->ndim; m++, pair /= 16) {
        out->src.placements[m] = placement_of(pair % 4, out->src.dtype, number);
        out->dst.placements[m] = placement_of(pair / 4 % 4, out->src.dtype, number);
    }
    out->seed = (uint64_t)number + test_seed();
    out->order = number % 3 ? TSR_REDUCTION_ANY_ORDER : TSR_REDUCTION_RANK_ORDER;
    out->strided = number % 4 == 3;
    out->halves = number % 5 == 4;
    oracle_move move;
    oracle_move_make(&out->src, &out->dst, &move);
    const bool tried = mesh->ndim == 1 || number % test_step(7) == 0;
    return (tried && oracle_collective(&move, out->order) != NO_COLLECTIVE) || number % 24 == 0;
}

static void sweep_pairs(int ndim, const int64_t *shape)
{
    const oracle_mesh mesh = oracle_mesh_make(ndim, shape, 0);
    trials all = {.make = make_pair, .arg = &mesh, .count = SHAPES};
    for (int m = 0; m < ndim; m++)
        all.count *= 16;
    run_trials((int)oracle_mesh_count(&mesh), &all, 0);
}

static void every_pair_of_lists_on_small_meshes(void **state)
{
    (void)state;
    const int64_t meshes[][3] = {{2}, {3}, {4}, {2, 2}, {3, 2}, {2, 2, 2}};
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++)
        sweep_pairs(meshes[i][2] > 0 ? 3 : meshes[i][1] > 0 ? 2 : 1, meshes[i]);
}

typedef struct recipe {
    int world;
    bool floats; /* their meshes are in rank order */
} recipe;

static bool is_exact(tsr_dtype dtype)
{
    return dtype >= TSR_I64 && dtype <= TSR_BOOL;
}

/* Draws lengths that the cuts divide more often than not. */
static void choose_shape(oracle_random *random, oracle_layout *layout)
{
    static const int64_t lengths[] = {4, 6, 8, 12, 24, 24, 36, 5, 1};
    layout->ndim = 1 + (int)oracle_random_below(random, 3);
    for (int d = 0; d < layout->ndim; d++)
        layout->shape[d] = lengths[oracle_random_below(random, layout->ndim == 3 ? 5 : 9)];
}

/* Explicit numbers are for pieces of one length: where cuts go they may not fit any more. */
static bool has_numbers(const oracle_layout *layout)
{
    for (int m = 0; m < layout->mesh.ndim; m++)
        if (layout->placements[m].sizes || layout->placements[m].blocks)
            return true;
    return false;
}

/* The cuts of a random layout that go, or come from terms; or its terms that are reduced. */
static void change_some(oracle_random *random, trial *out)
{
    const bool terms = oracle_random_below(random, 2);
    const tsr_placement partial = placement_of(3, out->src.dtype, oracle_random_below(random, 6));
    out->dst = out->src;
    for (int m = 0; m < out->src.mesh.ndim; m++) {
        tsr_placement *from = &out->src.placements[m], *to = &out->dst.placements[m];
        if (from->kind == TSR_PARTIAL)
            *from = *to = partial;
        if (from->kind == TSR_REPLICATE || oracle_random_below(random, 3) == 0)
            continue;
        if (from->kind == TSR_SHARD && terms)
            *from = partial;
        else
            *to = tsr_replicate();
    }
}

static bool make_random(const void *arg, int64_t number, trial *out)
{
    const recipe *r = arg;
    oracle_random random = {.state = test_seed() * UINT64_C(1000000007) + (uint64_t)number};
    out->src.dtype = oracle_random_dtype(&random);
    if (is_exact(out->src.dtype) == r->floats)
        return false;
    choose_shape(&random, &out->src);
    out->src.mesh = oracle_random_mesh(&random, 3, r->world, r->world);
    if (r->floats)
        out->src.mesh = oracle_mesh_make(out->src.mesh.ndim, out->src.mesh.shape, 0);
    oracle_random_placements(&random, &out->src, &out->numbers);
    change_some(&random, out);
    if (out->src.mesh.ndim > 1 && has_numbers(&out->src) | has_numbers(&out->dst))
        return false;
    out->seed = (uint64_t)number;
    out->order = oracle_random_below(&random, 4) ? TSR_REDUCTION_ANY_ORDER : TSR_REDUCTION_RANK_ORDER;
    out->strided = oracle_random_below(&random, 2);
    out->halves = oracle_random_below(&random, 2);
    return true;
}

static void random_layouts_on_any_mesh(void **state)
{
    (void)state;
    const recipe integers = {6, false}, floats = {5, true};
    trials a = {.make = make_random, .arg = &integers, .count = 3000},
           b = {.make = make_random, .arg = &floats, .count = 3000};
    run_trials(integers.world, &a, 0);
    run_trials(floats.world, &b, 0);
}

/* Columns of an 8x8 tensor, gathered twice: a plan that is found again calls the engine as the
 * first one did. */
static tsr_status gather_dtensors(actor *a, tsr_dtensor *x, tsr_dtensor *y)
{
    int32_t *own = tsr_dtensor_to_local(x).data;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 16; i++)
            own[i] = (i / 2 * 8 + 2 * a->rank + i % 2) * (round + 1);
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        a->tally = (message_engine_tally){0};
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        CHECK(a->tally.all_gathers == 1);
        const int32_t *all = tsr_dtensor_to_local(y).data;
        for (int i = 0; i < 64; i++)
            CHECK(all[i] == i * (round + 1));
    }
    return TSR_OK;
}

static tsr_status gather_dtensors_on_rank(tsr_comm *comm, void *arg)
{
    (void)arg;
    actor a = {.rank = tsr_comm_rank(comm)};
    tsr_layout *columns = NULL, *whole = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(message_engine_create_own(comm, NULL, &a.tally, MESSAGE_ENGINE_PLAIN, &a.comm));
    tsr_status status = layout_over(a.comm, "4", "8x8", "S(1)", TSR_I32, &columns);
    if (status == TSR_OK)
        status = tsr_layout_parse(tsr_layout_mesh(columns), "R", 2, tsr_layout_shape(columns), TSR_I32, &whole);
    if (status == TSR_OK)
        status = tsr_dtensor_create(columns, tsr_device_host(), &x);
    if (status == TSR_OK)
        status = tsr_dtensor_create(whole, tsr_device_host(), &y);
    if (status == TSR_OK)
        status = gather_dtensors(&a, x, y);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(whole);
    tsr_layout_destroy(columns);
    tsr_comm_destroy(a.comm);
    return status;
}

static void dtensors_are_gathered_by_the_engine_too(void **state)
{
    (void)state;
    test_case("dtensors over an engine with collectives");
    run_ranks(4, gather_dtensors_on_rank, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_lists_on_small_meshes),
        cmocka_unit_test(random_layouts_on_any_mesh),
        cmocka_unit_test(dtensors_are_gathered_by_the_engine_too),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
