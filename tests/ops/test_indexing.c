/* Ops that index tables, compared with plain loops: values, gradients, layouts and errors. */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MOST 4096

static tsr_status expect(const char *what, int64_t at, double got, double wanted)
{
    return got == wanted ? TSR_OK
                         : tsr_status_set(TSR_ERROR_INTERNAL, "%s %lld is %.17g instead of %.17g", what, (long long)at,
                                          got, wanted);
}

static tsr_status expect_placements(const tsr_dtensor *x, const char *wanted)
{
    char text[64];
    tsr_layout_print(tsr_dtensor_layout(x), text, sizeof text);
    return strcmp(text, wanted) == 0 ? TSR_OK
                                     : tsr_status_set(TSR_ERROR_INTERNAL, "it is %s instead of %s", text, wanted);
}

/* The gradient 1, 2, 3, .. of a result. */
static tsr_status make_gradient(const tsr_dtensor *result, tsr_dtensor **out)
{
    double values[MOST];
    char placements[64];
    tsr_layout *layout;
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(result), &layout));
    for (int i = 0; i < MOST; i++)
        values[i] = i % 64 + 1;
    tsr_layout_print(layout, placements, sizeof placements);
    const tsr_status status = support_make(tsr_layout_mesh(layout), placements, tsr_layout_dtype(layout),
                                           tsr_layout_ndim(layout), tsr_layout_shape(layout), values, out);
    tsr_layout_destroy(layout);
    return status;
}

static void destroy(tsr_dtensor *const *tensors, int count)
{
    for (int i = 0; i < count; i++)
        tsr_dtensor_destroy(tensors[i]);
}

/* A table and ids on a mesh, and what the lookup and the gradient are placed as. */
typedef struct lookup_case {
    const char *mesh, *weight, *ids, *out, *dweight;
    tsr_dtype dtype;
} lookup_case;

/* 7 rows over 4 ranks are 2, 2, 2 and 1; over 8 some have none. */
static const lookup_case lookups[] = {
    {"1", "R", "R", "R", "R", TSR_F64},
    {"2", "S(0)", "R", "P", "S(0)", TSR_F32},
    {"2", "S(1)", "R", "S(2)", "S(1)", TSR_F32},
    {"2", "R", "S(0)", "S(0)", "P", TSR_F64},
    {"4", "S(0)", "R", "P", "S(0)", TSR_I64},
    {"8", "S(0)", "R", "P", "S(0)", TSR_BF16},
    {"3", "S(0;balanced)", "R", "P", "S(0;balanced)", TSR_I32},
    {"3", "S(0;unit=2)", "R", "P", "S(0;unit=2)", TSR_F16},
    {"2x3", "S(0),S(1)", "R,R", "P,S(2)", "S(0),S(1)", TSR_F16},
    {"2x3", "R,S(0)", "S(1),R", "S(1),P", "P,S(0)", TSR_F64},
    {"2x2", "S(0),S(0)", "R,R", "P,P", "S(0),S(0)", TSR_F32},
};

static tsr_status look_up(tsr_comm *comm, void *arg)
{
    enum { ROWS = 7, FEATURES = 3, IDS = 10 };
    const lookup_case *const c = arg;
    static const double ids[IDS] = {6, 0, 3, 3, 1, 6, 6, 2, 0, 5};
    const int64_t shape[] = {ROWS, FEATURES}, ids_shape[] = {2, 5};
    double weight[ROWS * FEATURES], got[IDS * FEATURES], wanted[ROWS * FEATURES] = {0};
    tsr_mesh *mesh;
    tsr_dtensor *table, *index, *out, *dout, *dweight;
    for (int i = 0; i < ROWS * FEATURES; i++)
        weight[i] = i % 5 - 2;
    TSR_TRY(tsr_mesh_parse(comm, NULL, c->mesh, &mesh));
    TSR_TRY(support_make(mesh, c->weight, c->dtype, 2, shape, weight, &table));
    TSR_TRY(support_make(mesh, c->ids, TSR_I32, 2, ids_shape, ids, &index));
    TSR_TRY(tsr_embedding(table, index, &out));
    TSR_TRY(expect_placements(out, c->out));
    TSR_TRY(support_read(out, got));
    for (int i = 0; i < IDS * FEATURES; i++)
        TSR_TRY(expect("row", i, got[i], weight[(int)ids[i / FEATURES] * FEATURES + i % FEATURES]));
    TSR_TRY(make_gradient(out, &dout));
    TSR_TRY(tsr_embedding_backward(table, index, dout, &dweight));
    TSR_TRY(expect_placements(dweight, c->dweight));
    TSR_TRY(support_read(dweight, got));
    for (int i = 0; i < IDS * FEATURES; i++)
        wanted[(int)ids[i / FEATURES] * FEATURES + i % FEATURES] += i + 1;
    for (int i = 0; i < ROWS * FEATURES; i++)
        TSR_TRY(expect("dweight", i, got[i], wanted[i]));
    destroy((tsr_dtensor *const[]){table, index, out, dout, dweight}, 5);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void embeddings_are_rows_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lookups / sizeof lookups[0]; i++) {
        if (tsr_threads_run(support_count_ranks(lookups[i].mesh), look_up, (void *)&lookups[i], NULL) != TSR_OK)
            fail_msg("case %zu: %s", i, tsr_status_message());
    }
}

