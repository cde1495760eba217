/* Which pointwise steps run together, and what memory and bytes that leaves. */
#include "layers.h"
#include "running.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { LONG = 40000 };

static tsr_value one(tsr_program *p, const char *op, tsr_value x)
{
    return tsr_program_apply(p, op, 0, NULL, (const tsr_value[]){x, TSR_NONE, TSR_NONE, TSR_NONE}, NULL);
}

/* Steps of a program on this rank, one after the other: "neg0 exp0 sum" where neg and exp are in
 * group 0. */
static void list_groups(const tsr_executable *x, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        length += (size_t)snprintf(text + length, size - length, "%s%s", length ? " " : "", step.op);
        if (step.group >= 0)
            length += (size_t)snprintf(text + length, size - length, "%d", step.group);
    }
}

/* Compiles a program on one rank without a communicator, and checks its groups and workspace. */
static void expect_groups(void (*record)(tsr_program *p, const tsr_mesh *mesh), const char *wanted, size_t bytes,
                          int64_t touched)
{
    char text[512];
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    int64_t sum = 0;
    options.rank = 0;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, context, "1", &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(context, &p), TSR_OK);
    record(p, mesh);
    if (tsr_compile(p, &options, &x) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    list_groups(x, text, sizeof text);
    assert_string_equal(text, wanted);
    assert_int_equal(tsr_executable_workspace_bytes(x), bytes);
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        sum += step.bytes_touched;
    }
    assert_int_equal(sum, touched);
    tsr_executable_destroy(x);
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
}

static tsr_value input(tsr_program *p, const char *name, const tsr_mesh *mesh, tsr_dtype dtype, int64_t count)
{
    return tsr_input(p, name, mesh, dtype, 1, &count, NULL);
}

static tsr_value state_of(tsr_program *p, const char *name, const tsr_mesh *mesh, int64_t count)
{
    tsr_layout *layout;
    assert_int_equal(tsr_layout_parse(mesh, "R", 1, &count, TSR_F32, &layout), TSR_OK);
    const tsr_value value = tsr_state(p, name, layout);
    tsr_layout_destroy(layout);
    return value;
}

static void record_chain(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, "x", mesh, TSR_F32, LONG);
    tsr_output(p, "y", one(p, "tanh", one(p, "exp", one(p, "neg", one(p, "square", x)))), NULL);
}

/* bf16 is widened, and rounded at the end. */
static void record_widened(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = tsr_op_cast(p, input(p, "x", mesh, TSR_BF16, LONG), TSR_F32);
    tsr_output(p, "y", tsr_op_cast(p, one(p, "exp", one(p, "neg", x)), TSR_BF16), NULL);
}

/* A value that is read by what is no part of the chain is whole in memory. */
static void record_read_outside(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, "x", mesh, TSR_F32, LONG), a = one(p, "square", x), b = one(p, "exp", a);
    tsr_output(p, "y", one(p, "neg", b), NULL);
    tsr_output(p, "sum", tsr_op_sum(p, a, 0, NULL, 0), NULL);
}

/* Chains that have nothing in common are groups of their own, in which nothing waits for the other;
 * what has another shape goes before. */
static void record_apart(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, "x", mesh, TSR_F32, LONG), y = input(p, "y", mesh, TSR_F32, LONG);
    const tsr_value rate = input(p, "rate", mesh, TSR_F32, 1);
    const tsr_value a = one(p, "exp", x), b = one(p, "sin", y), c = one(p, "sqrt", rate);
    tsr_output(p, "a", tsr_op_mul(p, one(p, "neg", a), c), NULL);
    tsr_output(p, "b", tsr_op_mul(p, one(p, "abs", b), c), NULL);
}

/* AdamW, but for what corrects the bias: moments and weights are read and written once, and new
 * ones are made where they are stored. */
