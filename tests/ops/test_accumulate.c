/* Gradients that go into dtensors that exist: f32 gradients of bf16 weights, and what is refused.
 * That they are added and written in all layouts is checked with every layer (layers.c). */
#include "layers.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TOKENS = 16, IN = 6, OUT = 4 };

/* A column-parallel layer of two ranks. */
typedef struct fixture {
    tsr_mesh *mesh;
    tsr_dtensor *x, *w, *dy, *dx, *dw;
} fixture;

static tsr_status make(const fixture *f, int64_t rows, int64_t columns, const char *placements, tsr_dtype dtype,
                       double value, tsr_dtensor **out)
{
    const int64_t shape[] = {rows, columns};
    tsr_layout *layout;
    TSR_TRY(tsr_layout_parse(f->mesh, placements, 2, shape, dtype, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status == TSR_OK ? tsr_dtensor_fill(*out, value, NULL) : status;
}

static tsr_status fixture_create(tsr_comm *comm, fixture *f)
{
    *f = (fixture){0};
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &f->mesh));
    TSR_TRY(make(f, TOKENS, IN, "R", TSR_BF16, 0x1p-8, &f->x));
    TSR_TRY(make(f, OUT, IN, "S(0)", TSR_BF16, 2, &f->w));
    TSR_TRY(make(f, TOKENS, OUT, "S(1)", TSR_BF16, 0x1p-8, &f->dy));
    TSR_TRY(make(f, TOKENS, IN, "R", TSR_BF16, 0, &f->dx));
    return make(f, OUT, IN, "S(0)", TSR_F32, 1, &f->dw);
}

static void fixture_destroy(fixture *f)
{
    tsr_dtensor *const all[] = {f->dw, f->dx, f->dy, f->w, f->x};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(f->mesh);
}

static tsr_status expect(const char *what, double have, double want)
{
    return have == want ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%s is %a, not %a", what, have, want);
}

/* Each step adds 16 * 2^-16 to an f32 that begins at 1, which bf16 would lose. */
static tsr_status accumulate_wide(tsr_comm *comm, void *arg)
{
    fixture f;
    double sum = 0;
    (void)arg;
    TSR_TRY(fixture_create(comm, &f));
    for (int step = 0; step < 3; step++)
        TSR_TRY(tsr_linear_backward_into(f.x, f.w, NULL, f.dy, TSR_ADD_DW, f.dx, f.dw, NULL));
    TSR_TRY(tsr_dtensor_sum(f.dw, &sum));
    TSR_TRY(expect("the sum of dw", sum, OUT * IN * (1 + 3 * 0x1p-12)));
    TSR_TRY(tsr_dtensor_sum(f.dx, &sum));
    TSR_TRY(expect("the sum of dx", sum, TOKENS * IN * OUT * 0x1p-7));
    /* By a plan, with a dw that is f32 too. */
    tsr_linear_backward_plan *plan;
    TSR_TRY(tsr_linear_backward_plan_create(tsr_dtensor_layout(f.x), tsr_dtensor_layout(f.w), NULL, NULL, NULL,
                                            tsr_dtensor_layout(f.dw), NULL, tsr_device_host(), &plan));
    const size_t bytes = tsr_linear_backward_plan_accumulate_bytes(plan);
    void *workspace = malloc(bytes);
    const tsr_tensor x = tsr_dtensor_to_local(f.x), dy = tsr_dtensor_to_local(f.dy), dw = tsr_dtensor_to_local(f.dw);
    TSR_TRY(
        tsr_linear_backward_plan_accumulate(plan, TSR_ADD_DW, &x, NULL, &dy, NULL, &dw, NULL, workspace, bytes, NULL));
    TSR_TRY(tsr_dtensor_sum(f.dw, &sum));
    TSR_TRY(expect("the sum of a planned dw", sum, OUT * IN * (1 + 4 * 0x1p-12)));
    TSR_TRY(layer_expect_status("too little workspace",
                                bytes == 0 ? TSR_ERROR_ARGUMENT
                                           : tsr_linear_backward_plan_accumulate(plan, TSR_ADD_DW, &x, NULL, &dy, NULL,
                                                                                 &dw, NULL, NULL, 0, NULL),
                                TSR_ERROR_ARGUMENT,
                                bytes == 0 ? "" : "tsr_linear_backward_plan_accumulate: workspace"));
    TSR_TRY(layer_expect_status(
        "no plan", tsr_linear_backward_plan_accumulate(NULL, 0, &x, NULL, &dy, NULL, &dw, NULL, workspace, bytes, NULL),
        TSR_ERROR_ARGUMENT, "tsr_linear_backward_plan_accumulate: plan is NULL"));
    free(workspace);
    tsr_linear_backward_plan_destroy(plan);
    fixture_destroy(&f);
    return TSR_OK;
}

