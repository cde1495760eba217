/* Linear layers on rank threads, forward and backward, compared with plain loops, for every
 * combination of layouts that the rule accepts. */
#include "layers.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The weight is cut over the ranks in falling order, so its parts would meet the wrong pieces of
 * x. */
static tsr_status multiply_across(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t ranks = tsr_comm_size(comm), shape[] = {ranks, 2 * ranks};
    const tsr_placement columns = tsr_shard(1), replicate = tsr_replicate();
    tsr_comm *turned = NULL, *copy = NULL;
    tsr_mesh *mesh = NULL, *other = NULL, *alike = NULL;
    tsr_dtensor *x = NULL, *w = NULL, *same = NULL, *y = NULL;
    float values[2 * 16] = {0};
    for (int i = 0; i < 2 * ranks * ranks && i < 32; i++)
        values[i] = (float)i;
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    TSR_TRY(tsr_comm_split(comm, 0, -tsr_comm_rank(comm), &turned));
    TSR_TRY(tsr_comm_split(comm, 0, tsr_comm_rank(comm), &copy));
    TSR_TRY(tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &mesh));
    TSR_TRY(tsr_mesh_create(turned, 1, &ranks, NULL, NULL, &other));
    TSR_TRY(tsr_mesh_create(copy, 1, &ranks, NULL, NULL, &alike));
    TSR_TRY(tsr_distribute_tensor(&global, mesh, &columns, NULL, &x));
    TSR_TRY(tsr_distribute_tensor(&global, other, &columns, NULL, &w));
    TSR_TRY(tsr_distribute_tensor(&global, alike, &columns, NULL, &same));
    tsr_linear_plan *plan = NULL;
    const tsr_status refused = tsr_linear(x, w, NULL, &replicate, &y);
    const bool named = strstr(tsr_status_message(), "the communicators differ: x and w are on mesh 4");
    const tsr_status unplanned =
        tsr_linear_plan_create(tsr_dtensor_layout(x), tsr_dtensor_layout(w), NULL, NULL, &plan);
    if (refused != TSR_ERROR_ARGUMENT || !named || unplanned != TSR_ERROR_ARGUMENT || y || plan)
        return tsr_status_set(TSR_ERROR_INTERNAL, "falling ranks: %s, %s", tsr_status_name(refused),
                              tsr_status_name(unplanned));
    const tsr_status copied = tsr_linear(x, same, NULL, &replicate, &y);
    if (copied != TSR_ERROR_ARGUMENT || !strstr(tsr_status_message(), "both must be over one"))
        return tsr_status_set(TSR_ERROR_INTERNAL, "a copy: %s", tsr_status_name(copied));
    tsr_dtensor *const made[] = {x, w, same, y};
    tsr_mesh *const meshes[] = {mesh, other, alike};
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(made[i]);
    for (int i = 0; i < 3; i++)
        tsr_mesh_destroy(meshes[i]);
    tsr_comm_destroy(turned);
    tsr_comm_destroy(copy);
    return TSR_OK;
}

static void operands_over_ranks_in_another_order_are_refused(void **state)
{
    (void)state;
    assert_int_equal(tsr_threads_run(4, multiply_across, NULL, NULL), TSR_OK);
}

/* The placements that one mesh dim may have for x, with those of w and b. */
typedef struct pairing {
    const char *x, *w, *b;
} pairing;

static const pairing flat_pairings[] = {
    {"R", "R", "R"}, {"R", "S(0)", "S(0)"}, {"S(0)", "R", "R"},   {"S(1)", "S(1)", "R"},
    {"P", "R", "R"}, {"R", "P", "R"},       {"P(avg)", "R", "R"},
};
static const pairing deep_pairings[] = {
    {"R", "S(0)", "S(0)"},
    {"S(0)", "R", "R"},
    {"S(1)", "R", "R"},
    {"S(2)", "S(1)", "R"},
};
static const pairing vector_pairings[] = {
    {"R", "R", "R"}, {"R", "S(0)", "S(0)"}, {"S(0)", "S(1)", "R"}, {"P", "R", "R"}, {"R", "P", "R"},
};

