/* The cross-entropy, compared with plain loops in f64: values, gradients, layouts and errors. */
#include "layers.h"
#include "loss_options.h"
#include "wholes.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MOST (8 * 3000)

/* A loss to be computed: logits (rows, classes) on a mesh. */
typedef struct loss_case {
    const char *mesh, *logits, *targets, *wanted; /* wanted: the placements of the reduced loss */
    int64_t rows, classes;
    tsr_dtype dtype;
    tsr_cross_entropy_options options;
    double tolerance;
} loss_case;

/* Uneven and empty shards among them: 3 classes over 4 ranks, 5 rows over 3. The longest rows pass
 * several blocks of the kernel. */
static const loss_case cases[] = {
    {"1", "R", "R", "R", 5, 7, TSR_F64, MEAN, 1e-14},
    {"1", "R", "R", "R", 3, 2500, TSR_F32, SUM, 2e-6},
    {"2", "S(1)", "R", "R", 5, 7, TSR_F64, MEAN, 1e-14},
    {"2", "S(1)", "R", "P", 5, 7, TSR_F64, STATIC_MEAN, 1e-14},
    {"2", "S(1)", "R", "P", 5, 7, TSR_F64, SUM, 1e-14},
    {"2", "S(1)", "R", "R", 5, 7, TSR_F64, NONE, 1e-14},
    {"2", "S(1)", "R", "R", 5, 7, TSR_F64, SMOOTH_NONE, 1e-14},
    {"2", "S(1)", "R", "R", 4, 2999, TSR_F32, SMOOTH_MEAN, 2e-6},
    {"3", "S(0)", "S(0)", "R", 5, 7, TSR_F64, MEAN, 1e-14},
    {"3", "S(0)", "S(0)", "P", 5, 7, TSR_F64, STATIC_MEAN, 1e-14},
    {"3", "S(0)", "S(0)", "S(0)", 5, 7, TSR_F64, SMOOTH_NONE, 1e-14},
    {"4", "S(1)", "R", "R", 5, 3, TSR_F64, SMOOTH_MEAN, 1e-14},
    {"4", "S(1;unit=2)", "R", "P", 5, 13, TSR_F32, SMOOTH_SUM, 2e-6},
    {"2x2", "S(0),S(1)", "S(0),R", "R", 5, 7, TSR_F64, SMOOTH_MEAN, 1e-14},
    {"2x2", "S(1),S(1;interleave=2)", "R,R", "P,P", 5, 12, TSR_F64, SMOOTH_SUM, 1e-14},
    {"3x2", "S(0),S(1)", "S(0),R", "P,P", 2, 9, TSR_F64, SUM, 1e-14},
    {"2x3", "R,S(1)", "R,R", "R,R", 2, 9, TSR_F64, MEAN, 1e-14},
    {"2", "S(1)", "R", "R", 6, 33, TSR_F16, MEAN, 2e-3},
    {"2", "S(1)", "R", "R", 6, 33, TSR_BF16, NONE, 2e-2},
};

/* The target of a row; every third one is ignored, or may be: -100 or 2, as options say. */
static int64_t draw_target(const loss_case *c, int64_t row)
{
    const int64_t ignored = c->options.ignore_index;
    if (row % 3 == 1 && ignored != TSR_IGNORE_NONE)
        return ignored;
    return (row * 5 + 3) % c->classes;
}

/* What plain loops compute: losses, and slopes for gradients of 1. */
typedef struct reference {
    double losses[8], slopes[MOST], reduced;
} reference;

static void refer_row(const loss_case *c, const double *x, int64_t row, reference *out)
{
    double largest = -INFINITY, sum = 0, total = 0;
    const double e = c->options.label_smoothing, n = (double)c->classes;
    const int64_t target = draw_target(c, row);
    const bool kept = target != c->options.ignore_index;
    for (int64_t i = 0; i < c->classes; i++)
        largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = 0; i < c->classes; i++) {
        sum += exp(x[i] - largest);
        total += x[i];
    }
    const double level = largest + log(sum);
    out->losses[row] = kept ? (1 - e) * (level - x[target]) + e * (level - total / n) : 0;
    for (int64_t i = 0; i < c->classes; i++)
        out->slopes[row * c->classes + i] = kept ? exp(x[i] - level) - (1 - e) * (i == target) - e / n : 0;
}

