/* The three functions by which ggml sums tensors over devices: what is added, what is refused, and
 * what becomes of a sum that fails. */
#include "split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static ggml_backend_comm_init_t comm_init;
static ggml_backend_comm_free_t comm_free;
static ggml_backend_comm_allreduce_tensor_t allreduce;

/* Some devices with a tensor each. */
typedef struct group {
    int count;
    ggml_backend_t backends[MOST_DEVICES];
    struct ggml_context *contexts[MOST_DEVICES];
    ggml_backend_buffer_t buffers[MOST_DEVICES];
    struct ggml_tensor *tensors[MOST_DEVICES];
    void *comm;
} group;

static group open_group(int count)
{
    group g = {.count = count};
    for (int r = 0; r < count; r++)
        g.backends[r] = open_backend(r);
    g.comm = comm_init(g.backends, (size_t)count);
    assert_non_null(g.comm);
    return g;
}

static void make_tensor(group *g, int r, enum ggml_type type, int64_t columns, int64_t rows)
{
    const struct ggml_init_params params = {4 * ggml_tensor_overhead(), NULL, true};
    g->contexts[r] = ggml_init(params);
    g->tensors[r] = ggml_new_tensor_2d(g->contexts[r], type, columns, rows);
    g->tensors[r]->flags |= GGML_TENSOR_FLAG_COMPUTE;
    g->buffers[r] = ggml_backend_alloc_buffer(g->backends[r], ggml_nbytes(g->tensors[r]));
    ggml_backend_tensor_alloc(g->buffers[r], g->tensors[r], ggml_backend_buffer_get_base(g->buffers[r]));
}

static void free_tensor(group *g, int r)
{
    ggml_backend_buffer_free(g->buffers[r]);
    ggml_free(g->contexts[r]);
}

static void make_tensors(group *g, enum ggml_type type, int64_t columns, int64_t rows)
{
    for (int r = 0; r < g->count; r++)
        make_tensor(g, r, type, columns, rows);
}

static void free_tensors(group *g)
{
    for (int r = 0; r < g->count; r++)
        free_tensor(g, r);
}

static void close_group(group *g)
{
    comm_free(g->comm);
    for (int r = 0; r < g->count; r++)
        ggml_backend_free(g->backends[r]);
}

static void synchronize(const group *g)
{
    for (int r = 0; r < g->count; r++)
        ggml_backend_synchronize(g->backends[r]);
}

/* Writes floats in a dtype. */
static void convert(enum ggml_type type, const float *values, void *out, int64_t count)
{
    if (count > 0)
        ggml_quantize_chunk(type, values, out, 0, 1, count, NULL);
}

/* Every rank gets the ranks' numbers added in rank order, exactly. Ranks of the mask `absent` count
 * as zeros. f16 and bf16 are added as floats and rounded once. */
static void check_sum(group *g, unsigned absent)
{
    const enum ggml_type type = g->tensors[0]->type;
    const int64_t count = ggml_nelements(g->tensors[0]);
    const size_t bytes = ggml_nbytes(g->tensors[0]);
    float *const sum = calloc((size_t)count + 1, sizeof *sum), *const back = malloc(((size_t)count + 1) * sizeof *back);
    char *const term = malloc(bytes + 1), *const expected = malloc(bytes + 1);
    for (int r = 0; r < g->count; r++) {
        float *const values = numbers(count, (unsigned)r + 1, 0);
        convert(type, values, term, count);
        ggml_backend_tensor_set(g->tensors[r], term, 0, bytes);
        if (type == GGML_TYPE_F32)
            memcpy(back, term, bytes);
        else
            ggml_get_type_traits(type)->to_float(term, back, count);
        for (int64_t i = 0; i < count; i++)
            sum[i] = r == 0 ? (absent & 1 ? 0 : back[i]) : sum[i] + (absent >> r & 1 ? 0 : back[i]);
        if (absent >> r & 1)
            g->tensors[r]->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
        free(values);
    }
    convert(type, sum, expected, count);
    assert_true(allreduce(g->comm, g->tensors));
    synchronize(g);
    for (int r = 0; r < g->count; r++) {
        ggml_backend_tensor_get(g->tensors[r], term, 0, bytes);
        assert_memory_equal(term, expected, bytes);
    }
    free(expected);
    free(term);
    free(back);
    free(sum);
}

