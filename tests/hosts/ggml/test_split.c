/* A layer split over devices by ggml's meta device has the bits of its terms added in the order of
 * ranks, and where sums are exact the bits of the layer on one device. */
#include "split.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int counts[] = {1, 2, 3, 4, 7, 16};

typedef struct numbers_of_layer {
    float *up, *down, *x, *bias, *got, *expected;
} numbers_of_layer;

static numbers_of_layer fill(layer *l, int whole)
{
    const numbers_of_layer n = {numbers(l->inner * l->in, 1, whole),  numbers(l->out * l->inner, 2, whole),
                                numbers(l->tokens * l->in, 3, whole), numbers(l->out, 4, whole),
                                numbers(l->tokens * l->out, 5, 0),    numbers(l->tokens * l->out, 6, 0)};
    l->up = n.up;
    l->down = n.down;
    l->x = n.x;
    l->bias = n.bias;
    return n;
}

static void release(numbers_of_layer *n)
{
    float *const all[] = {n->up, n->down, n->x, n->bias, n->got, n->expected};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void run_split(const layer *l, int devices, float *y)
{
    const ggml_backend_t backend = ggml_backend_dev_init(meta_device(devices, l->unit), NULL);
    assert_int_equal(run_layer(l, backend, 3, y), GGML_STATUS_SUCCESS);
    ggml_backend_free(backend);
}

/* Weights of several dtypes, sizes that do not divide, and fewer features than devices. */
static void splits_add_terms_in_rank_order(void **state)
{
    static const layer layers[] = {
        {.in = 64, .inner = 96, .out = 40, .tokens = 5, .weights = GGML_TYPE_F32, .unit = 1},
        {.in = 32, .inner = 101, .out = 33, .tokens = 1, .weights = GGML_TYPE_F32, .unit = 1},
        {.in = 64, .inner = 50, .out = 17, .tokens = 3, .weights = GGML_TYPE_F16, .unit = 1},
        {.in = 64, .inner = 128, .out = 40, .tokens = 9, .weights = GGML_TYPE_Q8_0, .unit = 32},
        {.in = 16, .inner = 3, .out = 8, .tokens = 2, .weights = GGML_TYPE_F32, .unit = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        layer l = layers[i];
        numbers_of_layer n = fill(&l, 0);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            run_split(&l, counts[c], n.got);
            run_apart(&l, counts[c], n.expected);
            assert_memory_equal(n.got, n.expected, (size_t)(l.tokens * l.out) * sizeof(float));
        }
        release(&n);
    }
}

/* Sums of whole numbers are exact in any order. */
static void splits_equal_mirrors_where_sums_are_exact(void **state)
{
    const ggml_backend_t cpu = open_processor();
    layer l = {.in = 48, .inner = 75, .out = 29, .tokens = 4, .weights = GGML_TYPE_F32, .unit = 1};
    numbers_of_layer n = fill(&l, 1);
    (void)state;
    assert_int_equal(run_layer(&l, cpu, 1, n.expected), GGML_STATUS_SUCCESS);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        run_split(&l, counts[c], n.got);
        assert_memory_equal(n.got, n.expected, (size_t)(l.tokens * l.out) * sizeof(float));
    }
    release(&n);
    ggml_backend_free(cpu);
}

/* One of the library's devices by itself. */
static void one_device_equals_the_processor(void **state)
{
    const ggml_backend_t cpu = open_processor(), one = open_backend(3);
    layer l = {.in = 64, .inner = 75, .out = 29, .tokens = 4, .weights = GGML_TYPE_F16, .unit = 1};
    numbers_of_layer n = fill(&l, 0);
    (void)state;
    assert_int_equal(run_layer(&l, cpu, 1, n.expected), GGML_STATUS_SUCCESS);
    assert_int_equal(run_layer(&l, one, 2, n.got), GGML_STATUS_SUCCESS);
    assert_memory_equal(n.got, n.expected, (size_t)(l.tokens * l.out) * sizeof(float));
    release(&n);
    ggml_backend_free(one);
    ggml_backend_free(cpu);
}

static int setup(void **state)
{
    (void)state;
    return load_tessera() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_add_terms_in_rank_order),
        cmocka_unit_test(splits_equal_mirrors_where_sums_are_exact),
        cmocka_unit_test(one_device_equals_the_processor),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
