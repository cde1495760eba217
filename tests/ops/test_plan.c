/* Linear plans: created once, executed with the caller's memory at any strides. */
#include "layers.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A layer of layouts on a mesh, and its plan. */
typedef struct planned {
    tsr_mesh *mesh;
    tsr_layout *x, *w, *b, *y;
    tsr_linear_plan *plan;
} planned;

static tsr_status planned_create(tsr_comm *comm, const layer *l, const char *y, planned *out)
{
    const int64_t w_shape[] = {l->out, l->x_shape[l->x_ndim - 1]};
    int64_t y_shape[TSR_MAX_DIMS];
    const int y_ndim = layer_y_shape(l, y_shape);
    *out = (planned){0};
    TSR_TRY(tsr_mesh_parse(comm, NULL, l->mesh, &out->mesh));
    TSR_TRY(tsr_layout_parse(out->mesh, l->x, l->x_ndim, l->x_shape, l->dtype, &out->x));
    TSR_TRY(tsr_layout_parse(out->mesh, l->w, 2, w_shape, l->dtype, &out->w));
    if (l->b)
        TSR_TRY(tsr_layout_parse(out->mesh, l->b, 1, w_shape, l->dtype, &out->b));
    if (y)
        TSR_TRY(tsr_layout_parse(out->mesh, y, y_ndim, y_shape, l->dtype, &out->y));
    return tsr_linear_plan_create(out->x, out->w, out->b, out->y, &out->plan);
}

static void planned_destroy(planned *p)
{
    tsr_linear_plan_destroy(p->plan);
    tsr_layout *const layouts[] = {p->y, p->b, p->w, p->x};
    for (int i = 0; i < 4; i++)
        tsr_layout_destroy(layouts[i]);
    tsr_mesh_destroy(p->mesh);
}

/* Strides */

/* An operand whose element (i0, i1, ..) lies at offset + sum of i * stride. */
typedef struct strided {
    int64_t x[3], w[2], b, y[3]; /* strides */
} strided;

enum { ROWS = 2, COLUMNS = 70, FEATURES = 9, OUT = 67, ROOM = 40000, MIDDLE = ROOM / 2 };

static const strided stridings[] = {
    {{COLUMNS * FEATURES, FEATURES, 1}, {FEATURES, 1}, 1, {COLUMNS * OUT, OUT, 1}},
    {{COLUMNS * 11, 11, 1}, {FEATURES, 1}, 1, {COLUMNS * OUT, OUT, 1}},     /* rows apart */
    {{1000, 11, 1}, {16, 1}, 3, {COLUMNS * 70, 70, 1}},                     /* batch dims that do not merge */
    {{1, ROWS, ROWS *COLUMNS}, {1, OUT}, 1, {1, ROWS, ROWS *COLUMNS}},      /* columns first */
    {{FEATURES, ROWS *FEATURES, 1}, {FEATURES, 1}, 1, {OUT, ROWS *OUT, 1}}, /* batch dims the other way round */
    {{COLUMNS * 20, 20, 2}, {27, 3}, 2, {COLUMNS * 2 * OUT, 2 * OUT, 2}},   /* gaps everywhere */
    {{-COLUMNS * FEATURES, FEATURES, -1}, {-FEATURES, 1}, -1, {COLUMNS * OUT, OUT, 1}}, /* backwards */
    {{0, 0, 1}, {0, 1}, 0, {COLUMNS * OUT, OUT, 1}}, /* every row is the same memory */
    {{COLUMNS * 20, 20, 2}, {FEATURES, 1}, 1, {1, ROWS, ROWS *COLUMNS}},
    {{COLUMNS * FEATURES, FEATURES, 1}, {27, 3}, 1, {COLUMNS * 2 * OUT + 7, 2 * OUT, 2}},
};

static float *element(const tsr_tensor *t, int64_t i, int64_t j, int64_t k)
{
    const int64_t at[] = {i, j, k};
    int64_t offset = 0;
    for (int dim = 0; dim < t->ndim; dim++)
        offset += at[dim] * t->strides[dim];
    return (float *)t->data + offset;
}

