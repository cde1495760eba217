/* Column- and row-parallel linear layers and their gradients as custom calls, beside dense products
 * of integers, which are exact. */
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, TOKENS = 5, IN = 8, OUT = 12 };

/* The dense layer and its gradients. */
typedef struct dense {
    float x[TOKENS * IN], w[OUT * IN], b[OUT], y[TOKENS * OUT];
    float dy[TOKENS * OUT], dx[TOKENS * IN], dw[OUT * IN], db[OUT];
} dense;

static void fill(float *values, int count, int factor)
{
    for (int i = 0; i < count; i++)
        values[i] = (float)(i * factor % 11 - 5);
}

static void compute(dense *d, int in)
{
    fill(d->x, TOKENS * IN, 3);
    fill(d->w, OUT * IN, 7);
    fill(d->b, OUT, 5);
    fill(d->dy, TOKENS * OUT, 4);
    memset(d->dx, 0, sizeof d->dx);
    memset(d->dw, 0, sizeof d->dw);
    memset(d->db, 0, sizeof d->db);
    for (int t = 0; t < TOKENS; t++)
        for (int o = 0; o < OUT; o++) {
            d->y[t * OUT + o] = d->b[o];
            d->db[o] += d->dy[t * OUT + o];
            for (int i = 0; i < in; i++) {
                d->y[t * OUT + o] += d->x[t * in + i] * d->w[o * in + i];
                d->dx[t * in + i] += d->dy[t * OUT + o] * d->w[o * in + i];
                d->dw[o * in + i] += d->dy[t * OUT + o] * d->x[t * in + i];
            }
        }
}

/* Parts of a matrix with `rows` and `columns`: RANKS of them one after the other, each `down` by
 * `right` from where rank r begins; what lies outside of the matrix is 0. */
static void cut(const float *from, int rows, int columns, int down, int right, bool along_rows, float *to)
{
    for (int r = 0; r < RANKS; r++)
        for (int i = 0; i < down; i++)
            for (int j = 0; j < right; j++, to++) {
                const int row = i + (along_rows ? r * down : 0), column = j + (along_rows ? 0 : r * right);
                *to = row < rows && column < columns ? from[row * columns + column] : 0;
            }
}

/* A matrix that all ranks have. */
static void copy(const float *from, int count, float *to)
{
    for (int r = 0; r < RANKS; r++)
        memcpy(to + r * count, from, (size_t)count * sizeof *to);
}

static void same(const char *what, const float *have, const float *want, int count)
{
    for (int i = 0; i < count; i++)
        if (have[i] != want[i])
            fail_msg("%s: element %d is %g, not %g", what, i, (double)have[i], (double)want[i]);
}

enum { ROOM = RANKS * OUT * OUT };

static void column_parallel_needs_nothing_of_others(void **state)
{
    enum { PART = OUT / RANKS };
    static dense d;
    static float x[ROOM], w[ROOM], b[ROOM], y[ROOM], want[ROOM];
    (void)state;
    compute(&d, IN);
    copy(d.x, TOKENS * IN, x);
    cut(d.w, OUT, IN, PART, IN, true, w);
    cut(d.b, 1, OUT, 1, PART, false, b);
    const support_call call = {
        "tsr_xla_linear_column",
        "mesh = \"tp=4\"",
        3,
        1,
        {{"f32", 2, {TOKENS, IN}, x}, {"f32", 2, {PART, IN}, w}, {"f32", 1, {PART}, b}, {"f32", 2, {TOKENS, PART}, y}}};
    support_check(support_run(&call, 1, RANKS, NULL, NULL));
    cut(d.y, TOKENS, OUT, TOKENS, PART, false, want);
    same("y", y, want, RANKS * TOKENS * PART);
}

