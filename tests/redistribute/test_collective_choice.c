/* When a plan in message mode calls the engine's own collectives, that these give the same bits as
 * the exchange, and what happens when they fail. */
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

enum { RANKS = 4, ODD = 1, MOST = 64 * 48 };

/* A move on the four ranks, and what it is. `mesh` with a second one after "->" where the
 * destination's is another. */
typedef struct choice {
    const char *mesh, *shape, *from, *to;
    tsr_dtype dtype;
    tsr_reduction_order order;
    collective kind;
    size_t max_workspace;
    int no_split;
    size_t batch; /* so many times the same move; 0: tsr_plan_create() */
} choice;

/* The tensors of one rank. */
typedef struct mover {
    tsr_comm *comm, *own; /* what it runs over; the engine that is its own */
    message_engine_tally tally;
    tsr_layout *src_layout, *dst_layout;
    tsr_plan *plan;
    size_t batch;
    tsr_tensor src[2], dst[2];
    void *workspace;
    size_t bytes;
    char given[2][MOST * 4], gotten[2][MOST * 4];
} mover;

/* Small whole numbers, whose sums and averages of four are exact in any order. */
static void fill(mover *m, tsr_dtype dtype)
{
    for (int i = 0; i < MOST; i++) {
        const int value = (tsr_comm_rank(m->comm) * 7 + i) % 5 + (i % 3 == 0);
        const float real = (float)value;
        for (int t = 0; t < 2; t++)
            memcpy(m->given[t] + 4 * i, dtype == TSR_F32 ? (const void *)&real : (const void *)&value, 4);
    }
    memset(m->gotten, 0x77, sizeof m->gotten);
}

static tsr_status plan(mover *m, const choice *c)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = TSR_MODE_MESSAGE;
    options.reduction = c->order;
    options.max_workspace = c->max_workspace;
    options.no_split = c->no_split;
    const tsr_layout *const src[] = {m->src_layout, m->src_layout}, *const dst[] = {m->dst_layout, m->dst_layout};
    m->batch = c->batch > 0 ? c->batch : 1;
    return c->batch > 0 ? tsr_plan_create_batch(c->batch, src, dst, &options, &m->plan)
                        : tsr_plan_create(m->src_layout, m->dst_layout, &options, &m->plan);
}

static void mover_free(mover *m)
{
    tsr_plan_destroy(m->plan);
    tsr_layout_destroy(m->src_layout);
    tsr_layout_destroy(m->dst_layout);
    free(m->workspace);
    tsr_comm_destroy(m->own);
    free(m);
}

static tsr_status mover_fill(mover *m, const choice *c)
{
    char mesh[64];
    const char *other = strstr(c->mesh, "->");
    snprintf(mesh, sizeof mesh, "%.*s", other ? (int)(other - c->mesh) : (int)strlen(c->mesh), c->mesh);
    TSR_TRY(layout_over(m->comm, mesh, c->shape, c->from, c->dtype, &m->src_layout));
    TSR_TRY(layout_over(m->comm, other ? other + 2 : mesh, c->shape, c->to, c->dtype, &m->dst_layout));
    TSR_TRY(plan(m, c));
    fill(m, c->dtype);
    for (int t = 0; t < 2; t++) {
        TSR_TRY(shard_over(m->src_layout, m->given[t], &m->src[t]));
        TSR_TRY(shard_over(m->dst_layout, m->gotten[t], &m->dst[t]));
    }
    m->workspace = workspace_for(m->plan, &m->bytes);
    return TSR_OK;
}

typedef tsr_status use_mover(mover *m, void *arg);

/* Runs over an engine with collectives, whose k-th call fails if `calls` says so. */
static tsr_status with_own(tsr_comm *comm, int *calls, message_engine_kind kind, const choice *c, use_mover *use,
                           void *arg)
{
    mover *m = calloc(1, sizeof *m);
    CHECK(m);
    tsr_status status = message_engine_create_own(comm, calls, &m->tally, kind, &m->own);
    m->comm = m->own;
    if (status == TSR_OK)
        status = mover_fill(m, c);
    if (status == TSR_OK)
        status = use(m, arg);
    mover_free(m);
    return status;
}

static tsr_status execute(mover *m)
{
    return tsr_plan_execute(m->plan, m->comm, m->src, m->dst, m->workspace, m->bytes, NULL);
}