static double product_at(const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b, int64_t row, int64_t column,
                         int64_t o)
{
    double sum = (double)*element(b, o, 0, 0);
    for (int64_t k = 0; k < FEATURES; k++)
        sum += (double)*element(x, row, column, k) * (double)*element(w, o, k, 0);
    return sum;
}

/* All ranks have the same x as their term of a Partial(sum): their products add up, and the bias is
 * added once. */
static tsr_status check_striding(tsr_comm *comm, const tsr_linear_plan *plan, int index, float *const *memory,
                                 float *y_memory, void *workspace)
{
    const strided *s = &stridings[index];
    const tsr_tensor x = {memory[0] + MIDDLE, TSR_F32, {0}, 3, {ROWS, COLUMNS, FEATURES}, {s->x[0], s->x[1], s->x[2]}};
    const tsr_tensor w = {memory[1] + MIDDLE, TSR_F32, {0}, 2, {OUT, FEATURES}, {s->w[0], s->w[1]}};
    const tsr_tensor b = {memory[2] + MIDDLE, TSR_F32, {0}, 1, {OUT}, {s->b}};
    const tsr_tensor y = {y_memory + MIDDLE, TSR_F32, {0}, 3, {ROWS, COLUMNS, OUT}, {s->y[0], s->y[1], s->y[2]}};
    TSR_TRY(tsr_linear_plan_execute(plan, &x, &w, &b, &y, workspace, tsr_linear_plan_workspace_bytes(plan), NULL));
    for (int64_t i = 0; i < (int64_t)ROWS * COLUMNS * OUT; i++) {
        const int64_t row = i / OUT / COLUMNS, column = i / OUT % COLUMNS, o = i % OUT;
        const double bias = (double)*element(&b, o, 0, 0), given = (double)*element(&y, row, column, o);
        const double expected = tsr_comm_size(comm) * (product_at(&x, &w, &b, row, column, o) - bias) + bias;
        if (given != expected)
            return tsr_status_set(TSR_ERROR_INTERNAL, "striding %d: y[%d,%d,%d] is %g, not %g", index, (int)row,
                                  (int)column, (int)o, given, expected);
    }
    return TSR_OK;
}

static tsr_status check_stridings(tsr_comm *comm, void *arg)
{
    char mesh[16];
    snprintf(mesh, sizeof mesh, "%d", tsr_comm_size(comm));
    const layer l = {mesh, 3, {ROWS, COLUMNS, FEATURES}, OUT, "P", "R", "R", TSR_F32, 0};
    planned p;
    TSR_TRY(planned_create(comm, &l, "R", &p));
    void *workspace = malloc(tsr_linear_plan_workspace_bytes(p.plan));
    float *y = calloc(ROOM, sizeof(float));
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < sizeof stridings / sizeof stridings[0] && status == TSR_OK; i++)
        status = check_striding(comm, p.plan, (int)i, arg, y, workspace);
    free(y);
    free(workspace);
    planned_destroy(&p);
    return status;
}

static void local_tensors_of_any_strides_give_the_same_product(void **state)
{
    (void)state;
    float *memory[3];
    for (int i = 0; i < 3; i++) {
        memory[i] = malloc(ROOM * sizeof(float));
        assert_non_null(memory[i]);
        for (int j = 0; j < ROOM; j++)
            memory[i][j] = (float)((j * (i + 3)) % 7 - 3);
    }
    layers_run(1, check_stridings, memory);
    layers_run(2, check_stridings, memory);
    for (int i = 0; i < 3; i++)
        free(memory[i]);
}

/* Execution */