static void column_parallel_backward_reduces_dx(void **state)
{
    enum { PART = OUT / RANKS };
    static dense d;
    static float x[ROOM], w[ROOM], dy[ROOM], dx[ROOM], dw[ROOM], db[ROOM], want[ROOM];
    (void)state;
    compute(&d, IN);
    copy(d.x, TOKENS * IN, x);
    cut(d.w, OUT, IN, PART, IN, true, w);
    cut(d.dy, TOKENS, OUT, TOKENS, PART, false, dy);
    const support_call call = {"tsr_xla_linear_column_backward",
                               "mesh = \"tp=4\"",
                               3,
                               3,
                               {{"f32", 2, {TOKENS, IN}, x},
                                {"f32", 2, {PART, IN}, w},
                                {"f32", 2, {TOKENS, PART}, dy},
                                {"f32", 2, {TOKENS, IN}, dx},
                                {"f32", 2, {PART, IN}, dw},
                                {"f32", 1, {PART}, db}}};
    support_check(support_run(&call, 1, RANKS, NULL, NULL));
    copy(d.dx, TOKENS * IN, want);
    same("dx", dx, want, RANKS * TOKENS * IN);
    cut(d.dw, OUT, IN, PART, IN, true, want);
    same("dw", dw, want, OUT * IN);
    same("db", db, d.db, OUT);
}

/* Seven input features over four ranks: 2, 2, 2 and 1, with padding. */
static void row_parallel_reduces_y_with_uneven_features(void **state)
{
    enum { SEVEN = 7, PART = 2 };
    static dense d;
    static float x[ROOM], w[ROOM], b[ROOM], y[ROOM], want[ROOM];
    (void)state;
    compute(&d, SEVEN);
    cut(d.x, TOKENS, SEVEN, TOKENS, PART, false, x);
    cut(d.w, OUT, SEVEN, OUT, PART, false, w);
    /* Padding is not read. */
    w[3 * OUT * PART + 1] = 1e30F;
    copy(d.b, OUT, b);
    const support_call call = {"tsr_xla_linear_row",
                               "mesh = \"tp=4\", x_shape = array<i64: 5, 7>, w_shape = array<i64: 12, 7>",
                               3,
                               1,
                               {{"f32", 2, {TOKENS, PART}, x},
                                {"f32", 2, {OUT, PART}, w},
                                {"f32", 1, {OUT}, b},
                                {"f32", 2, {TOKENS, OUT}, y}}};
    support_check(support_run(&call, 1, RANKS, NULL, NULL));
    copy(d.y, TOKENS * OUT, want);
    same("y", y, want, RANKS * TOKENS * OUT);
}

static void row_parallel_scatters_y_if_asked(void **state)
{
    enum { PART = IN / RANKS, LONG = 2 };
    static dense d;
    static float x[ROOM], w[ROOM], y[ROOM], want[ROOM], bare[TOKENS * OUT];
    (void)state;
    compute(&d, IN);
    cut(d.x, TOKENS, IN, TOKENS, PART, false, x);
    cut(d.w, OUT, IN, OUT, PART, false, w);
    const support_call call = {"tsr_xla_linear_row",
                               "mesh = \"tp=4\", y = \"S(0)\"",
                               2,
                               1,
                               {{"f32", 2, {TOKENS, PART}, x}, {"f32", 2, {OUT, PART}, w}, {"f32", 2, {LONG, OUT}, y}}};
    support_check(support_run(&call, 1, RANKS, NULL, NULL));
    for (int i = 0; i < TOKENS * OUT; i++)
        bare[i] = d.y[i] - d.b[i % OUT];
    cut(bare, TOKENS, OUT, LONG, OUT, true, want);
    same("y", y, want, RANKS * LONG * OUT);
}

static void row_parallel_backward_needs_nothing_of_others(void **state)
{
    enum { PART = IN / RANKS };
    static dense d;
    static float x[ROOM], w[ROOM], dy[ROOM], dx[ROOM], dw[ROOM], db[ROOM], want[ROOM];
    (void)state;
    compute(&d, IN);
    cut(d.x, TOKENS, IN, TOKENS, PART, false, x);
    cut(d.w, OUT, IN, OUT, PART, false, w);
    copy(d.dy, TOKENS * OUT, dy);
    const support_call call = {"tsr_xla_linear_row_backward",
                               "mesh = \"tp=4\"",
                               3,
                               3,
                               {{"f32", 2, {TOKENS, PART}, x},
                                {"f32", 2, {OUT, PART}, w},
                                {"f32", 2, {TOKENS, OUT}, dy},
                                {"f32", 2, {TOKENS, PART}, dx},
                                {"f32", 2, {OUT, PART}, dw},
                                {"f32", 1, {OUT}, db}}};
    support_check(support_run(&call, 1, RANKS, NULL, NULL));
    cut(d.dx, TOKENS, IN, TOKENS, PART, false, want);
    same("dx", dx, want, TOKENS * IN);
    cut(d.dw, OUT, IN, OUT, PART, false, want);
    same("dw", dw, want, OUT * IN);
    copy(d.db, OUT, want);
    same("db", db, want, RANKS * OUT);
}