static void refer(const loss_case *c, const double *x, reference *out)
{
    double kept = 0;
    out->reduced = 0;
    for (int64_t row = 0; row < c->rows; row++) {
        refer_row(c, x + row * c->classes, row, out);
        out->reduced += out->losses[row];
        kept += draw_target(c, row) != c->options.ignore_index;
    }
    const double divisor = c->options.reduction == TSR_LOSS_MEAN ? kept : 1;
    out->reduced /= divisor;
    for (int64_t i = 0; i < c->rows * c->classes; i++)
        out->slopes[i] /= divisor;
}

static tsr_status check_loss(const loss_case *c, const reference *wanted, const tsr_dtensor *loss)
{
    double got[8];
    char placements[64];
    tsr_layout_print(tsr_dtensor_layout(loss), placements, sizeof placements);
    if (tsr_layout_ndim(tsr_dtensor_layout(loss)) == 0 && strcmp(placements, c->wanted) != 0 && c->wanted[1])
        return tsr_status_set(TSR_ERROR_INTERNAL, "the loss is %s instead of %s", placements, c->wanted);
    TSR_TRY(support_read(loss, got));
    if (c->options.reduction != TSR_LOSS_NONE)
        return support_expect("loss", 0, got[0], wanted->reduced, c->tolerance);
    for (int64_t row = 0; row < c->rows; row++)
        TSR_TRY(support_expect("loss", row, got[row], wanted->losses[row], c->tolerance));
    return TSR_OK;
}

static tsr_status check_case(const loss_case *c, const tsr_mesh *mesh)
{
    static _Thread_local double x[MOST], slopes[MOST];
    static _Thread_local reference wanted;
    double ids[8];
    const int64_t shape[] = {c->rows, c->classes};
    tsr_dtensor *logits, *targets, *loss, *dout, *dlogits;
    for (int64_t i = 0; i < c->rows * c->classes; i++)
        x[i] = support_draw(i);
    for (int64_t row = 0; row < c->rows; row++)
        ids[row] = (double)draw_target(c, row);
    TSR_TRY(support_make(mesh, c->logits, c->dtype, 2, shape, x, &logits));
    TSR_TRY(support_make(mesh, c->targets, c->classes % 2 ? TSR_I64 : TSR_I32, 1, shape, ids, &targets));
    TSR_TRY(support_read(logits, x));
    refer(c, x, &wanted);
    TSR_TRY(tsr_cross_entropy(logits, targets, &c->options, &loss));
    TSR_TRY(check_loss(c, &wanted, loss));
    TSR_TRY(support_make_ones(loss, &dout));
    TSR_TRY(tsr_cross_entropy_backward(logits, targets, &c->options, dout, &dlogits));
    if (!tsr_layout_equal(tsr_dtensor_layout(dlogits), tsr_dtensor_layout(logits)))
        return tsr_status_set(TSR_ERROR_INTERNAL, "dlogits is not cut as logits are");
    TSR_TRY(support_read(dlogits, slopes));
    for (int64_t i = 0; i < c->rows * c->classes; i++)
        TSR_TRY(support_expect("slope", i, slopes[i], wanted.slopes[i], c->tolerance));
    tsr_dtensor *const all[] = {logits, targets, loss, dout, dlogits};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    return TSR_OK;
}

static tsr_status run_case(tsr_comm *comm, void *arg)
{
    const loss_case *const c = arg;
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, c->mesh, &mesh));
    const tsr_status status = check_case(c, mesh);
    tsr_mesh_destroy(mesh);
    return status;
}

static void losses_and_slopes_are_those_of_plain_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (tsr_threads_run(support_count_ranks(cases[i].mesh), run_case, (void *)&cases[i], NULL) != TSR_OK)
            fail_msg("case %zu: %s", i, tsr_status_message());
    }
}

enum { MEAN_ROWS = 4, MEAN_CLASSES = 5 };

/* The mean, with a row that is ignored and label smoothing, of logits that are cut. */
static tsr_status compute_mean(const tsr_mesh *mesh, const double *x, const tsr_dtensor *targets, double *out)
{
    const tsr_cross_entropy_options options = SMOOTH_MEAN;
    const int64_t shape[] = {MEAN_ROWS, MEAN_CLASSES};
    tsr_dtensor *logits, *loss;
    TSR_TRY(support_make(mesh, "S(1)", TSR_F64, 2, shape, x, &logits));
    TSR_TRY(tsr_cross_entropy(logits, targets, &options, &loss));
    *out = *(const double *)tsr_dtensor_to_local(loss).data;
    tsr_dtensor_destroy(loss);
    tsr_dtensor_destroy(logits);
    return TSR_OK;
}

/* Central differences with steps h = 2^-17 are off by some h^2 / 6 and the rounding of losses, some
 * 2^-51, divided by h: together below 2^-33. */