/* A row-parallel layer with an all-reduce. */
static tsr_status execute_row_parallel(const void *given, int rank, int fault)
{
    const planned *const p = given;
    float x[] = {1, 2}, w[] = {3, 4, 5, 6, 7, 8}, b[] = {1, 1, 1}, y[3] = {0};
    tsr_tensor tx = tsr_tensor_contiguous(x, TSR_F32, 2, (int64_t[]){1, 2}),
               tw = tsr_tensor_contiguous(w, TSR_F32, 2, (int64_t[]){3, 2});
    tsr_tensor tb = tsr_tensor_contiguous(b, TSR_F32, 1, (int64_t[]){3}),
               ty = tsr_tensor_contiguous(y, TSR_F32, 2, (int64_t[]){1, 3});
    size_t bytes = tsr_linear_plan_workspace_bytes(p->plan);
    void *workspace = malloc(bytes + 1);
    const tsr_tensor *bias = &tb;
    if (rank == 1) {
        tx.shape[0] = fault == 0 ? 2 : tx.shape[0];
        tw.dtype = fault == 1 ? TSR_F64 : tw.dtype;
        bias = fault == 2 ? NULL : bias;
        ty.data = fault == 3 ? NULL : ty.data;
        bytes -= fault == 4;
        tx.ndim = fault == 5 ? 1 : tx.ndim;
        ty.strides[1] = fault == 6 ? 0 : ty.strides[1];
    }
    void *const stream = rank == 1 && fault == 7 ? &bytes : NULL;
    const tsr_status status = tsr_linear_plan_execute(p->plan, &tx, &tw, bias, &ty, workspace, bytes, stream);
    free(workspace);
    TSR_TRY(status);
    for (int o = 0; o < 3; o++) {
        const float expected = 2 * (x[0] * w[2 * o] + x[1] * w[2 * o + 1]) + 1;
        if (y[o] != expected)
            return tsr_status_set(TSR_ERROR_INTERNAL, "y[%d] is %g, not %g", o, (double)y[o], (double)expected);
    }
    return TSR_OK;
}

static const layer row_parallel = {"2", 2, {1, 4}, 3, "S(1)", "S(1)", "R", TSR_F32};

static tsr_status check_faults(tsr_comm *comm, void *arg)
{
    static const char *const words[] = {"x is f32 2x2",
                                        "w is f64",
                                        "b is NULL",
                                        "y has no data",
                                        "the plan wants",
                                        "x is f32 1,",
                                        "elements of y, which is written, share memory",
                                        "stream is 0x"};
    (void)arg;
    planned p;
    TSR_TRY(planned_create(comm, &row_parallel, "R", &p));
    const tsr_status status = layer_expect_faults(comm, execute_row_parallel, &p, words, 8);
    planned_destroy(&p);
    return status;
}

static void a_rank_that_brings_wrong_tensors_fails_and_its_peers_are_told(void **state)
{
    (void)state;
    layers_run(2, check_faults, NULL);
}

static tsr_status check_no_allocation(tsr_comm *comm, void *arg)
{
    planned p;
    TSR_TRY(planned_create(comm, &row_parallel, "R", &p));
    const tsr_status status = layer_expect_no_allocation(comm, arg, execute_row_parallel, &p);
    planned_destroy(&p);
    return status;
}

static void execution_allocates_nothing(void **state)
{
    (void)state;
    layers_run_counting(2, check_no_allocation);
}

