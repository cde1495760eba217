/* Rotary positions against plain loops with libm's functions. */
#include "attention_plain.h"
#include "layers.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { BATCH = 2, TOKENS = 5, HEADS = 3, DIM = 6, COUNT = BATCH * TOKENS * HEADS * DIM };

/* Angles up to the end of the loops' range, beyond it, and negative. */
static const int64_t positions[BATCH][TOKENS] = {{0, 1, 100000, -3, 268435000},
                                                 {7, 268435457, 1000000007, 131071, INT64_C(4611686018427387904)}};

/* Llama 3.1's scaling of the frequency of pair i. */
static double frequency(const tsr_rope_options *o, int i)
{
    const double f = pow(o->base, -2.0 * i / DIM), turns = (double)o->original_max_position * f / (2 * acos(-1));
    if (o->original_max_position == 0 || turns < o->low_freq_factor)
        return f / o->factor;
    if (turns > o->high_freq_factor)
        return f;
    const double blend = (turns - o->low_freq_factor) / (o->high_freq_factor - o->low_freq_factor);
    return (1 - blend) * f / o->factor + blend * f;
}

static double input(int64_t i)
{
    return (double)(i * 37 % 64 - 32) / 32;
}

/* Element i of the result, or with `sign` -1 of the gradient. */
static double wanted(const tsr_rope_options *o, int64_t i, bool one_batch, double sign)
{
    const int64_t token = i / DIM / HEADS, batch = one_batch ? 0 : token / TOKENS;
    const int pair = (int)(i % DIM % (DIM / 2));
    const double angle = (double)positions[batch][token % TOKENS] * frequency(o, pair);
    const bool second = i % DIM >= DIM / 2;
    const double own = input(i), other = input(second ? i - DIM / 2 : i + DIM / 2);
    return own * cos(angle) + (second ? other : -other) * sign * sin(angle);
}

/* Inputs are at most 1. Frequencies are the same numbers in the op and here, so angles are, too. */
static tsr_status compare(const tsr_dtensor *got, const tsr_rope_options *o, bool one_batch, double sign)
{
    tsr_dtensor *full;
    TSR_TRY(tsr_full_tensor(got, &full));
    const tsr_tensor local = tsr_dtensor_to_local(full);
    const double u = local.dtype == TSR_F64   ? 0x1p-50
                     : local.dtype == TSR_F32 ? 0x1p-23
                     : local.dtype == TSR_F16 ? 0x1p-10
                                              : 0x1p-7;
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < COUNT && status == TSR_OK; i++) {
        const double value = element_get(local.data, local.dtype, i), expected = wanted(o, i, one_batch, sign);
        if (!(fabs(value - expected) <= u))
            status = tsr_status_set(TSR_ERROR_INTERNAL, "element %lld of %s is %.17g, not %.17g", (long long)i,
                                    tsr_dtype_name(local.dtype), value, expected);
    }
    tsr_dtensor_destroy(full);
    return status;
}

/* A way to call the op: dtypes, placements and options. */
typedef struct way {
    const char *mesh;
    tsr_dtype x, positions;
    bool one_batch;
    const char *x_placements, *positions_placements;
    tsr_rope_options options;
} way;

#define PLAIN TSR_ROPE_OPTIONS_INIT
#define LLAMA3                                                                                                         \
    {                                                                                                                  \
        sizeof(tsr_rope_options), 500000, 8, 1, 4, 8192                                                                \
    }
#define LINEAR                                                                                                         \
    {                                                                                                                  \
        sizeof(tsr_rope_options), 10000, 4, 1, 4, 0                                                                    \
    }

static const way ways[] = {
    {"1", TSR_F64, TSR_I64, false, "R", "R", PLAIN},
    {"1", TSR_F32, TSR_I64, false, "R", "R", LLAMA3},
    {"1", TSR_F64, TSR_I64, false, "R", "R", LLAMA3},
    {"1", TSR_F16, TSR_I64, false, "R", "R", PLAIN},
    {"1", TSR_BF16, TSR_I32, true, "R", "R", LINEAR},
    {"1", TSR_F64, TSR_I32, true, "R", "R", LINEAR},
    {"2", TSR_F64, TSR_I64, false, "S(1)", "S(1)", PLAIN},
    {"8", TSR_F64, TSR_I64, false, "S(1;balanced)", "S(1;balanced)", LLAMA3},
    {"4", TSR_F32, TSR_I32, true, "S(1)", "S(0)", PLAIN},
    {"4", TSR_F64, TSR_I64, false, "S(2)", "R", PLAIN},
    {"2x3", TSR_F64, TSR_I64, false, "S(0),S(2)", "S(0),R", PLAIN},
    {"3", TSR_F64, TSR_I32, true, "S(0)", "R", LLAMA3},
};

