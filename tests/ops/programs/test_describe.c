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

/* Compiles for rank 0 of an abstract mesh. */
static tsr_executable *compile_on(const char *mesh_text, void (*records)(tsr_program *, const tsr_mesh *, const void *))
{
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x = NULL;
    options.rank = 0;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, mesh_text, &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(tsr_mesh_context(mesh), &p), TSR_OK);
    records(p, mesh, NULL);
    if (tsr_compile(p, &options, &x) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    return x;
}

/* A cut of 8 rows into 4 parts by other names. */
static void record_alike(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const int64_t shape[] = {8, IN};
    (void)arg;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, "S(0)");
    const tsr_value y = tsr_op_redistribute(p, tsr_op_relu(p, x), "S(0;balanced)");
    tsr_output(p, "y", tsr_op_relu(p, tsr_op_redistribute(p, tsr_op_relu(p, y), "S(0;sizes=2,2,2,2)")), NULL);
}

static void a_move_between_names_of_one_cut_is_a_view(void **state)
{
    tsr_executable *const x = compile_on("4", record_alike);
    tsr_executable_step step;
    int moves = 0;
    (void)state;
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        moves += strcmp(step.op, "move") == 0;
        assert_int_equal(step.is_view, strcmp(step.op, "move") == 0);
    }
    assert_int_equal(moves, 2);
    tsr_executable_destroy(x);
}

/* A step of SGD with momentum on a weight that is gathered before it is used. */
static void record_step(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const int64_t of_x[] = {16, IN}, of_w[] = {OUT * 16, IN};
    tsr_layout *layout;
    tsr_value d;
    tsr_optimizer_options sgd = TSR_SGD_INIT;
    (void)arg;
    sgd.momentum = 0.5;
    assert_int_equal(tsr_layout_parse(mesh, "S(0)", 2, of_w, TSR_F32, &layout), TSR_OK);
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, of_x, "S(0)");
    const tsr_value rate = tsr_input(p, "rate", mesh, TSR_F64, 0, NULL, NULL);
    const tsr_value w = tsr_state(p, "w", layout);
    const tsr_value used = tsr_op_vary(p, tsr_op_redistribute(p, w, "R"));
    const tsr_value y = tsr_op_silu(p, tsr_op_linear(p, x, used, TSR_NONE));
    const tsr_value sum = tsr_op_sum(p, tsr_op_square(p, y), 0, NULL, 0);
    tsr_gradients(p, tsr_op_all_reduce(p, sum, 0), 1, &w, &d);
    tsr_optimizer_update(p, 1, &w, &d, rate, TSR_NONE, TSR_NONE, &sgd);
    tsr_layout_destroy(layout);
}

static void memory_is_told_by_what_it_is_for(void **state)
{
    const size_t of_w = OUT * 16 * IN * sizeof(float), of_y = 4 * OUT * 16 * sizeof(float);
    tsr_executable *const x = compile_on("4", record_step);
    tsr_executable_memory m;
    tsr_executable_figures f;
    (void)state;
    assert_int_equal(tsr_executable_memory_of(NULL, &m), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_executable_memory_of(x, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_executable_memory_of(x, &m), TSR_OK);
    assert_int_equal(tsr_executable_figures_of(x, &f), TSR_OK);
    assert_int_equal(m.optimizer_states, of_w / 4);
    assert_int_equal(m.inputs, 4 * IN * sizeof(float) + sizeof(double));
    assert_int_equal(m.outputs, 0);
    assert_int_equal(m.parameters + m.optimizer_states, f.parameter_bytes);
    assert_true(m.parameters >= of_w / 4 && m.parameters < of_w / 4 + of_y + 64);
    assert_int_equal(m.peak, f.peak_bytes);
    assert_int_equal(m.gathered + m.activations + m.gradients + m.scratch + m.gaps, f.workspace_bytes);
    /* The fullest step is in the backward of silu: the gathered weight has gone. */
    assert_int_equal(m.activations, 2 * of_y);
    assert_int_equal(m.gathered, 0);
    assert_true(m.gradients >= of_y);
    assert_true(m.kept > 0);
    tsr_executable_destroy(x);
}

/* Compiles for a rank of an abstract mesh in a context with a profile. */
static tsr_executable *compile_by(const char *profile, const char *mesh_text,
                                  void (*records)(tsr_program *, const tsr_mesh *, const void *), const void *arg)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_compile_options compile = TSR_COMPILE_OPTIONS_INIT;
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x = NULL;
    compile.rank = 0;
    assert_int_equal(tsr_profile_parse(profile, &options.measured), TSR_OK);
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, context, mesh_text, &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(context, &p), TSR_OK);
    records(p, mesh, arg);
    if (tsr_compile(p, &compile, &x) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
    tsr_profile_destroy(options.measured);
    return x;
}

