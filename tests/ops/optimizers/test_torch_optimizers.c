/* Weights and states after each step are those of torch.optim's optimizers, and of Lion's by its
 * author: tests/golden/optimizers.txt has them, in f64 and as f32 masters of weights of bf16. */
#include "trials.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 4, SHAPES = 3, MOST = 16, MOST_CASES = 24, MOST_VALUES = 32, LINE = 1024 };

static const trial_parameter shapes[SHAPES] = {
    {.ndim = 2, .shape = {4, 3}}, {.ndim = 1, .shape = {5}}, {.ndim = 2, .shape = {3, 5}}};
static const int counts[SHAPES] = {12, 5, 15};

/* A weight, or a state, after a step. */
typedef struct golden_value {
    int step, count;
    char name[32];
    double numbers[MOST];
} golden_value;

typedef struct golden_case {
    char kind[16];
    bool masters;
    double options[9];
    int value_count;
    golden_value values[MOST_VALUES];
} golden_case;

static double weights[SHAPES][MOST], gradients[SHAPES][STEPS * MOST];
static golden_case cases[MOST_CASES];
static int case_count;

/* Reads up to `most` numbers; returns how many there are. */
static int read_numbers(const char *text, double *out, int most)
{
    int count = 0;
    for (char *end; count < most; text = end, count++) {
        out[count] = strtod(text, &end);
        if (end == text)
            break;
    }
    return count;
}

static void read_line(const char *line)
{
    int shape, step, at;
    char dtype[16];
    golden_case *const c = case_count ? &cases[case_count - 1] : NULL;
    if (sscanf(line, "weight%d%n", &shape, &at) == 1) {
        assert_int_equal(read_numbers(line + at, weights[shape], MOST), counts[shape]);
    } else if (sscanf(line, "gradient%d.%d%n", &shape, &step, &at) == 2) {
        assert_int_equal(read_numbers(line + at, gradients[shape] + (step - 1) * counts[shape], MOST), counts[shape]);
    } else if (strncmp(line, "case ", 5) == 0) {
        golden_case *const next = &cases[case_count++];
        assert_int_equal(sscanf(line, "case %15s %15s%n", next->kind, dtype, &at), 2);
        next->masters = strcmp(dtype, "masters") == 0;
        assert_int_equal(read_numbers(line + at, next->options, 9), 9);
    } else {
        assert_true(c && c->value_count < MOST_VALUES);
        golden_value *const v = &c->values[c->value_count++];
        assert_int_equal(sscanf(line, "%d %31s%n", &v->step, v->name, &at), 2);
        v->count = read_numbers(line + at, v->numbers, MOST);
    }
}

static int read_cases(void **state)
{
    char line[LINE];
    FILE *const file = fopen(GOLDEN_DIR "/optimizers.txt", "r");
    (void)state;
    if (!file)
        return 1;
    while (fgets(line, sizeof line, file))
        read_line(line);
    return fclose(file);
}

static tsr_optimizer_options find_options(const golden_case *c)
{
    const double *const n = c->options;
    static const tsr_optimizer_options adafactor = TSR_ADAFACTOR_INIT, muon = TSR_MUON_INIT, sgd = TSR_SGD_INIT,
                                       adamw = TSR_ADAMW_INIT, lion = TSR_LION_INIT;
    tsr_optimizer_options o = c->kind[0] == 's'               ? sgd
                              : c->kind[0] == 'l'             ? lion
                              : c->kind[0] == 'm'             ? muon
                              : strcmp(c->kind, "adamw") == 0 ? adamw
                                                              : adafactor;
    o.momentum = n[1];
    o.dampening = n[2];
    o.nesterov = n[3] != 0;
    o.weight_decay = n[4];
    o.beta1 = n[5];
    o.beta2 = n[6];
    if (o.kind == TSR_ADAMW)
        o.epsilon = n[7];
    o.maximize = n[8] != 0;
    o.masters = c->masters;
    return o;
}

/* Where two parameters lie, their gradients and their states. */
typedef struct lying {
    const char *mesh, *placements[2], *gradients[2], *states[2];
    unsigned shard_over;
} lying;

static const lying lyings[] = {
    {"1", {"R", "R"}, {"R", "R"}, {NULL, NULL}, 0},
    {"2", {"R", "R"}, {"P", "P"}, {NULL, NULL}, 1},
    {"3", {"S(0)", "S(0)"}, {"S(0)", "S(0)"}, {NULL, NULL}, 0},
    {"4", {"R", "S(0)"}, {"P", "S(0)"}, {"S(1;sizes=1,0,2,0)", "S(0)"}, 0},
    {"2x2", {"R,S(1)", "R,R"}, {"P,S(1)", "P,P"}, {NULL, NULL}, 3},
};

static void set_up(trial *t, const golden_case *c, const lying *l, int steps)
{
    *t = (trial){.mesh = l->mesh,
                 .dtype = c->masters ? TSR_BF16 : TSR_F64,
                 .options = find_options(c),
                 .count = 2,
                 .steps = steps,
                 .rate = c->options[0]};
    t->options.shard_over = l->shard_over;
    for (int p = 0; p < 2; p++) {
        const int shape = p && t->options.kind == TSR_MUON ? 2 : p;
        t->parameters[p] = shapes[shape];
        t->parameters[p].placements = l->placements[p];
        t->parameters[p].gradient = l->gradients[p];
        t->parameters[p].states = shape == 2 && l->states[p] ? "S(0)" : l->states[p];
        t->weights[p] = weights[shape];
        t->gradients[p] = gradients[shape];
    }
}

