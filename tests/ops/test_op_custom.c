/* Rows of a program's own: what is refused, what is found, and kernels whose ranks meet. */
#include <tessera/sys/ops.h>
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static tsr_status check_any(const tsr_op_case *c, tsr_dtype *results)
{
    results[0] = tsr_layout_dtype(c->operands[0]);
    return TSR_OK;
}

static int64_t eight_bytes(const tsr_kernel_call *call)
{
    (void)call;
    return 8;
}

/* Writes the sum over ranks of the number of local elements; on the rank that `fails` names it
 * fails before the meeting. */
static tsr_status count_elements(const tsr_kernel_call *call)
{
    int64_t own, total = 0;
    TSR_TRY(tsr_tensor_count(&call->inputs[0], &own));
    if (call->stage <= 0 && call->attributes[0].integer >= 0 && call->coordinate[0] == call->attributes[0].integer)
        return tsr_status_set(TSR_ERROR_STATE, "%s: this element is wrong", call->op);
    if (call->stage == 0) {
        memcpy(call->record, &own, sizeof own);
        return TSR_OK;
    }
    if (call->stage == TSR_STAGE_WHOLE)
        total = own;
    for (int i = 0; call->stage == 1 && i < call->record_count; i++) {
        int64_t other;
        memcpy(&other, (const char *)call->records + i * call->record_stride, sizeof other);
        total += other;
        assert_true(i != call->own_record || other == own);
    }
    for (int64_t i = 0; i < own; i++)
        ((int64_t *)call->outputs[0].data)[i] = total;
    return TSR_OK;
}

#define ROW                                                                                                            \
    .size = sizeof(tsr_op), .rule = "n -> n | n exchange", .operands = {"x"}, .results = {"out"},                      \
    .attributes = {{.name = "fails", .kind = TSR_ATTRIBUTE_INT, .integer = -1}}, .check = check_any,                   \
    .host = count_elements, .exchanges = 1, .record_bytes = eight_bytes

static const tsr_op counting = {ROW, .name = "counting"};

/* The sentence of the first lookup with these rows. */
static const char *refusal(const tsr_op *const *rows, size_t count)
{
    const tsr_op *op;
    tsr_context *context;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.ops = rows;
    options.op_count = count;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    assert_int_equal(tsr_op_find(context, "add", &op), TSR_ERROR_ARGUMENT);
    tsr_context_destroy(context);
    return tsr_status_message();
}

#define REFUSED(sentence, ...)                                                                                         \
    do {                                                                                                               \
        const tsr_op row = {__VA_ARGS__};                                                                              \
        assert_string_equal(refusal((const tsr_op *const[]){&row}, 1), "tsr_context_options.ops: " sentence);          \
    } while (0)

