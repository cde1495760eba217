/* Gradients of norms are slopes: against differences of plain loops in f64, on a mesh that cuts
 * rows and the normalized dim. */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Numbers between -1 and 1 without order. */
static double number(int64_t i)
{
    return (double)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 40) * 0x1p-23 - 1;
}

/* The sum of dout times a layer norm of f64 elements, on one rank or several. */
typedef struct slopes {
    double x[15], weight[5], bias[5], dout[15];
} slopes;

static double objective(const slopes *s, bool centred)
{
    double sum = 0;
    for (int i = 0; i < 15; i++) {
        double mean = 0, squares = 0;
        for (int j = 0; j < 5 && centred; j++)
            mean += s->x[i / 5 * 5 + j] / 5;
        for (int j = 0; j < 5; j++)
            squares += (s->x[i / 5 * 5 + j] - mean) * (s->x[i / 5 * 5 + j] - mean) / 5;
        sum +=
            s->dout[i] * ((s->x[i] - mean) / sqrt(squares + 0.1) * s->weight[i % 5] + (centred ? s->bias[i % 5] : 0));
    }
    return sum;
}

static tsr_status compare_slopes(const tsr_dtensor *gradient, slopes *s, double *at, int count, bool centred)
{
    tsr_dtensor *whole;
    TSR_TRY(tsr_full_tensor(gradient, &whole));
    for (int i = 0; i < count; i++) {
        const double was = at[i], got = ((const double *)tsr_dtensor_to_local(whole).data)[i];
        at[i] = was + 1e-6;
        const double above = objective(s, centred);
        at[i] = was - 1e-6;
        const double slope = (above - objective(s, centred)) / 2e-6;
        at[i] = was;
        TSR_TRY(support_expect_held(fabs(got - slope) <= 1e-8,
                                    centred ? "layer_norm's gradient" : "rms_norm's gradient", i, got, slope));
    }
    tsr_dtensor_destroy(whole);
    return TSR_OK;
}

static tsr_status distribute(const tsr_mesh *mesh, const char *placements, int ndim, double *values, tsr_dtensor **out)
{
    const int64_t shape[] = {3, 5};
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F64, ndim, shape + 2 - ndim);
    return tsr_distribute(&global, mesh, placements, out);
}

static tsr_status expect_layout(const tsr_dtensor *x, const char *wanted)
{
    char text[64];
    tsr_layout_print(tsr_dtensor_layout(x), text, sizeof text);
    return strcmp(text, wanted) == 0 ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%s is not %s", text, wanted);
}

static tsr_status check_gradients(tsr_comm *comm, void *arg)
{
    slopes s;
    tsr_mesh *mesh;
    tsr_dtensor *x, *weight, *bias, *dout, *dx, *dweight, *dbias, *dx_rms, *dweight_rms;
    (void)arg;
    for (int i = 0; i < 15; i++) {
        s.x[i] = number(i);
        s.dout[i] = number(i + 40);
        s.weight[i % 5] = number(i + 80);
        s.bias[i % 5] = number(i + 120);
    }
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2x2", &mesh));
    TSR_TRY(distribute(mesh, "S(0),S(1)", 2, s.x, &x));
    TSR_TRY(distribute(mesh, "S(0),S(1)", 2, s.dout, &dout));
    TSR_TRY(distribute(mesh, "R,S(0)", 1, s.weight, &weight));
    TSR_TRY(distribute(mesh, "R,S(0)", 1, s.bias, &bias));
    TSR_TRY(tsr_layer_norm_backward(x, weight, bias, 0.1, dout, &dx, &dweight, &dbias));
    TSR_TRY(tsr_rms_norm_backward(x, weight, 0.1, dout, &dx_rms, &dweight_rms));
    TSR_TRY(expect_layout(dx, "S(0),S(1)"));
    TSR_TRY(expect_layout(dweight, "P,S(0)"));
    TSR_TRY(expect_layout(dbias, "P,S(0)"));
    TSR_TRY(compare_slopes(dx, &s, s.x, 15, true));
    TSR_TRY(compare_slopes(dweight, &s, s.weight, 5, true));
    TSR_TRY(compare_slopes(dbias, &s, s.bias, 5, true));
    TSR_TRY(compare_slopes(dx_rms, &s, s.x, 15, false));
    TSR_TRY(compare_slopes(dweight_rms, &s, s.weight, 5, false));
    tsr_dtensor *const all[] = {x, weight, bias, dout, dx, dweight, dbias, dx_rms, dweight_rms};
    for (int i = 0; i < 9; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void gradients_are_slopes(void **state)
{
    (void)state;
    layers_run(4, check_gradients, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_slopes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
