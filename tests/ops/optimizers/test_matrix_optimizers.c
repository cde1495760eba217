/* Adafactor and Muon: torch.optim's formulas, within bounds that follow from the lengths of their
 * sums, under all layouts. */
#include "trials.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 3, MOST = 64 };

static const double rate = 0.02;

static void expect_close(const char *what, int64_t at, double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s %lld is %.17g instead of %.17g, which is more than %g away", what, (long long)at, got, wanted,
                 bound);
}

static double find_root_mean(const double *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sqrt(sum) / sqrt(count);
}

/* A parameter of a reference: a matrix, or a vector with `rows` 1. */
typedef struct reference {
    int parameter, rows, columns;
    bool is_vector;
    double w[MOST], a[MOST], b[MOST]; /* the weight, and its states */
} reference;

static void read_gradient(const reference *r, int step, double *g)
{
    for (int i = 0; i < r->rows * r->columns; i++)
        g[i] = trial_gradient(r->parameter, step, i);
}

/* How far states go towards a step's means. */
static double advance(double state, double value, double part)
{
    return state + part * (value - state);
}

static void estimate(reference *r, const double *g, double part, double *v)
{
    double mean = 0;
    for (int i = 0; i < r->rows * r->columns && r->is_vector; i++)
        v[i] = r->a[i] = advance(r->a[i], g[i] * g[i], part);
    if (r->is_vector)
        return;
    for (int i = 0; i < r->rows; i++) {
        double sum = 0;
        for (int j = 0; j < r->columns; j++)
            sum += g[i * r->columns + j] * g[i * r->columns + j];
        r->a[i] = advance(r->a[i], sum / r->columns, part);
        mean += r->a[i] / r->rows;
    }
    for (int j = 0; j < r->columns; j++) {
        double sum = 0;
        for (int i = 0; i < r->rows; i++)
            sum += g[i * r->columns + j] * g[i * r->columns + j];
        r->b[j] = advance(r->b[j], sum / r->rows, part);
    }
    for (int i = 0; i < r->rows; i++)
        for (int j = 0; j < r->columns; j++)
            v[i * r->columns + j] = r->a[i] * r->b[j] / fmax(mean, DBL_EPSILON);
}

static void step_adafactor(const tsr_optimizer_options *o, int step, reference *r)
{
    double g[MOST], v[MOST];
    const int count = r->rows * r->columns;
    read_gradient(r, step, g);
    const double alpha = fmax(o->least_scale, find_root_mean(r->w, count)) * fmin(rate, 1 / sqrt(step));
    estimate(r, g, pow(step, o->beta2_decay), v);
    for (int i = 0; i < count; i++)
        v[i] = g[i] / sqrt(fmax(v[i], DBL_EPSILON * DBL_EPSILON));
    const double divisor = fmax(1, find_root_mean(v, count) / o->threshold);
    for (int i = 0; i < count; i++)
        r->w[i] = r->w[i] * (1 - rate * o->weight_decay) - alpha / divisor * v[i];
}

/* z = x y for matrices of `n` x `k` and `k` x `m`; with `transposed` y is of `m` x `k`. */
static void multiply(int n, int k, int m, const double *x, const double *y, bool transposed, double *z)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            z[i * m + j] = 0;
            for (int l = 0; l < k; l++)
                z[i * m + j] += x[i * k + l] * (transposed ? y[j * k + l] : y[l * m + j]);
        }
}

static void orthogonalize(const tsr_optimizer_options *o, int rows, int columns, double *x)
{
    double g[MOST], g2[MOST], next[MOST], norm = 0;
    for (int i = 0; i < rows * columns; i++)
        norm += x[i] * x[i];
    for (int i = 0; i < rows * columns; i++)
        x[i] /= fmax(sqrt(norm), o->epsilon);
    for (int iteration = 0; iteration < o->iterations; iteration++) {
        multiply(rows, columns, rows, x, x, true, g);
        multiply(rows, rows, rows, g, g, false, g2);
        for (int i = 0; i < rows * rows; i++)
            g[i] = o->coefficients[1] * g[i] + o->coefficients[2] * g2[i];
        multiply(rows, rows, columns, g, x, false, next);
        for (int i = 0; i < rows * columns; i++)
            x[i] = o->coefficients[0] * x[i] + next[i];
    }
}

static void turn(int rows, int columns, const double *x, double *y)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            y[j * rows + i] = x[i * columns + j];
}

static void step_muon(const tsr_optimizer_options *o, int step, reference *r)
{
    double g[MOST], x[MOST], y[MOST];
    const int count = r->rows * r->columns;
    const bool is_tall = r->rows > r->columns;
    read_gradient(r, step, g);
    for (int i = 0; i < count; i++) {
        r->a[i] += (1 - o->momentum) * (g[i] - r->a[i]);
        x[i] = o->nesterov ? r->a[i] - (r->a[i] - g[i]) * (1 - o->momentum) : r->a[i];
    }
    if (is_tall)
        turn(r->rows, r->columns, x, y);
    orthogonalize(o, is_tall ? r->columns : r->rows, is_tall ? r->rows : r->columns, is_tall ? y : x);
    if (is_tall)
        turn(r->columns, r->rows, y, x);
    const double ratio = o->rate == TSR_MUON_ORIGINAL ? sqrt(fmax(1, (double)r->rows / r->columns))
                                                      : 0.2 * sqrt(r->rows > r->columns ? r->rows : r->columns);
    for (int i = 0; i < count; i++)
        r->w[i] = r->w[i] * (1 - rate * o->weight_decay) - rate * ratio * x[i];
}

