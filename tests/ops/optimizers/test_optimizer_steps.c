/* What runs do of an update, told before they run; and what is refused. */
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 8, TEXT = 2048 };

/* A program on an abstract mesh, while it is recorded. */
typedef struct recording {
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_value w[MOST], g[MOST], rate, step, finite;
    size_t count;
} recording;

static void open_recording(recording *r, const char *mesh)
{
    memset(r, 0, sizeof *r);
    assert_int_equal(tsr_context_create(NULL, &r->context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, r->context, mesh, &r->mesh), TSR_OK);
    assert_int_equal(tsr_program_create(r->context, &r->p), TSR_OK);
    r->rate = tsr_input(r->p, "rate", r->mesh, TSR_F64, 0, NULL, NULL);
    r->step = tsr_input(r->p, "step", r->mesh, TSR_I64, 0, NULL, NULL);
    r->finite = TSR_NONE;
    tsr_output(r->p, "out", r->rate, NULL);
}

static void close_recording(recording *r)
{
    tsr_program_destroy(r->p);
    tsr_mesh_destroy(r->mesh);
    tsr_context_destroy(r->context);
}

/* Adds a parameter of f32, and its gradient. */
static void add(recording *r, int ndim, const int64_t *shape, const char *placements, const char *gradient)
{
    char name[16];
    tsr_layout *layout;
    assert_int_equal(tsr_layout_parse(r->mesh, placements, ndim, shape, TSR_F32, &layout), TSR_OK);
    snprintf(name, sizeof name, "w%zu", r->count);
    r->w[r->count] = tsr_state(r->p, name, layout);
    snprintf(name, sizeof name, "g%zu", r->count);
    r->g[r->count++] = tsr_input(r->p, name, r->mesh, TSR_F32, ndim, shape, gradient);
    tsr_layout_destroy(layout);
}

static void update(recording *r, const tsr_optimizer_options *o)
{
    tsr_optimizer_update(r->p, r->count, r->w, r->g, r->rate, r->step, r->finite, o);
}

static tsr_executable *compile(const recording *r, int64_t rank)
{
    tsr_executable *x;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    options.rank = rank;
    if (tsr_compile(r->p, &options, &x) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    return x;
}

/* The steps in groups, but those of numbers, and each group behind a bar: "| sub scale add .. ". */
static void list_groups(const tsr_executable *x, char *text)
{
    size_t length = 0;
    int last = -1;
    text[0] = '\0';
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        if (step.group < 0 ||
            tsr_layout_ndim(step.result_count ? step.result_layouts[0] : step.operand_layouts[0]) == 0)
            continue;
        if (step.group != last)
            length += (size_t)snprintf(text + length, TEXT - length, "| ");
        last = step.group;
        length += (size_t)snprintf(text + length, TEXT - length, "%s ", step.op);
    }
}

/* `skips`: steps may be skipped, and gradients are scaled and clipped. */
static void expect_groups(const tsr_optimizer_options *o, int skips, const char *one)
{
    char got[TEXT], wanted[TEXT];
    recording r;
    static const int64_t large[] = {300, 50}, larger[] = {70000};
    open_recording(&r, "2");
    add(&r, 2, large, "S(0)", "S(0)");
    add(&r, 1, larger, "R", "R");
    if (skips) {
        tsr_optimizer_unscale(r.p, r.count, r.g, r.rate, &r.finite);
        tsr_optimizer_clip(r.p, r.count, r.g, 1, NULL);
    }
    update(&r, o);
    tsr_executable *const x = compile(&r, 1);
    list_groups(x, got);
    snprintf(wanted, sizeof wanted, "| %s| %s", one, one);
    assert_string_equal(got, wanted);
    tsr_executable_destroy(x);
    close_recording(&r);
}

static void an_update_is_one_group(void **state)
{
    tsr_optimizer_options sgd = TSR_SGD_INIT, adamw = TSR_ADAMW_INIT, lion = TSR_LION_INIT;
    (void)state;
    sgd.momentum = 0.9;
    sgd.nesterov = 1;
    sgd.weight_decay = 0.1;
    expect_groups(&sgd, 0, "momentum_update store store ");
    expect_groups(&adamw, 0, "adamw_update store store store ");
    expect_groups(&adamw, 1, "mul mul adamw_update store store store ");
    expect_groups(&lion, 0, "lion_update store store ");
}

/* Moves of one rank. */
static void count_moves(const tsr_executable *x, int *moves, int *shared, int64_t *received)
{
    *moves = *shared = 0;
    *received = 0;
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        *moves += strcmp(step.op, "move") == 0;
        *shared += step.shares;
        *received += step.bytes_received;
    }
}

/* Eight matrices of two shapes on four ranks: each rank works on two, and one exchange brings all
 * of them there, and one back. */