/* Counts calls of executions alone: ranks also gather what they compare when they prepare. */
static tsr_status run(mover *m)
{
    TSR_TRY(tsr_plan_prepare(m->plan, m->comm));
    m->tally = (message_engine_tally){0};
    return execute(m);
}

static int calls_of(const message_engine_tally *tally, collective kind)
{
    switch (kind) {
    case ALL_GATHER:
        return tally->all_gathers;
    case REDUCE_SCATTER:
        return tally->reduce_scatters;
    case ALL_REDUCE:
        return tally->all_reduces;
    case BROADCAST:
        return tally->broadcasts;
    default:
        return 0;
    }
}

static tsr_status check_calls(const mover *m, collective kind, int count)
{
    for (collective other = ALL_GATHER; other <= BROADCAST; other++)
        if (calls_of(&m->tally, other) != (other == kind ? count : 0))
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s was called %d times", collective_name(other),
                                  calls_of(&m->tally, other));
    return TSR_OK;
}

/* Runs over the engine's collectives and over an exchange, and compares the calls and the bytes. */
static tsr_status compare_ways(mover *m, void *arg)
{
    const choice *c = arg;
    char *first = malloc(sizeof m->gotten);
    CHECK(first);
    tsr_status status = run(m);
    if (status == TSR_OK)
        status = check_calls(m, c->kind, 1);
    memcpy(first, m->gotten, sizeof m->gotten);
    memset(m->gotten, 0x77, sizeof m->gotten);
    if (status == TSR_OK)
        status = message_engine_create(m->own, NULL, &m->comm);
    if (status == TSR_OK) {
        status = run(m);
        tsr_comm_destroy(m->comm);
    }
    if (status == TSR_OK)
        status = check_calls(m, c->kind, 0);
    if (status == TSR_OK && memcmp(first, m->gotten, sizeof m->gotten) != 0)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "the collective's bytes are not those of the exchange");
    free(first);
    return status;
}

static tsr_status compare_on_rank(tsr_comm *comm, void *arg)
{
    return with_own(comm, NULL, MESSAGE_ENGINE_PLAIN, arg, compare_ways, arg);
}

#define RANK_ORDER TSR_REDUCTION_RANK_ORDER
#define ANY        TSR_REDUCTION_ANY_ORDER