typedef struct sweep {
    const char *mesh;
    int mesh_ndim;
    const pairing *pairings;
    int pairing_count;
    int x_ndim;
    int64_t x_shape[TSR_MAX_DIMS];
    int64_t out;
} sweep;

static void join(const char *piece, int dim, char *text)
{
    const size_t length = strlen(text);
    snprintf(text + length, LAYER_TEXT - length, "%s%s", dim ? "," : "", piece);
}

/* Checks combination `number` of one pairing for each mesh dim. Cases with and without bias, and of
 * the two dtypes, alternate. */
static tsr_status check_combination(tsr_comm *comm, const sweep *s, int number)
{
    char x[LAYER_TEXT] = "", w[LAYER_TEXT] = "", b[LAYER_TEXT] = "";
    for (int dim = 0, rest = number; dim < s->mesh_ndim; dim++, rest /= s->pairing_count) {
        const pairing *p = &s->pairings[rest % s->pairing_count];
        join(p->x, dim, x);
        join(p->w, dim, w);
        join(p->b, dim, b);
    }
    layer l = {.mesh = s->mesh, .x_ndim = s->x_ndim, .out = s->out, .x = x, .w = w, .b = number % 3 ? b : NULL};
    l.dtype = number % 2 ? TSR_F64 : TSR_F32;
    memcpy(l.x_shape, s->x_shape, sizeof l.x_shape);
    return layer_check(comm, &l);
}

/* On several mesh dims one combination in five if TSR_TEST_THIN is set: each pairing still meets
 * each dim, bias and dtype. */
static tsr_status check_sweep(tsr_comm *comm, void *arg)
{
    const sweep *s = arg;
    const int by = s->mesh_ndim > 1 && getenv("TSR_TEST_THIN") ? 5 : 1;
    int combinations = 1;
    for (int dim = 0; dim < s->mesh_ndim; dim++)
        combinations *= s->pairing_count;
    for (int number = 0; number < combinations; number += by)
        TSR_TRY(check_combination(comm, s, number));
    return TSR_OK;
}

#define FLAT   flat_pairings, sizeof flat_pairings / sizeof flat_pairings[0]
#define DEEP   deep_pairings, sizeof deep_pairings / sizeof deep_pairings[0]
#define VECTOR vector_pairings, sizeof vector_pairings / sizeof vector_pairings[0]

static int ranks_of(const char *mesh)
{
    int ranks = 1;
    for (const char *at = mesh; *at; at++)
        ranks *= *at >= '1' && *at <= '9' ? *at - '0' : 1;
    return ranks;
}

static void run_sweeps(sweep *sweeps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        layers_run(ranks_of(sweeps[i].mesh), check_sweep, &sweeps[i]);
}

static void every_combination_on_meshes_of_one_dim_is_exact(void **state)
{
    (void)state;
    sweep sweeps[] = {
        {"1", 1, FLAT, 2, {5, 13}, 7}, {"2", 1, FLAT, 2, {5, 13}, 7},  {"3", 1, FLAT, 2, {5, 13}, 7},
        {"4", 1, FLAT, 2, {5, 13}, 7}, {"5", 1, FLAT, 2, {5, 13}, 7},  {"6", 1, FLAT, 2, {5, 13}, 7},
        {"7", 1, FLAT, 2, {5, 13}, 7}, {"8", 1, FLAT, 2, {9, 13}, 13},
    };
    run_sweeps(sweeps, sizeof sweeps / sizeof sweeps[0]);
}

static void every_combination_on_meshes_of_several_dims_is_exact(void **state)
{
    (void)state;
    sweep sweeps[] = {
        {"2x2", 2, FLAT, 2, {5, 13}, 7}, {"2x3", 2, FLAT, 2, {5, 13}, 7},     {"4x2", 2, FLAT, 2, {3, 4}, 9},
        {"1x3", 2, FLAT, 2, {5, 7}, 7},  {"2x2x2", 3, DEEP, 3, {2, 3, 5}, 7},
    };
    run_sweeps(sweeps, sizeof sweeps / sizeof sweeps[0]);
}