static bool has_sums(const golden_case *c)
{
    return strcmp(c->kind, "adafactor") == 0 || strcmp(c->kind, "muon") == 0;
}

/* What torch has of an element after a step; before the first one states are 0. */
static double find_wanted(const golden_case *c, const char *name, int step, int at)
{
    for (int i = 0; i < c->value_count && step > 0; i++)
        if (c->values[i].step == step && strcmp(c->values[i].name, name) == 0)
            return c->values[i].numbers[at];
    return strchr(name, '.') ? 0 : weights[name[1] - '0'][at];
}

/* A unit in the last place of what is larger of an element before and after a step, for each step:
 * SGD, AdamW and Lion may round differently by that, as torch fuses some products with sums. */
static double count_units(const golden_case *c, const golden_value *v, int at)
{
    double sum = 0;
    for (int step = 1; step <= v->step; step++) {
        const double old = fabs(find_wanted(c, v->name, step - 1, at)), new = fabs(find_wanted(c, v->name, step, at)),
                     size = fmax(old, new);
        sum +=
            c->masters ? (double)(nextafterf((float)size, INFINITY) - (float)size) : nextafter(size, INFINITY) - size;
    }
    return sum;
}

/* How far a number may be from torch's. A step of Adafactor has three sums one after the other, of
 * the 12 elements of a matrix at most, and is not longer than the weight. One of Muon has an
 * iteration five times, in which three products of 5 terms follow one another, and which multiplies
 * errors by at most 3.4445, its first coefficient. */
static double find_bound(const golden_case *c, const golden_value *v, int at)
{
    const double size = fabs(v->numbers[at]);
    if (strcmp(c->kind, "adafactor") == 0)
        return v->step * 3 * (12 + 4) * DBL_EPSILON * fmax(size, 1);
    if (strcmp(c->kind, "muon") == 0)
        return v->step * 3 * (5 + 4) * DBL_EPSILON * pow(3.4445, 5) * fmax(size, c->options[0]);
    return count_units(c, v, at);
}

static void expect_values(const golden_case *c, const trial_result *got, int step)
{
    for (int i = 0; i < c->value_count; i++) {
        const golden_value *const v = &c->values[i];
        char name[48];
        if (v->step != step)
            continue;
        snprintf(name, sizeof name, "%s%s", v->name, c->masters && !strchr(v->name, '.') ? ".master" : "");
        const double *const own = trial_find(got, name);
        for (int j = 0; j < v->count; j++)
            if (!(fabs(own[j] - v->numbers[j]) <= find_bound(c, v, j)))
                fail_msg("case %d, %s, step %d: %s %d is %.17g instead of %.17g", (int)(c - cases), c->kind, step, name,
                         j, own[j], v->numbers[j]);
    }
}

static void all_steps_are_those_of_torch(void **state)
{
    static trial_result got;
    trial t;
    (void)state;
    assert_int_equal(case_count, 18);
    for (int i = 0; i < case_count; i++)
        for (int step = 1; step <= STEPS; step++) {
            set_up(&t, &cases[i], &lyings[0], step);
            trial_run_threads(&t, &got);
            expect_values(&cases[i], &got, step);
        }
}

/* Meshes give the bits of one rank, but where ranks sum. */
static void meshes_take_the_same_steps(void **state)
{
    static trial_result first, got;
    trial t;
    (void)state;
    for (int i = 0; i < case_count; i++)
        for (size_t l = 0; l < sizeof lyings / sizeof lyings[0]; l++) {
            set_up(&t, &cases[i], &lyings[l], STEPS);
            trial_run_threads(&t, l ? &got : &first);
            if (l && !has_sums(&cases[i]))
                trial_expect_same(&got, &first);
            expect_values(&cases[i], l ? &got : &first, STEPS);
        }
}

/* bf16 with seven bits of fraction, to nearest even. */
static double round_narrow(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&narrow, &bits, sizeof narrow);
    return narrow;
}

/* What torch's model has, whose weights are copied from masters after each step. */
static void narrow_weights_are_rounded_masters_of_torch(void **state)
{
    static trial_result got;
    int compared = 0;
    trial t;
    (void)state;
    for (int i = 0; i < case_count; i++) {
        if (!cases[i].masters)
            continue;
        set_up(&t, &cases[i], &lyings[1], STEPS);
        trial_run_threads(&t, &got);
        for (int j = 0; j < cases[i].value_count; j++) {
            const golden_value *const v = &cases[i].values[j];
            for (int k = 0; k < v->count && v->step == STEPS && !strchr(v->name, '.'); k++, compared++)
                assert_true(trial_find(&got, v->name)[k] == round_narrow(v->numbers[k]));
        }
    }
    assert_int_equal(compared, 3 * (12 + 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_steps_are_those_of_torch),
        cmocka_unit_test(meshes_take_the_same_steps),
        cmocka_unit_test(narrow_weights_are_rounded_masters_of_torch),
    };
    return cmocka_run_group_tests(tests, read_cases, NULL);
}