/* Rank r has tokens of replica r / 2 and outputs of part r % 2; dw is summed over the replicas. */
static void layers_on_two_dims_reduce_weights_over_replicas(void **state)
{
    enum { HALF = 2, PART = OUT / 2 };
    static dense d;
    static float x[ROOM], w[ROOM], dy[ROOM], dx[ROOM], dw[ROOM], want[ROOM];
    (void)state;
    compute(&d, IN);
    memset(d.dx, 0, sizeof d.dx);
    memset(d.dw, 0, sizeof d.dw);
    for (int t = 0; t < 2 * HALF; t++)
        for (int o = 0; o < OUT; o++)
            for (int i = 0; i < IN; i++) {
                d.dx[t * IN + i] += d.dy[t * OUT + o] * d.w[o * IN + i];
                d.dw[o * IN + i] += d.dy[t * OUT + o] * d.x[t * IN + i];
            }
    for (int r = 0; r < RANKS; r++) {
        memcpy(x + r * HALF * IN, d.x + r / 2 * HALF * IN, HALF * IN * sizeof *x);
        memcpy(want + r * HALF * IN, d.dx + r / 2 * HALF * IN, HALF * IN * sizeof *x);
        memcpy(w + r * PART * IN, d.w + r % 2 * PART * IN, PART * IN * sizeof *w);
        for (int t = 0; t < HALF; t++)
            memcpy(dy + (r * HALF + t) * PART, d.dy + (r / 2 * HALF + t) * OUT + r % 2 * PART, PART * sizeof *dy);
    }
    const support_call call = {"tsr_xla_linear_column_backward",
                               "mesh = \"dp=2,tp=2\"",
                               3,
                               2,
                               {{"f32", 2, {HALF, IN}, x},
                                {"f32", 2, {PART, IN}, w},
                                {"f32", 2, {HALF, PART}, dy},
                                {"f32", 2, {HALF, IN}, dx},
                                {"f32", 2, {PART, IN}, dw}}};
    support_check(support_run(&call, 1, RANKS, NULL, NULL));
    same("dx", dx, want, RANKS * HALF * IN);
    for (int r = 0; r < RANKS; r++)
        same("dw", dw + r * PART * IN, d.dw + r % 2 * PART * IN, PART * IN);
}

static void layers_refuse_what_does_not_fit(void **state)
{
    static float any[ROOM];
    (void)state;
    const support_array x = {"f32", 2, {TOKENS, IN}, any}, w = {"f32", 2, {3, IN}, any},
                        y = {"f32", 2, {TOKENS, 3}, any};
    const support_call few = {"tsr_xla_linear_column", "mesh = \"4\"", 1, 1, {x, y}};
    support_refused(support_run(&few, 1, RANKS, NULL, NULL),
                    "1 operands and 1 results; operands are x, w and perhaps b");
    const support_call features = {"tsr_xla_linear_column", "mesh = \"4\"", 2, 1, {x, {"f32", 2, {3, IN - 1}, any}, y}};
    support_refused(support_run(&features, 1, RANKS, NULL, NULL), "7");
    const support_call shape = {"tsr_xla_linear_column", "mesh = \"4\"", 2, 1, {x, w, {"f32", 2, {TOKENS, 4}, any}}};
    support_refused(support_run(&shape, 1, RANKS, NULL, NULL),
                    "y is 5x4 on a device, but the longest part of its layout S(1) is 5x3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(column_parallel_needs_nothing_of_others),
        cmocka_unit_test(column_parallel_backward_reduces_dx),
        cmocka_unit_test(row_parallel_reduces_y_with_uneven_features),
        cmocka_unit_test(row_parallel_scatters_y_if_asked),
        cmocka_unit_test(row_parallel_backward_needs_nothing_of_others),
        cmocka_unit_test(layers_on_two_dims_reduce_weights_over_replicas),
        cmocka_unit_test(layers_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
