/* Batches: one message for each pair of ranks and phase, whatever the tensors, and what plans of
 * batches refuse. */
#include "layouts.h"
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <tessera/sys/comm.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RANKS = 4, TENSORS = 5, MOST = 1024 };

/* Every rank has something for every other one in the first four, and gives results in the second
 * and the fifth. */
static const struct {
    const char *mesh, *shape, *from, *to;
    tsr_dtype dtype;
} rows[TENSORS] = {
    {"4", "8x12", "S(0)", "S(1)", TSR_F32},     {"4", "16x3", "P", "R", TSR_F64},
    {"2x2", "5x3", "S(0),S(0)", "R,R", TSR_U8}, {"4@[3,1,0,2]", "7x12", "S(0)", "S(1)", TSR_C64},
    {"2x2", "6x4", "P,R", "R,S(0)", TSR_BF16},
};

/* This rank's tensors of some of the rows. */
typedef struct party {
    size_t count;
    tsr_layout *src[TENSORS], *dst[TENSORS];
    tsr_plan *plan;
    _Alignas(16) unsigned char have[TENSORS][MOST], want[TENSORS][MOST];
    tsr_tensor in[TENSORS], out[TENSORS];
    void *workspace;
    size_t bytes;
} party;

static tsr_status party_make(party *p, tsr_comm *comm, size_t first, size_t count, size_t max_workspace)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.max_workspace = max_workspace;
    memset(p, 0, sizeof *p);
    p->count = count;
    for (size_t i = 0; i < count; i++) {
        TSR_TRY(layout_over(comm, rows[first + i].mesh, rows[first + i].shape, rows[first + i].from,
                            rows[first + i].dtype, &p->src[i]));
        TSR_TRY(layout_over(comm, rows[first + i].mesh, rows[first + i].shape, rows[first + i].to,
                            rows[first + i].dtype, &p->dst[i]));
        TSR_TRY(shard_over(p->src[i], p->have[i], &p->in[i]));
        TSR_TRY(shard_over(p->dst[i], p->want[i], &p->out[i]));
        for (int k = 0; k < MOST; k++)
            p->have[i][k] = (unsigned char)(7 * k + 31 * tsr_comm_rank(comm) + (int)i);
    }
    TSR_TRY(tsr_plan_create_batch(count, (const tsr_layout *const *)p->src, (const tsr_layout *const *)p->dst, &options,
                                  &p->plan));
    TSR_TRY(tsr_plan_prepare(p->plan, comm));
    p->workspace = workspace_for(p->plan, &p->bytes);
    return TSR_OK;
}

static void party_destroy(party *p)
{
    for (size_t i = 0; i < p->count; i++) {
        tsr_layout_destroy(p->src[i]);
        tsr_layout_destroy(p->dst[i]);
    }
    tsr_plan_destroy(p->plan);
    free(p->workspace);
}

static tsr_status party_execute(party *p, tsr_comm *comm)
{
    return tsr_plan_execute(p->plan, comm, p->in, p->out, p->workspace, p->bytes, NULL);
}

/* What this thread asked the engine for. */
static _Thread_local struct {
    int exchanges, messages;
    bool twice; /* some exchange had two messages to or from one rank */
} asked;

static bool is_repeated(const tsr_message *messages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (messages[i].peer == messages[k].peer)
                return true;
    return false;
}

static tsr_status count_exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                 size_t receive_count, tsr_device device, tsr_stream stream)
{
    asked.exchanges++;
    asked.messages += (int)send_count;
    asked.twice |= is_repeated(sends, send_count) || is_repeated(receives, receive_count);
    return message_engine_messages.exchange(self, sends, send_count, receives, receive_count, device, stream);
}

static tsr_status count_over(tsr_comm *carrier, tsr_comm **out)
{
    tsr_comm *copy = NULL;
    void *self = NULL;
    tsr_comm_messages messages = message_engine_messages;
    tsr_comm_table table = message_engine_table;
    messages.exchange = count_exchange;
    table.messages = &messages;
    TSR_TRY(tsr_comm_split(carrier, 0, tsr_comm_rank(carrier), &copy));
    TSR_TRY(message_engine_self(copy, &self));
    return tsr_comm_create_from_table(tsr_comm_context(carrier), &table, self, out);
}

