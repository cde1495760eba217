/* Programs: an MLP, forward and backward, is the same on every mesh and under every layout. */
#include "layers.h"
#include "running.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 6, HIDDEN = 5, WIDE = 7 };

/* Layouts of an MLP. */
typedef struct mlp {
    const char *mesh, *x, *up, *bias, *down;
    bool scattered; /* x is brought to Replicate before the first layer, and y back */
} mlp;

static tsr_layout *lay(const tsr_mesh *mesh, const char *placements, int ndim, int64_t rows, int64_t columns)
{
    tsr_layout *layout;
    const int64_t shape[] = {rows, columns};
    return tsr_layout_parse(mesh, placements, ndim, shape, TSR_F32, &layout) == TSR_OK ? layout : NULL;
}

static tsr_value parameter(tsr_program *p, const char *name, tsr_layout *layout)
{
    const tsr_value value = tsr_parameter(p, name, layout);
    tsr_layout_destroy(layout);
    return value;
}

static tsr_value apply(tsr_program *p, const char *op, tsr_value a, tsr_value b, tsr_value c)
{
    return tsr_program_apply(p, op, 0, NULL, (const tsr_value[]){a, b, c, TSR_NONE}, NULL);
}

static void record_mlp(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const mlp *const m = arg;
    const int64_t shape[] = {ROWS, HIDDEN};
    tsr_value d[4];
    tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, m->x);
    const tsr_value first = x;
    const tsr_value up = parameter(p, "w.up", lay(mesh, m->up, 2, WIDE, HIDDEN));
    const tsr_value bias = parameter(p, "w.bias", lay(mesh, m->bias, 1, WIDE, 0));
    const tsr_value down = parameter(p, "w.down", lay(mesh, m->down, 2, HIDDEN, WIDE));
    if (m->scattered) {
        const tsr_attribute to = tsr_attribute_text("placements", "R");
        x = tsr_program_apply(p, "redistribute", 1, &to, &x, NULL);
    }
    const tsr_value v = apply(p, "vary", x, TSR_NONE, TSR_NONE);
    const tsr_value h = apply(
        p, "relu",
        apply(p, "linear", v, apply(p, "vary", up, TSR_NONE, TSR_NONE), apply(p, "vary", bias, TSR_NONE, TSR_NONE)),
        TSR_NONE, TSR_NONE);
    const tsr_value y =
        apply(p, "all_reduce", apply(p, "linear", h, apply(p, "vary", down, TSR_NONE, TSR_NONE), TSR_NONE), TSR_NONE,
              TSR_NONE);
    const tsr_value loss =
        apply(p, "all_reduce", apply(p, "sum", apply(p, "square", y, TSR_NONE, TSR_NONE), TSR_NONE, TSR_NONE), TSR_NONE,
              TSR_NONE);
    tsr_gradients(p, loss, 4, (const tsr_value[]){first, up, bias, down}, d);
    tsr_output(p, "y", y, NULL);
    tsr_output(p, "loss", loss, NULL);
    tsr_output(p, "d.x", d[0], NULL);
    tsr_output(p, "d.up", d[1], NULL);
    tsr_output(p, "d.bias", d[2], NULL);
    tsr_output(p, "d.down", d[3], NULL);
}

static tsr_status run_mlp(tsr_comm *comm, void *arg)
{
    const mlp *const m = arg;
    static const mlp alone = {"1", "R", "R", "R", "R", false};
    static _Thread_local ran got, wanted;
    tsr_mesh *mesh, *one;
    tsr_comm *self;
    TSR_TRY(tsr_mesh_parse(comm, NULL, m->mesh, &mesh));
    TSR_TRY(tsr_comm_split(comm, tsr_comm_rank(comm), 0, &self));
    TSR_TRY(tsr_mesh_parse(self, NULL, "1", &one));
    TSR_TRY(ran_run(self, one, record_mlp, &alone, 0, &wanted));
    TSR_TRY(ran_run(comm, mesh, record_mlp, m, 0, &got));
    EXPECT(got.count == wanted.count, "%zu values instead of %zu", got.count, wanted.count);
    for (size_t i = 0; i < got.count; i++)
        EXPECT(got.values[i] == wanted.values[i], "value %zu is %g instead of %g", i, got.values[i], wanted.values[i]);
    tsr_mesh_destroy(one);
    tsr_mesh_destroy(mesh);
    tsr_comm_destroy(self);
    return TSR_OK;
}