static tsr_status check_refusals(tsr_comm *comm, void *arg)
{
    (void)arg;
    planned p, other;
    tsr_linear_plan *plan = NULL;
    const layer far = {"2@[1,0]", 2, {1, 4}, 3, "S(1)", "S(1)", "R", TSR_F32},
                whole = {"2", 2, {1, 4}, 3, "S(1)", "S(1)", "R", TSR_I32};
    TSR_TRY(planned_create(comm, &row_parallel, NULL, &p));
    TSR_TRY(planned_create(comm, &far, "R", &other));
    TSR_TRY(layer_expect_status("NULL x", tsr_linear_plan_create(NULL, p.w, p.b, NULL, &plan), TSR_ERROR_ARGUMENT,
                                "x is NULL"));
    TSR_TRY(layer_expect_status("y elsewhere", tsr_linear_plan_create(p.x, p.w, p.b, other.y, &plan),
                                TSR_ERROR_ARGUMENT, "y on mesh 2@[1,0]"));
    TSR_TRY(
        layer_expect_status("y of x", tsr_linear_plan_create(p.x, p.w, p.b, p.x, &plan), TSR_ERROR_ARGUMENT, "shape"));
    TSR_TRY(layer_expect_status("b for w", tsr_linear_plan_create(p.x, p.b, NULL, NULL, &plan), TSR_ERROR_ARGUMENT,
                                "w has 1 dim"));
    TSR_TRY(layer_expect_status("host:3", tsr_linear_plan_create_on(p.x, p.w, p.b, NULL, (tsr_device){NULL, 3}, &plan),
                                TSR_ERROR_ARGUMENT, "device is host:3"));
    TSR_TRY(layer_expect_status("NULL plan", tsr_linear_plan_execute(NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL),
                                TSR_ERROR_ARGUMENT, "plan is NULL"));
    char text[32];
    tsr_layout_print(tsr_linear_plan_result(p.plan), text, sizeof text);
    if (plan || strcmp(text, "P") != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "the result is %s", text);
    planned_destroy(&other);
    planned_destroy(&p);
    float data[12] = {0};
    tsr_dtensor *x, *w, *y;
    tsr_mesh *mesh;
    const tsr_tensor gx = tsr_tensor_contiguous(data, whole.dtype, 2, (int64_t[]){1, 4}),
                     gw = tsr_tensor_contiguous(data, whole.dtype, 2, (int64_t[]){3, 4});
    const tsr_placement replicate = tsr_replicate();
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_distribute_tensor(&gx, mesh, &replicate, NULL, &x));
    TSR_TRY(tsr_distribute_tensor(&gw, mesh, &replicate, NULL, &w));
    TSR_TRY(layer_expect_status("i32", tsr_linear(x, w, NULL, NULL, &y), TSR_ERROR_UNSUPPORTED, "i32"));
    TSR_TRY(layer_expect_status("NULL w", tsr_linear(x, NULL, NULL, NULL, &y), TSR_ERROR_ARGUMENT, "w is NULL"));
    TSR_TRY(layer_expect_status("db without b", tsr_linear_backward(x, w, NULL, x, NULL, NULL, NULL, NULL, NULL, &y),
                                TSR_ERROR_ARGUMENT, "b is NULL"));
    TSR_TRY(layer_expect_status("dy of x", tsr_linear_backward(x, w, NULL, x, NULL, NULL, NULL, &y, NULL, NULL),
                                TSR_ERROR_ARGUMENT, "dy"));
    tsr_dtensor_destroy(w);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void bad_arguments_are_refused_alike_on_every_rank(void **state)
{
    (void)state;
    layers_run(2, check_refusals, NULL);
}

static void a_plan_needs_a_mesh_over_a_communicator(void **state)
{
    (void)state;
    tsr_mesh *mesh;
    tsr_layout *x, *w;
    tsr_linear_plan *plan = NULL;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "R", 2, (int64_t[]){4, 4}, TSR_F32, &x), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "S(0)", 2, (int64_t[]){4, 4}, TSR_F32, &w), TSR_OK);
    assert_int_equal(tsr_linear_plan_create(x, w, NULL, NULL, &plan), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "abstract"));
    assert_null(plan);
    tsr_linear_plan_destroy(NULL);
    tsr_layout_destroy(w);
    tsr_layout_destroy(x);
    tsr_mesh_destroy(mesh);
}

/* Other devices */

typedef struct plain_device {
    int gemms, biased, enough;
} plain_device;

enum { PLAIN_WORKSPACE = 100 };

/* c = a b + c + bias, as the table says, for what linear layers ask: alpha 1, beta 0 or 1. */
static tsr_status plain_gemm(void *self, int index, const tsr_gemm *g, tsr_stream stream)
{
    (void)index;
    (void)stream;
    plain_device *device = self;
    device->gemms++;
    device->biased += g->bias != NULL;
    device->enough += g->workspace && g->workspace_bytes >= PLAIN_WORKSPACE;
    for (int64_t i = 0; i < g->m * g->n; i++) {
        const int64_t row = i / g->n, column = i % g->n;
        double *c = (double *)g->c + row * g->ldc + column, sum = g->beta == 0 ? 0 : *c;
        sum += g->bias ? ((const double *)g->bias)[column] : 0;
        for (int64_t k = 0; k < g->k; k++)
            sum += ((const double *)g->a)[g->trans_a ? k * g->lda + row : row * g->lda + k] *
                   ((const double *)g->b)[g->trans_b ? column * g->ldb + k : k * g->ldb + column];
        *c = sum;
    }
    return TSR_OK;
}