static tsr_status take_differences(tsr_comm *comm, void *arg)
{
    const double ids[MEAN_ROWS] = {1, -100, 4, 0}, step = 0x1p-17;
    const tsr_cross_entropy_options options = SMOOTH_MEAN;
    const int64_t shape[] = {MEAN_ROWS, MEAN_CLASSES};
    double x[MEAN_ROWS * MEAN_CLASSES], slopes[MEAN_ROWS * MEAN_CLASSES], above, below;
    tsr_mesh *mesh;
    tsr_dtensor *logits, *targets, *loss, *dout, *dlogits;
    (void)arg;
    for (int i = 0; i < MEAN_ROWS * MEAN_CLASSES; i++)
        x[i] = support_draw(i) / 4;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_make(mesh, "S(1)", TSR_F64, 2, shape, x, &logits));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 1, shape, ids, &targets));
    TSR_TRY(tsr_cross_entropy(logits, targets, &options, &loss));
    TSR_TRY(support_make_ones(loss, &dout));
    TSR_TRY(tsr_cross_entropy_backward(logits, targets, &options, dout, &dlogits));
    TSR_TRY(support_read(dlogits, slopes));
    for (int i = 0; i < MEAN_ROWS * MEAN_CLASSES; i++) {
        const double whole = x[i];
        x[i] = whole + step;
        TSR_TRY(compute_mean(mesh, x, targets, &above));
        x[i] = whole - step;
        TSR_TRY(compute_mean(mesh, x, targets, &below));
        x[i] = whole;
        TSR_TRY(support_expect("slope", i, slopes[i], (above - below) / (2 * step), 0x1p-33));
    }
    tsr_dtensor *const all[] = {logits, targets, loss, dout, dlogits};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void slopes_are_what_losses_differ_by(void **state)
{
    (void)state;
    layers_run(2, take_differences, NULL);
}

enum { BIT_ROWS = 2, BIT_CLASSES = 1500 };

/* A loss and slopes. */
typedef struct bits {
    float loss, slopes[BIT_ROWS * BIT_CLASSES];
} bits;

