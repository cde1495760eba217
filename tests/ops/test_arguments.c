/* Errors that one rank alone finds in a layer's call: all ranks get a status, and the communicator
 * stays usable. */
#include "layers.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 3, AT_FAULT = 1 };

static const layer row_parallel = {"3", 2, {5, 13}, 7, "S(1)", "S(1)", "R", TSR_F32};
static const tsr_placement reduced = {.kind = TSR_REPLICATE}, beyond = {.kind = TSR_SHARD, .dim = 7};

/* The call of every rank; `at_fault` is set on the rank whose arguments are wrong. */
typedef struct fixture {
    const layer_tensors *t;
    const tsr_dtensor *dy;
    const tsr_layout *x, *w, *b, *y, *other_y;
    tsr_dtensor *other_w;
} fixture;

typedef tsr_status operation(const fixture *f, bool at_fault);

static tsr_status forward(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_placement *placements, bool without_y)
{
    tsr_dtensor *y = NULL;
    const tsr_status status = tsr_linear(x, w, NULL, placements, without_y ? NULL : &y);
    tsr_dtensor_destroy(y);
    return status;
}

static tsr_status forward_to_beyond(const fixture *f, bool at_fault)
{
    return forward(f->t->x, f->t->w, at_fault ? &beyond : &reduced, false);
}

static tsr_status forward_without_x(const fixture *f, bool at_fault)
{
    return forward(at_fault ? NULL : f->t->x, f->t->w, &reduced, false);
}

static tsr_status forward_without_w(const fixture *f, bool at_fault)
{
    return forward(f->t->x, at_fault ? NULL : f->t->w, &reduced, false);
}

static tsr_status forward_without_y(const fixture *f, bool at_fault)
{
    return forward(f->t->x, f->t->w, &reduced, at_fault);
}

static tsr_status forward_of_another_w(const fixture *f, bool at_fault)
{
    return forward(f->t->x, at_fault ? f->other_w : f->t->w, &reduced, false);
}

static tsr_status backward(const fixture *f, const tsr_dtensor *x, const tsr_dtensor *b, const tsr_dtensor *dy,
                           const tsr_placement *dx_to)
{
    tsr_dtensor *dx = NULL, *dw = NULL, *db = NULL;
    const tsr_status status = tsr_linear_backward(x, f->t->w, b, dy, dx_to, NULL, NULL, &dx, &dw, &db);
    tsr_dtensor_destroy(db);
    tsr_dtensor_destroy(dw);
    tsr_dtensor_destroy(dx);
    return status;
}

static tsr_status backward_without_x(const fixture *f, bool at_fault)
{
    return backward(f, at_fault ? NULL : f->t->x, f->t->b, f->dy, NULL);
}

static tsr_status backward_without_b(const fixture *f, bool at_fault)
{
    return backward(f, f->t->x, at_fault ? NULL : f->t->b, f->dy, NULL);
}

static tsr_status backward_of_another_dy(const fixture *f, bool at_fault)
{
    return backward(f, f->t->x, f->t->b, at_fault ? f->t->x : f->dy, NULL);
}

static tsr_status backward_to_beyond(const fixture *f, bool at_fault)
{
    return backward(f, f->t->x, f->t->b, f->dy, at_fault ? &beyond : NULL);
}

static tsr_status backward_of_another_w(const fixture *f, bool at_fault)
{
    tsr_dtensor *dx = NULL;
    const tsr_status status = tsr_linear_backward(f->t->x, at_fault ? f->other_w : f->t->w, f->t->b, f->dy, NULL, NULL,
                                                  NULL, &dx, NULL, NULL);
    tsr_dtensor_destroy(dx);
    return status;
}

static tsr_status plan(const tsr_layout *x, const fixture *f, const tsr_layout *y, bool without_out)
{
    tsr_linear_plan *made = NULL;
    const tsr_status status = tsr_linear_plan_create(x, f->w, f->b, y, without_out ? NULL : &made);
    tsr_linear_plan_destroy(made);
    return status;
}

static tsr_status plan_without_out(const fixture *f, bool at_fault)
{
    return plan(f->x, f, NULL, at_fault);
}

static tsr_status plan_without_x(const fixture *f, bool at_fault)
{
    return plan(at_fault ? NULL : f->x, f, f->y, false);
}

static tsr_status plan_of_another_y(const fixture *f, bool at_fault)
{
    return plan(f->x, f, at_fault ? f->other_y : f->y, false);
}

static tsr_status plan_of_another_w(const fixture *f, bool at_fault)
{
    tsr_linear_plan *made = NULL;
    const tsr_layout *w = at_fault ? tsr_dtensor_layout(f->other_w) : f->w;
    const tsr_status status = tsr_linear_plan_create(f->x, w, f->b, f->y, &made);
    tsr_linear_plan_destroy(made);
    return status;
}

static tsr_status plan_on_device(const tsr_layout *x, const tsr_layout *w, const fixture *f)
{
    tsr_linear_plan *made = NULL;
    const tsr_status status = tsr_linear_plan_create_on(x, w, f->b, f->y, tsr_device_host(), &made);
    tsr_linear_plan_destroy(made);
    return status;
}

