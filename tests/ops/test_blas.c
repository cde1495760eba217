/* OpenBLAS, called by several ranks at once: the results, and the host's thread count
 * afterwards. */
#include "layers.h"

#include <tessera/sys/status.h>

#include <cblas.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, SIZE = 128, REPEATS = 2000, BUILD_SERIAL = 0 };

/* One replicated layer of `tokens` tokens on a rank of its own, so that the products of ranks can
 * overlap. */
static tsr_status multiply_repeatedly(tsr_comm *comm, int tokens, const float *x, const float *w, const float *expected,
                                      float *first)
{
    const int64_t x_shape[] = {tokens, SIZE}, w_shape[] = {SIZE, SIZE};
    tsr_mesh *mesh;
    tsr_layout *x_layout, *w_layout;
    tsr_linear_plan *plan;
    const int64_t rank = tsr_comm_rank(comm), one = 1;
    TSR_TRY(tsr_mesh_create(comm, 1, &one, NULL, &rank, &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, x_shape, TSR_F32, &x_layout));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, w_shape, TSR_F32, &w_layout));
    TSR_TRY(tsr_linear_plan_create(x_layout, w_layout, NULL, NULL, &plan));
    const size_t bytes = tsr_linear_plan_workspace_bytes(plan), y_bytes = (size_t)tokens * SIZE * sizeof(float);
    float *y = malloc(y_bytes);
    void *workspace = malloc(bytes);
    const tsr_tensor tx = tsr_tensor_contiguous((void *)x, TSR_F32, 2, x_shape),
                     tw = tsr_tensor_contiguous((void *)w, TSR_F32, 2, w_shape);
    const tsr_tensor ty = tsr_tensor_contiguous(y, TSR_F32, 2, x_shape);
    int wrong = 0;
    tsr_status status = y && workspace ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "no memory for y");
    for (int i = 0; i < REPEATS && status == TSR_OK; i++) {
        status = tsr_linear_plan_execute(plan, &tx, &tw, NULL, &ty, workspace, bytes, NULL);
        wrong += expected && memcmp(y, expected, y_bytes) != 0;
    }
    if (first && status == TSR_OK)
        memcpy(first, y, y_bytes);
    free(workspace);
    free(y);
    tsr_linear_plan_destroy(plan);
    tsr_layout_destroy(w_layout);
    tsr_layout_destroy(x_layout);
    tsr_mesh_destroy(mesh);
    if (status == TSR_OK && wrong)
        return tsr_status_set(TSR_ERROR_INTERNAL,
                              "rank %d, %d tokens: %d of %d products are not those of one rank alone", (int)rank,
                              tokens, wrong, REPEATS);
    return status;
}

typedef struct stress {
    float x[SIZE * SIZE], w[SIZE * SIZE], expected[SIZE * SIZE];
    int tokens;
} stress;

static tsr_status run_alone(tsr_comm *comm, void *arg)
{
    stress *s = arg;
    return multiply_repeatedly(comm, s->tokens, s->x, s->w, NULL, s->expected);
}

static tsr_status run_together(tsr_comm *comm, void *arg)
{
    const stress *s = arg;
    return multiply_repeatedly(comm, s->tokens, s->x, s->w, s->expected, NULL);
}

static void products_of_ranks_at_once_have_the_bits_of_one_rank_alone(void **state)
{
    (void)state;
    stress *s = malloc(sizeof *s);
    assert_non_null(s);
    for (int i = 0; i < SIZE * SIZE; i++) {
        s->x[i] = (float)(i % 1009 * 7919 % 1013) / 1013 - 0.5f;
        s->w[i] = (float)(i % 1009 * 10473 % 997) / 997 - 0.5f;
    }
    static const int tokens[] = {1, 5, SIZE};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        s->tokens = tokens[i];
        layers_run(1, run_alone, s);
        layers_run(RANKS, run_together, s);
    }
    free(s);
}

static const layer column_parallel = {"2", 2, {4, 6}, 8, "R", "S(0)", "S(0)", TSR_F32};

static tsr_status run_layer(tsr_comm *comm, void *arg)
{
    (void)arg;
    return layer_check(comm, &column_parallel);
}

static tsr_status hold_plan(tsr_comm *comm, void *arg)
{
    int *during = arg;
    tsr_mesh *mesh;
    tsr_layout *x;
    tsr_linear_plan *first, *second;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, (int64_t[]){4, 4}, TSR_F32, &x));
    TSR_TRY(tsr_linear_plan_create(x, x, NULL, NULL, &first));
    TSR_TRY(tsr_linear_plan_create(x, x, NULL, NULL, &second));
    tsr_linear_plan_destroy(first);
    during[tsr_comm_rank(comm)] = openblas_get_num_threads();
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_linear_plan_destroy(second);
    tsr_layout_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void skip_if_serial(void)
{
    if (openblas_get_parallel() == BUILD_SERIAL) {
        print_message("OpenBLAS is a serial build: it has no thread count\n");
        skip();
    }
}

static void the_thread_count_of_the_host_is_restored_after_a_call(void **state)
{
    (void)state;
    skip_if_serial();
    openblas_set_num_threads(3);
    const int host = openblas_get_num_threads();
    layers_run(2, run_layer, NULL);
    assert_int_equal(openblas_get_num_threads(), host);
}

static void plans_keep_one_thread_a_call_until_the_last_is_gone(void **state)
{
    (void)state;
    skip_if_serial();
    int during[2] = {0, 0};
    openblas_set_num_threads(2);
    const int host = openblas_get_num_threads();
    layers_run(2, hold_plan, during);
    assert_int_equal(during[0], 1);
    assert_int_equal(during[1], 1);
    assert_int_equal(openblas_get_num_threads(), host);
}

static tsr_status change_count_under_plan(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh;
    tsr_layout *x;
    tsr_linear_plan *plan;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, (int64_t[]){4, 4}, TSR_F32, &x));
    TSR_TRY(tsr_linear_plan_create(x, x, NULL, NULL, &plan));
    openblas_set_num_threads(2);
    tsr_linear_plan_destroy(plan);
    tsr_layout_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_count_that_the_host_sets_meanwhile_stays(void **state)
{
    (void)state;
    skip_if_serial();
    openblas_set_num_threads(3);
    layers_run(1, change_count_under_plan, NULL);
    assert_int_equal(openblas_get_num_threads(), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_ranks_at_once_have_the_bits_of_one_rank_alone),
        cmocka_unit_test(the_thread_count_of_the_host_is_restored_after_a_call),
        cmocka_unit_test(plans_keep_one_thread_a_call_until_the_last_is_gone),
        cmocka_unit_test(a_count_that_the_host_sets_meanwhile_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