static const choice moves[] = {
    /* Pieces of one length, wherever they lie and whoever has them. */
    {"4", "8x6", "S(0)", "R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"4", "8x6", "S(0)", "R", TSR_F32, RANK_ORDER, ALL_GATHER},
    {"4", "6x8", "S(1)", "R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"4", "8", "S(0;interleave=2)", "R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"4", "8", "S(0;sizes=2,2,2,2)", "R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"4@[2,0,3,1]", "8x6", "S(0)", "R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"4->1x4", "8x6", "S(0)", "R,R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"2x2", "8x6", "S(0),S(1)", "S(0),R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"2x2", "8x6", "S(0),S(1)", "R,S(1)", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"2x2", "8x6", "S(0),S(1)", "R,R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"2x2", "8x6", "R,S(0)", "R,R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"2x2", "8x6", "P,S(0)", "P,R", TSR_F32, RANK_ORDER, ALL_GATHER},
    {"2x2", "8x6", "S(0),S(0)", "S(0),R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"2x2", "8x6", "S(0)[1],S(0)[0]", "R,S(0)", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"2x2", "5x6", "S(0),S(1)", "S(0),R", TSR_I32, RANK_ORDER, ALL_GATHER},
    /* One rank has all. */
    {"4", "8x6", "S(0;sizes=0,0,8,0)", "R", TSR_I32, RANK_ORDER, BROADCAST},
    {"4", "1x6", "S(0)", "R", TSR_I32, RANK_ORDER, BROADCAST},
    {"2x2@[3,1,2,0]", "1x6", "S(0),S(1)", "R,S(1)", TSR_I32, RANK_ORDER, BROADCAST},
    /* The order of the terms does not show in the sum, or need not be kept. */
    {"4", "8x6", "P", "R", TSR_I32, RANK_ORDER, ALL_REDUCE},
    {"4", "8x6", "P(max)", "R", TSR_U32, RANK_ORDER, ALL_REDUCE},
    {"4", "8x6", "P", "R", TSR_F32, ANY, ALL_REDUCE},
    {"4@[2,0,3,1]", "8x6", "P", "R", TSR_F32, ANY, ALL_REDUCE},
    {"4", "8x6", "P(min)", "R", TSR_F32, ANY, ALL_REDUCE},
    {"2x2", "8x6", "P(avg),P(avg)", "R,R", TSR_F32, ANY, ALL_REDUCE},
    {"2x2", "5x6", "P,S(0)", "R,S(0)", TSR_I32, RANK_ORDER, ALL_REDUCE},
    {"4", "8x6", "P", "S(0)", TSR_I32, RANK_ORDER, REDUCE_SCATTER},
    {"4", "6x8", "P", "S(1)", TSR_F32, ANY, REDUCE_SCATTER},
    {"4@[2,0,3,1]", "6x8", "P(avg)", "S(1)", TSR_F32, ANY, REDUCE_SCATTER},
    {"2x2", "8x6", "S(0),P", "S(0),S(0)", TSR_I32, RANK_ORDER, REDUCE_SCATTER},
    {"2x2", "8x6", "P,S(0)", "S(0)[1],S(0)[0]", TSR_I32, RANK_ORDER, REDUCE_SCATTER},
    /* Uneven pieces are exchanged, without padding. */
    {"4", "8x6", "S(1)", "R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"4", "8x6", "S(0;sizes=0,4,4,0)", "R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"2x2", "5x6", "S(0),S(1)", "R,S(1)", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"4", "8x6", "P", "S(1)", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"2x2", "1x8", "S(0),S(1)", "R,R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    /* The cuts that are removed are not the innermost. */
    {"2x2", "8x6", "S(0),S(0)", "R,S(0)", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"2x2", "8x6", "P,S(0)", "S(0),S(0)", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    /* The order of the terms shows in the sum. */
    {"4", "8x6", "P", "R", TSR_F32, RANK_ORDER, NO_COLLECTIVE},
    {"4", "8x6", "P(max)", "R", TSR_F32, RANK_ORDER, NO_COLLECTIVE},
    {"2x2", "8x6", "P(avg),P", "R,R", TSR_F32, ANY, NO_COLLECTIVE},
    /* Several collectives at once, or none. */
    {"2x2", "8x6", "P,S(0)", "R,R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"2x2", "8x6", "R,S(0)", "P,R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"2x2", "8x6", "S(0),S(1)", "S(1),R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"4", "8x8", "S(0)", "S(1)", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"4", "8x6", "R", "S(0)", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"4", "0x6", "S(1)", "R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    {"4->2x2", "8x6", "S(0)", "R,R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
    /* Options. */
    {"4", "64x48", "S(0)", "R", TSR_I32, RANK_ORDER, ALL_GATHER, .max_workspace = 4096},
    {"4", "64x48", "P", "S(0)", TSR_I32, RANK_ORDER, REDUCE_SCATTER, .max_workspace = 4096},
    {"4", "64x48", "P", "R", TSR_I32, RANK_ORDER, ALL_REDUCE, .max_workspace = 4096},
    {"4", "64x48", "S(1)", "R", TSR_I32, RANK_ORDER, ALL_GATHER, .max_workspace = 64 * 48 * 4},
    {"4", "64x48", "S(1)", "R", TSR_I32, RANK_ORDER, NO_COLLECTIVE, .max_workspace = 64 * 48 * 4 - 1},
    {"4", "64x48", "P", "S(1)", TSR_I32, RANK_ORDER, REDUCE_SCATTER, .max_workspace = 64 * 48 * 5},
    {"4", "64x48", "P", "S(1)", TSR_I32, RANK_ORDER, NO_COLLECTIVE, .max_workspace = 64 * 48 * 5 - 1},
    {"2x2", "64x32", "S(1),S(0;sizes=48,16)", "R,S(0;sizes=48,16)", TSR_I32, RANK_ORDER, NO_COLLECTIVE,
     .max_workspace = 5000},
    {"4", "8x6", "S(0)", "R", TSR_I32, RANK_ORDER, NO_COLLECTIVE, .no_split = 1},
    {"4", "8x6", "S(0)", "R", TSR_I32, RANK_ORDER, ALL_GATHER, .batch = 1},
    {"4", "8x6", "S(0)", "R", TSR_I32, RANK_ORDER, NO_COLLECTIVE, .batch = 2},
};

static void a_collective_is_called_exactly_where_the_move_is_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(moves) / sizeof moves[0]; i++) {
        const choice *c = &moves[i];
        test_case("mesh %s, %s %s, %s -> %s, %s order, workspace %zu, no_split %d, batch %zu: %s", c->mesh, c->shape,
                  tsr_dtype_name(c->dtype), c->from, c->to, c->order == TSR_REDUCTION_ANY_ORDER ? "any" : "rank",
                  c->max_workspace, c->no_split, c->batch, collective_name(c->kind));
        run_ranks(RANKS, compare_on_rank, (void *)c);
    }
}

static tsr_status run_counted(mover *m, void *arg)
{
    TSR_TRY(run(m));
    return check_calls(m, ((const choice *)arg)->kind, 1);
}

static const choice gather = {"4", "8x6", "S(0)", "R", TSR_I32, RANK_ORDER, ALL_GATHER};

/* Prepared here and there, and executed in turn: over an engine with collectives, one without, and
 * rank threads. */
static tsr_status use_several(mover *m, tsr_comm *const *comms)
{
    for (int i = 0; i < 6; i++) {
        m->comm = comms[i % 3];
        memset(m->gotten, 0x77, sizeof m->gotten);
        TSR_TRY(i < 3 ? run(m) : execute(m));
        const int32_t *values = (const int32_t *)(const void *)m->gotten[0];
        CHECK(values[0] == 1 && values[12] == 3 && values[47] == (3 * 7 + 11) % 5);
        TSR_TRY(check_calls(m, ALL_GATHER, i % 3 == 0));
        m->tally = (message_engine_tally){0};
    }
    return TSR_OK;
}

static tsr_status add_others(mover *m, void *arg)
{
    tsr_comm *plain = NULL;
    TSR_TRY(message_engine_create(arg, NULL, &plain));
    const tsr_status status = use_several(m, (tsr_comm *[]){m->own, plain, arg});
    tsr_comm_destroy(plain);
    return status;
}

static tsr_status use_several_on_rank(tsr_comm *comm, void *arg)
{
    (void)arg;
    return with_own(comm, NULL, MESSAGE_ENGINE_PLAIN, &gather, add_others, comm);
}

static void one_plan_runs_on_engines_with_and_without_collectives(void **state)
{
    (void)state;
    test_case("a plan on three communicators");
    run_ranks(RANKS, use_several_on_rank, NULL);
}

/* Ranks 0 and 1 gather, 2 and 3 exchange; or all gather, each pair by itself. */
static tsr_status slice_on_rank(tsr_comm *comm, void *arg)
{
    const bool both = arg;
    const int pair = tsr_comm_rank(comm) / 2;
    const choice parts[] = {
        {"2", "8x6", "S(0)", "R", TSR_I32, RANK_ORDER, ALL_GATHER},
        {"2@2", "8x6", "S(0)", both ? "R" : "S(1)", TSR_I32, RANK_ORDER, both ? ALL_GATHER : NO_COLLECTIVE}};
    return with_own(comm, NULL, MESSAGE_ENGINE_PLAIN, &parts[pair], run_counted, (void *)&parts[pair]);
}

static void slices_of_one_communicator_have_collectives_of_their_own(void **state)
{
    (void)state;
    test_case("two slices, one gathers");
    run_ranks(RANKS, slice_on_rank, NULL);
    test_case("two slices, both gather");
    run_ranks(RANKS, slice_on_rank, "both");
}

static tsr_status lend_on_rank(tsr_comm *comm, void *arg)
{
    return with_own(comm, NULL, MESSAGE_ENGINE_LENT, arg, run_counted, arg);
}

static void a_communicator_that_may_not_be_split_has_only_collectives_of_all_ranks(void **state)
{
    (void)state;
    const choice some = {"2x2", "8x6", "S(0),R", "R,R", TSR_I32, RANK_ORDER, NO_COLLECTIVE};
    test_case("lent, all ranks");
    run_ranks(RANKS, lend_on_rank, (void *)&gather);
    test_case("lent, pairs of ranks");
    run_ranks(RANKS, lend_on_rank, (void *)&some);
}

/* One rank's destination has a column more, between its rows. */
static tsr_status spread(mover *m, void *arg)
{
    const choice *c = arg;
    const bool odd = tsr_comm_rank(m->comm) == ODD;
    const int64_t rows = m->dst[0].shape[0], columns = m->dst[0].shape[1];
    m->dst[0].strides[0] += odd;
    TSR_TRY(run(m));
    TSR_TRY(check_calls(m, c->kind, 1));
    int32_t apart[MOST];
    memcpy(apart, m->gotten[0], sizeof apart);
    m->dst[0].strides[0] -= odd;
    TSR_TRY(execute(m));
    const int32_t *dense = (const int32_t *)(const void *)m->gotten[0];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            CHECK(apart[i * (columns + odd) + j] == dense[i * columns + j]);
    return check_calls(m, ALL_GATHER, c->kind == ALL_GATHER ? 2 : 1);
}

static tsr_status spread_on_rank(tsr_comm *comm, void *arg)
{
    return with_own(comm, NULL, MESSAGE_ENGINE_PLAIN, arg, spread, arg);
}

static void one_tensor_with_gaps_sends_everybody_to_the_mail_unless_there_is_room_to_unpack(void **state)
{
    (void)state;
    const choice spreads[] = {{"4", "48x60", "S(0)", "R", TSR_I32, RANK_ORDER, NO_COLLECTIVE},
                              {"4", "48x60", "S(1)", "R", TSR_I32, RANK_ORDER, ALL_GATHER}};
    for (int i = 0; i < 2; i++) {
        test_case("gaps, %s", spreads[i].from);
        run_ranks(RANKS, spread_on_rank, (void *)&spreads[i]);
    }
}

static const choice each_kind[] = {
    {"2x2", "8x6", "S(0),S(1)", "S(0),R", TSR_I32, RANK_ORDER, ALL_GATHER},
    {"2x2", "8x6", "S(0),P", "S(0),S(0)", TSR_I32, RANK_ORDER, REDUCE_SCATTER},
    {"2x2", "8x6", "S(0),P", "S(0),R", TSR_I32, RANK_ORDER, ALL_REDUCE},
    {"2x2", "8x6", "S(0),S(1;sizes=0,6)", "S(0),R", TSR_I32, RANK_ORDER, BROADCAST},
};
enum { KINDS = sizeof each_kind / sizeof each_kind[0] };

/* A rank with a bad tensor says so and the others name it. The next execution works, also in two
 * halves, of which the first calls the collective. */
static tsr_status bring_bad_tensors(mover *m, void *arg)
{
    const collective kind = ((const choice *)arg)->kind;
    const bool odd = tsr_comm_rank(m->comm) == ODD;
    tsr_tensor bad = m->dst[0];
    bad.dtype = TSR_F64;
    TSR_TRY(run(m));
    for (int i = 0; i < 2; i++) {
        const tsr_tensor *dst = odd ? &bad : m->dst;
        const tsr_status status = i ? tsr_plan_start(m->plan, m->comm, m->src, dst, m->workspace, m->bytes, NULL)
                                    : tsr_plan_execute(m->plan, m->comm, m->src, dst, m->workspace, m->bytes, NULL);
        if (odd)
            CHECK_ERROR(status, TSR_ERROR_ARGUMENT, "f64");
        else
            CHECK_ERROR(status, TSR_ERROR_PEER, "rank 1");
    }
    TSR_TRY(check_calls(m, kind, 1));
    TSR_TRY(tsr_plan_start(m->plan, m->comm, m->src, m->dst, m->workspace, m->bytes, NULL));
    TSR_TRY(check_calls(m, kind, 2));
    TSR_TRY(tsr_plan_finish(m->plan, m->comm));
    return check_calls(m, kind, 2);
}

static tsr_status bring_bad_tensors_on_rank(tsr_comm *comm, void *arg)
{
    return with_own(comm, NULL, MESSAGE_ENGINE_PLAIN, arg, bring_bad_tensors, arg);
}

static void a_rank_that_fails_by_itself_is_named_and_nobody_calls_the_collective(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        test_case("a bad tensor, %s", collective_name(each_kind[i].kind));
        run_ranks(RANKS, bring_bad_tensors_on_rank, (void *)&each_kind[i]);
    }
}

/* The engine of the odd rank fails at its n-th call. */
typedef struct breaking {
    const choice *choice;
    int at;
    int calls; /* left until then */
    bool reached;
} breaking;

static tsr_status break_call(mover *m, void *arg)
{
    breaking *b = arg;
    const bool odd = tsr_comm_rank(m->comm) == ODD;
    if (odd)
        b->calls = b->at;
    const tsr_status status = run(m);
    if (odd)
        b->reached = b->calls == 0;
    return status;
}

static tsr_status break_call_on_rank(tsr_comm *comm, void *arg)
{
    breaking *b = arg;
    return with_own(comm, tsr_comm_rank(comm) == ODD ? &b->calls : NULL, MESSAGE_ENGINE_PLAIN, b->choice, break_call,
                    b);
}

static void whichever_call_of_the_engine_fails_the_rank_says_so_and_nobody_hangs(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        breaking b = {.choice = &each_kind[i], .at = 1, .reached = true};
        for (; b.reached; b.at++) {
            test_case("call %d fails, %s", b.at, collective_name(each_kind[i].kind));
            const tsr_status status = tsr_threads_run(RANKS, break_call_on_rank, &b, NULL);
            assert_int_equal(status, b.reached ? TSR_ERROR_DEVICE : TSR_OK);
        }
        assert_true(b.at > 3);
    }
}

static tsr_status prepare_short_of_memory(mover *m, void *arg)
{
    breaking *b = arg;
    const bool odd = tsr_comm_rank(m->comm) == ODD;
    counted_fail_here(odd ? (size_t)b->at : 0, false);
    const tsr_status status = tsr_plan_prepare(m->plan, m->comm);
    const bool reached = counted_fail_here(0, false) == 0 && odd;
    if (odd)
        b->reached = reached;
    if (odd && reached)
        CHECK_ERROR(status, TSR_ERROR_MEMORY, "");
    else if (!odd && status != TSR_OK)
        CHECK_ERROR(status, TSR_ERROR_PEER, "rank 1");
    else
        TSR_TRY(status);
    return run(m);
}

static tsr_status prepare_on_rank(tsr_comm *comm, void *arg)
{
    return with_own(comm, NULL, MESSAGE_ENGINE_PLAIN, ((const breaking *)arg)->choice, prepare_short_of_memory, arg);
}

static void preparing_without_memory_fails_on_all_ranks_and_then_succeeds(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = counted_context(&memory);
    breaking b = {.choice = &each_kind[0], .at = 1, .reached = true};
    for (; b.reached; b.at++) {
        test_case("allocation %d of prepare fails", b.at);
        if (tsr_threads_run(RANKS, prepare_on_rank, &b, &options) != TSR_OK)
            fail_msg("%s: %s", test_case_text(), tsr_status_message());
    }
    assert_true(b.at > 4);
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
}

typedef struct planning {
    const tsr_layout *src, *dst;
    tsr_plan *made;
} planning;

static tsr_status plan_it(void *arg)
{
    planning *p = arg;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = TSR_MODE_MESSAGE;
    options.rank = ODD;
    return tsr_plan_create(p->src, p->dst, &options, &p->made);
}

static void planning_without_memory_fails_and_leaks_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        counted_memory memory = {0};
        tsr_context *context = counted_context(&memory);
        tsr_layout *src = layout_in(context, each_kind[i].mesh, "8x6", each_kind[i].from);
        tsr_layout *dst = layout_in(context, each_kind[i].mesh, "8x6", each_kind[i].to);
        planning p = {.src = src, .dst = dst};
        test_case("an allocation of planning fails, %s", collective_name(each_kind[i].kind));
        assert_true(fail_each_allocation(&memory, plan_it, &p) > 3);
        tsr_plan_destroy(p.made);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collective_is_called_exactly_where_the_move_is_one),
        cmocka_unit_test(one_plan_runs_on_engines_with_and_without_collectives),
        cmocka_unit_test(slices_of_one_communicator_have_collectives_of_their_own),
        cmocka_unit_test(a_communicator_that_may_not_be_split_has_only_collectives_of_all_ranks),
        cmocka_unit_test(one_tensor_with_gaps_sends_everybody_to_the_mail_unless_there_is_room_to_unpack),
        cmocka_unit_test(a_rank_that_fails_by_itself_is_named_and_nobody_calls_the_collective),
        cmocka_unit_test(whichever_call_of_the_engine_fails_the_rank_says_so_and_nobody_hangs),
        cmocka_unit_test(preparing_without_memory_fails_on_all_ranks_and_then_succeeds),
        cmocka_unit_test(planning_without_memory_fails_and_leaks_nothing),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
