/* Layers on devices when a call of the device fails: the rank and its peers get an error, no rank
 * hangs, and nothing leaks. */
#include "async_device.h"
#include "layers.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 2, DEVICES = 2, MOST = 400 };

/* The tensors and plans of a row-parallel layer, created before any failure. */
typedef struct side {
    tsr_comm *comm;
    layer l;
    layer_reference r;
    layer_tensors t;
    tsr_dtensor *dy, *y, *dx, *dw, *db;
    layer_memory dy_memory, workspace;
    tsr_linear_plan *forward;
    tsr_linear_backward_plan *backward;
    size_t bytes;
} side;

static const layer row_parallel = {"2", 2, {4, 6}, 5, "S(1)", "S(1)", "R", TSR_F32};
static const tsr_placement whole = {.kind = TSR_REPLICATE}, rows = {.kind = TSR_SHARD};

static tsr_status make_plans(side *s)
{
    const tsr_device device = layer_device(&s->l, s->comm);
    const tsr_layout *x = tsr_dtensor_layout(s->t.x), *w = tsr_dtensor_layout(s->t.w), *b = tsr_dtensor_layout(s->t.b);
    tsr_layout *y, *dx;
    TSR_TRY(tsr_layout_with(tsr_dtensor_layout(s->dy), &whole, &y));
    TSR_TRY(tsr_layout_with(x, &whole, &dx));
    TSR_TRY(tsr_linear_plan_create_on(x, w, b, y, device, &s->forward));
    TSR_TRY(tsr_linear_backward_plan_create(x, w, b, tsr_dtensor_layout(s->dy), dx, w, b, device, &s->backward));
    TSR_TRY(tsr_dtensor_create(y, device, &s->y));
    TSR_TRY(tsr_dtensor_create(dx, device, &s->dx));
    TSR_TRY(tsr_dtensor_create(w, device, &s->dw));
    TSR_TRY(tsr_dtensor_create(b, device, &s->db));
    tsr_layout_destroy(dx);
    tsr_layout_destroy(y);
    const size_t forward = tsr_linear_plan_workspace_bytes(s->forward),
                 backward = tsr_linear_backward_plan_workspace_bytes(s->backward);
    s->bytes = forward > backward ? forward : backward;
    return layer_memory_create(device, s->bytes, &s->workspace);
}

static tsr_status side_create(tsr_comm *comm, const layer *l, side *out)
{
    int64_t shape[TSR_MAX_DIMS];
    const int ndim = layer_y_shape(l, shape);
    *out = (side){.comm = comm, .l = *l};
    TSR_TRY(layer_reference_create(l, &out->r));
    TSR_TRY(layer_tensors_create(comm, l, &out->r, &out->t));
    TSR_TRY(layer_distribute(l, out->t.mesh, out->r.dy, ndim, shape, &rows, &out->dy_memory, &out->dy));
    return make_plans(out);
}

static void side_destroy(side *s)
{
    layer_memory_destroy(&s->workspace);
    tsr_linear_backward_plan_destroy(s->backward);
    tsr_linear_plan_destroy(s->forward);
    tsr_dtensor *const tensors[] = {s->db, s->dw, s->dx, s->y, s->dy};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(tensors[i]);
    layer_memory_destroy(&s->dy_memory);
    layer_tensors_destroy(&s->t);
    layer_reference_destroy(&s->r);
}

/* What is called on every rank. */
typedef tsr_status operation(const side *s);

static tsr_status forward(const side *s)
{
    tsr_dtensor *y = NULL;
    TSR_TRY(tsr_linear(s->t.x, s->t.w, s->t.b, &whole, &y));
    tsr_dtensor_destroy(y);
    return TSR_OK;
}

static tsr_status backward(const side *s)
{
    tsr_dtensor *dx, *dw, *db;
    TSR_TRY(tsr_linear_backward(s->t.x, s->t.w, s->t.b, s->dy, &whole, NULL, NULL, &dx, &dw, &db));
    tsr_dtensor_destroy(db);
    tsr_dtensor_destroy(dw);
    tsr_dtensor_destroy(dx);
    return TSR_OK;
}

static tsr_status planned_forward(const side *s)
{
    const tsr_tensor x = tsr_dtensor_to_local(s->t.x), w = tsr_dtensor_to_local(s->t.w),
                     b = tsr_dtensor_to_local(s->t.b), y = tsr_dtensor_to_local(s->y);
    return tsr_linear_plan_execute(s->forward, &x, &w, &b, &y, s->workspace.data, s->bytes, NULL);
}

static tsr_status planned_backward(const side *s)
{
    const tsr_tensor x = tsr_dtensor_to_local(s->t.x), w = tsr_dtensor_to_local(s->t.w),
                     dy = tsr_dtensor_to_local(s->dy), dx = tsr_dtensor_to_local(s->dx),
                     dw = tsr_dtensor_to_local(s->dw), db = tsr_dtensor_to_local(s->db);
    return tsr_linear_backward_plan_execute(s->backward, &x, &w, &dy, &dx, &dw, &db, s->workspace.data, s->bytes, NULL);
}

typedef struct drill {
    async_machine *machine;
    tsr_device_driver *driver;
    async_call call;
    operation *run;
    int failures; /* how often it failed before it got through */
} drill;

