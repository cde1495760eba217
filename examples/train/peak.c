#include "peak.h"

#include <tessera/sys/status.h>

#include <string.h>
#include <time.h>

/* Rows and columns of the matrices, and how often they are multiplied. */
enum { SIZE = 768, TIMES = 4 };

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tsr_status compile(const tsr_mesh *mesh, tsr_dtype dtype, tsr_executable **out)
{
    tsr_program *p;
    const int64_t shape[] = {SIZE, SIZE};
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const tsr_value x = tsr_input(p, "x", mesh, dtype, 2, shape, NULL);
    const tsr_value w = tsr_input(p, "w", mesh, dtype, 2, shape, NULL);
    tsr_output(p, "y", tsr_op_linear(p, x, w, TSR_NONE), NULL);
    const tsr_status status = tsr_compile(p, NULL, out);
    tsr_program_destroy(p);
    return status;
}

/* Runs on memory that holds x, w, y and then the workspace; `*best` is in seconds. */
static tsr_status time_runs(tsr_executable *executable, tsr_comm *comm, tsr_dtype dtype, char *memory, double *best)
{
    const int64_t shape[] = {SIZE, SIZE};
    const size_t bytes = (size_t)SIZE * SIZE * tsr_dtype_bytes(dtype);
    const tsr_tensor in[] = {tsr_tensor_contiguous(memory, dtype, 2, shape),
                             tsr_tensor_contiguous(memory + bytes, dtype, 2, shape)};
    const tsr_tensor out = tsr_tensor_contiguous(memory + 2 * bytes, dtype, 2, shape);
    memset(memory, 0, 3 * bytes);
    for (int i = 0; i < TIMES; i++) {
        TSR_TRY(tsr_comm_barrier(comm));
        const double start = seconds_now();
        TSR_TRY(tsr_executable_run(executable, comm, in, &out, memory + 3 * bytes,
                                   tsr_executable_workspace_bytes(executable), NULL));
        const double taken = seconds_now() - start;
        *best = i == 0 || taken < *best ? taken : *best;
    }
    return TSR_OK;
}

static tsr_status measure(tsr_executable *executable, tsr_comm *comm, tsr_dtype dtype, double *rate)
{
    void *memory;
    double best = 0;
    TSR_TRY(tsr_executable_prepare(executable, comm));
    const size_t bytes = 3 * (size_t)SIZE * SIZE * tsr_dtype_bytes(dtype) + tsr_executable_workspace_bytes(executable);
    TSR_TRY(tsr_comm_alloc(comm, bytes, &memory));
    const tsr_status status = time_runs(executable, comm, dtype, memory, &best);
    tsr_comm_free(comm, memory, bytes);
    *rate = best > 0 ? 2.0 * SIZE * SIZE * SIZE / best : 0;
    return status;
}

tsr_status train_peak(tsr_comm *comm, const tsr_mesh *mesh, tsr_dtype dtype, double *rate)
{
    tsr_executable *executable;
    double own = 0;
    TSR_TRY(compile(mesh, dtype, &executable));
    const tsr_status status = measure(executable, comm, dtype, &own);
    tsr_executable_destroy(executable);
    TSR_TRY(status);
    TSR_TRY(tsr_comm_all_reduce(comm, &own, &own, 1, TSR_F64, TSR_SUM, tsr_device_host(), NULL));
    *rate = own;
    return TSR_OK;
}
