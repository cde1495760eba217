/* Keys of random ops in programs: those that are recorded, and those that runs give. */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, COLUMNS = 6, COUNT = ROWS * COLUMNS };

static const int64_t shape[] = {ROWS, COLUMNS};

static tsr_status make_layout(const tsr_mesh *mesh, const char *placements, tsr_layout **out)
{
    return tsr_layout_parse(mesh, placements, 2, shape, TSR_F32, out);
}

/* Runs an executable, which is prepared; `given` and `made` are its inputs and outputs. */
static tsr_status run(tsr_executable *x, tsr_comm *comm, tsr_dtensor *const *given, tsr_dtensor *const *made)
{
    tsr_tensor inputs[4], outputs[4];
    for (size_t i = 0; i < tsr_executable_input_count(x); i++)
        inputs[i] = tsr_dtensor_to_local(given[i]);
    for (size_t i = 0; i < tsr_executable_output_count(x); i++)
        outputs[i] = tsr_dtensor_to_local(made[i]);
    const size_t bytes = tsr_executable_workspace_bytes(x);
    void *const workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    const tsr_status status = tsr_executable_run(x, comm, inputs, outputs, workspace, bytes, NULL);
    free(workspace);
    return status;
}

/* Compares the bits of local tensors of f32. */
static tsr_status expect_same(const char *what, const tsr_dtensor *a, const tsr_dtensor *b)
{
    int64_t count;
    const tsr_tensor x = tsr_dtensor_to_local(a), y = tsr_dtensor_to_local(b);
    TSR_TRY(tsr_tensor_count(&x, &count));
    EXPECT(!count || memcmp(x.data, y.data, (size_t)count * sizeof(float)) == 0, "%s: other bits", what);
    return TSR_OK;
}

static void on_ranks(int ranks, tsr_rank_main *main, void *arg)
{
    const tsr_status status = tsr_threads_run(ranks, main, arg, NULL);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
}

/* The words of a key that is recorded may be numbers that stand for lengths elsewhere. */
static tsr_status draw_with_lengths(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_program *p;
    tsr_executable *x;
    tsr_dtensor *made, *wanted;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make_layout(mesh, "R", &layout));
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    const int64_t first = tsr_length(p, "first", 3), second = tsr_length(p, "second", 4);
    const tsr_random_key key = tsr_random_key_philox((uint64_t)first, (uint64_t)second);
    tsr_output(p, "y", tsr_op_uniform(p, layout, &key, 0, 1), NULL);
    TSR_TRY(tsr_compile(p, NULL, &x));
    tsr_program_destroy(p);
    TSR_TRY(tsr_executable_prepare(x, comm));
    TSR_TRY(tsr_executable_set_length(x, "first", 2));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &made));
    TSR_TRY(run(x, comm, NULL, &made));
    TSR_TRY(tsr_uniform(layout, &key, 0, 1, &wanted));
    TSR_TRY(expect_same("a key of numbers that stand for lengths", made, wanted));
    tsr_dtensor_destroy(wanted);
    tsr_dtensor_destroy(made);
    tsr_executable_destroy(x);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void recorded_keys_are_no_lengths(void **state)
{
    (void)state;
    on_ranks(1, draw_with_lengths, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_keys_are_no_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