static void batch_dims_none_to_seven_are_exact(void **state)
{
    (void)state;
    sweep sweeps[] = {
        {"3", 1, VECTOR, 1, {7}, 5},       {"2x2", 2, VECTOR, 1, {7}, 5},   {"3", 1, DEEP, 3, {2, 5, 7}, 4},
        {"2x2", 2, DEEP, 3, {3, 2, 6}, 5}, {"2", 1, DEEP, 3, {1, 5, 1}, 1},
    };
    run_sweeps(sweeps, sizeof sweeps / sizeof sweeps[0]);
    sweep most = {"2", 1, flat_pairings, 3, 8, {2, 1, 3, 1, 2, 1, 2, 5}, 3};
    layers_run(2, check_sweep, &most);
}

static void dims_of_size_zero_and_empty_shards_are_exact(void **state)
{
    (void)state;
    sweep sweeps[] = {
        {"3", 1, FLAT, 2, {0, 4}, 3},   {"3", 1, FLAT, 2, {4, 0}, 3},    {"3", 1, FLAT, 2, {4, 3}, 0},
        {"2x2", 2, FLAT, 2, {0, 0}, 0}, {"8", 1, FLAT, 2, {2, 2}, 2},    {"2x4", 2, FLAT, 2, {1, 2}, 3},
        {"4", 1, FLAT, 2, {9, 5}, 5},   {"4", 1, DEEP, 3, {2, 0, 3}, 2},
    };
    run_sweeps(sweeps, sizeof sweeps / sizeof sweeps[0]);
}

static tsr_status check_list(tsr_comm *comm, void *arg)
{
    for (const layer *l = arg; l->mesh; l++)
        TSR_TRY(layer_check(comm, l));
    return TSR_OK;
}

static void splits_units_blocks_and_orders_are_exact(void **state)
{
    (void)state;
    layer two[] = {
        {"2", 2, {3, 12}, 10, "R", "S(0;unit=4)", "S(0;unit=4)", TSR_F32},
        {"2", 2, {3, 12}, 10, "R", "S(0;balanced;unit=4)", "S(0;balanced;unit=4)", TSR_F64},
        {"2", 2, {3, 12}, 10, "R", "S(0;interleave=3)", "S(0;interleave=3)", TSR_F32},
        {"2", 2, {3, 12}, 10, "R", "S(0;blocks=6,2,2;unit=2)", "S(0;blocks=6,2,2;unit=2)", TSR_F32},
        {"2", 2, {3, 12}, 10, "R", "S(0;sizes=0,10)", "S(0;sizes=0,10)", TSR_F32},
        {"2", 2, {3, 12}, 10, "S(1;unit=5)", "S(1;unit=5)", "R", TSR_F32},
        {"2", 2, {3, 12}, 10, "S(1;blocks=8,4)", "S(1;blocks=8,4)", "R", TSR_F64},
        {"2", 2, {3, 12}, 10, "S(1;sizes=11,1)", "S(1;sizes=11,1)", "R", TSR_F32},
        {"2", 2, {5, 12}, 10, "S(0;balanced)", "R", "R", TSR_F32},
        {NULL},
    };
    layer six[] = {
        {"2x3", 2, {7, 13}, 11, "S(1)[1],S(1)[0]", "S(1)[1],S(1)[0]", "R,R", TSR_F32},
        {"2x3", 2, {7, 13}, 11, "R,R", "S(0)[1],S(0)[0]", "S(0)[1],S(0)[0]", TSR_F32},
        {"2x3", 2, {7, 13}, 11, "S(0)[1],S(0;balanced)[0]", "R,R", "R,R", TSR_F32},
        {"2x3", 2, {7, 13}, 11, "S(0;balanced),S(1;unit=4)", "R,S(1;unit=4)", "R,R", TSR_F64},
        {"dp=2,tp=3", 2, {7, 13}, 11, "S(0),R", "R,S(0;unit=2)", "R,S(0;unit=2)", TSR_F32},
        {"2x3@[5,3,1,0,2,4]", 2, {7, 13}, 11, "S(0),S(1)", "R,S(1)", "R,R", TSR_F32},
        {NULL},
    };
    layers_run(2, check_list, two);
    layers_run(6, check_list, six);
}