static void muon_gives_each_rank_as_much(void **state)
{
    static const int64_t wide[] = {6, 8}, square[] = {8, 8};
    const tsr_optimizer_options muon = TSR_MUON_INIT;
    int64_t flops = 0;
    recording r;
    (void)state;
    open_recording(&r, "4");
    for (int i = 0; i < 8; i++)
        add(&r, 2, i < 4 ? wide : square, "S(0)", "S(0)");
    update(&r, &muon);
    for (int64_t rank = 0; rank < 4; rank++) {
        int moves, shared;
        int64_t received;
        tsr_executable_figures figures;
        tsr_executable *const x = compile(&r, rank);
        assert_int_equal(tsr_executable_figures_of(x, &figures), TSR_OK);
        count_moves(x, &moves, &shared, &received);
        assert_int_equal(moves, 4);
        assert_int_equal(shared, 2);
        if (rank)
            assert_int_equal(figures.flops, flops);
        flops = figures.flops;
        tsr_executable_destroy(x);
    }
    assert_true(flops > 0);
    close_recording(&r);
}

/* ZeRO-1 moves what an all-reduce moves, and keeps a part of the states. */
static void states_are_cut_over_replicas(void **state)
{
    static const int64_t shape[] = {6, 10};
    recording r;
    tsr_executable_binding b;
    char text[64];
    (void)state;
    tsr_optimizer_options adamw = TSR_ADAMW_INIT;
    adamw.shard_over = 1;
    open_recording(&r, "dp=2,tp=2");
    add(&r, 2, shape, "R,S(1)", "P,S(1)");
    add(&r, 1, shape, "R,S(0)", "P,S(0)");
    update(&r, &adamw);
    tsr_executable *const x = compile(&r, 3);
    static const char *const wanted[][2] = {{"w0", "R,S(1)"},
                                            {"w1", "R,S(0)"},
                                            {"w0.exp_avg", "S(0;balanced),S(1)"},
                                            {"w0.exp_avg_sq", "S(0;balanced),S(1)"},
                                            {"w1.exp_avg", "S(0;balanced)[1],S(0)[0]"},
                                            {"w1.exp_avg_sq", "S(0;balanced)[1],S(0)[0]"}};
    assert_int_equal(tsr_executable_binding_count(x), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(tsr_executable_binding_at(x, i, &b), TSR_OK);
        tsr_layout_print(b.layout, text, sizeof text);
        assert_string_equal(b.name, wanted[i][0]);
        assert_string_equal(text, wanted[i][1]);
        assert_true(b.is_state && b.is_needed);
    }
    int moves, shared;
    int64_t received;
    count_moves(x, &moves, &shared, &received);
    /* Terms of a half of the rank's 30 and 3 elements, and the other half of the weights. */
    assert_int_equal(received, (15 + 1 + 15 + 2) * 4);
    tsr_executable_destroy(x);
    close_recording(&r);
}

/* Records an update that is wrong in one way, and checks its sentence. */
static void expect_refusal(const recording *r, const char *words)
{
    const char *sentence;
    assert_int_equal(tsr_program_status(r->p, &sentence), TSR_ERROR_ARGUMENT);
    if (!strstr(sentence, words))
        fail_msg("\"%s\" does not say \"%s\"", sentence, words);
}

static void options_are_checked(void **state)
{
    static const struct {
        tsr_optimizer_options options;
        const char *words;
    } cases[] = {
        {{sizeof(tsr_optimizer_options), TSR_SGD, -1}, "weight_decay is -1, but must be finite and at least 0"},
        {{sizeof(tsr_optimizer_options), (tsr_optimizer_kind)9}, "kind is 9"},
        {{sizeof(tsr_optimizer_options), TSR_LION, 0, 0, 0, 0, 1}, "beta1 is 1, but must be from 0 to below 1"},
        {{sizeof(tsr_optimizer_options), TSR_SGD, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, {0, 0, 0}, 5},
         "nesterov wants a momentum"},
        {{sizeof(tsr_optimizer_options), TSR_MUON, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, {0, 0, 0}, 100},
         "iterations is 100, but must be from 1 to 99"},
        {{sizeof(tsr_optimizer_options), TSR_ADAFACTOR, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.5}, "threshold is 0.5"},
        {{sizeof(tsr_optimizer_options), TSR_ADAFACTOR, 0, 0, 0, 0, 0, 0, 0, 0.8, 0, 1},
         "beta2_decay is 0.8, but must be finite and at most 0"},
        {{0}, "size"},
    };
    static const int64_t shape[] = {4, 4};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        recording r;
        open_recording(&r, "2");
        add(&r, 2, shape, "R", "P");
        if (i % 2)
            tsr_optimizer_reduce(r.p, r.count, r.w, r.g, &cases[i].options);
        else
            update(&r, &cases[i].options);
        expect_refusal(&r, cases[i].words);
        close_recording(&r);
    }
}