static tsr_status plan_on_device_of_another_w(const fixture *f, bool at_fault)
{
    return plan_on_device(f->x, at_fault ? tsr_dtensor_layout(f->other_w) : f->w, f);
}

static tsr_status plan_on_device_without_x(const fixture *f, bool at_fault)
{
    return plan_on_device(at_fault ? NULL : f->x, f->w, f);
}

static tsr_status plan_backward(const fixture *f, const tsr_layout *x, const tsr_layout *dx, bool without_out)
{
    tsr_linear_backward_plan *made = NULL;
    const tsr_status status = tsr_linear_backward_plan_create(x, f->w, f->b, NULL, dx, f->w, NULL, tsr_device_host(),
                                                              without_out ? NULL : &made);
    tsr_linear_backward_plan_destroy(made);
    return status;
}

static tsr_status plan_backward_without_out(const fixture *f, bool at_fault)
{
    return plan_backward(f, f->x, f->x, at_fault);
}

static tsr_status plan_backward_without_x(const fixture *f, bool at_fault)
{
    return plan_backward(f, at_fault ? NULL : f->x, f->x, false);
}

static tsr_status plan_backward_to_another_dx(const fixture *f, bool at_fault)
{
    return plan_backward(f, f->x, at_fault ? f->other_y : f->x, false);
}

static tsr_status plan_backward_of(const fixture *f, const tsr_layout *w, const tsr_layout *dy)
{
    tsr_linear_backward_plan *made = NULL;
    const tsr_status status =
        tsr_linear_backward_plan_create(f->x, w, f->b, dy, f->x, NULL, NULL, tsr_device_host(), &made);
    tsr_linear_backward_plan_destroy(made);
    return status;
}

static tsr_status plan_backward_of_another_w(const fixture *f, bool at_fault)
{
    return plan_backward_of(f, at_fault ? tsr_dtensor_layout(f->other_w) : f->w, NULL);
}

static tsr_status plan_backward_of_another_dy(const fixture *f, bool at_fault)
{
    return plan_backward_of(f, f->w, at_fault ? f->other_y : f->y);
}

static const struct {
    operation *run;
    const char *words; /* of the sentence, on every rank */
} faults[] = {
    {forward_to_beyond, "\"S(7)\" shard dim 7"},
    {forward_without_x, "tsr_linear: x is NULL"},
    {forward_without_w, "tsr_linear: w is NULL"},
    {forward_without_y, "tsr_linear: y is NULL"},
    {forward_of_another_w, "tsr_linear: dim 1 of w has size 9, but dim 1 of x has 13"},
    {backward_of_another_w, "tsr_linear_backward: dim 1 of w has size 9, but dim 1 of x has 13"},
    {backward_without_x, "tsr_linear_backward: x is NULL"},
    {backward_without_b, "tsr_linear_backward: db is asked for, but b is NULL"},
    {backward_of_another_dy, "tsr_linear_backward: dy has shape 5x13, but the y that x, w and b give has 5x7"},
    {backward_to_beyond, "\"S(7)\" shard dim 7"},
    {plan_without_out, "tsr_linear_plan_create: out is NULL"},
    {plan_without_x, "tsr_linear_plan_create: x is NULL"},
    {plan_of_another_y, "tsr_linear_plan_create: "},
    {plan_of_another_w, "tsr_linear_plan_create: dim 1 of w has size 9, but dim 1 of x has 13"},
    {plan_on_device_of_another_w, "tsr_linear_plan_create_on: dim 1 of w has size 9, but dim 1 of x has 13"},
    {plan_on_device_without_x, "tsr_linear_plan_create_on: x is NULL"},
    {plan_backward_without_out, "tsr_linear_backward_plan_create: out is NULL"},
    {plan_backward_without_x, "tsr_linear_backward_plan_create: x is NULL"},
    {plan_backward_to_another_dx, "tsr_linear_backward_plan_create: "},
    {plan_backward_of_another_w, "tsr_linear_backward_plan_create: dim 1 of w has size 9, but dim 1 of x has 13"},
    {plan_backward_of_another_dy,
     "tsr_linear_backward_plan_create: dy has shape 5x8, but the y that x, w and b give has 5x7"},
};

/* Makes the faulty call, a barrier, and the correct call, over one communicator. */
static tsr_status check_fault(tsr_comm *comm, const fixture *f, size_t i)
{
    const bool at_fault = tsr_comm_rank(comm) == AT_FAULT;
    const tsr_status status = faults[i].run(f, at_fault);
    TSR_TRY(layer_expect_status("a fault", status, at_fault ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, faults[i].words));
    if (!at_fault)
        TSR_TRY(layer_expect_status("a peer's fault", status, TSR_ERROR_PEER, "rank 1 failed: "));
    TSR_TRY(tsr_comm_barrier(comm));
    return faults[i].run(f, false);
}