static void gradients_in_f32_of_narrow_weights_lose_nothing(void **state)
{
    (void)state;
    layers_run(2, accumulate_wide, NULL);
}

/* Rank 1's fault is told to rank 0; when all ranks are at fault, all say so. */
static tsr_status refuse(tsr_comm *comm, void *arg)
{
    fixture f;
    tsr_dtensor *other_shape = NULL, *other_dtype = NULL, *overlapping = NULL, *elsewhere = NULL;
    const int rank = tsr_comm_rank(comm);
    (void)arg;
    TSR_TRY(fixture_create(comm, &f));
    TSR_TRY(make(&f, OUT, IN + 1, "S(0)", TSR_F32, 0, &other_shape));
    TSR_TRY(make(&f, OUT, IN, "S(0)", TSR_F64, 0, &other_dtype));
    tsr_tensor local = tsr_dtensor_to_local(f.dw);
    local.strides[0] = 0;
    TSR_TRY(tsr_dtensor_from_local(&local, tsr_dtensor_layout(f.dw), NULL, &overlapping));
    tsr_mesh *const mesh = f.mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@[1,0]", &f.mesh));
    TSR_TRY(make(&f, OUT, IN, "S(0)", TSR_F32, 0, &elsewhere));
    tsr_mesh_destroy(f.mesh);
    f.mesh = mesh;
    const struct {
        tsr_dtensor *dw;
        const char *words;
    } faults[] = {{other_shape, "dw has not the shape of its operand"},
                  {other_dtype, "dw has not the shape of its operand and its dtype"},
                  {overlapping, "elements of dw share memory"},
                  {elsewhere, "both must be on one mesh"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        TSR_TRY(layer_expect_status(
            faults[i].words,
            tsr_linear_backward_into(f.x, f.w, NULL, f.dy, TSR_ADD_DW, NULL, rank == 1 ? faults[i].dw : f.dw, NULL),
            rank == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, faults[i].words));
        TSR_TRY(layer_expect_status(
            faults[i].words, tsr_linear_backward_into(f.x, f.w, NULL, f.dy, TSR_ADD_DW, NULL, faults[i].dw, NULL),
            TSR_ERROR_ARGUMENT, faults[i].words));
    }
    TSR_TRY(layer_expect_status("no b", tsr_linear_backward_into(f.x, f.w, NULL, f.dy, 0, NULL, NULL, f.dw),
                                TSR_ERROR_ARGUMENT, "tsr_linear_backward_into: db is asked for, but b is NULL"));
    TSR_TRY(layer_expect_status("no x", tsr_linear_backward_into(NULL, f.w, NULL, f.dy, 0, NULL, f.dw, NULL),
                                TSR_ERROR_ARGUMENT, "tsr_linear_backward_into: x is NULL"));
    tsr_dtensor_destroy(elsewhere);
    tsr_dtensor_destroy(overlapping);
    tsr_dtensor_destroy(other_dtype);
    tsr_dtensor_destroy(other_shape);
    fixture_destroy(&f);
    return TSR_OK;
}

static void gradients_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    layers_run(2, refuse, NULL);
}

/* Adding terms of a product or of a maximum would not add what they reduce to; writing them is
 * fine. */