static void the_profile_of_the_context_times_steps(void **state)
{
    /* Of linear 192 flops on sizes 4, 4 and 6; of add 3 * 96 bytes; the move gets 96 bytes. */
    static const struct {
        const char *profile;
        double linear, add;
    } cases[] = {
        {"call=1 pass=1:4 multiply@4=1:2 multiply@8=1:1", 1 + 192.0 / 2, 1 + 288.0 / 4},
        {"inside=1,4 between=1,4 multiply@1=1:1 multiply@7=1:1", 192, 288.0 / 4},
        {"inside=1,4 between=1,4", 256.0 / 4, 288.0 / 4},
        {"inside=1,4 between=1,4 keep@whole=1:2", 256.0 / 4, 288.0 / 2 / 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tsr_executable_step step[3];
        tsr_executable_figures f;
        tsr_executable *const x = compile_by(cases[i].profile, "2", record, NULL);
        for (size_t at = 0; at < 3; at++)
            assert_int_equal(tsr_executable_step_at(x, at, &step[at]), TSR_OK);
        assert_int_equal(tsr_executable_figures_of(x, &f), TSR_OK);
        assert_true(step[0].seconds == cases[i].linear && step[2].seconds == cases[i].add);
        assert_true(f.seconds == step[0].seconds + step[1].seconds + step[2].seconds && step[1].seconds > 0);
        tsr_executable_destroy(x);
    }
}

/* A weight that is all that a program of one row reads. */
static void record_row(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const int64_t shape[] = {1, IN}, of_w[] = {IN, IN};
    tsr_layout *layout;
    tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, NULL);
    assert_int_equal(tsr_layout_parse(mesh, "R", 2, of_w, TSR_F32, &layout), TSR_OK);
    for (const char *name = arg; *name; name++) {
        const char one[] = {*name, '\0'};
        x = tsr_op_linear(p, x, tsr_parameter(p, one, layout), TSR_NONE);
    }
    tsr_layout_destroy(layout);
    tsr_output(p, "y", x, NULL);
}

/* The rates of products are those of all parameters together, which a run reads one after the
 * other: of two weights of 256 bytes that is a slower one. */
static void parameters_push_each_other_out_of_caches(void **state)
{
    (void)state;
    for (int count = 1; count <= 2; count++) {
        tsr_executable_step step;
        tsr_executable *const x =
            compile_by("multiply@1=400:8,500:1", "1", record_row, count == 1 ? (const void *)"a" : (const void *)"ab");
        assert_int_equal(tsr_executable_step_at(x, 0, &step), TSR_OK);
        assert_true(step.seconds == (count == 1 ? 2.0 * IN * IN / 8 : 2.0 * IN * IN));
        tsr_executable_destroy(x);
    }
}

/* An op of inputs of these shapes, and what it computes. */
typedef struct counted {
    const char *op;
    int operands, ndim[5];
    int64_t shape[5][4];
    tsr_attribute attributes[2];
    int64_t flops;
} counted;

static void record_counted(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const counted *const c = arg;
    size_t attributes = 0;
    tsr_value operands[TSR_OP_MOST_OPERANDS], results[TSR_OP_MOST_RESULTS];
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        const bool is_index = (i == 2 && strstr(c->op, "grouped")) || (i == 1 && strcmp(c->op, "experts") == 0);
        operands[i] = i < c->operands
                          ? tsr_input(p, name, mesh, is_index ? TSR_I64 : TSR_F32, c->ndim[i], c->shape[i], NULL)
                          : TSR_NONE;
    }
    while (attributes < 2 && c->attributes[attributes].name)
        attributes++;
    tsr_output(p, "y", tsr_program_apply(p, c->op, attributes, c->attributes, operands, results), NULL);
}

