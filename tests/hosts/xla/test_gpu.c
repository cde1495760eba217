/* Calls on GPUs, over communicators that the host lends as XLA does: results, the stages, and
 * hosts that lend none. */
#include "gpu_host.h"

#include <tessera/saved.h>
#include <tessera/xla.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xla/ffi/api/collectives_c_api.h>

#include <cmocka.h>

enum { MOST = 256, MESH = 4, LAUNCHES = 3 };

static float in[MOST], out[MOST], more[GPU_ARRAYS][MOST];

static gpu_array floats(float *data, int64_t rows, int64_t columns)
{
    return (gpu_array){XLA_FFI_DataType_F32, columns ? 2 : 1, {rows, columns}, data};
}

static void check(char *why)
{
    if (why)
        fail_msg("%s", why);
}

static void refused(char *why, const char *words)
{
    if (!why || !strstr(why, words))
        fail_msg("it says \"%s\", not \"%s\"", why ? why : "nothing", words);
    free(why);
}

static void count_up(float *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = (float)(i % 61);
}

static void assert_equal(const float *values, const float *expected, int count)
{
    for (int i = 0; i < count; i++)
        if (values[i] != expected[i])
            fail_msg("element %d is %g, not %g", i, values[i], expected[i]);
}

/* 4x3 on each of the devices, reduced to 4x3. */
static gpu_call all_reduce(void)
{
    count_up(in, MESH * 12);
    return (gpu_call){
        tsr_xla_gpu_all_reduce, {{.name = "mesh", .text = "tp=4"}}, 1, 1, {floats(in, 4, 3), floats(out, 4, 3)}};
}

static void check_reduced(const float *values, int devices)
{
    for (int p = 0; p < devices; p++)
        for (int i = 0; i < 12; i++) {
            float sum = 0;
            for (int r = 0; r < devices; r++)
                sum += in[r * 12 + i];
            assert_true(values[p * 12 + i] == sum);
        }
}

/* ---- Results ---- */

static void sums_are_those_of_the_ranks(void **state)
{
    const gpu_call call = all_reduce();
    (void)state;
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    check_reduced(out, MESH);
    assert_int_equal(gpu_host_cliques(), 1);
}

static void communicators_may_be_non_blocking(void **state)
{
    const gpu_call call = all_reduce();
    const gpu_faults xla = {.non_blocking = true};
    (void)state;
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, &xla));
    check_reduced(out, MESH);
}

/* Sums of floats depend on their order: they are added in rank order, as on CPUs. */
static void floats_are_added_in_rank_order(void **state)
{
    const gpu_call call = {
        tsr_xla_gpu_all_reduce, {{.name = "mesh", .text = "tp=4"}}, 1, 1, {floats(in, 1, 0), floats(out, 1, 0)}};
    const float terms[MESH] = {1, 1e8F, -1e8F, 3};
    (void)state;
    memcpy(in, terms, sizeof terms);
    check(gpu_host_run(&call, MESH, NULL, 1, NULL));
    for (int p = 0; p < MESH; p++)
        assert_true(out[p] == 3);
}

/* 8x8 on four devices: two rows on each become two columns. */
static void rows_become_columns(void **state)
{
    const gpu_call call = {
        tsr_xla_gpu_redistribute,
        {{.name = "from", .text = "S(0)"}, {.name = "mesh", .text = "tp=4"}, {.name = "to", .text = "S(1)"}},
        1,
        1,
        {floats(in, 2, 8), floats(out, 8, 2)}};
    (void)state;
    count_up(in, 64);
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    for (int p = 0; p < MESH; p++)
        for (int i = 0; i < 16; i++)
            assert_true(out[p * 16 + i] == in[(i / 2) * 8 + p * 2 + i % 2]);
}

/* 4x7 on three devices: 3, 3 and 1 columns, so that parts have gaps, to 2, 2 and 0 rows. */
static void shorter_parts_are_leading_boxes(void **state)
{
    const int64_t shape[] = {4, 7};
    gpu_call call = {tsr_xla_gpu_redistribute,
                     {{.name = "from", .text = "S(1)"},
                      {.name = "mesh", .text = "tp=3"},
                      {.name = "shape", .numbers = shape, .count = 2},
                      {.name = "to", .text = "S(0)"}},
                     1,
                     1,
                     {floats(in, 4, 3), floats(out, 2, 7)}};
    (void)state;
    for (int i = 0; i < 36; i++)
        in[i] = -1;
    for (int row = 0; row < 4; row++)
        for (int column = 0; column < 7; column++)
            in[column / 3 * 12 + row * 3 + column % 3] = (float)(row * 7 + column);
    check(gpu_host_run(&call, 3, NULL, LAUNCHES, NULL));
    for (int i = 0; i < 42; i++)
        assert_true(out[i] == (i < 28 ? (float)i : 0));
    /* And back: what the parts do not fill is zero. */
    call.attributes[0].text = "S(0)";
    call.attributes[3].text = "S(1)";
    call.arrays[0] = floats(out, 2, 7);
    call.arrays[1] = floats(more[0], 4, 3);
    check(gpu_host_run(&call, 3, NULL, LAUNCHES, NULL));
    for (int i = 0; i < 36; i++)
        assert_true(more[0][i] == (in[i] < 0 ? 0 : in[i]));
}