static void rows_that_lack_something_are_refused_by_name(void **state)
{
    (void)state;
    REFUSED("row 0 has no name", .size = sizeof(tsr_op));
    REFUSED("a has no rule", .size = sizeof(tsr_op), .name = "a");
    REFUSED("a has no check", .size = sizeof(tsr_op), .name = "a", .rule = "n -> n");
    REFUSED("a has no host", .size = sizeof(tsr_op), .name = "a", .rule = "n -> n", .check = check_any);
    REFUSED("a has no results", .size = sizeof(tsr_op), .name = "a", .rule = "n -> n", .check = check_any,
            .host = count_elements);
    REFUSED("add is an op of the library", ROW, .name = "add");
    REFUSED("a has no record_bytes", .size = sizeof(tsr_op), .name = "a", .rule = "n -> n", .check = check_any,
            .host = count_elements, .results = {"out"}, .exchanges = 1);
    REFUSED("a: rule \"n -> m\", character 5: expected a factor of an operand, found \"m\"", .size = sizeof(tsr_op),
            .name = "a", .rule = "n -> m", .check = check_any, .host = count_elements, .operands = {"x"},
            .results = {"out"});
    REFUSED("a has no first operand that is always given", .size = sizeof(tsr_op), .name = "a", .rule = "n -> n",
            .check = check_any, .host = count_elements, .results = {"out"});
    REFUSED("a: the rule \"n, n -> n\" has 2 operands and 1 results, but the row names 1 and 1", .size = sizeof(tsr_op),
            .name = "a", .rule = "n, n -> n", .check = check_any, .host = count_elements, .operands = {"x"},
            .results = {"out"});
    REFUSED("a: the rule \"n -> n | n exchange\" exchanges a factor, but exchanges is 0", .size = sizeof(tsr_op),
            .name = "a", .rule = "n -> n | n exchange", .check = check_any, .host = count_elements, .operands = {"x"},
            .results = {"out"});
    REFUSED("a passes its first operand, so it must have one result and a host kernel", .size = sizeof(tsr_op),
            .name = "a", .rule = "n -> n, n", .check = check_any, .host = count_elements, .operands = {"x"},
            .results = {"out", "more"}, .passes = true);
    assert_string_equal(refusal((const tsr_op *const[]){&counting, &counting}, 2),
                        "tsr_context_options.ops: two rows are called counting");
    const tsr_op shorter = {.size = 16, .name = "a"};
    char wanted[128];
    snprintf(wanted, sizeof wanted, "tsr_context_options.ops: a: size is 16, but must be sizeof(struct tsr_op), %zu",
             sizeof(tsr_op));
    assert_string_equal(refusal((const tsr_op *const[]){&shorter}, 1), wanted);
}

typedef struct calls {
    tsr_context *context;
    const tsr_op *op;
} calls;

static tsr_status make(tsr_comm *comm, int64_t size, tsr_mesh **mesh, tsr_dtensor **x)
{
    int64_t values[16] = {0};
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_I64, 1, &size);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", mesh));
    return tsr_distribute(&global, *mesh, "S(0)", x);
}

/* 4 elements over 3 ranks are 2, 2 and none: all get the sum, also the rank with an empty shard. */
static tsr_status count_on_three(tsr_comm *comm, void *arg)
{
    const calls *const c = arg;
    tsr_mesh *mesh;
    tsr_dtensor *x, *out;
    TSR_TRY(make(comm, 4, &mesh, &x));
    TSR_TRY(tsr_op_call(c->op, 0, NULL, (const tsr_dtensor *const[]){x}, &out));
    int64_t count;
    const tsr_tensor local = tsr_dtensor_to_local(out);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(((const int64_t *)local.data)[i], 4);
    tsr_dtensor_destroy(out);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

/* A rank whose kernel fails, and then one that asks for something else: nobody waits. */
static tsr_status fail_on_one(tsr_comm *comm, void *arg)
{
    const calls *const c = arg;
    const int rank = tsr_comm_rank(comm);
    tsr_mesh *mesh;
    tsr_dtensor *x, *out = NULL;
    TSR_TRY(make(comm, 6, &mesh, &x));
    const tsr_attribute second = tsr_attribute_int("fails", 1), own = tsr_attribute_int("fails", -1 - rank);
    const tsr_status failed = tsr_op_call(c->op, 1, &second, (const tsr_dtensor *const[]){x}, &out);
    assert_int_equal(failed, rank == 1 ? TSR_ERROR_STATE : TSR_ERROR_PEER);
    assert_string_equal(tsr_status_message(), rank == 1 ? "counting: this element is wrong"
                                                        : "rank 1 failed: counting: this element is wrong");
    assert_int_equal(tsr_op_call(c->op, 1, &own, (const tsr_dtensor *const[]){x}, &out), TSR_ERROR_PEER);
    assert_non_null(strstr(tsr_status_message(), "is in another call, or has other attributes or layouts"));
    assert_null(out);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static tsr_status layout_of(const char *mesh_text, const char *placements, int64_t size, tsr_layout **out)
{
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(NULL, NULL, mesh_text, &mesh));
    const tsr_status status = tsr_layout_parse(mesh, placements, 1, &size, TSR_I64, out);
    tsr_mesh_destroy(mesh);
    return status;
}

/* A record of 8 bytes takes 64, and so does what goes with it; each of the other ranks sends
 * one. */
static void bytes_of_records_are_told_without_data(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *placements;
        int64_t bytes;
    } cases[] = {{"3", "S(0)", 2 * 128}, {"3", "R", 0}, {"2x3", "R,S(0)", 2 * 128}, {"2x3", "S(0),S(0)", 5 * 128}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tsr_layout *layout;
        int64_t bytes = -1;
        assert_int_equal(layout_of(cases[i].mesh, cases[i].placements, 12, &layout), TSR_OK);
        assert_int_equal(tsr_op_exchange_bytes(&counting, 0, NULL, (const tsr_layout *const[]){layout},
                                               (const int64_t[]){0, 0}, &bytes),
                         TSR_OK);
        assert_int_equal(bytes, cases[i].bytes);
        assert_int_equal(tsr_op_exchange_bytes(&counting, 0, NULL, (const tsr_layout *const[]){layout},
                                               (const int64_t[]){0, 0}, NULL),
                         TSR_ERROR_ARGUMENT);
        assert_string_equal(tsr_status_message(), "tsr_op_exchange_bytes: bytes is NULL");
        tsr_layout_destroy(layout);
    }
}

