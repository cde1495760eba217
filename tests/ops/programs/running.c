#include "running.h"

#include "wholes.h"

#include <stdlib.h>
#include <string.h>

/* The most values of a whole tensor. */
#define MOST 4096

double whole_value(int seed, int64_t i)
{
    return (double)((i * 7 + seed * 5 + i / 3) % 9 - 4);
}

tsr_status whole_make(const tsr_layout *layout, const tsr_mesh *mesh, int seed, int64_t limit, tsr_dtensor **out)
{
    double values[MOST];
    float narrow[MOST];
    int64_t ids[MOST];
    char placements[256];
    int64_t count = 1;
    for (int dim = 0; dim < tsr_layout_ndim(layout); dim++)
        count *= tsr_layout_shape(layout)[dim];
    EXPECT(count <= MOST, "the tensor has %lld elements", (long long)count);
    const tsr_dtype dtype = tsr_layout_dtype(layout);
    for (int64_t i = 0; i < count; i++) {
        values[i] = whole_value(seed, i);
        narrow[i] = (float)values[i];
        ids[i] = limit ? (i * 5 + seed) % limit : 0;
    }
    tsr_layout_print(layout, placements, sizeof placements);
    return support_distribute(mesh, placements, dtype, tsr_layout_ndim(layout), tsr_layout_shape(layout),
                              dtype == TSR_I64   ? (const void *)ids
                              : dtype == TSR_F64 ? (const void *)values
                                                 : (const void *)narrow,
                              out);
}

/* The layout over the mesh with a communicator. */
static tsr_status open_layout(const tsr_layout *layout, const tsr_mesh *mesh, tsr_layout **out)
{
    return tsr_layout_create(mesh, tsr_layout_placements(layout), tsr_layout_ndim(layout), tsr_layout_shape(layout),
                             tsr_layout_dtype(layout), out);
}

/* Gathers an output's values. */
static tsr_status collect(const tsr_dtensor *y, ran *out)
{
    int64_t count = 1;
    const tsr_layout *const layout = tsr_dtensor_layout(y);
    for (int dim = 0; dim < tsr_layout_ndim(layout); dim++)
        count *= tsr_layout_shape(layout)[dim];
    EXPECT(out->count + (size_t)count <= WHOLE_ROOM, "there is no room for outputs");
    TSR_TRY(support_read(y, out->values + out->count));
    out->count += (size_t)count;
    return TSR_OK;
}

static tsr_status run_once(tsr_executable *x, tsr_comm *comm, const tsr_mesh *mesh, tsr_dtensor *const *given,
                           void *workspace, ran *out)
{
    tsr_tensor inputs[16], outputs[16];
    tsr_dtensor *made[16];
    const size_t input_count = tsr_executable_input_count(x), output_count = tsr_executable_output_count(x);
    for (size_t i = 0; i < input_count; i++)
        inputs[i] = tsr_dtensor_to_local(given[i]);
    for (size_t i = 0; i < output_count; i++) {
        tsr_layout *layout;
        TSR_TRY(open_layout(tsr_executable_output_layout(x, i), mesh, &layout));
        TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made[i]));
        tsr_layout_destroy(layout);
        outputs[i] = tsr_dtensor_to_local(made[i]);
    }
    TSR_TRY(tsr_executable_run(x, comm, inputs, outputs, workspace, tsr_executable_workspace_bytes(x), NULL));
    for (size_t i = 0; i < output_count; i++) {
        TSR_TRY(collect(made[i], out));
        tsr_dtensor_destroy(made[i]);
    }
    return TSR_OK;
}

/* Makes inputs, and binds parameters. */
static tsr_status give(const tsr_program *program, tsr_executable *x, const tsr_mesh *mesh, int64_t limit,
                       tsr_dtensor **given)
{
    size_t at = 0;
    int seed = 0;
    for (tsr_value v = 0; tsr_value_layout(program, v); v++) {
        tsr_dtensor *made;
        const char *const name = tsr_value_name(program, v);
        if (!name)
            continue;
        TSR_TRY(whole_make(tsr_value_layout(program, v), mesh, ++seed, limit, &made));
        if (at < tsr_executable_input_count(x) &&
            tsr_layout_equal(tsr_executable_input_layout(x, at), tsr_value_layout(program, v)) && name[0] != 'w') {
            given[at++] = made;
            continue;
        }
        TSR_TRY(tsr_executable_bind(x, name, made));
        tsr_dtensor_destroy(made);
    }
    return TSR_OK;
}

tsr_status ran_run(tsr_comm *comm, const tsr_mesh *mesh, tsr_recorder *record, const void *arg, int64_t limit, ran *out)
{
    tsr_program *program;
    tsr_executable *x;
    tsr_dtensor *given[16] = {NULL};
    static _Thread_local ran twice;
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &program));
    record(program, mesh, arg);
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    options.rank = tsr_comm_rank(comm);
    tsr_status status = tsr_compile(program, &options, &x);
    if (status != TSR_OK) {
        tsr_program_destroy(program);
        return status;
    }
    TSR_TRY(give(program, x, mesh, limit, given));
    tsr_program_destroy(program);
    TSR_TRY(tsr_executable_prepare(x, comm));
    out->workspace = tsr_executable_workspace_bytes(x);
    void *const workspace = aligned_alloc(64, out->workspace + 64);
    out->count = twice.count = 0;
    status = run_once(x, comm, mesh, given, workspace, out);
    if (status == TSR_OK)
        status = run_once(x, comm, mesh, given, workspace, &twice);
    if (status == TSR_OK &&
        (out->count != twice.count || memcmp(out->values, twice.values, out->count * sizeof out->values[0]) != 0))
        status = tsr_status_set(TSR_ERROR_INTERNAL, "two runs gave different values");
    free(workspace);
    for (size_t i = 0; i < 16; i++)
        tsr_dtensor_destroy(given[i]);
    tsr_executable_destroy(x);
    return status;
}