/* The n-th call may be made by either rank. A rank whose call did not fail succeeds, or is told of
 * the other's failure. */
static tsr_status judge(const side *s, tsr_status status, int n, bool *failed)
{
    const bool own = status == TSR_ERROR_DEVICE || status == TSR_ERROR_MEMORY;
    int32_t mine = own, owners = 0, strange = status != TSR_OK && !own && status != TSR_ERROR_PEER, any = 0,
            bad = status != TSR_OK;
    if (strange)
        fprintf(stderr, "call %d failed, and rank %d: %s: %s\n", n, tsr_comm_rank(s->comm), tsr_status_name(status),
                tsr_status_message());
    TSR_TRY(tsr_comm_all_reduce(s->comm, &mine, &owners, 1, TSR_I32, TSR_SUM, tsr_device_host(), NULL));
    TSR_TRY(tsr_comm_all_reduce(s->comm, &strange, &any, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
    TSR_TRY(tsr_comm_all_reduce(s->comm, &bad, &bad, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
    *failed = bad;
    if (any || (bad && owners != 1))
        return tsr_status_set(TSR_ERROR_INTERNAL, "call %d failed, and %d ranks say that it was theirs", n,
                              (int)owners);
    return TSR_OK;
}

static tsr_status fail_each(drill *d, const side *s)
{
    const bool arms = tsr_comm_rank(s->comm) == 0;
    bool failed = true;
    for (int n = 1; failed; n++) {
        if (n == MOST)
            return tsr_status_set(TSR_ERROR_INTERNAL, "after %d failures the call still does not get through", n);
        TSR_TRY(tsr_comm_barrier(s->comm));
        if (arms)
            async_fail(d->machine, d->call, n);
        TSR_TRY(tsr_comm_barrier(s->comm));
        const tsr_status status = d->run(s);
        TSR_TRY(tsr_comm_barrier(s->comm));
        if (arms)
            async_fail(d->machine, d->call, 0);
        TSR_TRY(judge(s, status, n, &failed));
        if (arms)
            d->failures = n - 1;
    }
    return TSR_OK;
}

static tsr_status run_drill(tsr_comm *comm, void *arg)
{
    drill *d = arg;
    layer l = row_parallel;
    side s;
    l.driver = d->driver;
    l.devices = DEVICES;
    TSR_TRY(side_create(comm, &l, &s));
    /* The first run makes what communicators and meshes keep. */
    TSR_TRY(d->run(&s));
    tsr_status status = fail_each(d, &s);
    if (status == TSR_OK && d->run == planned_forward)
        status = layer_expect(&l, "y", s.y, s.r.y);
    if (status == TSR_OK && d->run == planned_backward)
        status = layer_expect(&l, "dw", s.dw, s.r.dw);
    side_destroy(&s);
    return status;
}

/* Returns how often the operation failed. */
static int drill_of(operation *run, async_call call)
{
    const async_options options = {.devices = DEVICES, .seed = 21};
    drill d = {.machine = async_create(&options), .call = call, .run = run};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.timeout_ms = 20000;
    assert_non_null(d.machine);
    assert_int_equal(tsr_device_driver_create(async_table(), d.machine, &d.driver), TSR_OK);
    const tsr_status status = tsr_threads_run(RANKS, run_drill, &d, &threads);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    const char *fault = async_fault(d.machine);
    if (fault)
        fail_msg("%s", fault);
    tsr_device_driver_destroy(d.driver);
    const int64_t failed = call == ASYNC_ALLOC ? d.failures : 0;
    assert_int_equal(async_count(d.machine, ASYNC_ALLOC) - failed, async_count(d.machine, ASYNC_FREE));
    async_destroy(d.machine);
    return d.failures;
}

static void layers_survive_every_failing_product(void **state)
{
    (void)state;
    assert_int_equal(drill_of(forward, ASYNC_GEMM), RANKS);
    assert_int_equal(drill_of(planned_forward, ASYNC_GEMM), RANKS);
    assert_int_equal(drill_of(backward, ASYNC_GEMM), 3 * RANKS);
    assert_int_equal(drill_of(planned_backward, ASYNC_GEMM), 3 * RANKS);
}

static void layers_survive_every_failing_allocation_on_the_device(void **state)
{
    (void)state;
    assert_true(drill_of(forward, ASYNC_ALLOC) > 0);
    assert_true(drill_of(backward, ASYNC_ALLOC) > 0);
    assert_int_equal(drill_of(planned_forward, ASYNC_ALLOC), 0);
    assert_int_equal(drill_of(planned_backward, ASYNC_ALLOC), 0);
}

static void layers_survive_every_failing_fill_and_copy(void **state)
{
    (void)state;
    assert_true(drill_of(backward, ASYNC_FILL) > 0);
    assert_true(drill_of(planned_backward, ASYNC_FILL) > 0);
    assert_true(drill_of(planned_forward, ASYNC_REDUCE) > 0);
    assert_true(drill_of(planned_backward, ASYNC_COPY_BOXES) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_survive_every_failing_product),
        cmocka_unit_test(layers_survive_every_failing_allocation_on_the_device),
        cmocka_unit_test(layers_survive_every_failing_fill_and_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