typedef void formula(const tsr_optimizer_options *o, int step, reference *r);

/* Where the four parameters lie: 5x3, 3x5, 5x3 and 7, or 4x4 with Muon. */
typedef struct lying {
    const char *mesh, *placements[TRIAL_PARAMETERS], *gradients[TRIAL_PARAMETERS], *states[TRIAL_PARAMETERS];
    unsigned shard_over;
    bool are_views;
} lying;

static const lying lyings[] = {
    {"1", {"R", "R", "R", "R"}, {"R", "R", "R", "R"}, {NULL}, 0},
    {"2", {"R", "R", "R", "R"}, {"P", "P", "R", "P"}, {NULL}, 0},
    {"2", {"R", "R", "R", "R"}, {"P", "P", "P", "P"}, {NULL}, 1},
    {"3", {"S(0)", "S(0)", "S(0)", "S(0)"}, {"S(0)", "S(0)", "S(0)", "S(0)"}, {NULL}, 0},
    {"4", {"S(1)", "S(0)", "S(0)", "S(0)"}, {"S(1)", "S(0)", "S(0)", "S(0)"}, {NULL}, 0},
    {"4", {"R", "R", "R", "R"}, {"P", "R", "P", "R"}, {"S(0;sizes=0,5,0,0)", "S(1)", "S(0)", "S(0)"}, 0},
    {"2x2", {"R,S(0)", "R,S(1)", "R,S(0)", "R,S(0)"}, {"P,S(0)", "P,S(1)", "P,S(0)", "P,S(0)"}, {NULL}, 1},
    {"2x2", {"S(1),S(0)", "S(0),S(0)", "R,R", "R,R"}, {"S(1),S(0)", "S(0),S(0)", "P,P", "R,P"}, {NULL}, 0},
    /* Cut by elements: in the midst of rows, and with fewer rows than ranks. */
    {"2", {"S(0)", "S(0;balanced)", "S(0)", "S(0)"}, {"P", "P", "S(0)", "P"}, {NULL}, 0, true},
    {"7", {"S(0;balanced)", "S(0;balanced)", "S(0;balanced)", "S(0)"}, {"P", "P", "P", "P"}, {NULL}, 0, true},
    {"4", {"R", "R", "S(0;sizes=0,7,1,7)", "R"}, {"P", "P", "R", "R"}, {NULL}, 1, true},
    {"2x3",
     {"S(0;unit=3),S(0;balanced)", "S(0;interleave=3),S(0;balanced)", "S(0;balanced)[1],S(0;unit=6)[0]",
      "R,S(0;balanced)"},
     {"P,S(0)", "P,P", "P,P", "P,P"},
     {NULL},
     0,
     true},
    {"2x2",
     {"S(0;balanced)[1],S(0;interleave=5)[0]", "R,S(0;balanced)", "S(0;balanced),S(0;balanced)", "S(0),S(0)"},
     {"P,P", "P,P", "P,P", "P,P"},
     {NULL},
     1,
     true},
};

/* The largest relative error of a sum of 15 products. */
static const double of_sums = 16 * DBL_EPSILON;

