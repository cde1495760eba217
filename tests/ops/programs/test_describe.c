/* What an executable tells: names, steps and figures, also on an abstract mesh; and constants. */
#include "layers.h"
#include "running.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 4, IN = 8, OUT = 6, RANKS = 2 };

/* x (R) times w, cut by its inputs: each rank multiplies IN / RANKS columns, and the sum moves. */
static void record(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const int64_t shape[] = {ROWS, IN}, of_w[] = {OUT, IN}, of_y[] = {ROWS, OUT};
    tsr_layout *layout, *of_all;
    (void)arg;
    assert_int_equal(tsr_layout_parse(mesh, "S(1)", 2, of_w, TSR_F32, &layout), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "R", 2, of_y, TSR_F32, &of_all), TSR_OK);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, "S(1)");
    const tsr_value terms = tsr_op_linear(p, x, tsr_parameter(p, "w", layout), TSR_NONE);
    const tsr_value y = tsr_op_all_reduce(p, terms, 0);
    tsr_output(p, "y", tsr_op_add(p, y, tsr_constant(p, 0.5, of_all)), NULL);
    tsr_layout_destroy(of_all);
    tsr_layout_destroy(layout);
}

static void an_executable_tells_what_it_does(void **state)
{
    const int64_t ranks = RANKS;
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x;
    tsr_executable_step step;
    tsr_executable_figures f;
    tsr_executable_binding binding;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    static const char *const ops[] = {"linear", "move", "add"};
    (void)state;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    assert_int_equal(tsr_mesh_create_abstract(context, 1, &ranks, NULL, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(context, &p), TSR_OK);
    record(p, mesh, NULL);
    options.rank = 1;
    assert_int_equal(tsr_compile(p, &options, &x), TSR_OK);
    assert_int_equal(tsr_executable_input_count(x), 1);
    assert_string_equal(tsr_executable_input_name(x, 0), "x");
    assert_null(tsr_executable_input_name(x, 1));
    assert_int_equal(tsr_executable_output_count(x), 1);
    assert_string_equal(tsr_executable_output_name(x, 0), "y");
    assert_null(tsr_executable_output_name(x, 1));
    assert_int_equal(tsr_executable_binding_count(x), 1);
    assert_int_equal(tsr_executable_binding_at(x, 0, &binding), TSR_OK);
    assert_string_equal(binding.name, "w");
    assert_int_equal(binding.is_state, 0);
    assert_int_equal(binding.is_needed, 1);
    assert_int_equal(tsr_layout_shape(binding.layout)[0], OUT);
    assert_int_equal(tsr_executable_binding_at(x, 1, &binding), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_executable_step_count(x), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        assert_string_equal(step.op, ops[i]);
        assert_null(step.cause);
    }
    assert_int_equal(tsr_executable_step_at(x, 3, &step), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_executable_figures_of(x, &f), TSR_OK);
    assert_int_equal(f.flops, 2 * ROWS * (IN / RANKS) * OUT);
    assert_int_equal(f.bytes_received, ROWS * OUT * (int)sizeof(float));
    assert_int_equal(f.input_bytes, ROWS * IN / RANKS * sizeof(float));
    assert_int_equal(f.output_bytes, ROWS * OUT * sizeof(float));
    /* The weight's shard, and the constant. */
    assert_int_equal(f.parameter_bytes, OUT * IN / RANKS * sizeof(float) + ROWS * OUT * sizeof(float));
    assert_int_equal(f.workspace_bytes, tsr_executable_workspace_bytes(x));
    tsr_executable_destroy(x);
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
}

static tsr_status run_constant(tsr_comm *comm, void *arg)
{
    static _Thread_local ran got;
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(ran_run(comm, mesh, record, NULL, 0, &got));
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t j = 0; j < OUT; j++) {
            double sum = 0.5;
            for (int64_t k = 0; k < IN; k++)
                sum += whole_value(1, i * IN + k) * whole_value(2, j * IN + k);
            EXPECT(got.values[i * OUT + j] == sum, "element %d is %g instead of %g", (int)(i * OUT + j),
                   got.values[i * OUT + j], sum);
        }
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void constants_are_added(void **state)
{
    (void)state;
    layers_run(RANKS, run_constant, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_executable_tells_what_it_does),
                                       cmocka_unit_test(constants_are_added)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
