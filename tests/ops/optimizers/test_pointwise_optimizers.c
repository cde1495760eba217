/* SGD, AdamW and Lion: the formulas of torch.optim in f64, in the order of its operations, and the
 * same bits under all layouts. */
#include "trials.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 4, ROWS = 5, COLUMNS = 3 };

static const double rate = 1e-3;

/* One element of a parameter, in training. */
typedef struct element {
    double w, a, b; /* the weight, and up to two states */
} element;

typedef void formula(const tsr_optimizer_options *o, int step, double g, element *e);

static void step_sgd(const tsr_optimizer_options *o, int step, double g, element *e)
{
    if (o->weight_decay != 0)
        g = g + o->weight_decay * e->w;
    if (o->momentum != 0) {
        e->a = step == 1 ? g : e->a * o->momentum + (1 - o->dampening) * g;
        g = o->nesterov ? g + o->momentum * e->a : e->a;
    }
    e->w = e->w + -rate * g;
}

static void step_adamw(const tsr_optimizer_options *o, int step, double g, element *e)
{
    e->w *= 1 - rate * o->weight_decay;
    const double way = 1 - o->beta1;
    e->a = way < 0.5 ? e->a + way * (g - e->a) : g - (g - e->a) * (1 - way);
    e->b = e->b * o->beta2 + (1 - o->beta2) * g * g;
    const double step_size = rate / (1 - pow(o->beta1, step)), root = sqrt(1 - pow(o->beta2, step));
    e->w = e->w + -step_size * e->a / (sqrt(e->b) / root + o->epsilon);
}

static void step_lion(const tsr_optimizer_options *o, int step, double g, element *e)
{
    (void)step;
    const double direction = e->a * o->beta1 + (1 - o->beta1) * g;
    e->w = e->w * (1 - rate * o->weight_decay) + -rate * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
    e->a = e->a * o->beta2 + (1 - o->beta2) * g;
}

/* The largest distance in units of the last place of `wanted`. */
static void expect_near(const char *what, int64_t at, double got, double wanted, int steps)
{
    const double ulp = nextafter(fabs(wanted), INFINITY) - fabs(wanted);
    if (!(fabs(got - wanted) <= steps * ulp))
        fail_msg("%s %lld is %.17g instead of %.17g", what, (long long)at, got, wanted);
}

static void set_up(trial *t, const tsr_optimizer_options *o)
{
    *t = (trial){.mesh = "1",
                 .dtype = TSR_F64,
                 .options = *o,
                 .count = 2,
                 .parameters = {{2, {ROWS, COLUMNS}, "R", "R", NULL}, {1, {7}, "R", "R", NULL}},
                 .steps = STEPS,
                 .rate = rate};
}

static void expect_state(const trial_result *got, int parameter, const char *suffix, int64_t i, double wanted)
{
    char name[32];
    snprintf(name, sizeof name, "w%d.%s", parameter, suffix);
    expect_near(name, i, trial_find(got, name)[i], wanted, STEPS);
}

/* Trains on one rank, and by the formula. */
static void expect_formula(const tsr_optimizer_options *o, formula *f, const char *a, const char *b)
{
    static trial_result got;
    static const int64_t counts[] = {ROWS * COLUMNS, 7};
    trial t;
    set_up(&t, o);
    trial_run_threads(&t, &got);
    for (int p = 0; p < t.count; p++)
        for (int64_t i = 0; i < counts[p]; i++) {
            char name[32];
            element e = {trial_weight(p, i), 0, 0};
            for (int step = 1; step <= STEPS; step++)
                f(o, step, trial_gradient(p, step, i), &e);
            snprintf(name, sizeof name, "w%d", p);
            expect_near(name, i, trial_find(&got, name)[i], e.w, STEPS);
            if (a)
                expect_state(&got, p, a, i, e.a);
            if (b)
                expect_state(&got, p, b, i, e.b);
        }
}

static void sgd_is_that_of_torch(void **state)
{
    tsr_optimizer_options o = TSR_SGD_INIT;
    (void)state;
    expect_formula(&o, step_sgd, NULL, NULL);
    o.weight_decay = 0.1;
    expect_formula(&o, step_sgd, NULL, NULL);
    o.momentum = 0.9;
    expect_formula(&o, step_sgd, "momentum_buffer", NULL);
    o.nesterov = 1;
    expect_formula(&o, step_sgd, "momentum_buffer", NULL);
    o.nesterov = 0;
    o.dampening = 0.3;
    expect_formula(&o, step_sgd, "momentum_buffer", NULL);
}

static void adamw_is_that_of_torch(void **state)
{
    tsr_optimizer_options o = TSR_ADAMW_INIT;
    (void)state;
    expect_formula(&o, step_adamw, "exp_avg", "exp_avg_sq");
    o.weight_decay = 0;
    o.beta1 = 0.3;
    o.epsilon = 1e-3;
    expect_formula(&o, step_adamw, "exp_avg", "exp_avg_sq");
}

static void lion_is_that_of_its_paper(void **state)
{
    tsr_optimizer_options o = TSR_LION_INIT;
    (void)state;
    expect_formula(&o, step_lion, "exp_avg", NULL);
    o.weight_decay = 0.1;
    expect_formula(&o, step_lion, "exp_avg", NULL);
}