static void layouts_change_no_values(void **state)
{
    static const mlp all[] = {
        {"1", "R", "R", "R", "R", false},
        {"2", "R", "S(0)", "S(0)", "S(1)", false},
        {"3", "R", "S(0)", "S(0)", "S(1)", false},
        {"2", "S(0)", "R", "R", "R", false},
        {"4", "S(0)", "S(0)", "S(0)", "S(1)", true},
        {"2x2", "S(0),R", "R,S(0)", "R,S(0)", "R,S(1)", false},
        /* Rules call these cuts otherwise: gradients get the names of their values. */
        {"2", "R", "S(0;unit=3)", "S(0;unit=3)", "S(1;unit=3)", false},
        {"1x3", "R,R", "S(0),S(0;sizes=4,2,1)", "S(0),S(0;sizes=4,2,1)", "S(1),S(1;sizes=4,2,1)", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        layers_run(support_count_ranks(all[i].mesh), run_mlp, (void *)&all[i]);
}

enum { LAYERS = 8, WIDTH = 16 };

/* Layers of tanh(x w), whose results are kept, or computed again but for every second one. */
static void record_deep(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const bool *const again = arg;
    const int64_t shape[] = {WIDTH, WIDTH};
    tsr_value d[2];
    tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, "S(0)");
    const tsr_value first = x,
                    w = apply(p, "vary", parameter(p, "w", lay(mesh, "R", 2, WIDTH, WIDTH)), TSR_NONE, TSR_NONE);
    const tsr_attribute half = tsr_attribute_float("factor", 0.03125);
    for (int i = 0; i < LAYERS; i++) {
        const tsr_value product = apply(p, "matmul", x, w, TSR_NONE);
        const tsr_value y = tsr_program_apply(
            p, "scale", 1, &half, (const tsr_value[]){*again ? tsr_op_recompute(p, product) : product}, NULL);
        x = apply(p, "tanh", *again ? tsr_op_recompute(p, y) : y, TSR_NONE, TSR_NONE);
        if (*again && i % 2 == 0)
            x = apply(p, "recompute", x, TSR_NONE, TSR_NONE);
    }
    const tsr_value loss = apply(p, "all_reduce", apply(p, "sum", x, TSR_NONE, TSR_NONE), TSR_NONE, TSR_NONE);
    tsr_gradients(p, loss, 1, &first, d);
    tsr_output(p, "d.x", d[0], NULL);
}

/* Values that are computed again have the same bits, and need not be kept. */
static tsr_status compare_again(tsr_comm *comm, void *arg)
{
    static const bool kept = false, again = true;
    static _Thread_local ran got, wanted;
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(ran_run(comm, mesh, record_deep, &kept, 0, &wanted));
    TSR_TRY(ran_run(comm, mesh, record_deep, &again, 0, &got));
    EXPECT(got.count == wanted.count && memcmp(got.values, wanted.values, got.count * sizeof got.values[0]) == 0,
           "other values");
    EXPECT(got.workspace < wanted.workspace, "%zu bytes, not less than %zu", got.workspace, wanted.workspace);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void marked_values_are_computed_again(void **state)
{
    (void)state;
    layers_run(2, compare_again, NULL);
}

/* Lists the moves of a compiled program, as "P>S(0)" and so on, with "+" before those that share an
 * exchange. */
static void list_moves(const tsr_executable *x, char *text, size_t capacity)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        char from[64], to[64];
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        if (strcmp(step.op, "move") != 0)
            continue;
        tsr_layout_print(step.operand_layouts[0], from, sizeof from);
        tsr_layout_print(step.result_layouts[0], to, sizeof to);
        length += (size_t)snprintf(text + length, capacity - length, "%s%s%s>%s", length ? " " : "",
                                   step.shares ? "+" : "", from, to);
    }
}

static void expect_moves(const mlp *m, const char *wanted)
{
    char text[512];
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    options.rank = 1;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, context, m->mesh, &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(context, &p), TSR_OK);
    record_mlp(p, mesh, m);
    assert_int_equal(tsr_compile(p, &options, &x), TSR_OK);
    list_moves(x, text, sizeof text);
    assert_string_equal(text, wanted);
    tsr_executable_destroy(x);
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
}

/* The transpose of a gather whose result varies is one reduce-scatter, and gradients that nothing
 * waits for share an exchange. */
static void moves_are_joined(void **state)
{
    (void)state;
    expect_moves(&(mlp){"4", "S(0)", "S(0)", "S(0)", "S(1)", true}, "S(0)>R P>R P>S(0)");
    expect_moves(&(mlp){"2", "S(0)", "R", "R", "R", false}, "P>R +P>R +P>R +P>R");
}

/* Each of four results lies over the one before it, but for the first, which is read again, and the
 * output. */
static void record_chain(tsr_program *p, const tsr_mesh *mesh, const void *arg)
{
    const int64_t shape[] = {WIDTH, WIDTH};
    (void)arg;
    const tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, "S(0)");
    const tsr_value a = apply(p, "neg", x, TSR_NONE, TSR_NONE), b = apply(p, "square", a, TSR_NONE, TSR_NONE);
    const tsr_value c = apply(p, "relu", apply(p, "neg", b, TSR_NONE, TSR_NONE), TSR_NONE, TSR_NONE);
    tsr_output(p, "y", apply(p, "add", apply(p, "add", c, a, TSR_NONE), c, TSR_NONE), NULL);
}

static tsr_status run_chain(tsr_comm *comm, void *arg)
{
    static _Thread_local ran got;
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(ran_run(comm, mesh, record_chain, NULL, 0, &got));
    for (int64_t i = 0; i < WIDTH * WIDTH; i++) {
        const double a = -whole_value(1, i), wanted = a; /* relu(-a * a) is 0 */
        TSR_TRY(support_expect_held(got.values[i] == wanted, "y", i, got.values[i], wanted));
    }
    /* a, and one for all that follow. */
    EXPECT(got.workspace == 2 * WIDTH * WIDTH / 2 * sizeof(float), "%zu bytes", got.workspace);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void pointwise_results_lie_over_operands(void **state)
{
    (void)state;
    layers_run(2, run_chain, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_change_no_values),
        cmocka_unit_test(moves_are_joined),
        cmocka_unit_test(marked_values_are_computed_again),
        cmocka_unit_test(pointwise_results_lie_over_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
