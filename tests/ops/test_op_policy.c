/* What calls of ops do about operands that do not fit, under each policy. */
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, COLUMNS = 7, RANKS = 3 };

static atomic_int lines;

static void count_line(void *user, tsr_log_level level, const char *line)
{
    (void)user;
    lines += level == TSR_LOG_WARN && strstr(line, "is redistributed from") != NULL;
}

static tsr_status make(const tsr_mesh *mesh, const char *placements, int scale, tsr_dtensor **out)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    float values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(scale * (i % 11 - 5));
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    return tsr_distribute(&global, mesh, placements, out);
}

/* Compares the whole tensor with a formula in i. */
static tsr_status expect(const tsr_dtensor *x, const char *placements, float (*formula)(int))
{
    char text[64];
    tsr_dtensor *full;
    tsr_layout_print(tsr_dtensor_layout(x), text, sizeof text);
    if (strcmp(text, placements) != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "the layout is \"%s\", not \"%s\"", text, placements);
    TSR_TRY(tsr_full_tensor(x, &full));
    tsr_status status = TSR_OK;
    for (int i = 0; i < ROWS * COLUMNS && status == TSR_OK; i++) {
        const float found = ((const float *)tsr_dtensor_to_local(full).data)[i];
        if (found != formula(i))
            status = tsr_status_set(TSR_ERROR_INTERNAL, "element %d is %g, not %g", i, found, formula(i));
    }
    tsr_dtensor_destroy(full);
    return status;
}

static float product(int i)
{
    return (float)(2 * (i % 11 - 5) * (i % 11 - 5));
}

static float first_gradient(int i)
{
    return (float)(3 * (i % 11 - 5) * 2 * (i % 11 - 5));
}

static float second_gradient(int i)
{
    return (float)(3 * (i % 11 - 5) * (i % 11 - 5));
}

/* x by rows times y by columns: one of them must move, and its gradient moves back. */
static tsr_status multiply(const tsr_mesh *mesh)
{
    tsr_dtensor *x, *y, *z, *dz, *dx, *dy;
    TSR_TRY(make(mesh, "S(0)", 1, &x));
    TSR_TRY(make(mesh, "S(1)", 2, &y));
    for (int turn = 0; turn < 2; turn++) { /* the second time from what the mesh keeps */
        char placements[64];
        TSR_TRY(tsr_mul(x, y, &z));
        tsr_layout_print(tsr_dtensor_layout(z), placements, sizeof placements);
        TSR_TRY(expect(z, placements, product));
        TSR_TRY(tsr_mul_into(y, x, z));
        TSR_TRY(expect(z, placements, product));
        TSR_TRY(make(mesh, placements, 3, &dz));
        TSR_TRY(tsr_mul_backward(x, y, dz, &dx, &dy));
        TSR_TRY(expect(dx, "S(0)", first_gradient));
        TSR_TRY(expect(dy, "S(1)", second_gradient));
        tsr_dtensor_destroy(dx);
        tsr_dtensor_destroy(dy);
        tsr_dtensor_destroy(dz);
        tsr_dtensor_destroy(z);
    }
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    return TSR_OK;
}

static tsr_status expect_refusal(const tsr_mesh *mesh, const char *why)
{
    tsr_dtensor *x, *y, *z = NULL;
    TSR_TRY(make(mesh, "S(0)", 1, &x));
    TSR_TRY(make(mesh, "S(1)", 2, &y));
    const tsr_status status = tsr_mul(x, y, &z);
    const int told = status == TSR_ERROR_ARGUMENT && strstr(tsr_status_message(), why) && !z;
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    return told ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "\"%s\" is not in: %s", why, tsr_status_message());
}

static float plus_five(int i)
{
    return (float)(i % 11 - 5) > 0 ? (float)(i % 11 - 5) : 0;
}

/* What a row that redistributes refuses is refused under every policy. */
static tsr_status move_badly(const tsr_mesh *mesh)
{
    const tsr_op *op;
    tsr_dtensor *x, *y = NULL;
    const tsr_attribute placements = tsr_attribute_text("placements", "S(9)");
    TSR_TRY(make(mesh, "S(0)", 1, &x));
    TSR_TRY(tsr_op_find(NULL, "redistribute", &op));
    const tsr_status status = tsr_op_call(op, 1, &placements, (const tsr_dtensor *const[]){x}, &y);
    tsr_dtensor_destroy(x);
    return status == TSR_ERROR_ARGUMENT ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "S(9) was not refused");
}

