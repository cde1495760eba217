/* Backward plans: what they refuse, errors of one rank, and that executions allocate nothing. */
#include "layers.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A row-parallel layer on two ranks, whose dy is cut by rows and whose dx is replicated: x (2, 4),
 * w (3, 4), b (3), y (2, 3). All gradients but dw have to move. */
typedef struct fixture {
    tsr_mesh *mesh;
    tsr_layout *x, *w, *b, *dy, *dx;
    tsr_linear_backward_plan *plan;
} fixture;

static tsr_status make_layouts(tsr_comm *comm, fixture *f)
{
    const int64_t x[] = {2, 4}, w[] = {3, 4}, y[] = {2, 3};
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &f->mesh));
    TSR_TRY(tsr_layout_parse(f->mesh, "S(1)", 2, x, TSR_F32, &f->x));
    TSR_TRY(tsr_layout_parse(f->mesh, "S(1)", 2, w, TSR_F32, &f->w));
    TSR_TRY(tsr_layout_parse(f->mesh, "R", 1, w, TSR_F32, &f->b));
    TSR_TRY(tsr_layout_parse(f->mesh, "S(0)", 2, y, TSR_F32, &f->dy));
    return tsr_layout_parse(f->mesh, "R", 2, x, TSR_F32, &f->dx);
}

static tsr_status fixture_create(tsr_comm *comm, fixture *out)
{
    *out = (fixture){0};
    TSR_TRY(make_layouts(comm, out));
    return tsr_linear_backward_plan_create(out->x, out->w, out->b, out->dy, out->dx, out->w, out->b, tsr_device_host(),
                                           &out->plan);
}

static void fixture_destroy(fixture *f)
{
    tsr_linear_backward_plan_destroy(f->plan);
    tsr_layout *const layouts[] = {f->dx, f->dy, f->b, f->w, f->x};
    for (int i = 0; i < 5; i++)
        tsr_layout_destroy(layouts[i]);
    tsr_mesh_destroy(f->mesh);
}

/* x is 1 and w 2 everywhere, dy is 1 in its first row and 2 in its second. */
static tsr_status check_values(const float *dx, const float *dw, const float *db)
{
    for (int i = 0; i < 8; i++)
        if (dx[i] != (i < 4 ? 6 : 12))
            return tsr_status_set(TSR_ERROR_INTERNAL, "dx[%d] is %g", i, (double)dx[i]);
    for (int i = 0; i < 6; i++)
        if (dw[i] != 3)
            return tsr_status_set(TSR_ERROR_INTERNAL, "dw[%d] is %g", i, (double)dw[i]);
    for (int i = 0; i < 3; i++)
        if (db[i] != 3)
            return tsr_status_set(TSR_ERROR_INTERNAL, "db[%d] is %g", i, (double)db[i]);
    return TSR_OK;
}

static tsr_status execute(const void *given, int rank, int fault)
{
    const fixture *const f = given;
    float x[] = {1, 1, 1, 1}, w[] = {2, 2, 2, 2, 2, 2}, dy[] = {1, 1, 1}, dx[8] = {0}, dw[6] = {0}, db[3] = {0};
    tsr_tensor t[] = {
        tsr_tensor_contiguous(x, TSR_F32, 2, (int64_t[]){2, 2}),
        tsr_tensor_contiguous(w, TSR_F32, 2, (int64_t[]){3, 2}),
        tsr_tensor_contiguous(dy, TSR_F32, 2, (int64_t[]){1, 3}),
        tsr_tensor_contiguous(dx, TSR_F32, 2, (int64_t[]){2, 4}),
        tsr_tensor_contiguous(dw, TSR_F32, 2, (int64_t[]){3, 2}),
        tsr_tensor_contiguous(db, TSR_F32, 1, (int64_t[]){3}),
    };
    size_t bytes = tsr_linear_backward_plan_workspace_bytes(f->plan);
    void *workspace = malloc(bytes);
    for (int i = 0; i < 3; i++)
        dy[i] = (float)(rank + 1);
    if (rank == 1) {
        t[0].shape[0] += fault == 0;
        t[2].dtype = fault == 2 ? TSR_F64 : TSR_F32;
        t[4].data = fault == 4 ? NULL : dw;
        bytes -= fault == 5;
        t[4].strides[0] -= fault == 6;
    }
    void *const stream = rank == 1 && fault == 7 ? &bytes : NULL;
    const bool lacks_w = rank == 1 && fault == 1, lacks_dx = rank == 1 && fault == 3;
    const tsr_status status = tsr_linear_backward_plan_execute(
        f->plan, &t[0], lacks_w ? NULL : &t[1], &t[2], lacks_dx ? NULL : &t[3], &t[4], &t[5], workspace, bytes, stream);
    free(workspace);
    return status == TSR_OK ? check_values(dx, dw, db) : status;
}

static tsr_status check_faults(tsr_comm *comm, void *arg)
{
    static const char *const words[] = {"x is f32 3x2",
                                        "w is NULL",
                                        "dy is f64",
                                        "dx is NULL",
                                        "dw has no data",
                                        "the plan wants",
                                        "elements of dw, which is written, share memory",
                                        "stream is 0x"};
    (void)arg;
    fixture f;
    TSR_TRY(fixture_create(comm, &f));
    const tsr_status status = layer_expect_faults(comm, execute, &f, words, 8);
    fixture_destroy(&f);
    return status;
}