static tsr_status check_faults(tsr_comm *comm, fixture *f)
{
    const int64_t w_shape[] = {7, 9}, y_shape[] = {5, 7}, other_shape[] = {5, 8};
    tsr_layout *other_w, *y, *other_y;
    TSR_TRY(tsr_layout_create(f->t->mesh, &reduced, 2, w_shape, TSR_F32, &other_w));
    TSR_TRY(tsr_layout_create(f->t->mesh, &reduced, 2, y_shape, TSR_F32, &y));
    TSR_TRY(tsr_layout_create(f->t->mesh, &reduced, 2, other_shape, TSR_F32, &other_y));
    TSR_TRY(tsr_dtensor_create(other_w, tsr_device_host(), &f->other_w));
    f->x = tsr_dtensor_layout(f->t->x);
    f->w = tsr_dtensor_layout(f->t->w);
    f->b = tsr_dtensor_layout(f->t->b);
    f->y = y;
    f->other_y = other_y;
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < sizeof faults / sizeof *faults && status == TSR_OK; i++)
        status = check_fault(comm, f, i);
    tsr_dtensor_destroy(f->other_w);
    tsr_layout_destroy(other_y);
    tsr_layout_destroy(y);
    tsr_layout_destroy(other_w);
    return status;
}

static tsr_status run_faults(tsr_comm *comm, void *arg)
{
    layer_reference r;
    layer_tensors t;
    tsr_dtensor *dy;
    const int64_t shape[] = {5, 7};
    (void)arg;
    TSR_TRY(layer_reference_create(&row_parallel, &r));
    TSR_TRY(layer_tensors_create(comm, &row_parallel, &r, &t));
    TSR_TRY(layer_distribute(&row_parallel, t.mesh, r.dy, 2, shape, &reduced, NULL, &dy));
    fixture f = {.t = &t, .dy = dy};
    const tsr_status status = check_faults(comm, &f);
    tsr_dtensor_destroy(dy);
    layer_tensors_destroy(&t);
    layer_reference_destroy(&r);
    return status;
}

static void a_fault_of_one_rank_is_told_to_its_peers(void **state)
{
    (void)state;
    layers_run(RANKS, run_faults, NULL);
}

/* y has nearly all of its rows on rank 0, which alone has much to plan. */
static tsr_status plan_uneven(tsr_comm *comm, tsr_status *planned)
{
    static const struct {
        const char *text;
        int64_t shape[2];
    } operands[] = {{"S(0;interleave=50)", {800, 2}}, {"R", {3, 2}}, {"S(0;sizes=797,1,1,1)", {800, 3}}};
    const int64_t ranks = tsr_comm_size(comm);
    tsr_mesh *mesh;
    tsr_layout *layouts[3] = {0};
    tsr_linear_plan *made = NULL;
    TSR_TRY(tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &mesh));
    tsr_status status = TSR_OK;
    for (int i = 0; i < 3 && status == TSR_OK; i++)
        status = tsr_layout_parse(mesh, operands[i].text, 2, operands[i].shape, TSR_F32, &layouts[i]);
    if (status == TSR_OK)
        *planned = tsr_linear_plan_create(layouts[0], layouts[1], NULL, layouts[2], &made);
    tsr_linear_plan_destroy(made);
    for (int i = 0; i < 3; i++)
        tsr_layout_destroy(layouts[i]);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Counts on rank 1 how often rank 0 alone was beyond its bound. */
static tsr_status plan_within(tsr_comm *comm, void *arg)
{
    const bool first = tsr_comm_rank(comm) == 0;
    tsr_status planned = TSR_OK;
    TSR_TRY(plan_uneven(comm, &planned));
    if (first && planned == TSR_ERROR_ARGUMENT) {
        TSR_TRY(layer_expect_status("bound", planned, TSR_ERROR_ARGUMENT, "tsr_linear_plan_create: "));
    } else if (!first && planned != TSR_OK && planned != TSR_ERROR_ARGUMENT) {
        TSR_TRY(layer_expect_status("bound", planned, TSR_ERROR_PEER, "rank 0 failed: tsr_linear_plan_create: "));
        TSR_TRY(layer_expect_status("bound", planned, TSR_ERROR_PEER, "plan_entries"));
        if (tsr_comm_rank(comm) == 1)
            ++*(int *)arg;
    }
    int32_t mine = planned == TSR_OK, least, most;
    TSR_TRY(tsr_comm_all_reduce(comm, &mine, &least, 1, TSR_I32, TSR_MIN, tsr_device_host(), NULL));
    TSR_TRY(tsr_comm_all_reduce(comm, &mine, &most, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
    return least == most ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "some ranks have a plan, others have not");
}

static void a_plan_beyond_the_bound_on_one_rank_is_refused_on_all(void **state)
{
    (void)state;
    int refused = 0;
    for (int entries = 380; entries <= 480; entries += 20) {
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        options.plan_entries = entries;
        tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
        threads.timeout_ms = 20000;
        assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
        const tsr_status status = tsr_threads_run(4, plan_within, &refused, &threads);
        if (status != TSR_OK)
            fail_msg("%d entries: %s: %s", entries, tsr_status_name(status), tsr_status_message());
        tsr_context_destroy(threads.context);
    }
    assert_true(refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_of_one_rank_is_told_to_its_peers),
        cmocka_unit_test(a_plan_beyond_the_bound_on_one_rank_is_refused_on_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
