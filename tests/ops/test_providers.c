/* Which BLAS a context opens, in which order, and its messages about those that it cannot open;
 * with stand-ins, and with the libraries that TESSERA_TEST_BLAS names. */
#include "counted_memory.h"
#include "layers.h"
#include "standin_blas.h"

#include <tessera/sys/blas.h>
#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tsr_context_options options_of(const char *blas)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.environment = no_environment;
    options.blas = blas;
    return options;
}

static tsr_context *context_of(const char *blas)
{
    const tsr_context_options options = options_of(blas);
    tsr_context *context;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    return context;
}

static const tsr_blas_provider *open_providers(tsr_context *context, int *count)
{
    const tsr_blas_provider *providers;
    if (tsr_blas_providers(context, &providers, count) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    return providers;
}

static void assert_refused(const char *blas, tsr_status status, const char *words)
{
    tsr_context *context = context_of(blas);
    const tsr_blas_provider *providers;
    int count;
    assert_int_equal(tsr_blas_providers(context, &providers, &count), status);
    if (!strstr(tsr_status_message(), words))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), words);
    tsr_context_destroy(context);
}

static standin_calls calls_of(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW), *found = handle ? dlsym(handle, "standin_calls_made") : NULL;
    standin_calls_function *function;
    assert_non_null(found);
    memcpy(&function, &found, sizeof found);
    const standin_calls calls = function();
    dlclose(handle);
    return calls;
}

static void without_a_word_the_linked_one_is_all_that_there_is(void **state)
{
    (void)state;
    int count;
    tsr_context *context = context_of(NULL);
    assert_null(tsr_context_blas(context));
    const tsr_blas_provider *providers = open_providers(context, &count);
    assert_int_equal(count, 1);
    assert_string_equal(providers[0].source, "linked");
    assert_non_null(tsr_blas_find_gemm(providers[0].table, TSR_F32));
    assert_non_null(tsr_blas_find_gemm(providers[0].table, TSR_F64));
    assert_null(tsr_blas_find_gemm(providers[0].table, TSR_I32));
    tsr_context_destroy(context);
}

static void a_path_comes_before_the_linked_one(void **state)
{
    (void)state;
    int count;
    char path[] = STANDIN;
    tsr_context *context = context_of(path);
    memset(path, 'x', strlen(path));
    assert_string_equal(tsr_context_blas(context), STANDIN);
    const tsr_blas_provider *providers = open_providers(context, &count);
    assert_int_equal(count, 2);
    assert_string_equal(providers[0].table->name, "standin");
    assert_string_equal(providers[0].source, STANDIN);
    assert_null(providers[0].warning);
    assert_string_equal(providers[1].source, "linked");
    assert_null(tsr_blas_find_gemm(providers[0].table, TSR_F64));
    tsr_context_destroy(context);
}

static void a_context_opens_once(void **state)
{
    (void)state;
    int count;
    tsr_context *context = context_of(STANDIN);
    const tsr_blas_provider *first = open_providers(context, &count);
    assert_ptr_equal(open_providers(context, &count), first);
    tsr_context_destroy(context);
}

static void what_is_named_twice_is_there_once(void **state)
{
    (void)state;
    int count;
    tsr_context *context = context_of(STANDIN "," STANDIN);
    open_providers(context, &count);
    assert_int_equal(count, 2);
    tsr_context_destroy(context);
}

/* The stand-in computes one element at a time. */
static void of_several_the_fastest_comes_first(void **state)
{
    (void)state;
    int count;
    tsr_context *linked = context_of(NULL);
    char list[2048];
    snprintf(list, sizeof list, "%s,%s", STANDIN, open_providers(linked, &count)[0].table->name);
    tsr_context_destroy(linked);
    tsr_context *context = context_of(list);
    const tsr_blas_provider *providers = open_providers(context, &count);
    assert_int_equal(count, 2);
    assert_string_equal(providers[0].source, "linked");
    assert_string_equal(providers[1].table->name, "standin");
    tsr_context_destroy(context);
    assert_int_equal(calls_of(STANDIN).holders, 0);
}

static void auto_never_fails(void **state)
{
    (void)state;
    int count;
    tsr_context *context = context_of("auto");
    open_providers(context, &count);
    assert_true(count >= 1);
    tsr_context_destroy(context);
}