/* Rows that a rank does not have are -0, of integers 0: adding them to -0 leaves it. */
static tsr_status look_up_nothing(tsr_comm *comm, void *arg)
{
    static const tsr_dtype dtypes[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16, TSR_I64, TSR_I32};
    const double values[] = {-0.0, -0.0}, ids[] = {0, 1};
    const int64_t shape[] = {2, 1};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    for (int i = 0; i < 6; i++) {
        tsr_dtensor *table, *index, *out, *whole, *wide;
        TSR_TRY(support_make(mesh, "S(0)", dtypes[i], 2, shape, values, &table));
        TSR_TRY(support_make(mesh, "R", TSR_I64, 1, shape, ids, &index));
        TSR_TRY(tsr_embedding(table, index, &out));
        TSR_TRY(tsr_redistribute_to(out, "R", &whole));
        TSR_TRY(tsr_cast(whole, TSR_F64, &wide));
        const double *const sums = tsr_dtensor_to_local(wide).data;
        for (int j = 0; j < 2; j++)
            TSR_TRY(expect("the sign", j, signbit(sums[j]) != 0, i < 4));
        destroy((tsr_dtensor *const[]){table, index, out, whole, wide}, 5);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void rows_of_other_ranks_add_nothing(void **state)
{
    (void)state;
    layers_run(2, look_up_nothing, NULL);
}

/* Sums of a gradient of bf16 are made in f32: 300 is 256 + 44, which bf16 would lose one by one. */
static tsr_status add_many(tsr_comm *comm, void *arg)
{
    enum { IDS = 300 };
    double ids[IDS] = {0}, ones[IDS], got[2];
    const int64_t shape[] = {2, 1}, ids_shape[] = {IDS, 1};
    tsr_mesh *mesh;
    tsr_dtensor *table, *index, *dout, *dweight;
    (void)arg;
    for (int i = 0; i < IDS; i++)
        ones[i] = 1;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(support_make(mesh, "R", TSR_BF16, 2, shape, ones, &table));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 1, ids_shape, ids, &index));
    TSR_TRY(support_make(mesh, "R", TSR_BF16, 2, ids_shape, ones, &dout));
    TSR_TRY(tsr_embedding_backward(table, index, dout, &dweight));
    TSR_TRY(support_read(dweight, got));
    TSR_TRY(expect("dweight", 0, got[0], 300));
    TSR_TRY(expect("dweight", 1, got[1], 0));
    destroy((tsr_dtensor *const[]){table, index, dout, dweight}, 4);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void sums_of_narrow_gradients_are_wide(void **state)
{
    (void)state;
    layers_run(1, add_many, NULL);
}

/* x (3, 4, 5) indexed along one dim, on a mesh that cuts some dim of it. */
typedef struct index_case {
    const char *mesh, *x, *index;
    int dim;
    tsr_dtype dtype;
    bool shorter; /* gather and scatter_add: the index is shorter in the other dims */
} index_case;

static const index_case indexes[] = {
    {"1", "R", "R", 0, TSR_F64, false},
    {"1", "R", "R", -1, TSR_F16, false},
    {"1", "R", "R", 1, TSR_F32, true},
    {"2", "S(1)", "R", 1, TSR_F32, false},
    {"2", "S(0)", "S(0)", 1, TSR_I64, false},
    {"2", "S(0)", "R", 0, TSR_BF16, true},
    {"3", "S(2)", "R", 2, TSR_F64, false},
    {"3", "R", "S(1)", 0, TSR_F32, true},
    {"2x2", "S(1),S(0)", "R,S(0)", 1, TSR_F32, false},
};

static const int64_t x_shape[] = {3, 4, 5};

/* The index's shape, and its elements. */
static void draw_index(const index_case *c, int64_t *shape, double *index)
{
    const int dim = c->dim < 0 ? 2 : c->dim;
    int64_t count = 1;
    for (int k = 0; k < 3; k++) {
        shape[k] = k == dim ? 6 : x_shape[k] - (c->shorter && k != dim);
        count *= shape[k];
    }
    for (int64_t i = 0; i < count; i++)
        index[i] = (double)((i * 7 + i / 3) % x_shape[dim]);
}

/* The element of x that belongs to element i of the index. */
static int64_t element_of(const index_case *c, const int64_t *shape, const double *index, int64_t i)
{
    const int dim = c->dim < 0 ? 2 : c->dim;
    int64_t at[3] = {i / shape[2] / shape[1], i / shape[2] % shape[1], i % shape[2]};
    at[dim] = (int64_t)index[i];
    return (at[0] * x_shape[1] + at[1]) * x_shape[2] + at[2];
}

static tsr_status check_gather(const index_case *c, const tsr_dtensor *x, const tsr_dtensor *index,
                               const int64_t *shape, const double *ids, const double *values)
{
    double got[MOST], wanted[60] = {0};
    tsr_dtensor *out, *dout, *dx;
    const int64_t count = shape[0] * shape[1] * shape[2];
    TSR_TRY(tsr_gather(x, index, c->dim, &out));
    TSR_TRY(support_read(out, got));
    for (int64_t i = 0; i < count; i++)
        TSR_TRY(expect("element", i, got[i], values[element_of(c, shape, ids, i)]));
    TSR_TRY(make_gradient(out, &dout));
    TSR_TRY(tsr_gather_backward(x, index, c->dim, dout, &dx));
    TSR_TRY(support_read(dx, got));
    for (int64_t i = 0; i < count; i++)
        wanted[element_of(c, shape, ids, i)] += (double)(i % 64 + 1);
    for (int i = 0; i < 60; i++)
        TSR_TRY(expect("dx of gather", i, got[i], wanted[i]));
    destroy((tsr_dtensor *const[]){out, dout, dx}, 3);
    return TSR_OK;
}

static tsr_status check_scatter(const index_case *c, const tsr_dtensor *x, const tsr_dtensor *index,
                                const int64_t *shape, const double *ids, const double *values)
{
    double source[MOST], got[MOST], wanted[60];
    tsr_dtensor *terms, *out, *dout, *dx, *dsource;
    char placements[64];
    const int64_t count = shape[0] * shape[1] * shape[2];
    for (int64_t i = 0; i < count; i++)
        source[i] = (double)(i % 9 - 4);
    memcpy(wanted, values, sizeof wanted);
    tsr_layout_print(tsr_dtensor_layout(index), placements, sizeof placements);
    TSR_TRY(support_make(tsr_layout_mesh(tsr_dtensor_layout(x)), placements, c->dtype, 3, shape, source, &terms));
    TSR_TRY(tsr_scatter_add(x, index, terms, c->dim, &out));
    TSR_TRY(support_read(out, got));
    for (int64_t i = 0; i < count; i++)
        wanted[element_of(c, shape, ids, i)] += source[i];
    for (int i = 0; i < 60; i++)
        TSR_TRY(expect("sum", i, got[i], wanted[i]));
    TSR_TRY(make_gradient(out, &dout));
    TSR_TRY(tsr_scatter_add_backward(x, index, terms, c->dim, dout, &dx, &dsource));
    TSR_TRY(support_read(dsource, got));
    for (int64_t i = 0; i < count; i++)
        TSR_TRY(expect("dsource", i, got[i], (double)(element_of(c, shape, ids, i) + 1)));
    TSR_TRY(support_read(dx, got));
    TSR_TRY(expect("dx of scatter_add", 59, got[59], 60));
    destroy((tsr_dtensor *const[]){terms, out, dout, dx, dsource}, 5);
    return TSR_OK;
}

static tsr_status check_select(const index_case *c, const tsr_dtensor *x, const double *values)
{
    static const double ids[] = {2, 0, 2, 1};
    const int dim = c->dim < 0 ? 2 : c->dim;
    const int64_t length = 4;
    double got[MOST];
    int64_t shape[3];
    tsr_dtensor *index, *out;
    char placements[64];
    memcpy(shape, x_shape, sizeof shape);
    shape[dim] = length;
    snprintf(placements, sizeof placements, "%s", strchr(c->mesh, 'x') ? "R,R" : "R");
    TSR_TRY(support_make(tsr_layout_mesh(tsr_dtensor_layout(x)), placements, TSR_I64, 1, &length, ids, &index));
    TSR_TRY(tsr_index_select(x, index, c->dim, &out));
    TSR_TRY(support_read(out, got));
    for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; i++) {
        int64_t at[3] = {i / shape[2] / shape[1], i / shape[2] % shape[1], i % shape[2]};
        at[dim] = (int64_t)ids[at[dim]];
        TSR_TRY(expect("slice", i, got[i], values[(at[0] * x_shape[1] + at[1]) * x_shape[2] + at[2]]));
    }
    destroy((tsr_dtensor *const[]){index, out}, 2);
    return TSR_OK;
}

