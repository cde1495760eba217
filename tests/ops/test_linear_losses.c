/* The cross-entropy of a last linear layer, compared with that of its logits. */
#include "layers.h"
#include "loss_options.h"
#include "wholes.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST 256

/* x (2, 3 rows, features) and w whose product are the logits. */
static tsr_status compare_fused(const tsr_mesh *mesh, const char *const *placements, tsr_dtype dtype,
                                const tsr_cross_entropy_options *options, double tolerance)
{
    enum { FEATURES = 5, CLASSES = 11, ROWS = 6 };
    double x[ROWS * FEATURES], w[CLASSES * FEATURES], ids[ROWS], fused[MOST], apart[MOST];
    const int64_t x_shape[] = {2, 3, FEATURES}, w_shape[] = {CLASSES, FEATURES};
    tsr_dtensor *xs, *ws, *targets, *logits, *loss, *other, *dout, *dlogits, *dx, *dw, *other_dx, *other_dw;
    for (int i = 0; i < ROWS * FEATURES; i++)
        x[i] = support_draw(i) / 4;
    for (int i = 0; i < CLASSES * FEATURES; i++)
        w[i] = support_draw(1000 + i) / 4;
    for (int i = 0; i < ROWS; i++)
        ids[i] = i == 4 && options->ignore_index == -100 ? -100 : i * 5 % CLASSES;
    TSR_TRY(support_make(mesh, placements[0], dtype, 3, x_shape, x, &xs));
    TSR_TRY(support_make(mesh, placements[1], dtype, 2, w_shape, w, &ws));
    TSR_TRY(support_make(mesh, placements[2], TSR_I64, 2, x_shape, ids, &targets));
    TSR_TRY(tsr_linear(xs, ws, NULL, NULL, &logits));
    TSR_TRY(tsr_linear_cross_entropy(xs, ws, targets, options, &loss));
    TSR_TRY(tsr_cross_entropy(logits, targets, options, &other));
    if (!tsr_layout_equal(tsr_dtensor_layout(loss), tsr_dtensor_layout(other)))
        return tsr_status_set(TSR_ERROR_INTERNAL, "both losses should have one layout");
    TSR_TRY(support_read(loss, fused));
    TSR_TRY(support_read(other, apart));
    for (int i = 0; i < (options->reduction == TSR_LOSS_NONE ? ROWS : 1); i++)
        TSR_TRY(support_expect("fused loss", i, fused[i], apart[i], tolerance));
    TSR_TRY(support_make_ones(loss, &dout));
    TSR_TRY(tsr_linear_cross_entropy_backward(xs, ws, targets, options, dout, &dx, &dw));
    TSR_TRY(tsr_cross_entropy_backward(logits, targets, options, dout, &dlogits));
    TSR_TRY(tsr_linear_backward(xs, ws, NULL, dlogits, NULL, NULL, NULL, &other_dx, &other_dw, NULL));
    TSR_TRY(support_read(dx, fused));
    TSR_TRY(support_read(other_dx, apart));
    for (int i = 0; i < ROWS * FEATURES; i++)
        TSR_TRY(support_expect("fused dx", i, fused[i], apart[i], tolerance));
    TSR_TRY(support_read(dw, fused));
    TSR_TRY(support_read(other_dw, apart));
    for (int i = 0; i < CLASSES * FEATURES; i++)
        TSR_TRY(support_expect("fused dw", i, fused[i], apart[i], tolerance));
    tsr_dtensor *const all[] = {xs, ws, targets, logits, loss, other, dout, dlogits, dx, dw, other_dx, other_dw};
    for (int i = 0; i < 12; i++)
        tsr_dtensor_destroy(all[i]);
    return TSR_OK;
}

static tsr_status compare_all_fused(tsr_comm *comm, void *arg)
{
    static const char *const placements[][3] = {
        {"R,R", "R,R", "R,R"}, {"R,R", "R,S(0)", "R,R"}, {"S(1),R", "R,R", "S(1),R"}, {"S(0),R", "R,S(0)", "S(0),R"}};
    static const tsr_cross_entropy_options options[] = {MEAN, SMOOTH_MEAN, STATIC_MEAN, SUM, NONE};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2x3", &mesh));
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 5; j++) {
            TSR_TRY(compare_fused(mesh, placements[i], TSR_F64, &options[j], 1e-13));
            TSR_TRY(compare_fused(mesh, placements[i], TSR_F32, &options[j], 1e-5));
            TSR_TRY(compare_fused(mesh, placements[i], TSR_BF16, &options[j], 0.03));
        }
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_fused_loss_is_that_of_a_linear_layer(void **state)
{
    (void)state;
    layers_run(6, compare_all_fused, NULL);
}