/* The bytes that a rank receives when each tensor is moved by itself. */
static tsr_status move_alone(tsr_comm *comm, unsigned char (*want)[MOST], int *exchanges, int *messages)
{
    party *p = malloc(sizeof *p);
    CHECK(p != NULL);
    *exchanges = *messages = 0;
    for (size_t i = 0; i < TENSORS; i++) {
        TSR_TRY(party_make(p, comm, i, 1, 0));
        for (int k = 0; k < MOST; k++)
            p->have[0][k] = (unsigned char)(p->have[0][k] + i);
        asked.exchanges = asked.messages = 0;
        TSR_TRY(party_execute(p, comm));
        memcpy(want[i], p->want[0], MOST);
        *exchanges = asked.exchanges > *exchanges ? asked.exchanges : *exchanges;
        *messages = asked.messages > *messages ? asked.messages : *messages;
        party_destroy(p);
    }
    free(p);
    return TSR_OK;
}

static tsr_status move_together(tsr_comm *carrier, void *arg)
{
    (void)arg;
    tsr_comm *comm = NULL;
    int exchanges = 0, messages = 0;
    unsigned char(*want)[MOST] = calloc(TENSORS, MOST);
    party *p = malloc(sizeof *p);
    CHECK(want && p);
    TSR_TRY(count_over(carrier, &comm));
    TSR_TRY(move_alone(comm, want, &exchanges, &messages));
    TSR_TRY(party_make(p, comm, 0, TENSORS, 0));
    asked.exchanges = asked.messages = 0;
    TSR_TRY(party_execute(p, comm));
    /* The all-reduce by itself sends to all others in both phases, so that more messages would be
     * several to one rank.
     */
    CHECK(asked.exchanges == exchanges && asked.messages == messages && !asked.twice);
    for (size_t i = 0; i < TENSORS; i++)
        CHECK(memcmp(p->want[i], want[i], MOST) == 0);
    party_destroy(p);
    free(p);
    free(want);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void a_batch_takes_no_more_messages_than_its_busiest_tensor(void **state)
{
    (void)state;
    test_case("five tensors together over an engine that counts");
    run_ranks(RANKS, move_together, NULL);
}

static tsr_status refuse_shared_memory(tsr_comm *comm, void *arg)
{
    (void)arg;
    party *p = malloc(sizeof *p);
    CHECK(p != NULL);
    TSR_TRY(party_make(p, comm, 0, TENSORS, 0));
    const tsr_tensor out[2] = {p->out[1], p->out[2]}, in = p->in[0];
    p->out[1].data = p->out[3].data;
    CHECK_ERROR(party_execute(p, comm), TSR_ERROR_ARGUMENT, "tensor 1 of 5 overlaps");
    p->out[1] = out[0];
    p->out[2].data = p->in[4].data;
    CHECK_ERROR(party_execute(p, comm), TSR_ERROR_ARGUMENT, "dst of tensor 2 of 5 overlaps memory of tensor 4");
    /* Within a long tensor another one starts and ends: what comes then overlaps the long one
     * still. */
    void *const before = p->in[3].data;
    p->in[3].data = p->have[1] + 16;
    p->out[2].data = p->have[1] + 256;
    CHECK_ERROR(party_execute(p, comm), TSR_ERROR_ARGUMENT, "dst of tensor 2 of 5 overlaps memory of tensor 1");
    p->in[3].data = before;
    p->out[2] = out[1];
    p->out[3].strides[0] = -1;
    CHECK_ERROR(party_execute(p, comm), TSR_ERROR_ARGUMENT, "tensor 3 of 5: dst");
    p->out[3].strides[0] = p->out[3].shape[1];
    /* Two tensors may read the same memory, and the all-reduce may be in place. */
    p->in[0].data = p->in[3].data;
    p->out[1] = p->in[1];
    TSR_TRY(party_execute(p, comm));
    p->in[0] = in;
    p->out[1].data = p->in[0].data;
    CHECK_ERROR(party_execute(p, comm), TSR_ERROR_ARGUMENT, "overlap");
    party_destroy(p);
    free(p);
    return TSR_OK;
}

static void what_one_tensor_of_a_batch_writes_no_other_may_touch(void **state)
{
    (void)state;
    test_case("tensors of a batch in each other's memory");
    run_ranks(RANKS, refuse_shared_memory, NULL);
}

/* Rank 1 gives a tensor of which it keeps nothing, so that the destination may point anywhere, and
 * has another tensor come to where the given one lies. */
static tsr_status write_what_is_given(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *src, *dst;
    tsr_plan *plan;
    float given[8] = {0}, taken[2][8];
    tsr_tensor in[2], out[2];
    TSR_TRY(layout_over(comm, "2", "1x8", "S(1)", TSR_F32, &src));
    TSR_TRY(layout_over(comm, "2", "1x8", "S(0)", TSR_F32, &dst));
    TSR_TRY(tsr_plan_create_batch(2, (const tsr_layout *const[]){src, dst}, (const tsr_layout *const[]){dst, src}, NULL,
                                  &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    const bool odd = tsr_comm_rank(comm) == 1;
    TSR_TRY(shard_over(src, given, &in[0]));
    TSR_TRY(shard_over(dst, odd ? given : taken[0], &out[0]));
    TSR_TRY(shard_over(dst, given, &in[1]));
    TSR_TRY(shard_over(src, odd ? given : taken[1], &out[1]));
    const tsr_status status = tsr_plan_execute(plan, comm, in, out, NULL, 0, NULL);
    CHECK(status == (odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER));
    CHECK(strstr(tsr_status_message(), "dst of tensor 1 of 2 overlaps memory of tensor 0"));
    tsr_plan_destroy(plan);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    return TSR_OK;
}

static void what_is_given_is_not_written_either(void **state)
{
    (void)state;
    test_case("a source without a destination, in another tensor's memory");
    run_ranks(2, write_what_is_given, NULL);
}

/* One tensor of one rank is wrong. */
static tsr_status refuse_one(tsr_comm *comm, void *arg)
{
    const int odd = *(const int *)arg;
    party *p = malloc(sizeof *p);
    CHECK(p != NULL);
    TSR_TRY(party_make(p, comm, 0, TENSORS, 0));
    const tsr_dtype dtype = p->in[3].dtype;
    char name[16];
    snprintf(name, sizeof name, "rank %d", odd);
    if (tsr_comm_rank(comm) == odd) {
        p->in[3].dtype = TSR_I8;
        CHECK_ERROR(party_execute(p, comm), TSR_ERROR_ARGUMENT, "tensor 3 of 5: src is of i8");
        p->in[3].dtype = dtype;
    } else {
        CHECK_ERROR(party_execute(p, comm), TSR_ERROR_PEER, name);
    }
    TSR_TRY(party_execute(p, comm));
    party_destroy(p);
    free(p);
    return TSR_OK;
}

static void a_tensor_that_one_rank_brings_wrong_is_named_to_all(void **state)
{
    (void)state;
    for (int odd = 0; odd < RANKS; odd++) {
        test_case("rank %d brings a bad tensor", odd);
        run_ranks(RANKS, refuse_one, &odd);
    }
}

/* The same tensors in another order are another batch. */
static tsr_status order_differently(tsr_comm *comm, void *arg)
{
    (void)arg;
    const bool odd = tsr_comm_rank(comm) == 2;
    tsr_layout *src[2] = {NULL, NULL}, *dst[2] = {NULL, NULL};
    tsr_plan *plan = NULL;
    for (int i = 0; i < 2; i++) {
        TSR_TRY(layout_over(comm, "4", "8x8", odd == i ? "S(0)" : "S(1)", TSR_F32, &src[i]));
        TSR_TRY(layout_over(comm, "4", "8x8", "R", TSR_F32, &dst[i]));
    }
    TSR_TRY(tsr_plan_create_batch(2, (const tsr_layout *const *)src, (const tsr_layout *const *)dst, NULL, &plan));
    CHECK_ERROR(tsr_plan_prepare(plan, comm), TSR_ERROR_ARGUMENT, "rank 2");
    tsr_plan_destroy(plan);
    for (int i = 0; i < 2; i++) {
        tsr_layout_destroy(src[i]);
        tsr_layout_destroy(dst[i]);
    }
    return TSR_OK;
}

static void ranks_that_order_their_tensors_differently_are_told(void **state)
{
    (void)state;
    test_case("rank 2 has its two tensors in another order");
    run_ranks(RANKS, order_differently, NULL);
}

static void plans_of_batches_say_what_they_hold_and_refuse_what_does_not_fit(void **state)
{
    (void)state;
    tsr_layout *a = layout_of("4", "8x8", "S(0)"), *b = layout_of("4", "8x8", "S(1)"), *c = layout_of("4", "8x9", "R");
    const tsr_layout *src[] = {a, b, c}, *dst[] = {b, a, c}, *bad[] = {b, c, c}, *hole[] = {b, NULL, c};
    const tsr_layout *from = NULL, *to = NULL;
    tsr_plan *plan = NULL;
    expect_error(tsr_plan_create_batch(0, src, dst, NULL, &plan), TSR_ERROR_ARGUMENT, "count is 0");
    expect_error(tsr_plan_create_batch(3, NULL, dst, NULL, &plan), TSR_ERROR_ARGUMENT, "src is NULL");
    expect_error(tsr_plan_create_batch(3, src, NULL, NULL, &plan), TSR_ERROR_ARGUMENT, "dst is NULL");
    expect_error(tsr_plan_create_batch(3, src, dst, NULL, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    expect_error(tsr_plan_create_batch(3, src, bad, NULL, &plan), TSR_ERROR_ARGUMENT, "8x9");
    expect_error(tsr_plan_create_batch(3, src, hole, NULL, &plan), TSR_ERROR_ARGUMENT, "dst");
    assert_null(plan);
    expect_ok(tsr_plan_create_batch(3, src, dst, NULL, &plan));
    assert_int_equal(tsr_plan_count(plan), 3);
    for (size_t i = 0; i < 3; i++) {
        expect_ok(tsr_plan_layouts(plan, i, &from, &to));
        assert_true(tsr_layout_equal(from, src[i]) && tsr_layout_equal(to, dst[i]));
    }
    expect_error(tsr_plan_layouts(plan, 3, &from, &to), TSR_ERROR_ARGUMENT, "3");
    expect_error(tsr_plan_layouts(plan, 0, NULL, &to), TSR_ERROR_ARGUMENT, "src");
    expect_error(tsr_plan_layouts(plan, 0, &from, NULL), TSR_ERROR_ARGUMENT, "dst");
    expect_error(tsr_plan_layouts(NULL, 0, &from, &to), TSR_ERROR_ARGUMENT, "plan");
    assert_true(tsr_layout_equal(tsr_plan_source(plan), a) && tsr_layout_equal(tsr_plan_destination(plan), b));
    assert_false(tsr_plan_in_place(plan));
    tsr_plan_destroy(plan);
    tsr_layout_destroy(c);
    tsr_layout_destroy(b);
    tsr_layout_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_batches_say_what_they_hold_and_refuse_what_does_not_fit),
        cmocka_unit_test(a_batch_takes_no_more_messages_than_its_busiest_tensor),
        cmocka_unit_test(what_one_tensor_of_a_batch_writes_no_other_may_touch),
        cmocka_unit_test(what_is_given_is_not_written_either),
        cmocka_unit_test(a_tensor_that_one_rank_brings_wrong_is_named_to_all),
        cmocka_unit_test(ranks_that_order_their_tensors_differently_are_told),
    };
    test_watchdog(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