static void gathers_scatters_and_exchanges_are_exact(void **state)
{
    gpu_call call = {tsr_xla_gpu_all_gather,
                     {{.name = "axis", .number = 1}, {.name = "mesh", .text = "tp=4"}},
                     1,
                     1,
                     {floats(in, 2, 3), floats(out, 2, 12)}};
    (void)state;
    count_up(in, MESH * 6);
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    for (int i = 0; i < MESH * 24; i++)
        assert_true(out[i] == in[i % 12 / 3 * 6 + i / 12 % 2 * 3 + i % 3]);

    count_up(in, MESH * 24);
    call.handler = tsr_xla_gpu_reduce_scatter;
    call.arrays[0] = floats(in, 2, 12);
    call.arrays[1] = floats(out, 2, 3);
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    for (int i = 0; i < MESH * 6; i++) {
        float sum = 0;
        for (int r = 0; r < MESH; r++)
            sum += in[r * 24 + i % 6 / 3 * 12 + i / 6 * 3 + i % 3];
        assert_true(out[i] == sum);
    }

    count_up(in, MESH * 8);
    call = (gpu_call){tsr_xla_gpu_all_to_all,
                      {{.name = "mesh", .text = "tp=4"}, {.name = "split_axis", .number = 1}},
                      1,
                      1,
                      {floats(in, 2, 4), floats(out, 8, 1)}};
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    for (int i = 0; i < MESH * 8; i++)
        assert_true(out[i] == in[i % 8 / 2 * 8 + i % 2 * 4 + i / 8]);
}

/* x (3,8), w (8,8), y = x w^T on four devices: w by rows, then y stays cut. */
static void columns_of_layers_are_exact(void **state)
{
    float expected[96] = {0};
    gpu_call call = {tsr_xla_gpu_linear_column,
                     {{.name = "mesh", .text = "tp=4"}},
                     2,
                     1,
                     {floats(in, 3, 8), floats(more[1], 2, 8), floats(out, 3, 2)}};
    (void)state;
    for (int p = 0; p < MESH; p++)
        count_up(in + p * 24, 24);
    count_up(more[1], 64);
    for (int p = 0; p < MESH; p++)
        for (int i = 0; i < 6; i++)
            for (int k = 0; k < 8; k++)
                expected[p * 6 + i] += in[i / 2 * 8 + k] * more[1][(p * 2 + i % 2) * 8 + k];
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    assert_equal(out, expected, MESH * 6);

    /* dx = dy w, a sum over devices; dw = dy^T x. */
    call = (gpu_call){
        tsr_xla_gpu_linear_column_backward,
        {{.name = "mesh", .text = "tp=4"}},
        3,
        2,
        {floats(in, 3, 8), floats(more[1], 2, 8), floats(more[2], 3, 2), floats(more[3], 3, 8), floats(more[4], 2, 8)}};
    count_up(more[2], MESH * 6);
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    for (int p = 0; p < MESH; p++) {
        for (int i = 0; i < 24; i++) {
            float dx = 0;
            for (int j = 0; j < 8; j++)
                dx += more[2][j / 2 * 6 + i / 8 * 2 + j % 2] * more[1][j * 8 + i % 8];
            assert_true(more[3][p * 24 + i] == dx);
        }
        for (int i = 0; i < 16; i++) {
            float dw = 0;
            for (int t = 0; t < 3; t++)
                dw += more[2][p * 6 + t * 2 + i / 8] * in[t * 8 + i % 8];
            assert_true(more[4][p * 16 + i] == dw);
        }
    }
}