static tsr_status index_tensor(tsr_comm *comm, void *arg)
{
    const index_case *const c = arg;
    double values[60], ids[MOST];
    int64_t shape[3];
    tsr_mesh *mesh;
    tsr_dtensor *x, *index;
    for (int i = 0; i < 60; i++)
        values[i] = i % 11 - 5;
    draw_index(c, shape, ids);
    TSR_TRY(tsr_mesh_parse(comm, NULL, c->mesh, &mesh));
    TSR_TRY(support_make(mesh, c->x, c->dtype, 3, x_shape, values, &x));
    TSR_TRY(support_make(mesh, c->index, TSR_I64, 3, shape, ids, &index));
    TSR_TRY(check_gather(c, x, index, shape, ids, values));
    if (!c->shorter || !strchr(c->index, 'S'))
        TSR_TRY(check_scatter(c, x, index, shape, ids, values));
    TSR_TRY(check_select(c, x, values));
    destroy((tsr_dtensor *const[]){x, index}, 2);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void elements_and_slices_are_those_of_plain_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof indexes / sizeof indexes[0]; i++) {
        if (tsr_threads_run(support_count_ranks(indexes[i].mesh), index_tensor, (void *)&indexes[i], NULL) != TSR_OK)
            fail_msg("case %zu: %s", i, tsr_status_message());
    }
}