/* Tensors without elements too. */
static void sums_are_in_rank_order(void **state)
{
    static const int counts[] = {1, 2, 3, 4, 16};
    static const int64_t sizes[] = {0, 1, 7, 1000, 70001};
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        group g = open_group(counts[c]);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                make_tensors(&g, types[t], sizes[s], 1);
                check_sum(&g, 0);
                free_tensors(&g);
            }
        close_group(&g);
    }
}

/* NaN where a tensor was not computed must not reach the sum. */
static void tensors_that_are_not_computed_are_zeros(void **state)
{
    group g = open_group(4);
    (void)state;
    for (unsigned absent = 1; absent < 16; absent++) {
        make_tensors(&g, GGML_TYPE_F32, 33, 3);
        check_sum(&g, absent);
        free_tensors(&g);
    }
    make_tensors(&g, GGML_TYPE_F32, 8, 1);
    for (int r = 0; r < 4; r++)
        ggml_backend_tensor_memset(g.tensors[r], r == 2 ? 0xff : 0, 0, 32);
    g.tensors[2]->flags = 0;
    assert_true(allreduce(g.comm, g.tensors));
    synchronize(&g);
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 8; i++)
            assert_true(((const float *)g.tensors[r]->data)[i] == 0);
    free_tensors(&g);
    close_group(&g);
}

static void f64_is_added_in_f64(void **state)
{
    group g = open_group(3);
    static const double terms[] = {1, 0x1p-50, 0x1p-51};
    (void)state;
    make_tensors(&g, GGML_TYPE_F64, 1, 1);
    for (int r = 0; r < 3; r++)
        ggml_backend_tensor_set(g.tensors[r], &terms[r], 0, sizeof *terms);
    assert_true(allreduce(g.comm, g.tensors));
    synchronize(&g);
    for (int r = 0; r < 3; r++)
        assert_true(*(const double *)g.tensors[r]->data == 1 + 0x1p-50 + 0x1p-51);
    free_tensors(&g);
    close_group(&g);
}

/* Each leaves all elements as they are, and the communicator usable. */
static void what_cannot_be_added_is_left_to_ggml(void **state)
{
    group g = open_group(2);
    (void)state;
    make_tensors(&g, GGML_TYPE_Q8_0, 64, 1);
    assert_false(allreduce(g.comm, g.tensors));
    free_tensors(&g);
    make_tensors(&g, GGML_TYPE_I32, 64, 1);
    assert_false(allreduce(g.comm, g.tensors));
    free_tensors(&g);
    make_tensor(&g, 0, GGML_TYPE_F32, 64, 1);
    make_tensor(&g, 1, GGML_TYPE_F16, 64, 1);
    assert_false(allreduce(g.comm, g.tensors));
    free_tensor(&g, 1);
    make_tensor(&g, 1, GGML_TYPE_F32, 32, 1);
    assert_false(allreduce(g.comm, g.tensors));
    free_tensors(&g);

    /* Rows with gaps between them. */
    make_tensors(&g, GGML_TYPE_F32, 8, 4);
    struct ggml_tensor *views[2];
    for (int r = 0; r < 2; r++) {
        memset(g.tensors[r]->data, 1, ggml_nbytes(g.tensors[r]));
        views[r] = ggml_view_2d(g.contexts[r], g.tensors[r], 4, 4, g.tensors[r]->nb[1], 0);
        assert_int_equal(ggml_backend_view_init(views[r]), GGML_STATUS_SUCCESS);
    }
    assert_false(allreduce(g.comm, views));
    synchronize(&g);
    for (size_t i = 0; i < ggml_nbytes(g.tensors[1]); i++)
        assert_int_equal(((const char *)g.tensors[1]->data)[i], 1);
    check_sum(&g, 0);

    /* Memory that is nobody's. */
    g.tensors[1]->buffer = NULL;
    assert_false(allreduce(g.comm, g.tensors));
    free_tensors(&g);
    close_group(&g);
}

