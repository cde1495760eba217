/* Linear layers when memory fails on one rank, or their communicator is in use or gone: the other
 * ranks get an error, no rank hangs, and nothing leaks. */
#include "counted_memory.h"
#include "layers.h"

#include <tessera/sys/status.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The call of every rank; it must free everything when it fails. */
typedef tsr_status operation(const layer_tensors *t, const tsr_dtensor *dy);

static const tsr_placement reduced = {.kind = TSR_REPLICATE};

static tsr_status forward(const layer_tensors *t, const tsr_dtensor *dy)
{
    (void)dy;
    tsr_dtensor *y = NULL;
    const tsr_status status = tsr_linear(t->x, t->w, t->b, &reduced, &y);
    if (status != TSR_OK && y)
        return tsr_status_set(TSR_ERROR_INTERNAL, "y was written by a call that failed");
    tsr_dtensor_destroy(y);
    return status;
}

static tsr_status backward(const layer_tensors *t, const tsr_dtensor *dy)
{
    tsr_dtensor *dx = NULL, *dw = NULL, *db = NULL;
    const tsr_status status = tsr_linear_backward(t->x, t->w, t->b, dy, &reduced, &reduced, NULL, &dx, &dw, &db);
    if (status != TSR_OK && (dx || dw || db))
        return tsr_status_set(TSR_ERROR_INTERNAL, "gradients were written by a call that failed");
    tsr_dtensor_destroy(db);
    tsr_dtensor_destroy(dw);
    tsr_dtensor_destroy(dx);
    return status;
}

static tsr_status plan(const layer_tensors *t, const tsr_dtensor *dy)
{
    (void)dy;
    const int64_t shape[] = {5, 7};
    tsr_layout *y;
    tsr_linear_plan *made = NULL;
    const size_t armed = counted_fail_here(0, false);
    TSR_TRY(tsr_layout_create(t->mesh, &reduced, 2, shape, TSR_F32, &y));
    counted_fail_here(armed, false);
    const tsr_status status =
        tsr_linear_plan_create(tsr_dtensor_layout(t->x), tsr_dtensor_layout(t->w), tsr_dtensor_layout(t->b), y, &made);
    tsr_layout_destroy(y);
    if (status != TSR_OK && made)
        return tsr_status_set(TSR_ERROR_INTERNAL, "out was written by a call that failed");
    tsr_linear_plan_destroy(made);
    return status;
}

static tsr_status plan_backward(const layer_tensors *t, const tsr_dtensor *dy)
{
    tsr_layout *scattered;
    tsr_linear_backward_plan *made = NULL;
    const tsr_placement rows = tsr_shard(0);
    const tsr_layout *x = tsr_dtensor_layout(t->x), *w = tsr_dtensor_layout(t->w), *b = tsr_dtensor_layout(t->b);
    const size_t armed = counted_fail_here(0, false);
    TSR_TRY(tsr_layout_with(tsr_dtensor_layout(dy), &rows, &scattered));
    counted_fail_here(armed, false);
    const tsr_status status = tsr_linear_backward_plan_create(x, w, b, scattered, x, w, b, tsr_device_host(), &made);
    tsr_layout_destroy(scattered);
    if (status != TSR_OK && made)
        return tsr_status_set(TSR_ERROR_INTERNAL, "out was written by a call that failed");
    tsr_linear_backward_plan_destroy(made);
    return status;
}

static const layer row_parallel = {"3", 2, {5, 13}, 7, "S(1)", "S(1)", "R", TSR_F32};

enum { RANKS = 3, FAILING = 1, MOST = 400 };

typedef struct drill {
    operation *run;
    int failures; /* the number of failures of rank FAILING before its call succeeded */
} drill;

/* Rank FAILING's n-th allocation fails, for n = 1, 2, .. until the call gets through; all ranks see
 * that it did. */