static void expect_formula(const tsr_optimizer_options *o, formula *f, double bound, const char *a, const char *b)
{
    static trial_result got, first;
    static const trial_parameter shapes[] = {{2, {5, 3}, NULL, NULL, NULL},
                                             {2, {3, 5}, NULL, NULL, NULL},
                                             {2, {5, 3}, NULL, NULL, NULL},
                                             {1, {7}, NULL, NULL, NULL}};
    for (size_t l = 0; l < sizeof lyings / sizeof lyings[0]; l++) {
        trial t = {.mesh = lyings[l].mesh, .dtype = TSR_F64, .options = *o, .count = 4, .steps = STEPS, .rate = rate};
        t.options.shard_over = lyings[l].shard_over;
        for (int p = 0; p < t.count; p++) {
            t.parameters[p] = shapes[p];
            if (p == 3 && o->kind == TSR_MUON)
                t.parameters[p] = (trial_parameter){2, {4, 4}, NULL, NULL, NULL};
            t.parameters[p].placements = lyings[l].placements[p];
            t.parameters[p].gradient = lyings[l].gradients[p];
            t.parameters[p].states = lyings[l].states[p];
            t.parameters[p].is_view = lyings[l].are_views;
        }
        trial_run_threads(&t, &got);
        if (l == 0)
            first = got;
        /* Whole matrices are multiplied on one rank, so ranks sum nothing. */
        else if (o->kind == TSR_MUON)
            trial_expect_same(&got, &first);
        for (int p = 0; p < t.count; p++) {
            const trial_parameter *const of = &t.parameters[p];
            reference r = {.parameter = p, .rows = of->ndim == 2 ? (int)of->shape[0] : 1, .is_vector = of->ndim == 1};
            char name[32];
            r.columns = (int)of->shape[of->ndim - 1];
            for (int i = 0; i < r.rows * r.columns; i++)
                r.w[i] = trial_weight(p, i);
            for (int step = 1; step <= STEPS; step++)
                f(o, step, &r);
            snprintf(name, sizeof name, "w%d", p);
            for (int i = 0; i < r.rows * r.columns; i++)
                expect_close(name, i, trial_find(&got, name)[i], r.w[i], bound);
            snprintf(name, sizeof name, "w%d.%s", p, r.is_vector ? "variance" : a);
            for (int i = 0; i < (b && !r.is_vector ? r.rows : r.rows * r.columns); i++)
                expect_close(name, i, trial_find(&got, name)[i], r.a[i], of_sums * STEPS * 4);
            snprintf(name, sizeof name, "w%d.%s", p, b ? b : "");
            for (int i = 0; b && !r.is_vector && i < r.columns; i++)
                expect_close(name, i, trial_find(&got, name)[i], r.b[i], of_sums * STEPS * 4);
        }
    }
}

/* A step is at most 1 weight long, of which each of three sums has its error. */
static void adafactor_is_that_of_torch(void **state)
{
    tsr_optimizer_options o = TSR_ADAFACTOR_INIT;
    (void)state;
    expect_formula(&o, step_adafactor, 4 * of_sums * STEPS, "row_var", "col_var");
    o.weight_decay = 0.1;
    o.threshold = 2;
    o.beta2_decay = -0.5;
    expect_formula(&o, step_adafactor, 4 * of_sums * STEPS, "row_var", "col_var");
}

/* Each iteration has three products, and multiplies errors by at most 3.4445. */
static void muon_is_that_of_torch(void **state)
{
    tsr_optimizer_options o = TSR_MUON_INIT;
    (void)state;
    const double grown = pow(o.coefficients[0], o.iterations);
    expect_formula(&o, step_muon, 3 * of_sums * grown * rate * STEPS, "momentum_buffer", NULL);
    o.nesterov = 0;
    o.rate = TSR_MUON_MATCH_RMS_ADAMW;
    o.weight_decay = 0;
    o.iterations = 2;
    expect_formula(&o, step_muon, 3 * of_sums * grown * rate * STEPS, "momentum_buffer", NULL);
}

/* Cuts of views along dims of size 1 and 0, and of one element, give what one rank does. */
static void views_have_dims_of_any_size(void **state)
{
    static trial_result got, first;
    static const struct {
        const char *mesh, *placements[TRIAL_PARAMETERS];
    } cases[] = {{"1", {"R", "R", "R", "R"}},
                 {"3", {"S(0;balanced)", "S(0)", "S(0;balanced)", "S(0)"}},
                 {"2", {"S(0;unit=6)", "S(0;interleave=6)", "S(0;interleave=3)", "S(0)"}},
                 {"2x2", {"R,S(0;balanced)", "S(0),S(0;balanced)", "S(0;interleave=3),S(0;balanced)", "S(0),R"}}};
    static const trial_parameter shapes[][TRIAL_PARAMETERS] = {
        {{2, {1, 6}, .is_view = true},
         {2, {6, 1}, .is_view = true},
         {3, {3, 1, 2}, .is_view = true},
         {2, {1, 1}, .is_view = true}},
        {{3, {1, 1, 6}, .is_view = true},
         {3, {1, 6, 1}, .is_view = true},
         {3, {3, 2, 1}, .is_view = true},
         {2, {0, 3}, .is_view = true}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (size_t l = 0; l < sizeof cases / sizeof *cases; l++) {
            trial t = {
                .mesh = cases[l].mesh, .dtype = TSR_F64, .options = TSR_ADAFACTOR_INIT, .count = 4, .steps = STEPS};
            t.rate = rate;
            t.options.shard_over = 1;
            for (int p = 0; p < t.count; p++) {
                t.parameters[p] = shapes[i][p];
                t.parameters[p].placements = cases[l].placements[p];
                t.parameters[p].gradient = strcmp(t.mesh, "2x2") == 0 ? "P,P" : "P";
            }
            trial_run_threads(&t, l == 0 ? &first : &got);
            /* Means over no rows are no numbers. */
            for (int k = 0; k < got.count && l > 0; k++)
                for (int j = 0; j < got.sizes[k] && !isnan(first.room[first.first[k] + j]); j++)
                    expect_close(got.names[k], j, got.room[got.first[k] + j], first.room[first.first[k] + j],
                                 of_sums * STEPS * 4);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adafactor_is_that_of_torch),
        cmocka_unit_test(views_have_dims_of_any_size),
        cmocka_unit_test(muon_is_that_of_torch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