static void only_backends_of_the_library_are_a_communicator(void **state)
{
    ggml_backend_t backends[MOST_DEVICES + 1] = {open_backend(0), open_processor()};
    (void)state;
    assert_null(comm_init(backends, 2));
    assert_null(comm_init(backends, 0));
    ggml_backend_free(backends[1]);
    for (int r = 1; r <= MOST_DEVICES; r++)
        backends[r] = backends[0];
    assert_null(comm_init(backends, MOST_DEVICES + 1));
    comm_free(NULL);
    ggml_backend_free(backends[0]);
}

/* One thread cannot be two ranks, which wait for each other. */
static void a_backend_is_one_rank(void **state)
{
    ggml_backend_t backends[] = {open_backend(0), open_backend(1), NULL};
    (void)state;
    backends[2] = backends[0];
    assert_null(comm_init(backends, 3));
    assert_non_null(strstr(last_error, "backend 2 is backend 0"));
    for (int r = 0; r < 2; r++)
        ggml_backend_free(backends[r]);
}

/* A graph is computed as it was when it was given, whatever becomes of it afterwards. */
static void graphs_may_be_changed_at_once(void **state)
{
    group g = open_group(2);
    const struct ggml_init_params params = {8 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    (void)state;
    make_tensors(&g, GGML_TYPE_F32, 1000, 1);
    for (int r = 0; r < 2; r++) {
        struct ggml_context *const nodes = ggml_init(params);
        struct ggml_cgraph *const graph = ggml_new_graph(nodes);
        for (int64_t i = 0; i < 1000; i++)
            ((float *)g.tensors[r]->data)[i] = (float)i;
        struct ggml_tensor *const twice = ggml_scale_inplace(nodes, g.tensors[r], 2);
        struct ggml_tensor *const squared = ggml_sqr_inplace(nodes, ggml_view_1d(nodes, twice, 500, 2000));
        ggml_build_forward_expand(graph, squared);
        for (struct ggml_tensor *t = ggml_get_first_tensor(nodes); t; t = ggml_get_next_tensor(nodes, t))
            assert_int_equal(ggml_backend_view_init(t), GGML_STATUS_SUCCESS);
        assert_int_equal(ggml_backend_graph_compute_async(g.backends[r], graph), GGML_STATUS_SUCCESS);
        for (struct ggml_tensor *t = ggml_get_first_tensor(nodes); t; t = ggml_get_next_tensor(nodes, t))
            memset((void *)t, 0x5a, offsetof(struct ggml_tensor, name));
        ggml_free(nodes);
    }
    assert_true(allreduce(g.comm, g.tensors));
    g.tensors[0]->flags = 0;
    synchronize(&g);
    for (int64_t i = 0; i < 1000; i++) {
        const float one = i < 500 ? (float)(2 * i) : (float)(4 * i * i);
        assert_true(((const float *)g.tensors[1]->data)[i] == 2 * one);
    }
    free_tensors(&g);
    close_group(&g);
}

static void sleep_through_timeout(struct ggml_tensor *target, const struct ggml_tensor *source, int thread, int threads,
                                  void *data)
{
    (void)target, (void)source, (void)threads, (void)data;
    if (thread == 0)
        nanosleep(&(const struct timespec){.tv_nsec = 400 * 1000 * 1000}, NULL);
}

/* A rank that is late breaks the communicator: nobody takes what is there for a sum, the next graph
 * fails, and from then on ggml adds in its own way. */
static void a_failed_sum_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(setenv("TSR_TIMEOUT_MS", "50", 1), 0);
    group g = open_group(2);
    assert_int_equal(unsetenv("TSR_TIMEOUT_MS"), 0);
    const struct ggml_init_params params = {8 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    struct ggml_context *const nodes = ggml_init(params);
    struct ggml_cgraph *const graph = ggml_new_graph(nodes);
    make_tensors(&g, GGML_TYPE_F32, 10, 1);
    check_sum(&g, 0);
    struct ggml_tensor *const late = ggml_map_custom1_inplace(nodes, g.tensors[1], sleep_through_timeout, 1, NULL);
    assert_int_equal(ggml_backend_view_init(late), GGML_STATUS_SUCCESS);
    ggml_build_forward_expand(graph, late);
    assert_int_equal(ggml_backend_graph_compute_async(g.backends[1], graph), GGML_STATUS_SUCCESS);
    assert_true(allreduce(g.comm, g.tensors));
    synchronize(&g);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 10; i++)
            assert_true(((const float *)g.tensors[r]->data)[i] != ((const float *)g.tensors[r]->data)[i]);
    assert_non_null(strstr(last_error, "a sum over 2 devices failed"));
    assert_int_equal(ggml_backend_graph_compute(g.backends[0], graph), GGML_STATUS_FAILED);
    assert_int_equal(ggml_backend_graph_compute(g.backends[0], graph), GGML_STATUS_SUCCESS);
    assert_false(allreduce(g.comm, g.tensors));
    free_tensors(&g);
    ggml_free(nodes);
    close_group(&g);
}