static void a_rank_that_brings_wrong_tensors_fails_and_its_peers_are_told_and_go_on(void **state)
{
    (void)state;
    layers_run(2, check_faults, NULL);
}

static tsr_status check_refusals(tsr_comm *comm, void *arg)
{
    const tsr_device host = tsr_device_host();
    tsr_linear_backward_plan *plan = NULL;
    tsr_mesh *line;
    tsr_layout *partial, *elsewhere;
    fixture f = {0};
    (void)arg;
    TSR_TRY(make_layouts(comm, &f));
    TSR_TRY(tsr_layout_parse(f.mesh, "P", 2, (int64_t[]){2, 3}, TSR_F32, &partial));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@[1,0]", &line));
    TSR_TRY(tsr_layout_parse(line, "R", 2, (int64_t[]){2, 4}, TSR_F32, &elsewhere));
    TSR_TRY(layer_expect_status("no x",
                                tsr_linear_backward_plan_create(NULL, f.w, NULL, NULL, f.dx, NULL, NULL, host, &plan),
                                TSR_ERROR_ARGUMENT, "x is NULL"));
    TSR_TRY(layer_expect_status("nothing wanted",
                                tsr_linear_backward_plan_create(f.x, f.w, f.b, NULL, NULL, NULL, NULL, host, &plan),
                                TSR_ERROR_ARGUMENT, "all NULL"));
    TSR_TRY(layer_expect_status("db without b",
                                tsr_linear_backward_plan_create(f.x, f.w, NULL, NULL, NULL, NULL, f.b, host, &plan),
                                TSR_ERROR_ARGUMENT, "b is NULL"));
    TSR_TRY(layer_expect_status("dy of x",
                                tsr_linear_backward_plan_create(f.x, f.w, f.b, f.x, f.dx, NULL, NULL, host, &plan),
                                TSR_ERROR_ARGUMENT, "dy has shape 2x4, but the y that x, w and b give has 2x3"));
    TSR_TRY(layer_expect_status("Partial dy",
                                tsr_linear_backward_plan_create(f.x, f.w, f.b, partial, f.dx, NULL, NULL, host, &plan),
                                TSR_ERROR_ARGUMENT, "dy is Partial on mesh dim 0"));
    TSR_TRY(layer_expect_status(
        "dx elsewhere", tsr_linear_backward_plan_create(f.x, f.w, f.b, NULL, elsewhere, NULL, NULL, host, &plan),
        TSR_ERROR_ARGUMENT, "dx on mesh 2@[1,0]"));
    TSR_TRY(layer_expect_status("dw of b",
                                tsr_linear_backward_plan_create(f.x, f.w, f.b, NULL, NULL, f.b, NULL, host, &plan),
                                TSR_ERROR_ARGUMENT, "shape"));
    TSR_TRY(layer_expect_status(
        "no plan", tsr_linear_backward_plan_execute(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL),
        TSR_ERROR_ARGUMENT, "tsr_linear_backward_plan_execute: plan is NULL"));
    tsr_layout_destroy(elsewhere);
    tsr_mesh_destroy(line);
    tsr_layout_destroy(partial);
    fixture_destroy(&f);
    return plan ? tsr_status_set(TSR_ERROR_INTERNAL, "out was written by a call that failed") : TSR_OK;
}

static void bad_arguments_are_refused_alike_on_every_rank(void **state)
{
    (void)state;
    layers_run(2, check_refusals, NULL);
    tsr_linear_backward_plan_destroy(NULL);
}

/* Rank 1 wants dx as the product leaves it, so that it alone would not move it. */
static tsr_status give_other_layouts(tsr_comm *comm, void *arg)
{
    fixture f;
    tsr_linear_backward_plan *plan = NULL;
    tsr_linear_plan *forward = NULL;
    const tsr_device host = tsr_device_host();
    const bool odd = tsr_comm_rank(comm) == 1;
    (void)arg;
    TSR_TRY(fixture_create(comm, &f));
    TSR_TRY(layer_expect_status(
        "another dx", tsr_linear_backward_plan_create(f.x, f.w, f.b, NULL, odd ? f.x : f.dx, NULL, NULL, host, &plan),
        TSR_ERROR_ARGUMENT, "ranks disagree"));
    TSR_TRY(layer_expect_status("another y", tsr_linear_plan_create(f.x, f.w, f.b, odd ? NULL : f.dy, &forward),
                                TSR_ERROR_ARGUMENT, "ranks disagree"));
    fixture_destroy(&f);
    TSR_TRY(tsr_comm_share_status(comm, NULL, TSR_OK));
    return plan || forward ? tsr_status_set(TSR_ERROR_INTERNAL, "out was written by a call that failed") : TSR_OK;
}

static void ranks_that_give_other_layouts_are_told(void **state)
{
    (void)state;
    layers_run(2, give_other_layouts, NULL);
}

static tsr_status check_no_allocation(tsr_comm *comm, void *arg)
{
    fixture f;
    TSR_TRY(fixture_create(comm, &f));
    const tsr_status status = layer_expect_no_allocation(comm, arg, execute, &f);
    fixture_destroy(&f);
    return status;
}

static void execution_allocates_nothing(void **state)
{
    (void)state;
    layers_run_counting(2, check_no_allocation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_brings_wrong_tensors_fails_and_its_peers_are_told_and_go_on),
        cmocka_unit_test(bad_arguments_are_refused_alike_on_every_rank),
        cmocka_unit_test(ranks_that_give_other_layouts_are_told),
        cmocka_unit_test(execution_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