static tsr_status compute_bits(tsr_comm *comm, void *arg)
{
    bits *const out = arg;
    static float x[BIT_ROWS * BIT_CLASSES];
    const int64_t shape[] = {BIT_ROWS, BIT_CLASSES}, ids[] = {4, BIT_CLASSES - 1};
    tsr_mesh *mesh;
    tsr_dtensor *logits, *targets, *loss, *dout, *dlogits;
    for (int i = 0; i < BIT_ROWS * BIT_CLASSES; i++)
        x[i] = (float)support_draw(i);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    const tsr_tensor all = tsr_tensor_contiguous(x, TSR_F32, 2, shape),
                     rows = tsr_tensor_contiguous((void *)ids, TSR_I64, 1, shape);
    TSR_TRY(tsr_distribute(&all, mesh, "R", &logits));
    TSR_TRY(tsr_distribute(&rows, mesh, "R", &targets));
    TSR_TRY(tsr_cross_entropy(logits, targets, NULL, &loss));
    TSR_TRY(support_make_ones(loss, &dout));
    TSR_TRY(tsr_cross_entropy_backward(logits, targets, NULL, dout, &dlogits));
    memcpy(&out->loss, tsr_dtensor_to_local(loss).data, sizeof out->loss);
    memcpy(out->slopes, tsr_dtensor_to_local(dlogits).data, sizeof out->slopes);
    tsr_dtensor *const made[] = {logits, targets, loss, dout, dlogits};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(made[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void all_instructions_give_the_same_bits(void **state)
{
    static bits all[3];
    (void)state;
    layers_run_sets(compute_bits, all, sizeof all[0]);
}

/* Logits that are far apart, infinite or no numbers. */
static tsr_status compute_extremes(tsr_comm *comm, void *arg)
{
    static const struct {
        double logits[4];
        double loss; /* of target 1 */
    } rows[] = {
        {{1e4, 0, -1e4, 0}, 1e4},
        {{-1e30, 0, -1e30, -1e30}, 0},
        {{-INFINITY, 2, -INFINITY, 2}, 0.69314718055994530942},
        {{-INFINITY, 2, -INFINITY, -INFINITY}, 0},
        {{0, -INFINITY, 0, 0}, INFINITY},
        {{NAN, 2, 1, 1}, NAN},
        {{0, 2, 1, NAN}, NAN},
        {{INFINITY, 2, 1, 1}, NAN},
        {{-INFINITY, -INFINITY, -INFINITY, -INFINITY}, NAN},
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    const tsr_cross_entropy_options options = NONE;
    const int64_t shape[] = {ROWS, 4};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    for (int dtype = TSR_F64; dtype <= TSR_F32; dtype++) {
        double values[ROWS * 4], ids[ROWS], got[ROWS];
        tsr_dtensor *logits, *targets, *loss;
        for (int i = 0; i < ROWS; i++) {
            memcpy(values + (size_t)i * 4, rows[i].logits, sizeof rows[i].logits);
            ids[i] = 1;
        }
        TSR_TRY(support_make(mesh, "S(1)", (tsr_dtype)dtype, 2, shape, values, &logits));
        TSR_TRY(support_make(mesh, "R", TSR_I32, 1, shape, ids, &targets));
        TSR_TRY(tsr_cross_entropy(logits, targets, &options, &loss));
        TSR_TRY(support_read(loss, got));
        for (int i = 0; i < ROWS; i++) {
            const bool same = got[i] == rows[i].loss || (got[i] != got[i] && rows[i].loss != rows[i].loss);
            TSR_TRY(same ? TSR_OK : support_expect("loss", i, got[i], rows[i].loss, 1e-7));
        }
        tsr_dtensor_destroy(loss);
        tsr_dtensor_destroy(targets);
        tsr_dtensor_destroy(logits);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void extreme_logits_have_the_losses_that_limits_have(void **state)
{
    (void)state;
    layers_run(2, compute_extremes, NULL);
}

/* Logits whose classes are 3 elements apart, into a loss and slopes that exist: those of `logits`
 * itself. */
static tsr_status compute_strided(tsr_comm *comm, void *arg)
{
    double memory[2 * 4 * 3], loss_memory, plain[8], got[8];
    const int64_t shape[] = {2, 4}, ids[] = {3, 0};
    tsr_mesh *mesh;
    tsr_layout *layout, *scalar;
    tsr_dtensor *apart, *whole, *targets, *loss, *wanted, *dout, *dlogits;
    (void)arg;
    for (int i = 0; i < 24; i++)
        memory[i] = support_draw(i);
    for (int i = 0; i < 8; i++)
        plain[i] = memory[(size_t)i * 3];
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(support_make(mesh, "R", TSR_F64, 2, shape, plain, &whole));
    TSR_TRY(tsr_layout_create(mesh, (const tsr_placement[]){tsr_replicate()}, 2, shape, TSR_F64, &layout));
    TSR_TRY(tsr_layout_create(mesh, (const tsr_placement[]){tsr_replicate()}, 0, NULL, TSR_F64, &scalar));
    tsr_tensor local = tsr_tensor_contiguous(memory, TSR_F64, 2, shape);
    local.strides[0] = 12;
    local.strides[1] = 3;
    const tsr_tensor number = tsr_tensor_contiguous(&loss_memory, TSR_F64, 0, NULL),
                     rows = tsr_tensor_contiguous((void *)ids, TSR_I64, 1, shape);
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &apart));
    TSR_TRY(tsr_dtensor_from_local(&number, scalar, NULL, &loss));
    TSR_TRY(tsr_distribute(&rows, mesh, "R", &targets));
    TSR_TRY(tsr_cross_entropy_into(apart, targets, NULL, loss));
    TSR_TRY(tsr_cross_entropy(whole, targets, NULL, &wanted));
    TSR_TRY(support_expect("loss", 0, loss_memory, *(const double *)tsr_dtensor_to_local(wanted).data, 0));
    TSR_TRY(support_make_ones(loss, &dout));
    TSR_TRY(tsr_cross_entropy_backward(whole, targets, NULL, dout, &dlogits));
    const tsr_op *op;
    TSR_TRY(tsr_op_find(NULL, "cross_entropy_gradient", &op));
    TSR_TRY(tsr_op_call_into(op, 0, NULL, (const tsr_dtensor *const[]){dout, apart, targets},
                             (tsr_dtensor *const[]){apart}));
    TSR_TRY(support_read(dlogits, got));
    for (int i = 0; i < 8; i++)
        TSR_TRY(support_expect("slope", i, memory[(size_t)i * 3], got[i], 0));
    TSR_TRY(support_expect("gap", 1, memory[1], support_draw(1), 0));
    tsr_dtensor *const all[] = {apart, whole, targets, loss, wanted, dout, dlogits};
    for (int i = 0; i < 7; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_layout_destroy(layout);
    tsr_layout_destroy(scalar);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void logits_and_slopes_have_any_strides(void **state)
{
    (void)state;
    layers_run(1, compute_strided, NULL);
}

/* The sentence of each rank for targets of which one, on mesh dim 0's last part, is no class. */
static tsr_status refuse_target(tsr_comm *comm, void *arg)
{
    char *const sentence = (char *)arg + (ptrdiff_t)256 * tsr_comm_rank(comm);
    double x[4 * 6] = {0}, ids[] = {1, -100, 0, 6};
    const int64_t shape[] = {4, 6};
    tsr_mesh *mesh;
    tsr_dtensor *logits, *targets, *loss;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2x2", &mesh));
    TSR_TRY(support_make(mesh, "S(0),S(1)", TSR_F32, 2, shape, x, &logits));
    TSR_TRY(support_make(mesh, "S(0),R", TSR_I64, 1, shape, ids, &targets));
    const tsr_status status = tsr_cross_entropy(logits, targets, NULL, &loss);
    snprintf(sentence, 256, "%s", status == TSR_OK ? "" : tsr_status_message());
    const bool own = tsr_comm_rank(comm) >= 2;
    tsr_dtensor_destroy(targets);
    tsr_dtensor_destroy(logits);
    tsr_mesh_destroy(mesh);
    return status == (own ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER) ? TSR_OK : TSR_ERROR_INTERNAL;
}

static void all_ranks_that_meet_hear_of_a_target_that_is_no_class(void **state)
{
    static char sentences[4][256];
    (void)state;
    layers_run(4, refuse_target, sentences);
    assert_string_equal(sentences[2], "cross_entropy: targets[3] is 6 on rank 2, but must be at least 0 and below 6, "
                                      "or -100, which is ignored");
    assert_non_null(strstr(sentences[3], "targets[3] is 6 on rank 3"));
    assert_string_equal(sentences[0], "rank 2 failed: cross_entropy: targets[3] is 6 on rank 2, but must be at least 0 "
                                      "and below 6, or -100, which is ignored");
    assert_string_equal(sentences[1], sentences[0]);
}

/* Arguments that a loss does not take, without data. */
static tsr_status refuse_arguments(tsr_comm *comm, void *arg)
{
    double x[6] = {0}, ids[2] = {0};
    const int64_t shape[] = {2, 3};
    tsr_mesh *mesh;
    tsr_dtensor *logits, *targets, *wide, *terms, *loss;
    tsr_cross_entropy_options options = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 2, shape, x, &logits));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 1, shape, ids, &targets));
    TSR_TRY(tsr_cast(logits, TSR_F64, &wide));
    TSR_TRY(tsr_redistribute_to(wide, "P", &terms));
    TSR_TRY(layer_expect_refusal(tsr_cross_entropy(targets, targets, NULL, &loss),
                                 "tsr_cross_entropy: logits is i64, but cross_entropy takes f64, f32, f16 and bf16"));
    TSR_TRY(layer_expect_refusal(tsr_cross_entropy(logits, logits, NULL, &loss),
                                 "tsr_cross_entropy: targets is f32, but cross_entropy takes i64 and i32"));
    TSR_TRY(layer_expect_refusal(
        tsr_cross_entropy(terms, targets, NULL, &loss),
        "tsr_cross_entropy: logits is Partial(sum) on mesh dim tp, which cross_entropy does not pass on: its "
        "terms must be reduced first; redistribute logits from \"P\" to \"R\""));
    options.label_smoothing = 1.5;
    TSR_TRY(layer_expect_refusal(tsr_cross_entropy(logits, targets, &options, &loss),
                                 "tsr_cross_entropy: label_smoothing is 1.5, but must be from 0 to 1"));
    options.label_smoothing = 0;
    options.reduction = (tsr_loss_reduction)3;
    TSR_TRY(layer_expect_refusal(tsr_cross_entropy(logits, targets, &options, &loss),
                                 "tsr_cross_entropy: reduction is 3, but must be a tsr_loss_reduction"));
    tsr_dtensor_destroy(terms);
    tsr_dtensor_destroy(wide);
    tsr_dtensor_destroy(targets);
    tsr_dtensor_destroy(logits);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void wrong_arguments_are_refused_in_words(void **state)
{
    (void)state;
    layers_run(2, refuse_arguments, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_slopes_are_those_of_plain_loops),
        cmocka_unit_test(slopes_are_what_losses_differ_by),
        cmocka_unit_test(all_instructions_give_the_same_bits),
        cmocka_unit_test(extreme_logits_have_the_losses_that_limits_have),
        cmocka_unit_test(logits_and_slopes_have_any_strides),
        cmocka_unit_test(all_ranks_that_meet_hear_of_a_target_that_is_no_class),
        cmocka_unit_test(wrong_arguments_are_refused_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