static tsr_status plain_workspace(void *self, int index, const tsr_gemm *g, size_t *bytes)
{
    (void)self;
    (void)index;
    if (g->a_dtype != TSR_F64)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "the plain device multiplies f64, not %s",
                              tsr_dtype_name(g->a_dtype));
    *bytes = g->m > 0 ? PLAIN_WORKSPACE : 0;
    return TSR_OK;
}

static tsr_status execute_on(tsr_device device, const tsr_linear_plan *plan)
{
    double x[] = {1, 2, 3, 4}, w[] = {1, 0, 2, 1, 3, 1}, b[] = {10, 20, 30}, y[6] = {0}, workspace[256];
    static const double expected[] = {11, 24, 35, 13, 30, 43};
    tsr_tensor tensors[] = {
        tsr_tensor_contiguous(x, TSR_F64, 2, (int64_t[]){2, 2}),
        tsr_tensor_contiguous(w, TSR_F64, 2, (int64_t[]){3, 2}),
        tsr_tensor_contiguous(b, TSR_F64, 1, (int64_t[]){3}),
        tsr_tensor_contiguous(y, TSR_F64, 2, (int64_t[]){2, 3}),
    };
    for (int i = 0; i < 4; i++)
        tensors[i].device = device;
    TSR_TRY(tsr_linear_plan_execute(plan, &tensors[0], &tensors[1], &tensors[2], &tensors[3], workspace,
                                    sizeof workspace, NULL));
    return memcmp(y, expected, sizeof y) == 0 ? TSR_OK
                                              : tsr_status_set(TSR_ERROR_INTERNAL, "y is %g, %g, ..", y[0], y[1]);
}

/* Makes two devices that differ in the products alone: one multiplies, the other does not. */
static tsr_status plain_devices_create(plain_device *self, tsr_device_driver **with, tsr_device_driver **without)
{
    void *unused;
    tsr_device_table table = *tsr_device_driver_table(NULL, &unused);
    table.name = "plain";
    TSR_TRY(tsr_device_driver_create(&table, self, without));
    table.gemm = plain_gemm;
    table.gemm_workspace = plain_workspace;
    return tsr_device_driver_create(&table, self, with);
}

static tsr_status check_device(tsr_comm *comm, void *arg)
{
    const layer l = {"1", 2, {2, 2}, 3, "R", "R", "R", TSR_F64, 0},
                single = {"1", 2, {2, 2}, 3, "R", "R", "R", TSR_F32, 0};
    planned host, f32;
    tsr_device_driver *with, *without;
    tsr_linear_plan *plan, *none = NULL;
    TSR_TRY(planned_create(comm, &l, NULL, &host));
    TSR_TRY(planned_create(comm, &single, NULL, &f32));
    TSR_TRY(plain_devices_create(arg, &with, &without));
    const tsr_device device = {with, 0}, next = {with, 1}, other = {without, 0};
    TSR_TRY(tsr_linear_plan_create_on(host.x, host.w, host.b, NULL, device, &plan));
    tsr_status status = execute_on(device, plan);
    if (status == TSR_OK)
        status = layer_expect_status("a host's plan", execute_on(device, host.plan), TSR_ERROR_ARGUMENT,
                                     "on device plain:0, but the plan is for host:0");
    if (status == TSR_OK)
        status = layer_expect_status("another index", execute_on(next, plan), TSR_ERROR_ARGUMENT, "on device plain:1");
    if (status == TSR_OK)
        status =
            layer_expect_status("another driver", execute_on(other, plan), TSR_ERROR_ARGUMENT, "of another driver");
    if (status == TSR_OK)
        status = layer_expect_status("no gemm", tsr_linear_plan_create_on(host.x, host.w, host.b, NULL, other, &none),
                                     TSR_ERROR_UNSUPPORTED, "\"plain\" has no gemm");
    if (status == TSR_OK)
        status = layer_expect_status("f32", tsr_linear_plan_create_on(f32.x, f32.w, f32.b, NULL, device, &none),
                                     TSR_ERROR_UNSUPPORTED, "multiplies f64, not f32");
    tsr_linear_plan_destroy(plan);
    tsr_device_driver_destroy(with);
    tsr_device_driver_destroy(without);
    planned_destroy(&f32);
    planned_destroy(&host);
    return status;
}