static void products_are_counted_by_their_sizes(void **state)
{
    const counted cases[] = {
        {"linear", 2, {3, 2}, {{2, 3, 5}, {7, 5}}, {{NULL}}, 2 * 2 * 3 * 5 * 7},
        {"matmul", 2, {3, 3}, {{2, 3, 5}, {2, 5, 7}}, {{NULL}}, 2 * 2 * 3 * 5 * 7},
        {"matmul_gradient_a", 3, {3, 3, 3}, {{2, 3, 7}, {2, 3, 5}, {2, 5, 7}}, {{NULL}}, 2 * 2 * 3 * 5 * 7},
        {"matmul_gradient_b", 3, {3, 3, 3}, {{2, 3, 7}, {2, 3, 5}, {2, 5, 7}}, {{NULL}}, 2 * 2 * 3 * 5 * 7},
        {"einsum",
         2,
         {3, 3},
         {{2, 3, 5}, {2, 5, 7}},
         {tsr_attribute_text("equation", "bij,bjk->bik")},
         2 * 2 * 3 * 5 * 7},
        {"einsum",
         2,
         {3, 3},
         {{2, 3, 5}, {2, 5, 7}},
         {tsr_attribute_text("equation", "BiJ,BJk->Bik")},
         2 * 2 * 3 * 5 * 7},
        {"einsum_gradient_a",
         3,
         {3, 3, 3},
         {{2, 3, 7}, {2, 3, 5}, {2, 5, 7}},
         {tsr_attribute_text("equation", "bij,bjk->bik")},
         2 * 2 * 3 * 5 * 7},
        {"experts", 4, {2, 2, 3, 3}, {{5, 4}, {5, 2}, {3, 12, 4}, {3, 7, 6}}, {{NULL}}, 2 * 10 * 6 * (4 + 4 + 7)},
        {"grouped_matmul", 3, {2, 3, 1}, {{6, 5}, {2, 5, 7}, {2}}, {{NULL}}, 2 * 6 * 5 * 7},
        {"attention", 3, {3, 3, 3}, {{2, 4, 8}, {2, 6, 8}, {2, 6, 8}}, {{NULL}}, 4 * 2 * 8 * 4 * 6},
        /* 3 + 4 + 5 + 6 keys. */
        {"attention",
         3,
         {3, 3, 3},
         {{2, 4, 8}, {2, 6, 8}, {2, 6, 8}},
         {tsr_attribute_int("causal", 1)},
         4 * 2 * 8 * 18},
        /* 3 + 4 + 4 + 4. */
        {"attention",
         3,
         {3, 3, 3},
         {{2, 4, 8}, {2, 6, 8}, {2, 6, 8}},
         {tsr_attribute_int("causal", 1), tsr_attribute_int("window", 4)},
         4 * 2 * 8 * 15},
        {"add", 2, {1, 1}, {{4}, {4}}, {{NULL}}, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tsr_executable_figures f;
        tsr_executable *const x = compile_by("", "1", record_counted, &cases[i]);
        assert_int_equal(tsr_executable_figures_of(x, &f), TSR_OK);
        if (f.flops != cases[i].flops)
            fail_msg("case %zu, %s: %lld flops instead of %lld", i, cases[i].op, (long long)f.flops,
                     (long long)cases[i].flops);
        tsr_executable_destroy(x);
    }
}

/* Sums of a concat, of a number of rows that is given, or of up to as many. */
static void record_rows(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const int64_t rows = 64, columns = 8;
    const int64_t shape[] = {arg ? tsr_length(p, "rows", rows) : rows, columns};
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, NULL);
    const tsr_value parts[] = {tsr_op_softmax(p, x, 1), tsr_op_log_softmax(p, x, 1)};
    const tsr_value all = tsr_op_concat(p, 2, parts, 1);
    tsr_output(p, "sum", tsr_op_sum(p, all, 0, NULL, 0), NULL);
}

static void lengths_want_no_more_than_their_maxima(void **state)
{
    (void)state;
    tsr_executable *const fixed = compile_by("", "1", record_rows, NULL);
    tsr_executable *const given = compile_by("", "1", record_rows, "");
    assert_int_equal(tsr_executable_workspace_bytes(given), tsr_executable_workspace_bytes(fixed));
    tsr_executable_destroy(fixed);
    tsr_executable_destroy(given);
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
                                       cmocka_unit_test(a_move_between_names_of_one_cut_is_a_view),
                                       cmocka_unit_test(memory_is_told_by_what_it_is_for),
                                       cmocka_unit_test(the_profile_of_the_context_times_steps),
                                       cmocka_unit_test(parameters_push_each_other_out_of_caches),
                                       cmocka_unit_test(products_are_counted_by_their_sizes),
                                       cmocka_unit_test(lengths_want_no_more_than_their_maxima),
                                       cmocka_unit_test(constants_are_added)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