static bool give_up(void *data)
{
    (void)data;
    return true;
}

/* A member of a communicator returns before its graph is computed, so the next one tells. */
static void a_failed_graph_is_reported_by_the_next(void **state)
{
    group g = open_group(2);
    ggml_backend_set_abort_callback_t set_abort;
    const struct ggml_init_params params = {8 * ggml_tensor_overhead() + ggml_graph_overhead(), NULL, true};
    struct ggml_context *const nodes = ggml_init(params);
    struct ggml_cgraph *const graph = ggml_new_graph(nodes);
    (void)state;
    find_function(load_tessera(), "ggml_backend_set_abort_callback", &set_abort);
    make_tensors(&g, GGML_TYPE_F32, 10, 1);
    struct ggml_tensor *const twice = ggml_scale_inplace(nodes, ggml_scale_inplace(nodes, g.tensors[1], 2), 2);
    assert_int_equal(ggml_backend_view_init(twice->src[0]), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_backend_view_init(twice), GGML_STATUS_SUCCESS);
    ggml_build_forward_expand(graph, twice);
    set_abort(g.backends[1], give_up, NULL);
    assert_int_equal(ggml_backend_graph_compute(g.backends[1], graph), GGML_STATUS_SUCCESS);
    set_abort(g.backends[1], NULL, NULL);
    assert_int_equal(ggml_backend_graph_compute(g.backends[1], graph), GGML_STATUS_ABORTED);
    assert_int_equal(ggml_backend_graph_compute(g.backends[1], graph), GGML_STATUS_SUCCESS);
    check_sum(&g, 0);
    free_tensors(&g);
    ggml_free(nodes);
    close_group(&g);
}

static int setup(void **state)
{
    const ggml_backend_reg_t reg = load_tessera();
    (void)state;
    if (!reg)
        return -1;
    find_function(reg, "ggml_backend_comm_init", &comm_init);
    find_function(reg, "ggml_backend_comm_free", &comm_free);
    find_function(reg, "ggml_backend_comm_allreduce_tensor", &allreduce);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_in_rank_order),
        cmocka_unit_test(tensors_that_are_not_computed_are_zeros),
        cmocka_unit_test(f64_is_added_in_f64),
        cmocka_unit_test(what_cannot_be_added_is_left_to_ggml),
        cmocka_unit_test(only_backends_of_the_library_are_a_communicator),
        cmocka_unit_test(a_backend_is_one_rank),
        cmocka_unit_test(graphs_may_be_changed_at_once),
        cmocka_unit_test(a_failed_sum_is_noticed),
        cmocka_unit_test(a_failed_graph_is_reported_by_the_next),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