/* x (3,8) by its features, w (5,8) by columns: y (3,5) is reduced. */
static void rows_of_layers_are_exact(void **state)
{
    gpu_call call = {tsr_xla_gpu_linear_row,
                     {{.name = "mesh", .text = "tp=4"}},
                     2,
                     1,
                     {floats(in, 3, 2), floats(more[1], 5, 2), floats(out, 3, 5)}};
    (void)state;
    count_up(in, MESH * 6);
    count_up(more[1], MESH * 10);
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    for (int i = 0; i < MESH * 15; i++) {
        float y = 0;
        for (int k = 0; k < 8; k++)
            y += in[k / 2 * 6 + i % 15 / 5 * 2 + k % 2] * more[1][k / 2 * 10 + i % 5 * 2 + k % 2];
        assert_true(out[i] == y);
    }
    call = (gpu_call){
        tsr_xla_gpu_linear_row_backward,
        {{.name = "mesh", .text = "tp=4"}},
        3,
        2,
        {floats(in, 3, 2), floats(more[1], 5, 2), floats(more[2], 3, 5), floats(more[3], 3, 2), floats(more[4], 5, 2)}};
    for (int p = 0; p < MESH; p++)
        count_up(more[2] + p * 15, 15);
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    for (int i = 0; i < MESH * 6; i++) {
        float dx = 0;
        for (int o = 0; o < 5; o++)
            dx += more[2][i % 6 / 2 * 5 + o] * more[1][i / 6 * 10 + o * 2 + i % 2];
        assert_true(more[3][i] == dx);
    }
    for (int i = 0; i < MESH * 10; i++) {
        float dw = 0;
        for (int t = 0; t < 3; t++)
            dw += more[2][t * 5 + i % 10 / 2] * in[i / 10 * 6 + t * 2 + i % 2];
        assert_true(more[4][i] == dw);
    }
    assert_true(gpu_host_blocks() > 0);
}

/* Along one of two mesh dims ranks exchange in pairs, for the communicator is not split. */
static void sums_may_be_along_one_mesh_dim(void **state)
{
    gpu_call call = all_reduce();
    (void)state;
    call.attributes[0].text = "dp=2,tp=2";
    for (int dim = 0; dim < 2; dim++) {
        call.attributes[1] = (gpu_attribute){.name = "dims", .text = dim ? "tp" : "dp"};
        check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
        for (int p = 0; p < MESH; p++)
            for (int i = 0; i < 12; i++)
                assert_true(out[p * 12 + i] == in[p * 12 + i] + in[(p ^ (dim ? 1 : 2)) * 12 + i]);
    }
    assert_int_equal(gpu_host_cliques(), 1);
}

/* A plan of two moves of 8x2: S(0) to R, and P to S(0). Returns the number of its bytes. */
static size_t save_plan(tsr_mode mode, char *bytes, size_t room)
{
    const int64_t shape[] = {8, 2}, sizes[] = {MESH};
    tsr_mesh *mesh;
    tsr_layout *rows, *whole, *terms;
    tsr_plan *plan;
    size_t count;
    assert_int_equal(tsr_mesh_create_abstract(NULL, 1, sizes, NULL, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &rows), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "R", 2, shape, TSR_F32, &whole), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "P", 2, shape, TSR_F32, &terms), TSR_OK);
    const tsr_layout *const from[] = {rows, terms}, *const to[] = {whole, rows};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = TSR_RANK_NONE;
    options.mode = mode;
    assert_int_equal(tsr_plan_create_batch(2, from, to, &options, &plan), TSR_OK);
    assert_int_equal(tsr_plan_save(plan, bytes, room, &count), TSR_OK);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(rows);
    tsr_layout_destroy(whole);
    tsr_layout_destroy(terms);
    tsr_mesh_destroy(mesh);
    return count;
}

static void saved_plans_run(void **state)
{
    char plan[4096];
    size_t count = save_plan(TSR_MODE_MESSAGE, plan, sizeof plan);
    gpu_call call = {tsr_xla_gpu_redistribute,
                     {{.name = "plan", .text = plan, .count = count}},
                     2,
                     2,
                     {floats(in, 2, 2), floats(more[0], 8, 2), floats(out, 8, 2), floats(more[1], 2, 2)}};
    (void)state;
    count_up(in, 16);
    count_up(more[0], MESH * 16);
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    for (int i = 0; i < MESH * 16; i++)
        assert_true(out[i] == in[i % 16]);
    for (int i = 0; i < 16; i++)
        assert_true(more[1][i] == more[0][i] + more[0][16 + i] + more[0][32 + i] + more[0][48 + i]);
    count = save_plan(TSR_MODE_DIRECT, plan, sizeof plan);
    call.attributes[0].count = count;
    refused(gpu_host_run(&call, MESH, NULL, 1, NULL), "plan with options.mode TSR_MODE_MESSAGE");
}

