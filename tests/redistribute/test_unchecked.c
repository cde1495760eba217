/* Engines with TSR_COMM_UNCHECKED: an execution sends the messages of the move and no others, and a
 * rank that fails by itself aborts. An engine over rank threads counts the messages. */
#include "message_engine.h"
#include "ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { RANKS = 2, PLENTY = 1 << 20 };

typedef struct expected {
    const char *from, *to;
    tsr_dtype dtype;
    message_engine_kind engine;
    int calls; /* of the engine, that one execution makes: halves of exchanges count one each */
} expected;

/* One rank: its plan, its tensors of a 4x4 move, and how many calls its engine may still make. */
typedef struct actor {
    tsr_comm *comm;
    tsr_plan *plan;
    int left; /* calls of the engine */
    char src[4 * 4 * 8], dst[4 * 4 * 8], workspace[4096];
    tsr_tensor from, to;
} actor;

static tsr_status make_plan(actor *a, const expected *x)
{
    tsr_layout *src = NULL, *dst = NULL;
    tsr_status status = layout_over(a->comm, "2", "4x4", x->from, x->dtype, &src);
    if (status == TSR_OK)
        status = layout_over(a->comm, "2", "4x4", x->to, x->dtype, &dst);
    if (status == TSR_OK)
        status = tsr_plan_create(src, dst, NULL, &a->plan);
    if (status == TSR_OK)
        status = tsr_plan_prepare(a->plan, a->comm);
    if (status == TSR_OK) {
        int64_t shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
        const int64_t coordinate[] = {tsr_comm_rank(a->comm)};
        TSR_TRY(tsr_layout_local(src, coordinate, shape, offset));
        a->from = tsr_tensor_contiguous(a->src, x->dtype, 2, shape);
        TSR_TRY(tsr_layout_local(dst, coordinate, shape, offset));
        a->to = tsr_tensor_contiguous(a->dst, x->dtype, 2, shape);
    }
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    return status;
}

static tsr_status execute(actor *a, const tsr_tensor *from)
{
    return tsr_plan_execute(a->plan, a->comm, from, &a->to, a->workspace, sizeof a->workspace, NULL);
}

static tsr_status count_calls(actor *a, const expected *x)
{
    a->left = PLENTY;
    TSR_TRY(execute(a, &a->from));
    CHECK(PLENTY - a->left == x->calls);
    return TSR_OK;
}

static tsr_status with_engine(tsr_comm *carrier, const expected *x, tsr_status (*body)(actor *a, const expected *x))
{
    static _Thread_local actor a;
    a = (actor){.left = 0};
    TSR_TRY(message_engine_create_own(carrier, &a.left, NULL, x->engine, &a.comm));
    tsr_status status = make_plan(&a, x);
    if (status == TSR_OK)
        status = body(&a, x);
    tsr_plan_destroy(a.plan);
    tsr_comm_destroy(a.comm);
    return status;
}

static tsr_status count_on(tsr_comm *carrier, void *arg)
{
    return with_engine(carrier, arg, count_calls);
}

static void an_execution_sends_what_moves_and_nothing_else(void **state)
{
    static expected moves[] = {
        {"S(0)", "S(1)", TSR_F32, MESSAGE_ENGINE_UNCHECKED, 2},
        {"P", "S(0)", TSR_F32, MESSAGE_ENGINE_UNCHECKED, 2},
        {"S(0)", "R", TSR_F32, MESSAGE_ENGINE_UNCHECKED, 1},
        {"P", "R", TSR_I32, MESSAGE_ENGINE_UNCHECKED, 1},
        {"S(0)", "S(1)", TSR_F32, MESSAGE_ENGINE_PLAIN, 2 + 2 /* to agree */},
        {"S(0)", "R", TSR_F32, MESSAGE_ENGINE_PLAIN, 1 + 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        run_ranks(RANKS, count_on, &moves[i]);
}

/* The engine's carrier ends too, so that the other rank learns of the failure at once. */
static tsr_status fail_alone(actor *a, const expected *x)
{
    tsr_tensor odd = a->from;
    (void)x;
    odd.shape[0] = 3;
    if (tsr_comm_rank(a->comm) == 1)
        CHECK_ERROR(execute(a, &odd), TSR_ERROR_ARGUMENT, "src has local shape 3x4");
    else
        CHECK_ERROR(execute(a, &a->from), TSR_ERROR_PEER, NULL);
    CHECK_ERROR(execute(a, &a->from), TSR_ERROR_PEER, NULL);
    return TSR_OK;
}

static tsr_status fail_on(tsr_comm *carrier, void *arg)
{
    return with_engine(carrier, arg, fail_alone);
}

static void a_rank_that_fails_by_itself_aborts(void **state)
{
    static expected moves[] = {{"S(0)", "S(1)", TSR_F32, MESSAGE_ENGINE_UNCHECKED, 0},
                               {"S(0)", "R", TSR_F32, MESSAGE_ENGINE_UNCHECKED, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
        run_ranks(RANKS, fail_on, &moves[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_execution_sends_what_moves_and_nothing_else),
        cmocka_unit_test(a_rank_that_fails_by_itself_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