/* A part whose gradient lies nowhere by itself is refused under every policy. */
static tsr_status split_badly(const tsr_mesh *mesh)
{
    tsr_dtensor *x, *dx = NULL;
    const int64_t size = 12, sizes[] = {3, 4, 5};
    const float values[12] = {0};
    const tsr_dtensor *const dout[] = {NULL, NULL, NULL};
    const tsr_tensor global = tsr_tensor_contiguous((void *)values, TSR_F32, 1, &size);
    TSR_TRY(tsr_distribute(&global, mesh, "S(0;interleave=2)", &x));
    const tsr_status status = tsr_split_backward(x, 0, 3, sizes, dout, &dx);
    tsr_dtensor_destroy(x);
    const char *const told = tsr_status_message();
    if (status == TSR_ERROR_ARGUMENT && strstr(told, "tsr_split_backward: ") && strstr(told, "redistribute x") && !dx)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "the gradient of a split: %s", told);
}

/* A Partial operand of an op that takes none. */
static tsr_status reduce_first(const tsr_mesh *mesh)
{
    tsr_dtensor *x, *y;
    TSR_TRY(make(mesh, "P", 1, &x));
    TSR_TRY(tsr_relu(x, &y));
    char placements[64];
    tsr_layout_print(tsr_dtensor_layout(y), placements, sizeof placements);
    TSR_TRY(expect(y, placements, plus_five));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static tsr_status run(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    int64_t bytes;
    const tsr_policy policy = tsr_context_policy(arg, &bytes);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    tsr_status status = TSR_OK;
    if (policy == TSR_POLICY_FORBID)
        status = expect_refusal(mesh, "redistribute y from \"S(1)\"");
    else if (policy == TSR_POLICY_PARTIALS)
        status = expect_refusal(mesh, "the policy allows to redistribute Partial operands alone");
    else if (bytes)
        status = expect_refusal(mesh, "within the policy's limit of 8 bytes");
    else
        status = multiply(mesh);
    if (status == TSR_OK && policy != TSR_POLICY_FORBID && !bytes)
        status = reduce_first(mesh);
    if (status == TSR_OK)
        status = move_badly(mesh);
    if (status == TSR_OK)
        status = split_badly(mesh);
    tsr_mesh_destroy(mesh);
    return status;
}

static void run_under(tsr_policy policy, int64_t bytes)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    options.policy = policy;
    options.policy_bytes = bytes;
    options.log = count_line;
    options.log_level = TSR_LOG_WARN;
    lines = 0;
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    if (tsr_threads_run(RANKS, run, threads.context, &threads) != TSR_OK)
        fail_msg("policy %d: %s", (int)policy, tsr_status_message());
    tsr_context_destroy(threads.context);
}

static void forbid_and_partials_refuse(void **state)
{
    (void)state;
    run_under(TSR_POLICY_FORBID, 0);
    run_under(TSR_POLICY_PARTIALS, 0);
    run_under(TSR_POLICY_ALLOW, 8);
    assert_int_equal(lines, 0);
}

static void allow_moves_and_warn_tells(void **state)
{
    (void)state;
    run_under(TSR_POLICY_ALLOW, 0);
    assert_int_equal(lines, 0);
    run_under(TSR_POLICY_WARN, 0);
    /* twice three products, and one reduction, on each rank */
    assert_int_equal(lines, (2 * 3 + 1) * RANKS);
}

static void a_context_refuses_what_is_no_policy(void **state)
{
    tsr_context *context;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    (void)state;
    options.policy = (tsr_policy)7;
    assert_int_equal(tsr_context_create(&options, &context), TSR_ERROR_ARGUMENT);
    options.policy = TSR_POLICY_ALLOW;
    options.policy_bytes = -1;
    assert_int_equal(tsr_context_create(&options, &context), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_context_policy(NULL, NULL), TSR_POLICY_FORBID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forbid_and_partials_refuse),
                                       cmocka_unit_test(allow_moves_and_warn_tells),
                                       cmocka_unit_test(a_context_refuses_what_is_no_policy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
