/* Linear layers when memory fails on one rank: that rank says so, the others are told, nobody hangs or leaks. */
#include "counted_memory.h"
#include "layers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <tessera/sys/status.h>

#include <cmocka.h>

/* What is called on every rank; it must leave nothing behind when it fails. */
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
    int failures; /* how often rank FAILING failed before it got through */
} drill;

/* Rank FAILING's n-th allocation fails, for n = 1, 2, .. until the call gets through; all ranks see that it did. */
static tsr_status fail_each_allocation(tsr_comm *comm, drill *d, const layer_tensors *t, const tsr_dtensor *dy)
{
    const bool failing = tsr_comm_rank(comm) == FAILING;
    for (int n = 1; n < MOST; n++) {
        counted_fail_here(failing ? (size_t)n : 0, false);
        const tsr_status status = d->run(t, dy);
        const bool hit = counted_fail_here(0, false) == 0 && failing;
        if (failing && hit != (status == TSR_ERROR_MEMORY))
            return tsr_status_set(TSR_ERROR_INTERNAL, "allocation %d failed: %s: %.200s", n, tsr_status_name(status), tsr_status_message());
        if (!failing && status != TSR_OK && (status != TSR_ERROR_PEER || !strstr(tsr_status_message(), "rank 1")))
            return tsr_status_set(TSR_ERROR_INTERNAL, "rank 1's allocation %d failed: %s: %.200s", n, tsr_status_name(status),
                                  tsr_status_message());
        int32_t mine = status != TSR_OK, any;
        TSR_TRY(tsr_comm_all_reduce(comm, &mine, &any, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
        if (!any) {
            if (failing)
                d->failures = n - 1;
            return TSR_OK;
        }
        if (!mine)
            return tsr_status_set(TSR_ERROR_INTERNAL, "rank 1's allocation %d failed, and rank %d did not notice", n, tsr_comm_rank(comm));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_survives_every_failing_allocation),
        cmocka_unit_test(backward_survives_every_failing_allocation),
        cmocka_unit_test(planning_survives_every_failing_allocation),
        cmocka_unit_test(planning_the_backward_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