static void ranks_outside_the_mesh_take_part_with_nothing(void **state)
{
    (void)state;
    layer list[] = {
        {"2@1", 2, {5, 13}, 7, "S(1)", "S(1)", "R", TSR_F32},
        {"2@1", 2, {5, 13}, 7, "R", "S(0)", "S(0)", TSR_F32},
        {"1@3", 2, {5, 13}, 7, "R", "R", "R", TSR_F32},
        {NULL},
    };
    layers_run(4, check_list, list);
}

/* Products of few rows go through w in panels that fit a cache, so w has to be larger than a
 * panel. */
static void few_rows_by_many_features_are_exact(void **state)
{
    (void)state;
    layer list[] = {
        {"2", 2, {1, 300}, 600, "R", "S(0)", "S(0)", TSR_F32},
        {"2", 2, {3, 300}, 600, "R", "S(0)", "S(0)", TSR_F32},
        {"2", 2, {7, 300}, 600, "S(1)", "S(1)", "R", TSR_F64},
        {"2", 2, {8, 300}, 600, "S(1)", "S(1)", "R", TSR_F32},
        {NULL},
    };
    layers_run(2, check_list, list);
}

static void local_tensors_with_gaps_are_exact_forward_and_backward(void **state)
{
    (void)state;
    layer list[] = {
        {"2", 3, {3, 4, 5}, 6, "R", "S(0)", "S(0)", TSR_F32, 1},
        {"2", 3, {3, 4, 5}, 6, "S(1)", "R", "R", TSR_F64, 2},
        {"2", 3, {3, 4, 5}, 6, "S(2)", "S(1)", "R", TSR_F32, 3},
        {"2", 4, {2, 3, 2, 70}, 69, "R", "S(0)", "S(0)", TSR_F32, 2},
        {"2", 3, {3, 70, 5}, 130, "S(2)", "S(1)", "R", TSR_F64, 2},
        {"2", 1, {5}, 6, "R", "S(0)", "S(0)", TSR_F32, 2},
        {"2", 3, {3, 0, 5}, 6, "R", "S(0)", "S(0)", TSR_F32, 2},
        {"2", 3, {3, 4, 5}, 6, "P", "R", "R", TSR_F32, 2},
        {NULL},
    };
    layers_run(2, check_list, list);
}

/* A bias added by every rank instead of one would show in the result. */
static tsr_status check_bias_once(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh;
    tsr_dtensor *x, *w, *b, *y;
    float zeros[12] = {0}, bias[3] = {1, 2, 3};
    const tsr_tensor gx = tsr_tensor_contiguous(zeros, TSR_F32, 2, (int64_t[]){2, 4}),
                     gw = tsr_tensor_contiguous(zeros, TSR_F32, 2, (int64_t[]){3, 4});
    const tsr_tensor gb = tsr_tensor_contiguous(bias, TSR_F32, 1, (int64_t[]){3});
    const tsr_placement features = tsr_shard(1), replicate = tsr_replicate();
    TSR_TRY(tsr_mesh_parse(comm, NULL, "4", &mesh));
    TSR_TRY(tsr_distribute_tensor(&gx, mesh, &features, NULL, &x));
    TSR_TRY(tsr_distribute_tensor(&gw, mesh, &features, NULL, &w));
    TSR_TRY(tsr_distribute_tensor(&gb, mesh, &replicate, NULL, &b));
    TSR_TRY(tsr_linear(x, w, b, NULL, &y));
    const tsr_tensor local = tsr_dtensor_to_local(y);
    tsr_status status = TSR_OK;
    for (int i = 0; i < 6; i++) {
        const float expected = tsr_comm_rank(comm) == 0 ? bias[i % 3] : 0, given = ((const float *)local.data)[i];
        if (given != expected)
            status = tsr_status_set(TSR_ERROR_INTERNAL, "rank %d holds %g at %d, not %g", tsr_comm_rank(comm),
                                    (double)given, i, (double)expected);
    }
    tsr_dtensor *const tensors[] = {y, b, w, x};
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(tensors[i]);
    tsr_mesh_destroy(mesh);
    return status;
}