static void what_cannot_be_opened_is_said(void **state)
{
    (void)state;
    assert_refused("lapack", TSR_ERROR_ARGUMENT,
                   "blas is \"lapack\", not auto, openblas, scipy-openblas, onednn, mkl, or the path");
    assert_refused("", TSR_ERROR_ARGUMENT, "blas is \"\"");
    assert_refused("/nowhere/libblas.so", TSR_ERROR_UNAVAILABLE, "blas \"/nowhere/libblas.so\" cannot be opened: ");
    assert_refused(NO_PROVIDER, TSR_ERROR_UNAVAILABLE,
                   "is not OpenBLAS, oneDNN or MKL, and exports no tsr_blas_provider_table()");
    assert_refused(BROKEN, TSR_ERROR_UNAVAILABLE,
                   "tsr_blas_provider_table() returns no table that this library can use");
    assert_refused(STANDIN ",nothing", TSR_ERROR_ARGUMENT, "blas is \"nothing\"");
}

static void more_than_a_context_holds_are_refused(void **state)
{
    (void)state;
    assert_refused(STANDIN "," STANDIN "," STANDIN "," STANDIN "," STANDIN "," STANDIN "," STANDIN "," STANDIN,
                   TSR_ERROR_ARGUMENT, "blas names more than 7 libraries");
}

static const layer f32_layer = {"2", 2, {12, 6}, 8, "R", "S(0)", "S(0)", TSR_F32};
static const layer f64_layer = {"2", 2, {12, 6}, 8, "R", "S(0)", "S(0)", TSR_F64};

static tsr_status run_layer(tsr_comm *comm, void *arg)
{
    return layer_check(comm, arg);
}

static void run_with(const char *blas, const layer *l)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = context_of(blas);
    if (tsr_threads_run(2, run_layer, (void *)l, &options) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_context_destroy(options.context);
}

static void layers_multiply_by_what_their_context_names(void **state)
{
    (void)state;
    const standin_calls before = calls_of(STANDIN);
    run_with(STANDIN, &f32_layer);
    const standin_calls after = calls_of(STANDIN);
    assert_true(after.gemms > before.gemms);
    assert_int_equal(after.begins - before.begins, after.gemms - before.gemms);
    assert_int_equal(after.ends, after.begins);
    assert_int_equal(after.holders, 0);
}

static void what_it_lacks_is_multiplied_by_the_linked_one(void **state)
{
    (void)state;
    const standin_calls before = calls_of(STANDIN);
    run_with(STANDIN, &f64_layer);
    assert_int_equal(calls_of(STANDIN).gemms, before.gemms);
}

/* Two bf16 operands are multiplied without widening where y is f32. Other narrow operands are
 * widened. */
static void bf16_by_bf16_is_multiplied_as_it_is(void **state)
{
    layer l = f32_layer;
    (void)state;
    l.dtype = TSR_BF16;
    l.b_dtype = TSR_F32;
    const standin_calls before = calls_of(STANDIN);
    run_with(STANDIN, &l);
    const standin_calls as_it_is = calls_of(STANDIN);
    l.dtype = TSR_F16;
    run_with(STANDIN, &l);
    const standin_calls widened = calls_of(STANDIN);
    assert_true(as_it_is.narrow > before.narrow);
    assert_int_equal(widened.narrow, as_it_is.narrow);
    assert_true(widened.gemms > as_it_is.gemms);
}

static tsr_status open_and_fail(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *mesh;
    tsr_layout *x;
    tsr_linear_plan *plan = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, (int64_t[]){4, 4}, TSR_F32, &x));
    const tsr_status status = tsr_linear_plan_create(x, x, NULL, NULL, &plan);
    tsr_layout_destroy(x);
    tsr_mesh_destroy(mesh);
    return status;
}

static void layers_say_what_their_context_cannot_open(void **state)
{
    (void)state;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = context_of("lapack");
    assert_int_equal(tsr_threads_run(2, open_and_fail, NULL, &options), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "blas is \"lapack\""));
    tsr_context_destroy(options.context);
}

