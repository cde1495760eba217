/* Redistributions of device memory over NCCL's engine, with tensors, workspace and stream of the
 * stand-in's GPUs, which run all work later and in stream order. Two moves are enqueued before a
 * rank waits, and the second overwrites what the first has read. */
#include "enqueued.h"
#include "standin_ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Nothing of it is waited for: each step follows the one before in the stream. */
static tsr_status enqueue(const enqueued *e)
{
    for (int i = 0; i < ENQUEUED_ROUNDS; i++) {
        TSR_TRY(enqueued_put(e, i));
        TSR_TRY(enqueued_execute(e));
        TSR_TRY(enqueued_get(e, i));
    }
    return tsr_comm_wait(e->comm, e->stream, 0);
}

static tsr_status move_on_gpus(tsr_comm *comm, void *arg)
{
    enqueued e;
    tsr_status status = enqueued_start(&e, comm, arg, standin_ranks_device(), NULL);
    if (status == TSR_OK)
        status = enqueue(&e);
    for (int i = 0; status == TSR_OK && i < ENQUEUED_ROUNDS; i++)
        status = enqueued_compare(&e, i);
    enqueued_finish(&e);
    return status;
}

/* On one mesh or two; half of the moves are between few placements, where NCCL's collectives come
 * up. */
static void draw(oracle_random *random, int world, enqueued_move *t)
{
    *t = (enqueued_move){.seed = random->state};
    t->src.dtype = oracle_random_dtype(random);
    oracle_random_shape(random, 3, 400, &t->src);
    t->src.mesh = oracle_random_mesh(random, 2, world, world);
    t->dst = t->src;
    if (oracle_random_below(random, 3) == 0)
        t->dst.mesh = oracle_random_mesh(random, 2, world, world);
    oracle_random_placements(random, &t->src, &t->numbers);
    oracle_random_placements(random, &t->dst, &t->numbers);
    for (int m = 0; m < t->dst.mesh.ndim && t->seed % 2; m++)
        t->dst.placements[m] = tsr_replicate();
    t->gaps = oracle_random_below(random, 3) == 0;
    t->halves = oracle_random_below(random, 3) == 0;
    oracle_move_make(&t->src, &t->dst, &t->move);
}

static void run_many(int world, int count, bool lent)
{
    oracle_random random = {.state = test_seed() * 31 + (uint64_t)world};
    enqueued_move *t = malloc(sizeof *t);
    for (int64_t i = 0; i < count / test_step(3); i++) {
        draw(&random, world, t);
        enqueued_name(t);
        const tsr_status status = (lent ? standin_run_lent : standin_run)(world, move_on_gpus, t, NULL);
        if (status != TSR_OK)
            fail_msg("%s: %s\ncase: %s", tsr_status_name(status), tsr_status_message(), test_case_text());
    }
    free(t);
}

static void tensors_of_gpus_move_in_stream_order(void **state)
{
    (void)state;
    for (int world = 1; world <= 6; world++)
        run_many(world, 60, false);
}

static void tensors_of_gpus_move_over_lent_communicators(void **state)
{
    (void)state;
    run_many(4, 60, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_gpus_move_in_stream_order),
        cmocka_unit_test(tensors_of_gpus_move_over_lent_communicators),
    };
    test_watchdog(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