static void products_go_through_the_table_of_the_device_with_bias_and_workspace(void **state)
{
    (void)state;
    plain_device device = {0};
    layers_run(1, check_device, &device);
    assert_int_equal(device.gemms, 1);
    assert_int_equal(device.biased, 1);
    assert_int_equal(device.enough, 1);
}

/* Rounding */

enum { TOKENS = 6, IN = 301, LAYER_OUT = 17, RANKS = 3 };

static double fraction(int64_t index, uint64_t seed)
{
    const uint64_t mixed = ((uint64_t)index + 1) * (seed * 2 + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (double)(float)((double)(mixed >> 11) / (double)(UINT64_C(1) << 52) - 1);
}

static float results[RANKS][TOKENS * LAYER_OUT];

/*
 * Each y is a sum of IN products and a bias, in f32 with unit roundoff u = 2^-24. Every product is
 * rounded at most once and passes through at most IN + RANKS additions, whatever their order and
 * wherever they happen, so |error| <= g * sum |terms| with n = IN + RANKS + 1 and g = n u / (1 - n
 * u) (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). The reference's own
 * error, in f64, is 2^-29 of that.
 */
static tsr_status check_rounding(tsr_comm *comm, void *arg)
{
    (void)arg;
    const layer l = {"3", 2, {TOKENS, IN}, LAYER_OUT, "S(1)", "S(1)", "R", TSR_F32};
    layer_reference r;
    layer_tensors t;
    tsr_dtensor *y;
    TSR_TRY(layer_reference_create(&l, &r));
    for (int64_t i = 0; i < TOKENS * IN; i++)
        r.x[i] = fraction(i, 1);
    for (int64_t i = 0; i < LAYER_OUT * IN; i++)
        r.w[i] = fraction(i, 2);
    TSR_TRY(layer_tensors_create(comm, &l, &r, &t));
    const tsr_placement replicate = tsr_replicate();
    TSR_TRY(tsr_linear(t.x, t.w, t.b, &replicate, &y));
    memcpy(results[tsr_comm_rank(comm)], tsr_dtensor_to_local(y).data, sizeof results[0]);
    const double n = IN + RANKS + 1, u = ldexp(1, -24), g = n * u / (1 - n * u);
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < TOKENS * LAYER_OUT && status == TSR_OK; i++) {
        double sum = r.b[i % LAYER_OUT], magnitude = fabs(sum);
        for (int64_t k = 0; k < IN; k++) {
            const double term = r.x[i / LAYER_OUT * IN + k] * r.w[i % LAYER_OUT * IN + k];
            sum += term;
            magnitude += fabs(term);
        }
        const double error = fabs((double)results[tsr_comm_rank(comm)][i] - sum),
                     bound = g * magnitude * (1 + ldexp(1, -20));
        if (!(error <= bound))
            status =
                tsr_status_set(TSR_ERROR_INTERNAL, "element %d is off by %g; the bound is %g", (int)i, error, bound);
    }
    tsr_dtensor_destroy(y);
    layer_tensors_destroy(&t);
    layer_reference_destroy(&r);
    return status;
}

static void fractions_are_within_the_bound_of_summation_and_replicas_hold_equal_bits(void **state)
{
    (void)state;
    layers_run(RANKS, check_rounding, NULL);
    for (int rank = 1; rank < RANKS; rank++)
        assert_memory_equal(results[0], results[rank], sizeof results[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_tensors_of_any_strides_give_the_same_product),
        cmocka_unit_test(a_rank_that_brings_wrong_tensors_fails_and_its_peers_are_told),
        cmocka_unit_test(execution_allocates_nothing),
        cmocka_unit_test(bad_arguments_are_refused_alike_on_every_rank),
        cmocka_unit_test(a_plan_needs_a_mesh_over_a_communicator),
        cmocka_unit_test(products_go_through_the_table_of_the_device_with_bias_and_workspace),
        cmocka_unit_test(fractions_are_within_the_bound_of_summation_and_replicas_hold_equal_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