static tsr_status refuse_terms(tsr_comm *comm, void *arg)
{
    fixture f;
    tsr_dtensor *dw = NULL;
    tsr_linear_backward_plan *plan;
    const char *const placements = arg;
    char words[2][96];
    TSR_TRY(fixture_create(comm, &f));
    TSR_TRY(make(&f, OUT, IN, placements, TSR_BF16, 1, &dw));
    snprintf(words[0], sizeof words[0], "tsr_linear_backward_into: dw is %s", placements);
    snprintf(words[1], sizeof words[1], "tsr_linear_backward_plan_accumulate: dw is %s", placements);
    TSR_TRY(layer_expect_status("a call", tsr_linear_backward_into(f.x, f.w, NULL, f.dy, TSR_ADD_DW, NULL, dw, NULL),
                                TSR_ERROR_UNSUPPORTED, words[0]));
    TSR_TRY(tsr_linear_backward_into(f.x, f.w, NULL, f.dy, 0, NULL, dw, NULL));
    TSR_TRY(tsr_linear_backward_plan_create(tsr_dtensor_layout(f.x), tsr_dtensor_layout(f.w), NULL, NULL, NULL,
                                            tsr_dtensor_layout(dw), NULL, tsr_device_host(), &plan));
    const size_t bytes = tsr_linear_backward_plan_accumulate_bytes(plan);
    void *const workspace = malloc(bytes);
    const tsr_tensor x = tsr_dtensor_to_local(f.x), dy = tsr_dtensor_to_local(f.dy), to = tsr_dtensor_to_local(dw);
    TSR_TRY(layer_expect_status(
        "a plan",
        tsr_linear_backward_plan_accumulate(plan, TSR_ADD_DW, &x, NULL, &dy, NULL, &to, NULL, workspace, bytes, NULL),
        TSR_ERROR_UNSUPPORTED, words[1]));
    TSR_TRY(tsr_linear_backward_plan_accumulate(plan, 0, &x, NULL, &dy, NULL, &to, NULL, workspace, bytes, NULL));
    free(workspace);
    tsr_linear_backward_plan_destroy(plan);
    tsr_dtensor_destroy(dw);
    fixture_destroy(&f);
    return TSR_OK;
}

static void terms_that_do_not_add_up_are_refused(void **state)
{
    (void)state;
    layers_run(2, refuse_terms, "P(prod)");
    layers_run(2, refuse_terms, "P(max)");
}

/* Rank 1 wants results as the products leave them, so that it alone would not move them. */
static tsr_status want_other_layouts(tsr_comm *comm, void *arg)
{
    fixture f;
    tsr_dtensor *whole = NULL, *y = NULL, *dw = NULL;
    const tsr_placement replicate = tsr_replicate(), rows = tsr_shard(0), columns = tsr_shard(1);
    const bool odd = tsr_comm_rank(comm) == 1;
    (void)arg;
    TSR_TRY(fixture_create(comm, &f));
    TSR_TRY(make(&f, OUT, IN, "R", TSR_F32, 0, &whole));
    TSR_TRY(layer_expect_status(
        "another dw", tsr_linear_backward_into(f.x, f.w, NULL, f.dy, TSR_ADD_DW, NULL, odd ? f.dw : whole, NULL),
        TSR_ERROR_ARGUMENT, "ranks disagree"));
    TSR_TRY(layer_expect_status(
        "other placements of dw",
        tsr_linear_backward(f.x, f.w, NULL, f.dy, NULL, odd ? &rows : &replicate, NULL, NULL, &dw, NULL),
        TSR_ERROR_ARGUMENT, "ranks disagree"));
    TSR_TRY(layer_expect_status("other placements of y", tsr_linear(f.x, f.w, NULL, odd ? &columns : &replicate, &y),
                                TSR_ERROR_ARGUMENT, "ranks disagree"));
    TSR_TRY(tsr_comm_share_status(comm, NULL, TSR_OK));
    TSR_TRY(y || dw ? tsr_status_set(TSR_ERROR_INTERNAL, "out was written by a call that failed") : TSR_OK);
    tsr_dtensor_destroy(whole);
    fixture_destroy(&f);
    return TSR_OK;
}

static void ranks_that_want_other_layouts_are_told(void **state)
{
    (void)state;
    layers_run(2, want_other_layouts, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_in_f32_of_narrow_weights_lose_nothing),
        cmocka_unit_test(gradients_that_do_not_fit_are_refused),
        cmocka_unit_test(terms_that_do_not_add_up_are_refused),
        cmocka_unit_test(ranks_that_want_other_layouts_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