static void calls_of_a_program_share_a_communicator(void **state)
{
    const gpu_call call = all_reduce();
    const gpu_faults two = {.more_sites = 1};
    (void)state;
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, &two));
    check_reduced(out, MESH);
    assert_int_equal(gpu_host_cliques(), 1);
}

/* ---- Devices ---- */

static void devices_lists_partitions_in_rank_order(void **state)
{
    const int64_t devices[] = {2, 0, 3, 1}, gpus[] = {1, 3, 2, 0};
    const gpu_call call = {tsr_xla_gpu_all_gather,
                           {{.name = "devices", .numbers = devices, .count = 4}, {.name = "mesh", .text = "tp=4"}},
                           1,
                           1,
                           {floats(in, 1, 0), floats(out, 4, 0)}};
    (void)state;
    count_up(in, MESH);
    check(gpu_host_run(&call, MESH, gpus, LAUNCHES, NULL));
    for (int i = 0; i < MESH * MESH; i++)
        assert_true(out[i] == (float)devices[i % MESH]);
}

static void devices_may_list_several_meshes(void **state)
{
    const int64_t devices[] = {0, 2, 3, 1};
    gpu_call call = {tsr_xla_gpu_all_gather,
                     {{.name = "devices", .numbers = devices, .count = 4}, {.name = "mesh", .text = "tp=2"}},
                     1,
                     1,
                     {floats(in, 1, 0), floats(out, 2, 0)}};
    const float expected[] = {0, 2, 3, 1, 0, 2, 3, 1};
    (void)state;
    count_up(in, MESH);
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    assert_equal(out, expected, 8);
    assert_int_equal(gpu_host_cliques(), 3);
    call.attributes[0].count = 3;
    refused(gpu_host_run(&call, MESH, NULL, 1, NULL), "`devices` has 3 entries, but each mesh has ranks 0 to 1");
}

static void a_channel_is_a_communicator_of_its_own(void **state)
{
    gpu_call call = all_reduce();
    (void)state;
    call.attributes[1] = (gpu_attribute){.name = "channel", .number = 7};
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL));
    check_reduced(out, MESH);
    assert_int_equal(gpu_host_cliques(), 2);
}

static void communicators_may_be_made_anew(void **state)
{
    const gpu_call call = all_reduce();
    const gpu_faults renews = {.renews = 2};
    (void)state;
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, &renews));
    check_reduced(out, MESH);
}

static void a_program_runs_again_after_a_failure(void **state)
{
    const gpu_call call = {
        tsr_xla_gpu_redistribute,
        {{.name = "from", .text = "S(0)"}, {.name = "mesh", .text = "tp=4"}, {.name = "to", .text = "S(1)"}},
        1,
        1,
        {floats(in, 2, 8), floats(out, 8, 2)}};
    gpu_faults once = {.no_memory_at = 2};
    (void)state;
    count_up(in, 64);
    for (once.more_sites = 0; once.more_sites < GPU_SITES; once.more_sites++) {
        refused(
            gpu_host_run(&call, MESH, NULL, LAUNCHES, &once),
            "tsr_xla_redistribute on device 0 (rank 0): XLA has no memory on the GPU for the call's workspace: out of "
            "memory");
        for (int i = 0; i < 64; i++)
            assert_true(out[i] == in[i % 16 / 2 * 8 + i / 16 * 2 + i % 2]);
    }
}

/* One rank fails when its peers have done all, so it alone has a new seat at the next launch. */
static void ranks_plan_together_after_one_has_failed(void **state)
{
    const gpu_call call = {
        tsr_xla_gpu_redistribute,
        {{.name = "from", .text = "S(0)"}, {.name = "mesh", .text = "tp=4"}, {.name = "to", .text = "S(1)"}},
        1,
        1,
        {floats(in, 2, 8), floats(out, 8, 2)}};
    const gpu_faults kept = {.kept_at = 2};
    (void)state;
    count_up(in, 64);
    refused(gpu_host_run(&call, MESH, NULL, LAUNCHES, &kept), "XLA does not take the workspace back: it is in use");
    for (int i = 0; i < 64; i++)
        assert_true(out[i] == in[i % 16 / 2 * 8 + i / 16 * 2 + i % 2]);
}

/* ---- Hosts that lend nothing ---- */

static void refuses(gpu_faults faults, const char *words)
{
    const gpu_call call = all_reduce();
    refused(gpu_host_run(&call, MESH, NULL, LAUNCHES, &faults), words);
}