static void the_bias_lies_on_coordinate_zero_of_a_partial_dim_alone(void **state)
{
    (void)state;
    layers_run(4, check_bias_once, NULL);
}

static tsr_status expect_written(const char *what, const tsr_dtensor *tensor, const char *wanted)
{
    char text[32];
    tsr_layout_print(tsr_dtensor_layout(tensor), text, sizeof text);
    return strcmp(text, wanted) == 0 ? TSR_OK
                                     : tsr_status_set(TSR_ERROR_INTERNAL, "%s is %s, not %s", what, text, wanted);
}

/* On a mesh dim of size 1 all layouts are equal, but the result has to have the placements that the
 * caller asked for. */
static tsr_status check_placements_on_one_rank(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh;
    tsr_dtensor *x, *w, *b, *y, *given[3], *own[3];
    float values[12] = {0};
    const tsr_tensor gx = tsr_tensor_contiguous(values, TSR_F32, 2, (int64_t[]){2, 4}),
                     gw = tsr_tensor_contiguous(values, TSR_F32, 2, (int64_t[]){3, 4}),
                     gb = tsr_tensor_contiguous(values, TSR_F32, 1, (int64_t[]){3});
    const tsr_placement rows = tsr_shard(0), columns = tsr_shard(1), replicate = tsr_replicate(),
                        partial = tsr_partial(TSR_SUM);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_distribute_tensor(&gx, mesh, &columns, NULL, &x));
    TSR_TRY(tsr_distribute_tensor(&gw, mesh, &columns, NULL, &w));
    TSR_TRY(tsr_distribute_tensor(&gb, mesh, &replicate, NULL, &b));
    TSR_TRY(tsr_linear(x, w, b, &rows, &y));
    TSR_TRY(tsr_linear_backward(x, w, b, y, &replicate, &rows, &partial, &given[0], &given[1], &given[2]));
    TSR_TRY(tsr_linear_backward(x, w, b, y, NULL, NULL, NULL, &own[0], &own[1], &own[2]));
    const struct {
        const char *what;
        const tsr_dtensor *tensor;
        const char *wanted;
    } cases[] = {
        {"y", y, "S(0)"},         {"dx", given[0], "R"},       {"dw", given[1], "S(0)"},
        {"db", given[2], "P"},    {"dx of x", own[0], "S(1)"}, {"dw of w", own[1], "S(1)"},
        {"db of b", own[2], "R"},
    };
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && status == TSR_OK; i++)
        status = expect_written(cases[i].what, cases[i].tensor, cases[i].wanted);
    tsr_dtensor *const tensors[] = {own[2], own[1], own[0], given[2], given[1], given[0], y, b, w, x};
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        tsr_dtensor_destroy(tensors[i]);
    tsr_mesh_destroy(mesh);
    return status;
}

static void results_have_the_placements_asked_for_on_mesh_dims_of_size_one_too(void **state)
{
    (void)state;
    layers_run(1, check_placements_on_one_rank, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_over_ranks_in_another_order_are_refused),
        cmocka_unit_test(every_combination_on_meshes_of_one_dim_is_exact),
        cmocka_unit_test(every_combination_on_meshes_of_several_dims_is_exact),
        cmocka_unit_test(batch_dims_none_to_seven_are_exact),
        cmocka_unit_test(dims_of_size_zero_and_empty_shards_are_exact),
        cmocka_unit_test(splits_units_blocks_and_orders_are_exact),
        cmocka_unit_test(few_rows_by_many_features_are_exact),
        cmocka_unit_test(local_tensors_with_gaps_are_exact_forward_and_backward),
        cmocka_unit_test(ranks_outside_the_mesh_take_part_with_nothing),
        cmocka_unit_test(the_bias_lies_on_coordinate_zero_of_a_partial_dim_alone),
        cmocka_unit_test(results_have_the_placements_asked_for_on_mesh_dims_of_size_one_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