static void a_context_tells_its_rows(void **state)
{
    (void)state;
    const tsr_op *const rows[] = {&counting};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context;
    size_t count = 7;
    options.ops = rows;
    options.op_count = 1;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    assert_ptr_equal(tsr_context_ops(context, &count)[0], &counting);
    assert_int_equal(count, 1);
    tsr_context_destroy(context);
}

static void kernels_meet_in_stages(void **state)
{
    const tsr_op *const rows[] = {&counting};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    calls c;
    (void)state;
    options.ops = rows;
    options.op_count = 1;
    assert_int_equal(tsr_context_create(&options, &c.context), TSR_OK);
    assert_int_equal(tsr_op_find(c.context, "counting", &c.op), TSR_OK);
    size_t last = 0;
    while (tsr_op_get(NULL, last))
        last++;
    assert_ptr_equal(tsr_op_get(c.context, last), c.op);
    assert_null(tsr_op_get(c.context, last + 1));
    threads.context = c.context;
    if (tsr_threads_run(3, count_on_three, &c, &threads) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    if (tsr_threads_run(3, fail_on_one, &c, &threads) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_context_destroy(c.context);
}

/* A row that passes its operand is not called in a program, and says that its result varies. */
static tsr_status fail_always(const tsr_kernel_call *call)
{
    return tsr_status_set(TSR_ERROR_STATE, "%s: a program called it", call->op);
}

static unsigned vary_on_first(const tsr_op_case *c)
{
    (void)c;
    return 1;
}

static const tsr_op marking = {.size = sizeof(tsr_op),
                               .name = "marking",
                               .rule = "... -> ...",
                               .operands = {"x"},
                               .results = {"out"},
                               .check = check_any,
                               .host = fail_always,
                               .passes = true,
                               .varies = vary_on_first};

static const tsr_op turning = {.size = sizeof(tsr_op),
                               .name = "turning",
                               .rule = "a b -> b a",
                               .operands = {"x"},
                               .results = {"out"},
                               .check = check_any,
                               .host = fail_always,
                               .passes = true};

/* What a row does not pass is refused when it is recorded. */
static tsr_status turn_in_a_program(tsr_context *context, const tsr_mesh *mesh)
{
    tsr_program *program;
    const char *sentence;
    const int64_t shape[] = {2, 3};
    TSR_TRY(tsr_program_create(context, &program));
    const tsr_value x = tsr_input(program, "x", mesh, TSR_I32, 2, shape, "R,R");
    (void)tsr_program_apply(program, "turning", 0, NULL, &x, NULL);
    assert_int_equal(tsr_program_status(program, &sentence), TSR_ERROR_ARGUMENT);
    assert_string_equal(sentence, "op 0, turning: the row passes its first operand, but its rule or its check give the "
                                  "result another layout; leave `passes` out of the row");
    tsr_program_destroy(program);
    return TSR_OK;
}

static tsr_status run_marked(tsr_comm *comm, const tsr_program *program)
{
    tsr_executable *x;
    int32_t in[] = {3, 4}, out[] = {0, 0};
    _Alignas(64) char workspace[1024];
    const int64_t two = 2;
    const tsr_tensor input = tsr_tensor_contiguous(in, TSR_I32, 1, &two);
    const tsr_tensor output = tsr_tensor_contiguous(out, TSR_I32, 1, &two);
    TSR_TRY(tsr_compile(program, NULL, &x));
    tsr_status status = tsr_executable_prepare(x, comm);
    if (status == TSR_OK)
        status = tsr_executable_run(x, comm, &input, &output, workspace, sizeof workspace, NULL);
    tsr_executable_destroy(x);
    TSR_TRY(status);
    assert_int_equal(out[0], -3);
    assert_int_equal(out[1], -4);
    return TSR_OK;
}

static tsr_status mark_in_a_program(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_program *program;
    const int64_t two = 2;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1x1", &mesh));
    TSR_TRY(tsr_program_create(arg, &program));
    const tsr_value x = tsr_input(program, "x", mesh, TSR_I32, 1, &two, "R,R");
    const tsr_value marked = tsr_program_apply(program, "marking", 0, NULL, &x, NULL);
    assert_int_equal(tsr_value_varying(program, x), 0);
    assert_int_equal(tsr_value_varying(program, marked), 1);
    tsr_output(program, "out", tsr_op_neg(program, marked), NULL);
    tsr_status status = run_marked(comm, program);
    tsr_program_destroy(program);
    if (status == TSR_OK)
        status = turn_in_a_program(arg, mesh);
    tsr_mesh_destroy(mesh);
    return status;
}

static void what_passes_is_not_called_in_programs(void **state)
{
    (void)state;
    const tsr_op *const rows[] = {&marking, &turning};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    options.ops = rows;
    options.op_count = 2;
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    if (tsr_threads_run(1, mark_in_a_program, threads.context, &threads) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_context_destroy(threads.context);
}

/* A gradient whose row gets no operand at all is refused, as eager calls refuse it. */
static const tsr_op groundless = {.size = sizeof(tsr_op),
                                  .name = "groundless",
                                  .rule = "... -> ...",
                                  .operands = {"x"},
                                  .results = {"out"},
                                  .check = check_any,
                                  .host = fail_always,
                                  .gradients = {"neg(none)"}};

static void a_gradient_of_nothing_is_refused(void **state)
{
    (void)state;
    const tsr_op *const rows[] = {&groundless};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *program;
    tsr_value dx;
    const char *sentence;
    options.ops = rows;
    options.op_count = 1;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, context, "2", &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(context, &program), TSR_OK);
    const tsr_value x = tsr_input(program, "x", mesh, TSR_F32, 0, NULL, "R");
    tsr_gradients(program, tsr_program_apply(program, "groundless", 0, NULL, &x, NULL), 1, &x, &dx);
    assert_int_equal(tsr_program_status(program, &sentence), TSR_ERROR_ARGUMENT);
    assert_string_equal(sentence, "tsr_gradients: op 0, groundless: op 1, neg: x is NULL");
    tsr_program_destroy(program);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_that_lack_something_are_refused_by_name),
                                       cmocka_unit_test(bytes_of_records_are_told_without_data),
                                       cmocka_unit_test(a_context_tells_its_rows),
                                       cmocka_unit_test(kernels_meet_in_stages),
                                       cmocka_unit_test(what_passes_is_not_called_in_programs),
                                       cmocka_unit_test(a_gradient_of_nothing_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
