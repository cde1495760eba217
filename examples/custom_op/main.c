/* Two ops of the program's own, on four rank threads: one by elements, with a gradient, and one
 * whose ranks meet inside. */
#include "rows.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <stdio.h>

enum { ROWS = 3, COLUMNS = 10 };

static void show(tsr_comm *comm, const char *what, const tsr_dtensor *x)
{
    char placements[64];
    tsr_layout_print(tsr_dtensor_layout(x), placements, sizeof placements);
    if (tsr_comm_rank(comm) == 0)
        printf("%s is %s\n", what, placements);
}

/* Prints the first row of a tensor, which all ranks gather. */
static tsr_status print_row(tsr_comm *comm, const tsr_dtensor *x)
{
    tsr_dtensor *full;
    TSR_TRY(tsr_full_tensor(x, &full));
    const float *const values = tsr_dtensor_to_local(full).data;
    for (int i = 0; i < COLUMNS && tsr_comm_rank(comm) == 0; i++)
        printf("%g%s", values[i], i + 1 < COLUMNS ? " " : "\n");
    tsr_dtensor_destroy(full);
    return TSR_OK;
}

static tsr_status compute(tsr_comm *comm, const tsr_dtensor *x, const tsr_op *relu_squared, const tsr_op *unit)
{
    tsr_dtensor *y = NULL, *dx = NULL, *u = NULL;
    tsr_dtensor **const wanted[] = {&dx};
    tsr_status status = tsr_op_call(relu_squared, 0, NULL, &x, &y);
    if (status == TSR_OK)
        status = tsr_op_backward(relu_squared, 0, NULL, &x, y, wanted);
    if (status == TSR_OK)
        status = tsr_op_call(unit, 0, NULL, &x, &u);
    if (status == TSR_OK) {
        show(comm, "relu_squared(x)", y);
        show(comm, "its gradient", dx);
        show(comm, "unit(x)", u);
        status = print_row(comm, u);
    }
    tsr_dtensor_destroy(u);
    tsr_dtensor_destroy(dx);
    tsr_dtensor_destroy(y);
    return status;
}

static tsr_status run(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    float values[ROWS * COLUMNS];
    const tsr_op *relu_squared, *unit;
    tsr_mesh *mesh;
    tsr_dtensor *x;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = i % 2 ? 3 : 1;
    TSR_TRY(tsr_op_find(arg, "relu_squared", &relu_squared));
    TSR_TRY(tsr_op_find(arg, "unit", &unit));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=4", &mesh));
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    tsr_status status = tsr_distribute(&global, mesh, "S(1)", &x);
    if (status == TSR_OK) {
        status = compute(comm, x, relu_squared, unit);
        tsr_dtensor_destroy(x);
    }
    tsr_mesh_destroy(mesh);
    return status;
}

int main(void)
{
    const tsr_op *const rows[] = {&example_relu_squared, &example_unit};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context;
    options.ops = rows;
    options.op_count = sizeof rows / sizeof rows[0];
    tsr_status status = tsr_context_create(&options, &context);
    if (status == TSR_OK) {
        tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
        threads.context = context;
        status = tsr_threads_run(4, run, context, &threads);
        tsr_context_destroy(context);
    }
    if (status != TSR_OK)
        fprintf(stderr, "%s\n", tsr_status_message());
    return status != TSR_OK;
}
