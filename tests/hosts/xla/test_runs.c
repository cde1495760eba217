/* How calls meet: many launches, calls in any order, failing ranks, devices in another order, lent
 * communicators; and that operands are not gathered. */
#include "support.h"

#include <tessera/xla.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xla/ffi/api/c_api.h>

#include <cmocka.h>

enum { RANKS = 4, COUNT = 3 };

/* A compiled program with its buffers, to be run many times. */
typedef struct session {
    xla_program program;
    support_buffers buffers;
    const support_call *calls;
    size_t count;
} session;

static void begin(session *s, const support_call *calls, size_t count, const int64_t *devices)
{
    char *const text = support_text(calls, count, RANKS);
    s->calls = calls;
    s->count = count;
    support_check(xla_program_compile(support_host(), text, RANKS, devices, &s->program));
    support_buffers_create(calls, count, RANKS, devices, &s->buffers);
    free(text);
}

static char *run(session *s, const xla_launch *launch, char **errors)
{
    char *const why = xla_program_run(&s->program, launch, (PJRT_Buffer *const *const *)s->buffers.in,
                                      s->buffers.arguments, s->buffers.out, errors);
    if (!why)
        support_results_read(s->calls, s->count, &s->buffers);
    support_results_destroy(&s->buffers);
    return why;
}

static void end(session *s)
{
    support_buffers_destroy(&s->buffers);
    xla_program_destroy(&s->program);
}

static support_call all_reduce(const char *attributes, float *in, float *out)
{
    return (support_call){"tsr_xla_all_reduce", attributes, 1, 1, {{"f32", 1, {COUNT}, in}, {"f32", 1, {COUNT}, out}}};
}

static void check_sums(const float *out, float first)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            assert_true(out[r * COUNT + i] == first + (float)(RANKS * i));
}

static void fill(float *in)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            in[r * COUNT + i] = (float)(10 * r + i);
}

static void a_thousand_launches_of_two_independent_calls(void **state)
{
    float in[RANKS * COUNT], out[RANKS * COUNT], all[RANKS * RANKS * COUNT];
    (void)state;
    fill(in);
    const support_call calls[] = {
        all_reduce("mesh = \"tp=4\"", in, out),
        {"tsr_xla_all_gather", "mesh = \"tp=4\"", 1, 1, {{"f32", 1, {COUNT}, in}, {"f32", 1, {RANKS * COUNT}, all}}}};
    session s;
    begin(&s, calls, 2, NULL);
    for (int launch = 0; launch < 1000; launch++) {
        memset(out, 0, sizeof out);
        memset(all, 0, sizeof all);
        support_check(run(&s, NULL, NULL));
        check_sums(out, 60);
        for (int r = 0; r < RANKS; r++)
            assert_memory_equal(all + r * RANKS * COUNT, in, sizeof in);
    }
    end(&s);
}

static void *launch_often(void *arg)
{
    session *const s = arg;
    for (int i = 0; i < 50; i++) {
        const xla_launch launch = {.id = (int)(intptr_t)s % 1000 * 100 + i + 1};
        char *const why = run(s, &launch, NULL);
        if (why)
            return why;
    }
    return NULL;
}

static void launches_of_several_threads_do_not_mix(void **state)
{
    static float in[3][RANKS * COUNT], out[3][RANKS * COUNT];
    support_call calls[3];
    session sessions[3];
    pthread_t threads[3];
    (void)state;
    for (int t = 0; t < 3; t++) {
        fill(in[t]);
        in[t][0] = in[t][1] = in[t][2] = (float)(1000 * t);
        calls[t] = all_reduce("mesh = \"tp=4\"", in[t], out[t]);
        begin(&sessions[t], &calls[t], 1, NULL);
    }
    for (int t = 0; t < 3; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, launch_often, &sessions[t]), 0);
    for (int t = 0; t < 3; t++) {
        void *why;
        pthread_join(threads[t], &why);
        support_check(why);
        for (int r = 0; r < RANKS; r++)
            assert_true(out[t][r * COUNT] == (float)(1000 * t + 60));
        end(&sessions[t]);
    }
}