static tsr_status fail_each_allocation(tsr_comm *comm, drill *d, const layer_tensors *t, const tsr_dtensor *dy)
{
    const bool failing = tsr_comm_rank(comm) == FAILING;
    for (int n = 1; n < MOST; n++) {
        counted_fail_here(failing ? (size_t)n : 0, false);
        const tsr_status status = d->run(t, dy);
        const bool hit = counted_fail_here(0, false) == 0 && failing;
        if (failing && hit != (status == TSR_ERROR_MEMORY))
            return tsr_status_set(TSR_ERROR_INTERNAL, "allocation %d failed: %s: %.200s", n, tsr_status_name(status),
                                  tsr_status_message());
        if (!failing && status != TSR_OK && (status != TSR_ERROR_PEER || !strstr(tsr_status_message(), "rank 1")))
            return tsr_status_set(TSR_ERROR_INTERNAL, "rank 1's allocation %d failed: %s: %.200s", n,
                                  tsr_status_name(status), tsr_status_message());
        int32_t mine = status != TSR_OK, any;
        TSR_TRY(tsr_comm_all_reduce(comm, &mine, &any, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
        if (!any) {
            if (failing)
                d->failures = n - 1;
            return TSR_OK;
        }
        if (!mine)
            return tsr_status_set(TSR_ERROR_INTERNAL, "rank 1's allocation %d failed, and rank %d did not notice", n,
                                  tsr_comm_rank(comm));
    }
    return tsr_status_set(TSR_ERROR_INTERNAL, "after %d failures the call still does not get through", MOST);
}

static tsr_status run_drill(tsr_comm *comm, void *arg)
{
    layer_reference r;
    layer_tensors t;
    tsr_dtensor *dy;
    const int64_t shape[] = {5, 7};
    TSR_TRY(layer_reference_create(&row_parallel, &r));
    TSR_TRY(layer_tensors_create(comm, &row_parallel, &r, &t));
    TSR_TRY(layer_distribute(&row_parallel, t.mesh, r.dy, 2, shape, &reduced, NULL, &dy));
    const tsr_status status = fail_each_allocation(comm, arg, &t, dy);
    tsr_dtensor_destroy(dy);
    layer_tensors_destroy(&t);
    layer_reference_destroy(&r);
    return status;
}

static void drill_of(operation *run)
{
    counted_memory memory = {0};
    drill d = {run, 0};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.timeout_ms = 20000;
    threads.context = counted_context(&memory);
    const tsr_status status = tsr_threads_run(RANKS, run_drill, &d, &threads);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    tsr_context_destroy(threads.context);
    assert_nothing_leaked(&memory);
    assert_true(d.failures > 3);
}

static void forward_survives_every_failing_allocation(void **state)
{
    (void)state;
    drill_of(forward);
}

static void backward_survives_every_failing_allocation(void **state)
{
    (void)state;
    drill_of(backward);
}

static void planning_survives_every_failing_allocation(void **state)
{
    (void)state;
    drill_of(plan);
}

static void planning_the_backward_survives_every_failing_allocation(void **state)
{
    (void)state;
    drill_of(plan_backward);
}

static tsr_status make_plan(const layer_tensors *t, tsr_linear_plan **out)
{
    const int64_t shape[] = {5, 7};
    tsr_layout *y;
    TSR_TRY(tsr_layout_create(t->mesh, &reduced, 2, shape, TSR_F32, &y));
    const tsr_status status =
        tsr_linear_plan_create(tsr_dtensor_layout(t->x), tsr_dtensor_layout(t->w), tsr_dtensor_layout(t->b), y, out);
    tsr_layout_destroy(y);
    return status;
}

static tsr_status execute(const tsr_linear_plan *plan, const layer_tensors *t)
{
    const int64_t shape[] = {5, 7};
    float result[5 * 7], workspace[4096];
    const tsr_tensor x = tsr_dtensor_to_local(t->x), w = tsr_dtensor_to_local(t->w), b = tsr_dtensor_to_local(t->b);
    const tsr_tensor y = tsr_tensor_contiguous(result, TSR_F32, 2, shape);
    return tsr_linear_plan_execute(plan, &x, &w, &b, &y, workspace, sizeof workspace, NULL);
}

typedef struct guest {
    operation *run;
    const char *words; /* of the error that a second caller gets meanwhile */
    const layer_tensors *tensors;
    const tsr_dtensor *dy;
    tsr_status status;
    pthread_t thread;
    atomic_int told; /* rank 0's second caller got the error */
} guest;

/* Calls the layer again for as long as the second caller is itself in a call. */
static void *call_layer(void *arg)
{
    guest *const g = arg;
    do
        g->status = g->run(g->tensors, g->dy);
    while (g->status == TSR_ERROR_STATE && strstr(tsr_status_message(), "is in tsr_comm_wait() already"));
    return NULL;
}

/* Rank 0 calls the layer on one thread, and another call on a second thread, until an error says
 * that the layer is running. */
static tsr_status call_twice(tsr_comm *comm, guest *g)
{
    if (pthread_create(&g->thread, NULL, call_layer, g) != 0)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "no thread");
    tsr_status second = TSR_OK;
    for (int look = 0; look < 20000 && (second == TSR_OK || !strstr(tsr_status_message(), g->words)); look++) {
        usleep(1000);
        second = tsr_comm_wait(comm, NULL, 1);
    }
    tsr_kept_sentence last;
    tsr_status_keep(&last);
    atomic_store(&g->told, 1);
    pthread_join(g->thread, NULL);
    if (second != TSR_ERROR_STATE || !strstr(last.text, g->words))
        return tsr_status_set(TSR_ERROR_INTERNAL, "\"%s\" is not in \"%.500s\"", g->words, last.text);
    return g->status;
}

static tsr_status call_beside_another(tsr_comm *comm, void *arg)
{
    guest *const g = arg;
    layer_reference r;
    layer_tensors t;
    tsr_dtensor *dy;
    const int64_t shape[] = {5, 7};
    TSR_TRY(layer_reference_create(&row_parallel, &r));
    TSR_TRY(layer_tensors_create(comm, &row_parallel, &r, &t));
    TSR_TRY(layer_distribute(&row_parallel, t.mesh, r.dy, 2, shape, &reduced, NULL, &dy));
    TSR_TRY(tsr_comm_barrier(comm));
    if (tsr_comm_rank(comm) == 0) {
        g->tensors = &t;
        g->dy = dy;
    } else {
        while (!atomic_load(&g->told))
            usleep(1000);
    }
    const tsr_status status = tsr_comm_rank(comm) == 0 ? call_twice(comm, g) : g->run(&t, dy);
    tsr_dtensor_destroy(dy);
    layer_tensors_destroy(&t);
    layer_reference_destroy(&r);
    return status;
}

static void a_second_caller_is_told_of_the_layer_not_of_its_steps(void **state)
{
    (void)state;
    static const struct {
        operation *run;
        const char *words;
    } calls[] = {{forward, "is in tsr_linear() already"},
                 {backward, "is in tsr_linear_backward() already"},
                 {plan, "is in tsr_linear_plan_create() already"},
                 {plan_backward, "is in tsr_linear_backward_plan_create() already"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        guest g = {.run = calls[i].run, .words = calls[i].words};
        layers_run(RANKS, call_beside_another, &g);
    }
}

/* After the communicator's end, with placements of y and without. */
static tsr_status call_after_the_end(tsr_comm *comm, void *arg)
{
    layer_reference r;
    layer_tensors t;
    tsr_dtensor *dy, *y = NULL;
    tsr_linear_plan *made;
    const int64_t shape[] = {5, 7};
    (void)arg;
    TSR_TRY(layer_reference_create(&row_parallel, &r));
    TSR_TRY(layer_tensors_create(comm, &row_parallel, &r, &t));
    TSR_TRY(layer_distribute(&row_parallel, t.mesh, r.dy, 2, shape, &reduced, NULL, &dy));
    TSR_TRY(make_plan(&t, &made));
    TSR_TRY(execute(made, &t));
    tsr_comm_destroy(comm);
    tsr_status status =
        layer_expect_status("linear", forward(&t, dy), TSR_ERROR_STATE, "tsr_linear: the communicator (rank ");
    if (status == TSR_OK)
        status = layer_expect_status("linear", tsr_linear(t.x, t.w, t.b, NULL, &y), TSR_ERROR_STATE,
                                     "tsr_linear: the communicator (rank ");
    if (status == TSR_OK)
        status = layer_expect_status("backward", backward(&t, dy), TSR_ERROR_STATE,
                                     "tsr_linear_backward: the communicator (rank ");
    if (status == TSR_OK)
        status = layer_expect_status("plan", plan(&t, dy), TSR_ERROR_STATE,
                                     "tsr_linear_plan_create: the communicator (rank ");
    if (status == TSR_OK)
        status = layer_expect_status("execution", execute(made, &t), TSR_ERROR_STATE,
                                     "tsr_linear_plan_execute: the communicator (rank ");
    tsr_linear_plan_destroy(made);
    tsr_dtensor_destroy(dy);
    layer_tensors_destroy(&t);
    layer_reference_destroy(&r);
    return status;
}

static void after_the_end_of_its_communicator_a_layer_says_so_in_its_own_name(void **state)
{
    (void)state;
    layers_run(RANKS, call_after_the_end, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_survives_every_failing_allocation),
        cmocka_unit_test(backward_survives_every_failing_allocation),
        cmocka_unit_test(planning_survives_every_failing_allocation),
        cmocka_unit_test(planning_the_backward_survives_every_failing_allocation),
        cmocka_unit_test(a_second_caller_is_told_of_the_layer_not_of_its_steps),
        cmocka_unit_test(after_the_end_of_its_communicator_a_layer_says_so_in_its_own_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
