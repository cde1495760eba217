/* The f32 functions of pointwise kernels against f64: every set of instructions, thinned, or with
 * the argument "all" every f32. */
#include "ops/kernels/pointwise.h"

#include <tessera/sys/device.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 4096
#define ALL   (UINT64_C(1) << 32)

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double gelu_erf(double x)
{
    return 0.5 * x * erfc(-x * sqrt(0.5));
}

static double power_of_gelu(double x)
{
    return 2 * sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
}

static double gelu_tanh(double x)
{
    return x * sigmoid(power_of_gelu(x));
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double silu_slope(double x)
{
    return sigmoid(x) * (1 + x * sigmoid(-x));
}

static double gelu_erf_slope(double x)
{
    return 0.5 * erfc(-x * sqrt(0.5)) + x * exp(-0.5 * x * x) / sqrt(2 * 3.14159265358979323846);
}

static double gelu_tanh_slope(double x)
{
    const double rise = 2 * sqrt(2 / 3.14159265358979323846) * (1 + 3 * 0.044715 * x * x);
    return sigmoid(power_of_gelu(x)) * (1 + x * rise * sigmoid(-power_of_gelu(x)));
}

/* Errors in units in the last place of the result, or of a slope in those of the larger of 1 and
 * the slope: it passes 0. Results at minus infinity, -0 and infinity. */
static const struct function {
    const char *name;
    int code;
    double parameter;
    bool slope;
    double (*reference)(double);
    double bound;
    float least, zero, most;
} functions[] = {
    {"exp", TSR_POINTWISE_EXP, 0, false, exp, 1.1, 0, 1, INFINITY},
    {"log", TSR_POINTWISE_LOG, 0, false, log, 0.9, NAN, -INFINITY, INFINITY},
    {"rsqrt", TSR_POINTWISE_RSQRT, 0, false, rsqrt, 1.5, NAN, -INFINITY, 0},
    {"tanh", TSR_POINTWISE_TANH, 0, false, tanh, 1.4, -1, -0.0F, 1},
    {"sigmoid", TSR_POINTWISE_SIGMOID, 0, false, sigmoid, 2.4, 0, 0.5F, 1},
    {"silu", TSR_POINTWISE_SILU, 0, false, silu, 2.6, -0.0F, -0.0F, INFINITY},
    {"gelu", TSR_POINTWISE_GELU, 0, false, gelu_erf, 3.8, -0.0F, -0.0F, INFINITY},
    {"gelu by tanh", TSR_POINTWISE_GELU, 1, false, gelu_tanh, 2.8, -0.0F, -0.0F, INFINITY},
    {"silu's slope", TSR_POINTWISE_SILU_BACKWARD, 0, true, silu_slope, 2, -0.0F, 0.5F, 1},
    {"gelu's slope", TSR_POINTWISE_GELU_BACKWARD, 0, true, gelu_erf_slope, 2, -0.0F, 0.5F, 1},
    {"gelu's slope by tanh", TSR_POINTWISE_GELU_BACKWARD, 1, true, gelu_tanh_slope, 2, -0.0F, 0.5F, 1},
};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

static const char *const sets[] = {"portable", "avx2", "avx512"};

static bool chosen_all;

/* The kernels of a set; NULL: this processor cannot run them. */
static const tsr_pointwise_kernels *kernels_of(const char *set)
{
    const tsr_device_table *table;
    return tsr_device_host_table(set, &table) == TSR_OK ? tsr_pointwise_kernels_for(set) : NULL;
}

static void call(const tsr_pointwise_kernels *kernels, const struct function *f, const float *x, float *y, int64_t n)
{
    static float ones[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    const void *const in[] = {f->slope ? ones : x, x, NULL};
    kernels->loops[f->code][TSR_F32](in, y, n, &f->parameter);
}

static void call_wide(const tsr_pointwise_kernels *kernels, const struct function *f, const float *x, double *y)
{
    static double ones[COUNT], wide[COUNT];
    for (int i = 0; i < COUNT; i++) {
        ones[i] = 1;
        wide[i] = (double)x[i];
    }
    const void *const in[] = {f->slope ? ones : wide, wide, NULL};
    kernels->loops[f->code][TSR_F64](in, y, COUNT, &f->parameter);
}

/* The distance of two f32 at the size of `value`. */
static inline double unit_at(double value)
{
    uint64_t bits;
    double power;
    memcpy(&bits, &value, sizeof bits);
    bits &= UINT64_C(0x7ff) << 52;
    memcpy(&power, &bits, sizeof power);
    return (power < 0x1p-126 ? 0x1p-126 : power) * 0x1p-23;
}

/* True if `got` is within the bound of `wanted`, or is as infinite, or NaN. `least` is the least
 * size at which units are taken. */
static inline int is_near(double bound, double least, float got, double wanted)
{
    const double scale = fabs(wanted) < least ? least : wanted;
    const int near = fabs((double)got - wanted) <= bound * unit_at(scale);
    return near | (got == (float)wanted) | ((wanted != wanted) & (got != got));
}

/* Fills x with the f32 whose bits are `from`, and `step` apart. */
static void list(uint64_t from, uint64_t step, float *x)
{
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint32_t bits = (uint32_t)(from + i * step);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define COMPARING __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define COMPARING
#endif

/* Counts results that are not near. */
COMPARING static int count_far(double bound, double least, const float *got, const double *wanted)
{
    int far = 0;
    for (int i = 0; i < COUNT; i++)
        far += !is_near(bound, least, got[i], wanted[i]);
    return far;
}

static void expect_near(const struct function *f, const float *x, const float *got, const double *wanted)
{
    const double least = f->slope ? 1 : 0;
    if (count_far(f->bound, least, got, wanted) == 0)
        return;
    for (int i = 0; i < COUNT; i++)
        if (!is_near(f->bound, least, got[i], wanted[i]))
            fail_msg("%s of %a is %a, not %a", f->name, (double)x[i], (double)got[i], wanted[i]);
}

/* Against libm, thinned. Infinite operands have tests of their own: there libm's formulas have no
 * limits. */
static void functions_are_near_libm(void **state)
{
    static float x[COUNT], y[COUNT];
    static double wanted[COUNT];
    const uint64_t step = chosen_all ? 251 : 8191;
    (void)state;
    for (size_t k = 0; k < FUNCTIONS; k++) {
        for (uint64_t from = 0; from < ALL; from += COUNT * step) {
            list(from, step, x);
            call(kernels_of("portable"), &functions[k], x, y, COUNT);
            for (int i = 0; i < COUNT; i++) {
                const double wide = (double)x[i];
                const bool overflows = functions[k].code >= TSR_POINTWISE_SILU && fabs(wide) > 100;
                wanted[i] = isinf(x[i]) || overflows ? (double)y[i] : functions[k].reference(wide);
            }
            expect_near(&functions[k], x, y, wanted);
        }
    }
}

/* Against the f64 loops, which are a few units in the last place of f64 from libm. */
static void functions_are_near_those_of_f64(void **state)
{
    static float x[COUNT], y[COUNT];
    static double wanted[COUNT];
    const uint64_t step = chosen_all ? 1 : 4093;
    const tsr_pointwise_kernels *kernels = NULL;
    (void)state;
    for (int i = 0; i < 3; i++)
        kernels = kernels_of(sets[i]) ? kernels_of(sets[i]) : kernels;
    for (size_t k = 0; k < FUNCTIONS; k++) {
        for (uint64_t from = 0; from < ALL; from += COUNT * step) {
            list(from, step, x);
            call(kernels, &functions[k], x, y, COUNT);
            call_wide(kernels, &functions[k], x, wanted);
            expect_near(&functions[k], x, y, wanted);
        }
    }
}

static void sets_of_instructions_agree(void **state)
{
    static float x[COUNT], y[COUNT], other[COUNT];
    const uint64_t step = chosen_all ? 509 : 16381;
    (void)state;
    for (int set = 1; set < 3; set++) {
        const tsr_pointwise_kernels *const kernels = kernels_of(sets[set]);
        for (size_t k = 0; kernels && k < FUNCTIONS; k++) {
            for (uint64_t from = 0; from < ALL; from += COUNT * step) {
                list(from, step, x);
                call(kernels_of("portable"), &functions[k], x, y, COUNT);
                call(kernels, &functions[k], x, other, COUNT);
                for (int i = 0; i < COUNT; i++)
                    if (memcmp(&y[i], &other[i], sizeof y[i]) != 0 && (y[i] == y[i] || other[i] == other[i]))
                        fail_msg("%s of %a is %a in %s, %a in portable", functions[k].name, (double)x[i],
                                 (double)other[i], sets[set], (double)y[i]);
            }
        }
    }
}

static void limits_are_exact(void **state)
{
    const float x[] = {-INFINITY, -0.0F, INFINITY, NAN};
    (void)state;
    for (size_t k = 0; k < FUNCTIONS; k++) {
        const struct function *const f = &functions[k];
        const float wanted[] = {f->least, f->zero, f->most, NAN};
        for (int set = 0; set < 3; set++) {
            float y[4];
            if (!kernels_of(sets[set]))
                continue;
            call(kernels_of(sets[set]), f, x, y, 4);
            for (int i = 0; i < 4; i++)
                if (wanted[i] == wanted[i] ? memcmp(&y[i], &wanted[i], sizeof y[i]) != 0 : y[i] == y[i])
                    fail_msg("%s of %a is %a, not %a", f->name, (double)x[i], (double)y[i], (double)wanted[i]);
        }
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_near_libm),
        cmocka_unit_test(functions_are_near_those_of_f64),
        cmocka_unit_test(sets_of_instructions_agree),
        cmocka_unit_test(limits_are_exact),
    };
    chosen_all = count == 2 && strcmp(arguments[1], "all") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