/* A loop around a call: ranks reach its turns at different times. */
static const char loop_text[] =
    "module @loop {\n"
    "  sdy.mesh @mesh = <[\"r\"=4]>\n"
    "  func.func public @main(%%x: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>}) -> (tensor<12xf32> "
    "{sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>}) {\n"
    "    %%y = sdy.manual_computation(%%x) in_shardings=[<@mesh, [{\"r\"}]>] out_shardings=[<@mesh, [{\"r\"}]>] "
    "manual_axes={\"r\"} (%%a: tensor<3xf32>) {\n"
    "      %%zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "      %%last:2 = stablehlo.while(%%i = %%zero, %%v = %%a) : tensor<i32>, tensor<3xf32>\n"
    "        cond {\n"
    "          %%ten = stablehlo.constant dense<10> : tensor<i32>\n"
    "          %%more = stablehlo.compare LT, %%i, %%ten : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "          stablehlo.return %%more : tensor<i1>\n"
    "        } do {\n"
    "          %%one = stablehlo.constant dense<1> : tensor<i32>\n"
    "          %%quarter = stablehlo.constant dense<0.25> : tensor<3xf32>\n"
    "          %%next = stablehlo.add %%i, %%one : tensor<i32>\n"
    "          %%w = %s\n"
    "          %%sum = stablehlo.custom_call @tsr_xla_all_reduce(%%w) {api_version = 4 : i32, backend_config = {%s}} : "
    "(tensor<3xf32>) -> tensor<3xf32>\n"
    "          %%mean = stablehlo.multiply %%sum, %%quarter : tensor<3xf32>\n"
    "          stablehlo.return %%next, %%mean : tensor<i32>, tensor<3xf32>\n"
    "        }\n"
    "      sdy.return %%last#1 : tensor<3xf32>\n"
    "    } : (tensor<12xf32>) -> tensor<12xf32>\n"
    "    return %%y : tensor<12xf32>\n"
    "  }\n"
    "}\n";

/* Ten turns of the loop, with `before` on the operand in each. */
static char *run_loop(const char *before, const char *attributes, float *in, float *out)
{
    char text[4096];
    const support_call call = all_reduce("", in, out);
    session s = {.calls = &call, .count = 1};
    assert_true(snprintf(text, sizeof text, loop_text, before, attributes) < (int)sizeof text);
    support_check(xla_program_compile(support_host(), text, RANKS, NULL, &s.program));
    support_buffers_create(&call, 1, RANKS, NULL, &s.buffers);
    char *const why = run(&s, NULL, NULL);
    end(&s);
    return why;
}

static void a_call_in_a_loop_meets_in_each_turn(void **state)
{
    float in[RANKS * COUNT], out[RANKS * COUNT];
    (void)state;
    fill(in);
    support_check(run_loop("stablehlo.add %v, %v : tensor<3xf32>", "mesh = \"tp=4\"", in, out));
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            assert_true(out[r * COUNT + i] == (float)(1024 * (15 + i)));
}

/* Partition p is on device devices[p], and the mesh's rank p is that device. */
static void a_mesh_may_have_devices_in_another_order(void **state)
{
    static const int64_t devices[] = {2, 0, 3, 1};
    float in[RANKS * COUNT], all[RANKS * RANKS * COUNT];
    (void)state;
    fill(in);
    const support_call call = {"tsr_xla_all_gather",
                               "mesh = \"tp=4\", devices = array<i64: 2, 0, 3, 1>",
                               1,
                               1,
                               {{"f32", 1, {COUNT}, in}, {"f32", 1, {RANKS * COUNT}, all}}};
    support_check(support_run(&call, 1, RANKS, devices, NULL));
    for (int r = 0; r < RANKS; r++)
        assert_memory_equal(all + r * RANKS * COUNT, in, sizeof in);
    /* Without the list ranks are devices, and parts come in their order. */
    support_call plain = call;
    plain.attributes = "mesh = \"tp=4\"";
    support_check(support_run(&plain, 1, RANKS, devices, NULL));
    for (int d = 0; d < RANKS; d++)
        assert_memory_equal(all + devices[d] * COUNT, in + d * COUNT, COUNT * sizeof *in);
}

/* ---- Failures ---- */

static atomic_int bad_device = -1;

static int64_t device_of(XLA_FFI_CallFrame *frame)
{
    XLA_FFI_DeviceOrdinal_Get_Args args = {.struct_size = XLA_FFI_DeviceOrdinal_Get_Args_STRUCT_SIZE,
                                           .ctx = frame->ctx};
    frame->api->XLA_FFI_DeviceOrdinal_Get(&args);
    return args.device_ordinal;
}

/* Answers XLA's question for metadata. */
static bool tells_metadata(XLA_FFI_CallFrame *frame)
{
    if (!frame->extension_start || frame->extension_start->type != XLA_FFI_Extension_Metadata)
        return false;
    ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata->api_version = frame->api->api_version;
    return true;
}