static void views_are_checked(void **state)
{
    static const struct {
        int ndim;
        int64_t shape[2];
        tsr_optimizer_view view;
        const char *words;
    } cases[] = {
        {1, {16}, {2, {4, 5}}, "views[0].shape is 4x5, but must have the 16 elements of \"w0\""},
        {1, {16}, {2, {-4, -4}}, "views[0].shape is -4x-4, but"},
        {1, {16}, {2, {INT64_MAX, 3}}, "views[0].shape is 9223372036854775807x3, but"},
        {1, {16}, {-1, {16}}, "views[0].ndim is -1, but must be from 0 to 8"},
        {1, {16}, {9, {16}}, "views[0].ndim is 9, but"},
        {2, {4, 4}, {2, {4, 4}}, "views[0] is of \"w0\", which has 2 dims, but a view is of a parameter of one dim"},
        {1, {16}, {1, {16}}, "\"w0\" has 1 dims, but Muon is for matrices"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tsr_optimizer_options muon = TSR_MUON_INIT;
        recording r;
        muon.views = &cases[i].view;
        open_recording(&r, "2");
        add(&r, cases[i].ndim, cases[i].shape, "R", "P");
        if (i % 2)
            tsr_optimizer_reduce(r.p, r.count, r.w, r.g, &muon);
        else
            update(&r, &muon);
        expect_refusal(&r, cases[i].words);
        close_recording(&r);
    }
}

static void spoil_parameter(recording *r)
{
    r->w[0] = r->g[0];
}
static void spoil_value(recording *r)
{
    r->g[0] = 99;
}
static void spoil_rate(recording *r)
{
    r->rate = r->g[0];
}
static void spoil_step(recording *r)
{
    r->step = TSR_NONE;
}
static void spoil_count(recording *r)
{
    r->step = r->w[0];
}
static void spoil_flag(recording *r)
{
    r->finite = r->rate;
}
static void spoil_shape(recording *r)
{
    r->g[0] = tsr_op_sum(r->p, r->w[0], 0, NULL, 1);
}
static void spoil_dtype(recording *r)
{
    r->g[0] = tsr_op_isfinite(r->p, r->w[0]);
}

static void values_are_checked(void **state)
{
    static const struct {
        void (*spoil)(recording *r);
        const char *words;
    } cases[] = {
        {spoil_parameter, "parameters[0] is not a state"},
        {spoil_value, "gradients[0] is 99, which is not a value of the program"},
        {spoil_rate, "learning_rate must be a float without dims"},
        {spoil_step, "step is TSR_NONE, but this optimizer counts steps"},
        {spoil_count, "step must be a float or an integer"},
        {spoil_flag, "finite must be a bool"},
        {spoil_shape, "gradients[0] has not the shape of \"w0\""},
        {spoil_dtype, "gradients[0] is bool, but must be f64, f32, bf16 or f16"},
    };
    static const int64_t shape[] = {4, 4};
    const tsr_optimizer_options adamw = TSR_ADAMW_INIT, muon = TSR_MUON_INIT;
    recording r;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_recording(&r, "2");
        add(&r, 2, shape, "R", "R");
        cases[i].spoil(&r);
        update(&r, &adamw);
        expect_refusal(&r, cases[i].words);
        close_recording(&r);
    }
    open_recording(&r, "2");
    add(&r, 1, shape, "R", "R");
    update(&r, &muon);
    expect_refusal(&r, "\"w0\" has 1 dims, but Muon is for matrices");
    close_recording(&r);
    open_recording(&r, "2");
    add(&r, 1, shape, "R", "R");
    tsr_optimizer_clip(r.p, r.count, r.g, 0, NULL);
    expect_refusal(&r, "max_norm is 0, but must be above 0");
    close_recording(&r);
    open_recording(&r, "2");
    add(&r, 1, shape, "R", "R");
    tsr_optimizer_unscale(r.p, r.count, r.g, r.w[0], NULL);
    expect_refusal(&r, "scale must be a float without dims");
    close_recording(&r);
}

/* Parameters on another mesh than the learning rate: the numbers are brought there. */
static void meshes_may_differ(void **state)
{
    static const int64_t shape[] = {4, 4};
    const tsr_optimizer_options kinds[] = {TSR_SGD_INIT, TSR_ADAMW_INIT, TSR_LION_INIT, TSR_ADAFACTOR_INIT,
                                           TSR_MUON_INIT};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        recording r;
        open_recording(&r, "2@2");
        tsr_mesh *const first = r.mesh;
        assert_int_equal(tsr_mesh_parse(NULL, r.context, "2", &r.mesh), TSR_OK);
        add(&r, 2, shape, "S(0)", "S(0)");
        tsr_mesh_destroy(r.mesh);
        r.mesh = first;
        add(&r, 2, shape, "R", "P");
        tsr_optimizer_unscale(r.p, r.count, r.g, r.rate, &r.finite);
        tsr_optimizer_clip(r.p, r.count, r.g, 1, NULL);
        update(&r, &kinds[i]);
        tsr_executable *const x = compile(&r, 3);
        tsr_executable_destroy(x);
        close_recording(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_is_one_group),
        cmocka_unit_test(muon_gives_each_rank_as_much),
        cmocka_unit_test(states_are_cut_over_replicas),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(views_are_checked),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(meshes_may_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