/* Rows that need several chunks: 16 rows of 2^19 classes are 64 MiB. */
static tsr_status compute_chunks(tsr_comm *comm, void *arg)
{
    enum { ROWS = 18, CLASSES = 1 << 19 };
    float x[ROWS];
    int64_t ids[ROWS];
    static float w[CLASSES];
    const int64_t x_shape[] = {ROWS, 1}, w_shape[] = {CLASSES, 1};
    tsr_mesh *mesh;
    tsr_dtensor *xs, *ws, *targets, *loss, *dout, *dx, *dw;
    double got[ROWS];
    (void)arg;
    for (int i = 0; i < ROWS; i++) {
        x[i] = i < 9 ? 0 : 1;
        ids[i] = i;
    }
    w[CLASSES - 1] = 1;
    const tsr_tensor all_x = tsr_tensor_contiguous(x, TSR_F32, 2, x_shape),
                     all_w = tsr_tensor_contiguous(w, TSR_F32, 2, w_shape),
                     all_ids = tsr_tensor_contiguous(ids, TSR_I64, 1, x_shape);
    const tsr_cross_entropy_options none = NONE, sum = SUM;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_distribute(&all_x, mesh, "R", &xs));
    TSR_TRY(tsr_distribute(&all_w, mesh, "R", &ws));
    TSR_TRY(tsr_distribute(&all_ids, mesh, "R", &targets));
    TSR_TRY(tsr_linear_cross_entropy(xs, ws, targets, &none, &loss));
    TSR_TRY(support_read(loss, got));
    for (int i = 0; i < ROWS; i++)
        TSR_TRY(support_expect("loss", i, got[i], log(CLASSES - 1 + exp(x[i])), 1e-6));
    tsr_dtensor_destroy(loss);
    TSR_TRY(tsr_linear_cross_entropy(xs, ws, targets, &sum, &loss));
    TSR_TRY(support_make_ones(loss, &dout));
    TSR_TRY(tsr_linear_cross_entropy_backward(xs, ws, targets, &sum, dout, &dx, &dw));
    TSR_TRY(support_read(dx, got));
    for (int i = 0; i < ROWS; i++)
        TSR_TRY(support_expect("dx", i, got[i], exp(x[i]) / (CLASSES - 1 + exp(x[i])), 1e-6));
    const float *const slopes = tsr_dtensor_to_local(dw).data;
    TSR_TRY(support_expect("dw", 10, slopes[10], 9 / (CLASSES - 1 + exp(1)) - 1, 1e-6));
    TSR_TRY(support_expect("dw", 3, slopes[3], 9 / (CLASSES - 1 + exp(1)), 1e-6));
    tsr_dtensor *const all[] = {xs, ws, targets, loss, dout, dx, dw};
    for (int i = 0; i < 7; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void chunks_of_rows_make_one_loss(void **state)
{
    (void)state;
    layers_run(1, compute_chunks, NULL);
}

/* The loss goes into a dtensor that exists, and gradients that are not wanted are not there. */
static tsr_status compute_into(tsr_comm *comm, void *arg)
{
    const double values[6] = {0}, ids[] = {2, 0};
    const int64_t x_shape[] = {2, 1}, w_shape[] = {3, 1};
    tsr_mesh *mesh;
    tsr_dtensor *x, *w, *targets, *loss, *dout, *dw;
    double got[3];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_make(mesh, "R", TSR_F64, 2, x_shape, values, &x));
    TSR_TRY(support_make(mesh, "S(0)", TSR_F64, 2, w_shape, values, &w));
    TSR_TRY(support_make(mesh, "R", TSR_I32, 1, x_shape, ids, &targets));
    TSR_TRY(support_make(mesh, "R", TSR_F64, 0, NULL, values, &loss));
    TSR_TRY(tsr_linear_cross_entropy_into(x, w, targets, NULL, loss));
    TSR_TRY(support_expect("loss", 0, *(const double *)tsr_dtensor_to_local(loss).data, log(3), 1e-15));
    TSR_TRY(support_make_ones(loss, &dout));
    TSR_TRY(tsr_linear_cross_entropy_backward(x, w, targets, NULL, dout, NULL, &dw));
    TSR_TRY(support_read(dw, got));
    TSR_TRY(support_expect("dw", 1, got[1], 0, 0));
    tsr_dtensor *const all[] = {x, w, targets, loss, dout, dw};
    for (int i = 0; i < 6; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void losses_go_where_the_caller_wants_them(void **state)
{
    (void)state;
    layers_run(2, compute_into, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fused_loss_is_that_of_a_linear_layer),
        cmocka_unit_test(chunks_of_rows_make_one_loss),
        cmocka_unit_test(losses_go_where_the_caller_wants_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