/* Where the two parameters lie, their gradients and their states. */
typedef struct lying {
    const char *mesh, *placements[2], *gradients[2], *states[2];
    unsigned shard_over;
} lying;

static const lying all_lyings[] = {
    {"1", {"R", "R"}, {"R", "R"}, {NULL, NULL}, 1},
    {"2", {"R", "R"}, {"P", "P"}, {NULL, NULL}, 0},
    {"2", {"R", "R"}, {"P", "P"}, {"S(0)", "S(0;sizes=0,7)"}, 0},
    {"3", {"S(0)", "S(0)"}, {"S(0)", "S(0)"}, {NULL, NULL}, 0},
    {"3", {"R", "S(0;balanced)"}, {"P", "S(0;balanced)"}, {NULL, NULL}, 1},
    {"4", {"S(1)", "R"}, {"S(1)", "P"}, {NULL, NULL}, 1},
    {"4", {"S(0)", "R"}, {"S(0)", "P"}, {"S(1;sizes=1,0,2,0)", "S(0)"}, 0},
    {"2x2", {"R,S(0)", "R,R"}, {"P,S(0)", "P,P"}, {NULL, NULL}, 1},
    {"2x2", {"R,S(1)", "R,S(0)"}, {"P,S(1)", "P,S(0)"}, {NULL, NULL}, 1},
    {"2x2", {"R,R", "S(0),S(0)"}, {"P,P", "S(0),S(0)"}, {NULL, NULL}, 3},
    {"2x2", {"S(0),S(1)", "R,S(0)"}, {"S(0),S(1)", "P,S(0)"}, {NULL, "S(0),S(0)"}, 0},
};

static void lie(trial *t, const lying *l)
{
    t->mesh = l->mesh;
    t->options.shard_over = l->shard_over;
    for (int p = 0; p < 2; p++) {
        t->parameters[p].placements = l->placements[p];
        t->parameters[p].gradient = l->gradients[p];
        t->parameters[p].states = l->states[p];
    }
}

static void expect_same_everywhere(const tsr_optimizer_options *o, tsr_dtype dtype, double scale, int spoilt)
{
    static trial_result wanted, got;
    trial t;
    set_up(&t, o);
    t.dtype = dtype;
    t.scale = scale;
    t.spoilt = spoilt;
    trial_run_threads(&t, &wanted);
    for (size_t i = 0; i < sizeof all_lyings / sizeof all_lyings[0]; i++) {
        lie(&t, &all_lyings[i]);
        trial_run_threads(&t, &got);
        trial_expect_same(&got, &wanted);
        for (int step = 0; step < STEPS; step++)
            assert_int_equal(got.finite[step], spoilt != step + 1);
    }
}

static void layouts_change_no_bit(void **state)
{
    tsr_optimizer_options sgd = TSR_SGD_INIT, adamw = TSR_ADAMW_INIT, lion = TSR_LION_INIT;
    (void)state;
    sgd.momentum = 0.9;
    sgd.dampening = 0.1;
    expect_same_everywhere(&sgd, TSR_F32, 0, 0);
    expect_same_everywhere(&adamw, TSR_F64, 0, 0);
    expect_same_everywhere(&adamw, TSR_BF16, 0, 0);
    adamw.masters = 1;
    expect_same_everywhere(&adamw, TSR_BF16, 1024, 2);
    expect_same_everywhere(&lion, TSR_F32, 0, 0);
}

/* A step in which a gradient is infinite is as if it had not been. */
static void steps_that_are_not_finite_are_skipped(void **state)
{
    static trial_result before, after;
    tsr_optimizer_options o = TSR_ADAMW_INIT;
    trial t;
    (void)state;
    for (int masters = 0; masters < 2; masters++) {
        o.masters = masters;
        set_up(&t, &o);
        t.dtype = masters ? TSR_BF16 : TSR_F32;
        t.scale = 8;
        t.steps = 2;
        lie(&t, &all_lyings[7]);
        trial_run_threads(&t, &before);
        t.steps = t.spoilt = 3;
        trial_run_threads(&t, &after);
        assert_true(after.finite[0] && after.finite[1] && !after.finite[2]);
        trial_expect_same(&after, &before);
    }
}

/* Weights of bf16 are roundings of masters, which are those of a training in f32 by the same
 * gradients. */
static void weights_are_rounded_masters(void **state)
{
    static trial_result got;
    tsr_optimizer_options o = TSR_ADAMW_INIT;
    trial t;
    (void)state;
    o.masters = 1;
    set_up(&t, &o);
    t.dtype = TSR_BF16;
    trial_run_threads(&t, &got);
    const double *const w = trial_find(&got, "w0"), *const master = trial_find(&got, "w0.master");
    bool differs = false;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float narrow = (float)master[i];
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
        memcpy(&narrow, &bits, sizeof narrow);
        assert_true(w[i] == (double)narrow);
        differs |= w[i] != master[i];
    }
    assert_true(differs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_is_that_of_torch),
        cmocka_unit_test(adamw_is_that_of_torch),
        cmocka_unit_test(lion_is_that_of_its_paper),
        cmocka_unit_test(layouts_change_no_bit),
        cmocka_unit_test(steps_that_are_not_finite_are_skipped),
        cmocka_unit_test(weights_are_rounded_masters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
