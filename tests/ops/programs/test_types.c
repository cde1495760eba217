/* What programs refuse, in words that say what to write; and what policies put in. */
#include "layers.h"
#include "running.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A program over an abstract mesh of two ranks, under a policy. */
typedef struct fixture {
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
} fixture;

static fixture begin_within(tsr_policy policy, int64_t bytes)
{
    fixture f;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.policy = policy;
    options.policy_bytes = bytes;
    assert_int_equal(tsr_context_create(&options, &f.context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, f.context, "tp=2", &f.mesh), TSR_OK);
    assert_int_equal(tsr_program_create(f.context, &f.p), TSR_OK);
    return f;
}

static fixture begin(tsr_policy policy)
{
    return begin_within(policy, 0);
}

static void end(fixture *f)
{
    tsr_program_destroy(f->p);
    tsr_mesh_destroy(f->mesh);
    tsr_context_destroy(f->context);
}

static tsr_value input(const fixture *f, const char *name, const char *placements, int64_t rows, int64_t columns)
{
    return tsr_input(f->p, name, f->mesh, TSR_F32, 2, (const int64_t[]){rows, columns}, placements);
}

static tsr_value apply(const fixture *f, const char *op, tsr_value a, tsr_value b)
{
    return tsr_program_apply(f->p, op, 0, NULL, (const tsr_value[]){a, b, TSR_NONE, TSR_NONE}, NULL);
}

static void expect_layout(const fixture *f, tsr_value value, const char *placements)
{
    char text[64];
    assert_non_null(tsr_value_layout(f->p, value));
    tsr_layout_print(tsr_value_layout(f->p, value), text, sizeof text);
    assert_string_equal(text, placements);
}

/* The program's first error, which compiling tells too. */
static void expect_error(fixture *f, tsr_status wanted, const char *sentence)
{
    const char *text;
    tsr_executable *x;
    assert_int_equal(tsr_program_status(f->p, &text), wanted);
    assert_string_equal(text, sentence);
    assert_int_equal(tsr_compile(f->p, NULL, &x), wanted);
    assert_string_equal(tsr_status_message(), sentence);
    end(f);
}

static void operands_that_do_not_fit_are_refused_in_words(void **state)
{
    (void)state;
    fixture f = begin(TSR_POLICY_FORBID);
    const tsr_value x = apply(&f, "relu", input(&f, "x", "S(1)", 4, 6), TSR_NONE);
    assert_int_equal(apply(&f, "matmul", x, input(&f, "w", "R", 6, 2)), TSR_NONE);
    /* What follows an error does nothing. */
    assert_int_equal(apply(&f, "relu", x, TSR_NONE), TSR_NONE);
    expect_error(&f, TSR_ERROR_ARGUMENT,
                 "op 1, matmul: mesh dim tp must cut dim 1 of a and dim 0 of b alike; redistribute b from \"R\" to "
                 "\"S(0)\"");
}

static void policies_put_redistributions_in(void **state)
{
    (void)state;
    fixture f = begin(TSR_POLICY_ALLOW);
    const tsr_value x = input(&f, "x", "S(1)", 4, 6), w = input(&f, "w", "S(1)", 6, 2);
    const tsr_value y = apply(&f, "matmul", x, w);
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    expect_layout(&f, x, "S(1)");
    tsr_output(f.p, "y", y, "R");
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    tsr_executable *e;
    tsr_executable_step step;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    options.rank = 0;
    assert_int_equal(tsr_compile(f.p, &options, &e), TSR_OK);
    assert_int_equal(tsr_executable_step_at(e, 0, &step), TSR_OK);
    assert_string_equal(step.op, "move");
    assert_string_equal(step.cause, "matmul");
    tsr_executable_destroy(e);
    end(&f);
}

static void outputs_are_brought_as_the_policy_allows(void **state)
{
    (void)state;
    fixture f = begin(TSR_POLICY_FORBID);
    tsr_output(f.p, "y", input(&f, "x", "S(0)", 4, 6), "R");
    expect_error(&f, TSR_ERROR_ARGUMENT,
                 "y: the value is \"S(0)\", and the policy does not let it be brought to \"R\"; write "
                 "tsr_op_redistribute(program, value, \"R\")");
    f = begin(TSR_POLICY_PARTIALS);
    tsr_output(f.p, "sum", apply(&f, "matmul", input(&f, "x", "S(1)", 4, 6), input(&f, "w", "S(0)", 6, 2)), "R");
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    tsr_output(f.p, "y", input(&f, "z", "S(0)", 4, 6), "R");
    expect_error(&f, TSR_ERROR_ARGUMENT,
                 "y: the value is \"S(0)\", and the policy does not let it be brought to \"R\"; write "
                 "tsr_op_redistribute(program, value, \"R\")");
}

/* 4 x 6 f32 on two ranks: each receives 48 bytes. */
static void outputs_are_brought_within_the_limit(void **state)
{
    (void)state;
    fixture f = begin_within(TSR_POLICY_ALLOW, 48);
    tsr_output(f.p, "y", input(&f, "x", "S(0)", 4, 6), "R");
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    end(&f);
    f = begin_within(TSR_POLICY_ALLOW, 47);
    tsr_output(f.p, "y", input(&f, "x", "S(0)", 4, 6), "R");
    expect_error(
        &f, TSR_ERROR_ARGUMENT,
        "y: a rank would receive 48 bytes, more than the policy's limit of 47; write the redistribution, or raise "
        "tsr_context_options.policy_bytes");
}