static XLA_FFI_Error *copy_operand(const XLA_FFI_CallFrame *frame)
{
    const XLA_FFI_Buffer *const in = frame->args.args[0], *const out = frame->rets.rets[0];
    memcpy(out->data, in->data, COUNT * sizeof(float));
    return NULL;
}

/* A handler that copies its operand, or fails on the bad device. */
static XLA_FFI_Error *copy_or_fail(XLA_FFI_CallFrame *frame)
{
    if (tells_metadata(frame))
        return NULL;
    if (device_of(frame) == bad_device) {
        XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, NULL, "broken on purpose",
                                          XLA_FFI_Error_Code_INTERNAL};
        return frame->api->XLA_FFI_Error_Create(&args);
    }
    return copy_operand(frame);
}

static const char failing_text[] =
    "module @failing {\n"
    "  sdy.mesh @mesh = <[\"r\"=4]>\n"
    "  func.func public @main(%x: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>}) -> (tensor<12xf32> "
    "{sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>}) {\n"
    "    %y = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"r\"}]>] out_shardings=[<@mesh, [{\"r\"}]>] "
    "manual_axes={\"r\"} (%a: tensor<3xf32>) {\n"
    "      %b = stablehlo.custom_call @copy_or_fail(%a) {api_version = 4 : i32} : (tensor<3xf32>) -> tensor<3xf32>\n"
    "      %c = stablehlo.custom_call @tsr_xla_all_reduce(%b) {api_version = 4 : i32, backend_config = {mesh = "
    "\"tp=4\", "
    "timeout_ms = 1000 : i64}} : (tensor<3xf32>) -> tensor<3xf32>\n"
    "      sdy.return %c : tensor<3xf32>\n"
    "    } : (tensor<12xf32>) -> tensor<12xf32>\n"
    "    return %y : tensor<12xf32>\n"
    "  }\n"
    "}\n";

static void a_rank_that_does_not_come_is_named_by_the_others(void **state)
{
    float in[RANKS * COUNT], out[RANKS * COUNT];
    (void)state;
    fill(in);
    support_check(xla_host_register(support_host(), "copy_or_fail", (void *)(uintptr_t)copy_or_fail));
    const support_call call = all_reduce("", in, out);
    session s = {.calls = &call, .count = 1};
    support_check(xla_program_compile(support_host(), failing_text, RANKS, NULL, &s.program));
    support_buffers_create(&call, 1, RANKS, NULL, &s.buffers);
    char *errors[RANKS] = {0};
    bad_device = 2;
    free(run(&s, NULL, errors));
    for (int r = 0; r < RANKS; r++)
        support_refused(errors[r], r == 2 ? "broken on purpose" : "rank 2");
    /* The program goes on after that. */
    bad_device = -1;
    support_check(run(&s, NULL, NULL));
    check_sums(out, 60);
    end(&s);
}

static void a_device_outside_of_the_mesh_is_told_so(void **state)
{
    float in[RANKS * COUNT], out[RANKS * COUNT];
    (void)state;
    fill(in);
    const support_call call =
        all_reduce("mesh = \"tp=4\", devices = array<i64: 0, 1, 2, 7>, timeout_ms = 1500 : i64", in, out);
    session s;
    char *errors[RANKS] = {0};
    begin(&s, &call, 1, NULL);
    free(run(&s, NULL, errors));
    for (int r = 0; r < RANKS; r++)
        support_refused(errors[r], r == 3 ? "on device 3 (rank -1): the device is not one of the 4 of the mesh"
                                          : "rank 3 did not come within 1500 ms");
    end(&s);
}

/* ---- Groups ---- */

/* A handler that copies its operand; device 3 takes its time. */
static XLA_FFI_Error *copy_late(XLA_FFI_CallFrame *frame)
{
    if (tells_metadata(frame))
        return NULL;
    if (device_of(frame) == 3)
        usleep(10000);
    return copy_operand(frame);
}

/* Ranks 0 and 1 are turns ahead, and rank 2 has to wait for rank 3 in its own. */
static void groups_of_ranks_go_through_a_loop_at_their_own_pace(void **state)
{
    float in[RANKS * COUNT], out[RANKS * COUNT];
    (void)state;
    fill(in);
    support_check(xla_host_register(support_host(), "copy_late", (void *)(uintptr_t)copy_late));
    support_check(run_loop("stablehlo.custom_call @copy_late(%v) {api_version = 4 : i32} : (tensor<3xf32>) -> "
                           "tensor<3xf32>",
                           "mesh = \"dp=2,tp=2\", dims = \"tp\", timeout_ms = 2000 : i64", in, out));
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < COUNT; i++)
            assert_true(out[r * COUNT + i] == (float)((r < 2 ? 10 : 50) + 2 * i) / 2048);
}