static tsr_status make(const way *w, const tsr_mesh *mesh, tsr_dtensor **x, tsr_dtensor **at)
{
    static const int64_t shape[] = {BATCH, TOKENS, HEADS, DIM};
    char data[COUNT * sizeof(double)];
    int32_t narrow[BATCH * TOKENS];
    for (int64_t i = 0; i < COUNT; i++)
        element_set(data, w->x, i, input(i));
    for (int i = 0; i < BATCH * TOKENS; i++)
        narrow[i] = (int32_t)positions[i / TOKENS][i % TOKENS];
    tsr_tensor global = tsr_tensor_contiguous(data, w->x, 4, shape);
    TSR_TRY(tsr_distribute(&global, mesh, w->x_placements, x));
    global = tsr_tensor_contiguous(w->positions == TSR_I32 ? (void *)narrow : (void *)positions, w->positions,
                                   w->one_batch ? 1 : 2, shape + w->one_batch);
    return tsr_distribute(&global, mesh, w->positions_placements, at);
}

static tsr_status check_way(tsr_comm *comm, void *arg)
{
    const way *const w = arg;
    tsr_mesh *mesh;
    tsr_dtensor *x, *at, *out, *dx, *dout;
    char placements[64];
    TSR_TRY(tsr_mesh_parse(comm, NULL, w->mesh, &mesh));
    TSR_TRY(make(w, mesh, &x, &at));
    TSR_TRY(tsr_rope(x, at, &w->options, &out));
    TSR_TRY(compare(out, &w->options, w->one_batch, 1));
    tsr_layout_print(tsr_dtensor_layout(out), placements, sizeof placements);
    TSR_TRY(tsr_redistribute_to(x, placements, &dout));
    TSR_TRY(tsr_rope_backward(x, at, &w->options, dout, &dx));
    TSR_TRY(compare(dx, &w->options, w->one_batch, -1));
    TSR_TRY(tsr_rope_into(dout, at, &w->options, dout));
    TSR_TRY(compare(dout, &w->options, w->one_batch, 1));
    tsr_dtensor *const all[] = {x, at, out, dx, dout};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void pairs_are_rotated_by_their_positions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        int ranks = 1;
        for (const char *at = ways[i].mesh; *at; at++)
            ranks *= *at == 'x' ? 1 : *at - '0';
        if (tsr_threads_run(ranks, check_way, (void *)&ways[i], NULL) != TSR_OK)
            fail_msg("way %d: %s", (int)i, tsr_status_message());
    }
}

static tsr_status check_refusals(tsr_comm *comm, void *arg)
{
    static const int64_t odd[] = {TOKENS, HEADS, 3};
    double data[TOKENS * HEADS * 3] = {0};
    tsr_rope_options o = TSR_ROPE_OPTIONS_INIT;
    tsr_mesh *mesh;
    tsr_dtensor *x, *at, *uneven, *cut, *out;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make(&ways[0], mesh, &x, &at));
    const tsr_tensor global = tsr_tensor_contiguous(data, TSR_F64, 3, odd);
    TSR_TRY(tsr_distribute(&global, mesh, "R", &uneven));
    TSR_TRY(tsr_redistribute_to(x, "S(3)", &cut));
    TSR_TRY(layer_expect_refusal_with(tsr_rope(uneven, at, NULL, &out),
                                      "positions has 2 dims, but x has 1 before heads and dim"));
    TSR_TRY(layer_expect_refusal_with(tsr_rope(x, x, NULL, &out), "positions is f64, but must be i64 or i32"));
    TSR_TRY(layer_expect_refusal_with(tsr_rope(at, at, NULL, &out), "x is i64, but rope takes f64, f32, f16 and bf16"));
    TSR_TRY(layer_expect_refusal_with(tsr_rope(cut, at, NULL, &out), "redistribute x from \"S(3)\" to \"R\""));
    o.base = 0;
    TSR_TRY(layer_expect_refusal_with(tsr_rope(x, at, &o, &out), "base is 0, but must be more than 0"));
    o.base = 1;
    o.original_max_position = 1;
    o.high_freq_factor = 1;
    TSR_TRY(layer_expect_refusal_with(tsr_rope(x, at, &o, &out),
                                      "high_freq_factor is 1, but must be more than low_freq_factor"));
    tsr_dtensor *const all[] = {x, at, uneven, cut};
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void refusals_say_what_would_work(void **state)
{
    (void)state;
    layers_run(2, check_refusals, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs_are_rotated_by_their_positions),
                                       cmocka_unit_test(refusals_say_what_would_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