/* Ids (2, 3) cut over two ranks: 4 4 0 and 2 0 4. */
static tsr_status count_ids(tsr_comm *comm, void *arg)
{
    const double ids[] = {4, 4, 0, 2, 0, 4};
    static const double counts[] = {2, 0, 1, 0, 3};
    const int64_t shape[] = {2, 3};
    tsr_mesh *mesh;
    tsr_dtensor *index, *marks, *sums, *out;
    double got[30];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_make(mesh, "S(0)", TSR_I32, 2, shape, ids, &index));
    TSR_TRY(tsr_one_hot(index, 5, &marks));
    TSR_TRY(expect_placements(marks, "S(0)"));
    TSR_TRY(tsr_one_hot_into(index, 5, marks));
    TSR_TRY(support_read(marks, got));
    for (int i = 0; i < 30; i++)
        TSR_TRY(expect("mark", i, got[i], (int)ids[i / 5] == i % 5));
    TSR_TRY(tsr_bincount(index, 5, &sums));
    TSR_TRY(expect_placements(sums, "P"));
    TSR_TRY(tsr_bincount_into(index, 5, sums));
    TSR_TRY(support_read(sums, got));
    for (int i = 0; i < 5; i++)
        TSR_TRY(expect("count", i, got[i], counts[i]));
    const char *const wanted = tsr_comm_rank(comm) ? "bincount: ids[1,2] is 4 on rank 1, but must be at least 0"
                                                   : "bincount: ids[0,0] is 4 on rank 0, but must be at least 0";
    if (tsr_bincount(index, 4, &out) != TSR_ERROR_ARGUMENT || !strstr(tsr_status_message(), wanted))
        return tsr_status_set(TSR_ERROR_INTERNAL, "instead: %s", tsr_status_message());
    if (tsr_one_hot(index, -1, &out) != TSR_ERROR_ARGUMENT ||
        strcmp(tsr_status_message(), "tsr_one_hot: classes is -1, but must not be negative") != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "instead: %s", tsr_status_message());
    destroy((tsr_dtensor *const[]){index, marks, sums}, 3);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void ids_are_marked_and_counted(void **state)
{
    (void)state;
    layers_run(2, count_ids, NULL);
}