/* ---- Lent communicators ---- */

static tsr_comm *comms[2 * RANKS];

static void lend(int64_t timeout_ms, tsr_xla_lent *lent, xla_launch *launch)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.timeout_ms = timeout_ms;
    for (int channel = 0; channel < 2; channel++)
        assert_int_equal(tsr_comm_create_threads(RANKS, &options, comms + channel * RANKS), TSR_OK);
    *lent = (tsr_xla_lent){sizeof *lent, RANKS, 2, comms};
    *launch = (xla_launch){.id = 1, .data = lent};
    assert_int_equal(tsr_xla_lent_type(NULL, &launch->type), TSR_OK);
}

static void take_back(void)
{
    for (int i = 0; i < 2 * RANKS; i++)
        tsr_comm_destroy(comms[i]);
}

static void a_host_lends_its_communicators(void **state)
{
    float in[RANKS * COUNT], out[2][RANKS * COUNT];
    tsr_xla_lent lent;
    xla_launch launch;
    (void)state;
    fill(in);
    (void)support_host();
    lend(0, &lent, &launch);
    const support_call calls[] = {all_reduce("mesh = \"tp=4\", channel = 0 : i64", in, out[0]),
                                  all_reduce("mesh = \"tp=4\", channel = 1 : i64, op = \"sum\"", in, out[1])};
    session s;
    begin(&s, calls, 2, NULL);
    for (int i = 0; i < 20; i++) {
        support_check(run(&s, &launch, NULL));
        check_sums(out[0], 60);
        check_sums(out[1], 60);
    }
    /* Others in their place serve as well. */
    take_back();
    lend(0, &lent, &launch);
    support_check(run(&s, &launch, NULL));
    check_sums(out[1], 60);
    end(&s);
    take_back();
}

static void what_a_host_lends_is_checked(void **state)
{
    float in[RANKS * COUNT], out[RANKS * COUNT];
    tsr_xla_lent lent;
    xla_launch launch;
    session s;
    (void)state;
    fill(in);
    lend(200, &lent, &launch);
    const support_call call = all_reduce("mesh = \"tp=4\", channel = 1 : i64", in, out);
    begin(&s, &call, 1, NULL);
    /* Without any context this XLA reads through NULL, so the host gives other data. */
    const xla_launch other = {.id = 1, .type = launch.type + 1000, .data = &lent};
    support_refused(run(&s, &other, NULL), "the host lends no communicators to this run");
    lent.channels = 1;
    support_refused(run(&s, &launch, NULL), "the host lends 1 channels with 4 ranks");
    lent.channels = 2;
    /* One rank has none: the others hear of it by the communicator's timeout. */
    tsr_comm *const kept = comms[RANKS + 1];
    comms[RANKS + 1] = NULL;
    char *errors[RANKS] = {0};
    free(run(&s, &launch, errors));
    for (int r = 0; r < RANKS; r++)
        support_refused(errors[r], r == 1 ? "lends rank 1 no communicator" : "rank 1");
    comms[RANKS + 1] = kept;
    end(&s);
    take_back();
}

/* ---- Operands stay where they are ---- */

/* A call on tensors whose shardings XLA knows, in and out of a manual computation. */
static const char plain_text[] =
    "module @plain {\n"
    "  sdy.mesh @mesh = <[\"r\"=4]>\n"
    "  func.func public @main(%x: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>}) -> (tensor<12xf32> "
    "{sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>}) {\n"
    "    %y = stablehlo.custom_call @tsr_xla_all_reduce(%x) {api_version = 4 : i32, backend_config = {mesh = "
    "\"tp=4\"}} : "
    "(tensor<12xf32>) -> tensor<12xf32>\n"
    "    return %y : tensor<12xf32>\n"
    "  }\n"
    "}\n";

static bool gathers(const char *text)
{
    xla_program program;
    char *bytes;
    size_t size;
    support_check(xla_program_compile(support_host(), text, RANKS, NULL, &program));
    support_check(xla_program_optimized(&program, &bytes, &size));
    assert_non_null(memmem(bytes, size, "tsr_xla_all_reduce", strlen("tsr_xla_all_reduce")));
    const bool found = memmem(bytes, size, "all-gather", strlen("all-gather")) != NULL;
    free(bytes);
    xla_program_destroy(&program);
    return found;
}