static void hosts_without_the_extension_are_refused(void **state)
{
    (void)state;
    refuses(
        (gpu_faults){.no_extension = true},
        "tsr_xla_all_reduce: this XLA lends no communicators to the call: it has no extension for collectives (129), "
        "which XLA has for GPUs from jaxlib 0.12 on");
    refuses((gpu_faults){.no_lookup = true}, "lends no communicators to calls on GPUs; 0.5 and newer do");
    refuses((gpu_faults){.no_stream = true}, "XLA has no stream for the call: it is for GPUs: XLA FFI GPU context");
}

static void extensions_of_other_versions_are_refused_unless_they_only_add(void **state)
{
    /* 0.1 ended before windows. */
    const gpu_faults fine[] = {{.minor = 1, .extension_size = offsetof(XLA_FFI_Collectives_Extension, request_window)},
                               {.minor = 9, .extension_size = 4096}};
    const gpu_call call = all_reduce();
    (void)state;
    for (int i = 0; i < 2; i++) {
        check(gpu_host_run(&call, MESH, NULL, 1, &fine[i]));
        check_reduced(out, MESH);
    }
    refuses((gpu_faults){.major = 1}, "XLA's extension for collectives is 1.0 with ");
    refuses((gpu_faults){.extension_size = 40},
            "XLA's extension for collectives is 0.2 with 40 bytes, in which this library "
            "finds no communicators; it takes version 0 of at least ");
}

static void requests_that_fail_are_told(void **state)
{
    gpu_call call = all_reduce();
    const int64_t devices[] = {0, 1, 2, 9};
    (void)state;
    call.attributes[1] = (gpu_attribute){.name = "devices", .numbers = devices, .count = 4};
    refused(gpu_host_run(&call, MESH, NULL, 1, NULL),
            "tsr_xla_all_reduce: XLA refuses to lend a communicator for the call's devices: the device is in no group");
    call.attributes[1] = (gpu_attribute){.name = "channel", .number = 7};
    const gpu_faults skips = {.skips_prepare = true};
    refused(gpu_host_run(&call, MESH, NULL, 1, &skips),
            "XLA lends no communicator (the handler has to be registered for the stage PREPARE as well): ");
    /* XLA's own collectives may have it. */
    call = all_reduce();
    check(gpu_host_run(&call, MESH, NULL, LAUNCHES, &skips));
    check_reduced(out, MESH);
    refuses((gpu_faults){.no_communicator = true}, "XLA lends a communicator that is NULL");
    refuses((gpu_faults){.wrong_group = true}, "XLA lends a communicator with 2 ranks, but the mesh has 4");
}

static void mistakes_show_when_the_program_is_compiled(void **state)
{
    gpu_call call = all_reduce();
    (void)state;
    call.attributes[1] = (gpu_attribute){.name = "axes", .text = "tp"};
    refused(gpu_host_run(&call, MESH, NULL, 1, NULL), "tsr_xla_all_reduce: there is no attribute `axes`");
    call = all_reduce();
    call.arrays[1].dims[0] = 5;
    refused(gpu_host_run(&call, MESH, NULL, LAUNCHES, NULL), "the result's shape does not follow from the operand's");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_ranks),
        cmocka_unit_test(communicators_may_be_non_blocking),
        cmocka_unit_test(floats_are_added_in_rank_order),
        cmocka_unit_test(rows_become_columns),
        cmocka_unit_test(shorter_parts_are_leading_boxes),
        cmocka_unit_test(gathers_scatters_and_exchanges_are_exact),
        cmocka_unit_test(columns_of_layers_are_exact),
        cmocka_unit_test(rows_of_layers_are_exact),
        cmocka_unit_test(sums_may_be_along_one_mesh_dim),
        cmocka_unit_test(saved_plans_run),
        cmocka_unit_test(calls_of_a_program_share_a_communicator),
        cmocka_unit_test(devices_lists_partitions_in_rank_order),
        cmocka_unit_test(devices_may_list_several_meshes),
        cmocka_unit_test(a_channel_is_a_communicator_of_its_own),
        cmocka_unit_test(communicators_may_be_made_anew),
        cmocka_unit_test(a_program_runs_again_after_a_failure),
        cmocka_unit_test(ranks_plan_together_after_one_has_failed),
        cmocka_unit_test(hosts_without_the_extension_are_refused),
        cmocka_unit_test(extensions_of_other_versions_are_refused_unless_they_only_add),
        cmocka_unit_test(requests_that_fail_are_told),
        cmocka_unit_test(mistakes_show_when_the_program_is_compiled),
    };
    /* The library opens the stand-in that this program is linked with, not the one beside it. */
    setenv("LD_LIBRARY_PATH", STANDIN_FOLDER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