static void every_lack_of_memory_is_an_error(void **state)
{
    (void)state;
    tsr_status status = TSR_ERROR_MEMORY;
    size_t nth = 0;
    while (status == TSR_ERROR_MEMORY) {
        counted_memory memory = {.fail_at = ++nth};
        tsr_context_options options = counted_options(&memory);
        tsr_context *context;
        const tsr_blas_provider *providers;
        int count;
        options.blas = STANDIN "," STANDIN;
        status = tsr_context_create(&options, &context);
        if (status == TSR_OK) {
            status = tsr_blas_providers(context, &providers, &count);
            tsr_context_destroy(context);
        }
        assert_nothing_leaked(&memory);
    }
    assert_int_equal(status, TSR_OK);
    assert_true(nth > 4);
}

/* Checks that a library multiplies correctly in a dtype, with both operands transposed or not. */
static void check_products(const tsr_blas_provider *provider, tsr_dtype dtype)
{
    enum { M = 33, N = 41, K = 29 };
    void *self;
    const tsr_device_table *host = tsr_device_driver_table(NULL, &self);
    tsr_blas_multiply *gemm = tsr_blas_find_gemm(provider->table, dtype);
    const tsr_dtype wide = dtype == TSR_F64 ? TSR_F64 : TSR_F32;
    double a[M * K], b[K * N], c[M * N], expected[M * N];
    char a_bytes[M * K * 8], b_bytes[K * N * 8], c_bytes[M * N * 8];
    for (int trans = 0; gemm && trans < 4; trans++) {
        const int trans_a = trans & 1, trans_b = trans >> 1;
        for (int i = 0; i < M * K; i++)
            a[i] = i * 7 % 5 - 2;
        for (int i = 0; i < K * N; i++)
            b[i] = i * 11 % 7 - 3;
        for (int i = 0; i < M * N; i++) {
            c[i] = i % 3;
            expected[i] = c[i];
            for (int p = 0; p < K; p++)
                expected[i] += a[trans_a ? p * M + i / N : i / N * K + p] * b[trans_b ? i % N * K + p : p * N + i % N];
        }
        host->convert(self, 0, a_bytes, dtype, a, TSR_F64, M * K, NULL);
        host->convert(self, 0, b_bytes, dtype, b, TSR_F64, K * N, NULL);
        host->convert(self, 0, c_bytes, wide, c, TSR_F64, M * N, NULL);
        const tsr_blas_gemm product = {trans_a,         trans_b,         M, N, K, 1, 1, a_bytes, b_bytes, c_bytes,
                                       trans_a ? M : K, trans_b ? K : N, N};
        const int token = provider->table->begin ? provider->table->begin(provider->self) : 0;
        assert_int_equal(gemm(provider->self, &product), TSR_OK);
        if (provider->table->end)
            provider->table->end(provider->self, token);
        host->convert(self, 0, c, TSR_F64, c_bytes, wide, M * N, NULL);
        assert_memory_equal(c, expected, sizeof c);
    }
}

static void every_provider_multiplies_right(void **state)
{
    (void)state;
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_BF16, TSR_F16};
    const char *named = getenv("TESSERA_TEST_BLAS");
    char list[4096];
    int count;
    snprintf(list, sizeof list, "%s%s%s", STANDIN, named ? "," : "", named ? named : "");
    tsr_context *context = context_of(list);
    const tsr_blas_provider *providers = open_providers(context, &count);
    for (int i = 0; i < count; i++) {
        print_message("%s, %s\n", providers[i].table->name, providers[i].table->core);
        if (providers[i].table->hold)
            providers[i].table->hold(providers[i].self);
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
            check_products(&providers[i], dtypes[k]);
        if (providers[i].table->release)
            providers[i].table->release(providers[i].self);
    }
    tsr_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_word_the_linked_one_is_all_that_there_is),
        cmocka_unit_test(a_path_comes_before_the_linked_one),
        cmocka_unit_test(a_context_opens_once),
        cmocka_unit_test(what_is_named_twice_is_there_once),
        cmocka_unit_test(of_several_the_fastest_comes_first),
        cmocka_unit_test(auto_never_fails),
        cmocka_unit_test(what_cannot_be_opened_is_said),
        cmocka_unit_test(more_than_a_context_holds_are_refused),
        cmocka_unit_test(layers_multiply_by_what_their_context_names),
        cmocka_unit_test(what_it_lacks_is_multiplied_by_the_linked_one),
        cmocka_unit_test(bf16_by_bf16_is_multiplied_as_it_is),
        cmocka_unit_test(layers_say_what_their_context_cannot_open),
        cmocka_unit_test(every_lack_of_memory_is_an_error),
        cmocka_unit_test(every_provider_multiplies_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