static void operands_are_not_gathered(void **state)
{
    float in[RANKS * COUNT], out[RANKS * COUNT];
    (void)state;
    const support_call call = all_reduce("mesh = \"tp=4\"", in, out);
    char *const text = support_text(&call, 1, RANKS);
    assert_false(gathers(text));
    free(text);
    /* Outside of a manual computation they are. */
    assert_true(gathers(plain_text));
}

/* A call whose result is its operand's memory, which the program donates. */
static const char donated_text[] =
    "module @donated {\n"
    "  sdy.mesh @mesh = <[\"r\"=4]>\n"
    "  func.func public @main(%%x: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>, tf.aliasing_output "
    "= "
    "0 : i32}) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>}) {\n"
    "    %%y = sdy.manual_computation(%%x) in_shardings=[<@mesh, [{\"r\"}]>] out_shardings=[<@mesh, [{\"r\"}]>] "
    "manual_axes={\"r\"} (%%a: tensor<4xf32>) {\n"
    "      %%b = stablehlo.custom_call @%s(%%a) {api_version = 4 : i32, backend_config = {%s}, "
    "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, "
    "operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "      sdy.return %%b : tensor<4xf32>\n"
    "    } : (tensor<16xf32>) -> tensor<16xf32>\n"
    "    return %%y : tensor<16xf32>\n"
    "  }\n"
    "}\n";

static char *run_donated(const char *target, const char *attributes, float *in, float *out)
{
    char text[2048];
    const support_call call = {target, "", 1, 1, {{"f32", 1, {4}, in}, {"f32", 1, {4}, out}}};
    session s = {.calls = &call, .count = 1};
    assert_true(snprintf(text, sizeof text, donated_text, target, attributes) < (int)sizeof text);
    support_check(xla_program_compile(support_host(), text, RANKS, NULL, &s.program));
    support_buffers_create(&call, 1, RANKS, NULL, &s.buffers);
    char *const why = run(&s, NULL, NULL);
    end(&s);
    return why;
}

static void an_operand_may_be_donated_to_a_reduction(void **state)
{
    float in[RANKS * 4], out[RANKS * 4];
    (void)state;
    for (int i = 0; i < RANKS * 4; i++)
        in[i] = (float)i;
    support_check(run_donated("tsr_xla_all_reduce", "mesh = \"tp=4\"", in, out));
    for (int i = 0; i < RANKS * 4; i++)
        assert_true(out[i] == (float)(24 + 4 * (i % 4)));
    /* Elements that change places cannot stay where they are. */
    support_refused(run_donated("tsr_xla_all_to_all", "mesh = \"tp=4\"", in, out), "overlap");
}

/* Seven elements over two ranks, 4 and 3: the last of the second is padding. */
static void a_donated_operand_may_have_padding(void **state)
{
    float in[RANKS * 4], out[RANKS * 4];
    (void)state;
    for (int i = 0; i < RANKS * 4; i++)
        in[i] = (float)(i + 1);
    support_check(run_donated("tsr_xla_redistribute",
                              "mesh = \"dp=2,tp=2\", from = \"S(0), P\", to = \"S(0), R\", shape = array<i64: 7>", in,
                              out));
    for (int i = 0; i < RANKS * 4; i++) {
        const int first = i / 8 * 8 + i % 4;
        assert_true(out[i] == (i >= 8 && i % 4 == 3 ? 0 : in[first] + in[first + 4]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_launches_of_two_independent_calls),
        cmocka_unit_test(launches_of_several_threads_do_not_mix),
        cmocka_unit_test(a_call_in_a_loop_meets_in_each_turn),
        cmocka_unit_test(a_mesh_may_have_devices_in_another_order),
        cmocka_unit_test(a_rank_that_does_not_come_is_named_by_the_others),
        cmocka_unit_test(a_device_outside_of_the_mesh_is_told_so),
        cmocka_unit_test(groups_of_ranks_go_through_a_loop_at_their_own_pace),
        cmocka_unit_test(a_host_lends_its_communicators),
        cmocka_unit_test(what_a_host_lends_is_checked),
        cmocka_unit_test(operands_are_not_gathered),
        cmocka_unit_test(an_operand_may_be_donated_to_a_reduction),
        cmocka_unit_test(a_donated_operand_may_have_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