/* sum(square(x w)), where each rank has columns of w. */
static tsr_value record_loss(const fixture *f, tsr_value x, tsr_value w)
{
    const tsr_value loss = apply(f, "sum", apply(f, "square", apply(f, "matmul", x, w), TSR_NONE), TSR_NONE);
    return apply(f, "all_reduce", loss, TSR_NONE);
}

static void gradients_of_invariant_values_need_vary(void **state)
{
    (void)state;
    tsr_value d[2];
    fixture f = begin(TSR_POLICY_FORBID);
    tsr_value x = input(&f, "x", "R", 4, 6), w = input(&f, "w", "S(1)", 6, 2);
    tsr_gradients(f.p, record_loss(&f, x, w), 2, (const tsr_value[]){x, w}, d);
    expect_error(
        &f, TSR_ERROR_ARGUMENT,
        "tsr_gradients: op 0, matmul leaves terms of the gradient by \"x\", \"P\", which is invariant: every rank "
        "needs the sum; give the op tsr_op_vary(program, \"x\") instead, whose backward adds the terms");
    f = begin(TSR_POLICY_FORBID);
    x = input(&f, "x", "R", 4, 6);
    w = input(&f, "w", "S(1)", 6, 2);
    tsr_gradients(f.p, record_loss(&f, apply(&f, "vary", x, TSR_NONE), w), 2, (const tsr_value[]){x, w}, d);
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    expect_layout(&f, d[0], "R");
    expect_layout(&f, d[1], "S(1)");
    end(&f);
    f = begin(TSR_POLICY_PARTIALS);
    x = input(&f, "x", "R", 4, 6);
    w = input(&f, "w", "S(1)", 6, 2);
    tsr_gradients(f.p, record_loss(&f, x, w), 1, &x, d);
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    expect_layout(&f, d[0], "R");
    end(&f);
}

static void losses_are_whole_or_terms(void **state)
{
    (void)state;
    tsr_value d;
    fixture f = begin(TSR_POLICY_FORBID);
    tsr_value x = input(&f, "x", "R", 4, 6);
    tsr_gradients(f.p, x, 1, &x, &d);
    expect_error(&f, TSR_ERROR_ARGUMENT, "tsr_gradients: loss has 24 elements, but must have 1");
    f = begin(TSR_POLICY_FORBID);
    x = input(&f, "x", "S(0)", 1, 1);
    tsr_gradients(f.p, x, 1, &x, &d);
    expect_error(&f, TSR_ERROR_ARGUMENT, "tsr_gradients: loss is neither Replicate nor Partial(sum) on mesh dim 0");
}

/* A value on which the loss does not depend has the gradient 0, and values and ops that are alike
 * are one. */
static void values_are_shared(void **state)
{
    (void)state;
    tsr_value d;
    fixture f = begin(TSR_POLICY_FORBID);
    const tsr_value x = input(&f, "x", "S(0)", 4, 6), y = input(&f, "y", "R", 2, 2);
    const tsr_value a = apply(&f, "relu", x, TSR_NONE);
    assert_int_equal(apply(&f, "relu", x, TSR_NONE), a);
    assert_true(apply(&f, "exp", x, TSR_NONE) != a);
    const tsr_value loss = apply(&f, "sum", a, TSR_NONE);
    tsr_gradients(f.p, loss, 1, &y, &d);
    assert_int_equal(tsr_program_status(f.p, NULL), TSR_OK);
    expect_layout(&f, d, "R");
    assert_true(d != y && tsr_value_varying(f.p, d) == 0);
    assert_string_equal(tsr_value_name(f.p, x), "x");
    assert_null(tsr_value_name(f.p, a));
    assert_null(tsr_value_layout(f.p, 1000));
    end(&f);
}

static void names_and_states_are_checked(void **state)
{
    (void)state;
    fixture f = begin(TSR_POLICY_FORBID);
    input(&f, "x", "R", 4, 6);
    assert_int_equal(input(&f, "x", "R", 4, 6), TSR_NONE);
    expect_error(&f, TSR_ERROR_ARGUMENT, "tsr_input: the program has a value \"x\" already");
    f = begin(TSR_POLICY_FORBID);
    assert_int_equal(input(&f, "a b", "R", 4, 6), TSR_NONE);
    expect_error(&f, TSR_ERROR_ARGUMENT,
                 "tsr_input: name is \"a b\", but must be 1 to 255 letters, digits, '_', '.' and '-'");
    f = begin(TSR_POLICY_FORBID);
    tsr_op_store(f.p, input(&f, "x", "R", 4, 6), 0, TSR_NONE);
    expect_error(&f, TSR_ERROR_ARGUMENT, "tsr_op_store: state is value 0, which is not one of tsr_state()");
    f = begin(TSR_POLICY_FORBID);
    tsr_executable *x;
    assert_int_equal(tsr_compile(f.p, NULL, &x), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(),
                        "tsr_compile: the program has neither outputs nor stores; add one by tsr_output()");
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_that_do_not_fit_are_refused_in_words),
        cmocka_unit_test(policies_put_redistributions_in),
        cmocka_unit_test(outputs_are_brought_as_the_policy_allows),
        cmocka_unit_test(outputs_are_brought_within_the_limit),
        cmocka_unit_test(gradients_of_invariant_values_need_vary),
        cmocka_unit_test(losses_are_whole_or_terms),
        cmocka_unit_test(values_are_shared),
        cmocka_unit_test(names_and_states_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