/* Results that exist, and the gradient of slices. */
static tsr_status read_into(tsr_comm *comm, void *arg)
{
    const double values[] = {1, 2, 3, 4, 5, 6}, ids[] = {1, 1}, elements[] = {2, 0, 1, 1};
    const int64_t shape[] = {2, 3}, two = 2, square[] = {2, 2};
    tsr_mesh *mesh;
    tsr_dtensor *x, *index, *at, *rows, *slices, *pairs, *dx;
    double got[6];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_make(mesh, "S(1)", TSR_F64, 2, shape, values, &x));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 1, &two, ids, &index));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 2, square, elements, &at));
    TSR_TRY(tsr_embedding(x, index, &rows));
    TSR_TRY(tsr_index_select(x, index, 1, &slices));
    TSR_TRY(tsr_gather(x, at, 1, &pairs));
    TSR_TRY(tsr_embedding_into(x, index, rows));
    TSR_TRY(tsr_index_select_into(x, index, 1, slices));
    TSR_TRY(tsr_gather_into(x, at, 1, pairs));
    TSR_TRY(support_read(rows, got));
    TSR_TRY(expect("row", 5, got[5], 6));
    TSR_TRY(support_read(slices, got));
    TSR_TRY(expect("slice", 3, got[3], 5));
    TSR_TRY(support_read(pairs, got));
    TSR_TRY(expect("element", 0, got[0], 3));
    tsr_dtensor_destroy(pairs);
    TSR_TRY(make_gradient(slices, &pairs));
    TSR_TRY(tsr_index_select_backward(x, index, 1, pairs, &dx));
    TSR_TRY(expect_placements(dx, "S(1)"));
    TSR_TRY(support_read(dx, got));
    TSR_TRY(expect("dx", 1, got[1], 1 + 2));
    TSR_TRY(expect("dx", 4, got[4], 3 + 4));
    destroy((tsr_dtensor *const[]){x, index, at, rows, slices, pairs, dx}, 7);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void results_go_where_the_caller_wants_them(void **state)
{
    (void)state;
    layers_run(2, read_into, NULL);
}

/* A matrix whose columns lie side by side, to which elements are added where it is. */
static tsr_status add_in_place(tsr_comm *comm, void *arg)
{
    float memory[6] = {0, 1, 2, 3, 4, 5};
    const double ids[] = {1, 1, 0, 2}, bad_ids[] = {1, 3, 0, 2}, terms[] = {10, 20, 30, 40};
    const int64_t shape[] = {2, 3}, index_shape[] = {2, 2};
    static const float wanted[] = {0, 31, 32, 3, 4, 45};
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x, *index, *bad, *source;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_layout_create(mesh, (const tsr_placement[]){tsr_replicate()}, 2, shape, TSR_F32, &layout));
    tsr_tensor local = tsr_tensor_contiguous(memory, TSR_F32, 2, shape);
    local.strides[0] = 1;
    local.strides[1] = 2;
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 2, index_shape, ids, &index));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 2, index_shape, bad_ids, &bad));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 2, index_shape, terms, &source));
    if (tsr_scatter_add_into(x, bad, source, 1, x) != TSR_ERROR_ARGUMENT ||
        strcmp(tsr_status_message(), "scatter_add: index[0,1] is 3 on rank 0, but must be at least 0 and below 3") != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "instead: %s", tsr_status_message());
    TSR_TRY(expect("untouched", 2, memory[2], 2));
    TSR_TRY(tsr_scatter_add_into(x, index, source, 1, x));
    for (int i = 0; i < 6; i++)
        TSR_TRY(expect("sum", i, memory[i], wanted[i]));
    destroy((tsr_dtensor *const[]){x, index, bad, source}, 4);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void sums_may_be_made_where_x_is(void **state)
{
    (void)state;
    layers_run(1, add_in_place, NULL);
}