static void record_update(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value g = input(p, "g", mesh, TSR_F32, LONG);
    const tsr_value w = state_of(p, "w", mesh, LONG), m = state_of(p, "m", mesh, LONG),
                    v = state_of(p, "v", mesh, LONG);
    const tsr_value m0 = tsr_op_scale(p, m, 0.9), m1 = tsr_op_add(p, m0, tsr_op_scale(p, g, 0.1));
    const tsr_value v0 = tsr_op_scale(p, v, 0.999), square = one(p, "square", g);
    const tsr_value v1 = tsr_op_add(p, v0, tsr_op_scale(p, square, 0.001));
    const tsr_value step = tsr_op_div(p, m1, one(p, "sqrt", v1)), kept = tsr_op_scale(p, w, 0.99);
    tsr_op_store(p, m, m1, TSR_NONE);
    tsr_op_store(p, v, v1, TSR_NONE);
    tsr_op_store(p, w, tsr_op_sub(p, kept, tsr_op_scale(p, step, 0.001)), TSR_NONE);
}

static void chains_are_groups(void **state)
{
    const size_t tile = 2048 * sizeof(float), all = LONG * sizeof(float);
    (void)state;
    expect_groups(record_chain, "square0 neg0 exp0 tanh0", tile, 2 * LONG * 4);
    expect_groups(record_widened, "cast0 neg0 exp0 cast0", tile, 2 * LONG * 2);
    expect_groups(record_read_outside, "square0 exp0 neg0 sum", all + tile, 4 * LONG * 4 + 4);
    expect_groups(record_apart, "exp0 sin1 sqrt neg0 mul0 abs1 mul1", tile + 64, 4 * LONG * 4 + 4 * 4);
    expect_groups(record_update,
                  "scale0 scale0 add0 scale0 square0 scale0 add0 sqrt0 div0 scale0 store0 store0 scale0 sub0 store0",
                  2 * tile, 7 * LONG * 4);
}

/* Results that must not lie over an operand, which is also read as its transpose: alone, and in a
 * group. */
static void record_mirrored(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const int64_t side = *(const int64_t *)arg, shape[] = {2, side, side}, first = 0;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 3, shape, NULL);
    const tsr_value a = tsr_op_sum(p, x, 1, &first, 0), b = one(p, "neg", tsr_op_transpose(p, a, 0, 1));
    const tsr_value c = tsr_op_add(p, b, a), d = tsr_op_sum(p, one(p, "square", x), 1, &first, 0);
    tsr_output(p, "grouped", tsr_op_sum(p, c, 1, &first, 0), NULL);
    tsr_output(p, "alone", tsr_op_sum(p, tsr_op_add(p, d, tsr_op_transpose(p, d, 0, 1)), 1, &first, 0), NULL);
}

static tsr_status run_mirrored(tsr_comm *comm, void *arg)
{
    static _Thread_local ran got;
    const int64_t side = *(const int64_t *)arg;
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(ran_run(comm, mesh, record_mirrored, arg, 0, &got));
    tsr_mesh_destroy(mesh);
    for (int64_t j = 0; j < side; j++) {
        double grouped = 0, alone = 0;
        for (int64_t i = 0; i < side; i++)
            for (int64_t k = 0; k < 2; k++) {
                const double x = whole_value(1, (k * side + i) * side + j),
                             y = whole_value(1, (k * side + j) * side + i);
                grouped += x - y;
                alone += x * x + y * y;
            }
        TSR_TRY(support_expect_held(got.values[j] == grouped, "grouped", j, got.values[j], grouped));
        TSR_TRY(support_expect_held(got.values[side + j] == alone, "alone", j, got.values[side + j], alone));
    }
    return TSR_OK;
}

static void views_of_operands_stay_as_they_are(void **state)
{
    static const int64_t sides[] = {5, 45};
    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        layers_run(1, run_mirrored, (void *)&sides[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_are_groups),
        cmocka_unit_test(views_of_operands_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