/* Each rank has ids of its own: rank 1's third is no row. */
static tsr_status refuse(tsr_comm *comm, void *arg)
{
    double x[12] = {0}, ids[] = {0, 3, 2, 1, 2, -1};
    const int64_t shape[] = {4, 3}, ids_shape[] = {6}, flat[] = {2, 3}, longer[] = {4, 4};
    tsr_mesh *mesh;
    tsr_dtensor *table, *index, *pairs, *large, *bools, *cut, *out;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 2, shape, x, &table));
    TSR_TRY(support_make(mesh, "S(0)", TSR_I64, 1, ids_shape, ids, &index));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 2, flat, x, &pairs));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 2, longer, (double[16]){0}, &large));
    TSR_TRY(support_make(mesh, "S(0)", TSR_BOOL, 2, shape, x, &bools));
    TSR_TRY(support_make(mesh, "S(0)", TSR_I64, 2, flat, x, &cut));
    const tsr_status status = tsr_embedding(table, index, &out);
    if (tsr_comm_rank(comm) == 0) {
        TSR_TRY(status);
        tsr_dtensor_destroy(out);
    } else if (status != TSR_ERROR_ARGUMENT ||
               strcmp(tsr_status_message(), "embedding: ids[5] is -1 on rank 1, but must be at least 0 and below 4") !=
                   0) {
        return tsr_status_set(TSR_ERROR_INTERNAL, "instead: %s", tsr_status_message());
    }
    TSR_TRY(layer_expect_refusal(tsr_embedding(table, table, &out),
                                 "tsr_embedding: ids is f32, but embedding takes i64 and i32"));
    TSR_TRY(
        layer_expect_refusal(tsr_embedding(bools, pairs, &out),
                             "tsr_embedding: weight is bool, but embedding takes f64, f32, f16, bf16, i64 and i32"));
    TSR_TRY(layer_expect_refusal(tsr_gather(table, pairs, 2, &out),
                                 "tsr_gather: dim is 2, but must be below 2, the dims of x, or -1 for the last"));
    TSR_TRY(layer_expect_refusal(tsr_gather(table, large, 0, &out),
                                 "tsr_gather: dim 1 of index has size 4, but must not be longer than that of x, 3"));
    TSR_TRY(layer_expect_refusal(tsr_gather(table, index, 0, &out),
                                 "tsr_gather: index has 1 dims but x has 2; both must have as many"));
    TSR_TRY(layer_expect_refusal(
        tsr_gather(bools, pairs, 0, &out),
        "tsr_gather: mesh dim tp cuts dim 0 of x, which gather needs whole; redistribute x from \"S(0)\" to \"R\""));
    TSR_TRY(layer_expect_refusal(
        tsr_scatter_add(table, cut, table, 0, &out),
        "tsr_scatter_add: dim 0 of source has size 4, but dim 0 of index has 2; \"v b, n b, n b -> v b | n whole | "
        "v positional | linear {0 2}\" wants them equal"));
    destroy((tsr_dtensor *const[]){table, index, pairs, large, bools, cut}, 6);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void ids_and_shapes_that_do_not_fit_are_refused_in_words(void **state)
{
    (void)state;
    layers_run(2, refuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embeddings_are_rows_of_the_table),
        cmocka_unit_test(rows_of_other_ranks_add_nothing),
        cmocka_unit_test(sums_of_narrow_gradients_are_wide),
        cmocka_unit_test(elements_and_slices_are_those_of_plain_loops),
        cmocka_unit_test(ids_are_marked_and_counted),
        cmocka_unit_test(results_go_where_the_caller_wants_them),
        cmocka_unit_test(sums_may_be_made_where_x_is),
        cmocka_unit_test(ids_and_shapes_that_do_not_fit_are_refused_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
