/* DTensors on devices with streams: how they are made, moved and destroyed. Calls without a stream
 * work on the device's default stream. */
#include "fixture.h"
#include "oracle_random.h"
#include "support.h"

#include <tessera/dtensor.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 48, COLUMNS = 50, COUNT = ROWS * COLUMNS };

static float value_of(int64_t i)
{
    return (float)(i * 3 + 1);
}

/* Copies a local tensor to the host on the default stream, and waits. */
static tsr_status fetch(const fixture *f, const tsr_dtensor *x, float *out)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    int64_t count = 0;
    TSR_TRY(tsr_tensor_count(&local, &count));
    TSR_TRY(async_table()->copy(f->machine, local.device.index, out, local.data, (size_t)count * 4, TSR_COPY_TO_HOST,
                                NULL));
    return async_table()->stream_synchronize(f->machine, local.device.index, NULL);
}

/* Checks that a shard has the elements of its layout, each value_of() times `factor`. */
static tsr_status check_shard(const fixture *f, const tsr_dtensor *x, float factor)
{
    float got[COUNT];
    int64_t begin[2] = {0}, shape[2];
    const tsr_tensor local = tsr_dtensor_to_local(x);
    const tsr_layout *layout = tsr_dtensor_layout(x);
    int64_t coordinate[1] = {tsr_comm_rank(tsr_mesh_comm(tsr_layout_mesh(layout)))};
    TSR_TRY(tsr_layout_local(layout, coordinate, shape, begin));
    TSR_TRY(fetch(f, x, got));
    for (int64_t i = 0; i < local.shape[0]; i++)
        for (int64_t j = 0; j < local.shape[1]; j++)
            CHECK(got[i * local.shape[1] + j] == factor * value_of((begin[0] + i) * COLUMNS + begin[1] + j));
    return TSR_OK;
}

/* The global tensor on this rank's device, ready. */
static tsr_status make_global(const fixture *f, int rank, tsr_tensor *out)
{
    float values[COUNT];
    const int64_t shape[] = {ROWS, COLUMNS};
    for (int64_t i = 0; i < COUNT; i++)
        values[i] = value_of(i);
    *out = tsr_tensor_contiguous(NULL, TSR_F32, 2, shape);
    out->device = fixture_device(f, rank);
    TSR_TRY(fixture_alloc(f, rank, sizeof values, &out->data));
    TSR_TRY(fixture_put(f, rank, out->data, values, sizeof values));
    return fixture_wait(f, rank);
}

static tsr_status create(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm);
    const tsr_placement rows = tsr_shard(0), columns = tsr_shard(1);
    const float nothing[COUNT] = {0};
    tsr_mesh *mesh = NULL;
    tsr_tensor global;
    TSR_TRY(mesh_over(comm, "4", &mesh));
    for (int source = -1; source < 4; source++) {
        tsr_distribute_options options = TSR_DISTRIBUTE_OPTIONS_INIT;
        options.source_rank = source;
        tsr_dtensor *x = NULL, *y = NULL, *whole = NULL;
        TSR_TRY(make_global(f, rank, &global));
        TSR_TRY(tsr_distribute_tensor(&global, mesh, &rows, &options, &x));
        /* The input is overwritten on another stream than that of the distribution. */
        TSR_TRY(fixture_put(f, rank, global.data, nothing, sizeof nothing));
        TSR_TRY(check_shard(f, x, 1));
        TSR_TRY(tsr_redistribute(x, &columns, &y));
        TSR_TRY(check_shard(f, y, 1));
        TSR_TRY(tsr_full_tensor(y, &whole));
        TSR_TRY(check_shard(f, whole, 1));
        tsr_dtensor_destroy(whole);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(x);
        fixture_free(f, rank, global.data, sizeof nothing);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void dtensors_are_distributed_moved_and_gathered(void **state)
{
    (void)state;
    fixture_run(4, (async_options){.devices = 1}, create, NULL);
    fixture_run(4, (async_options){.devices = 3, .lazy = true}, create, NULL);
}

static char written[64];

/* Rank 0 reads the file, whose element (i, j) must be value_of(i * rows + j * columns) times
 * `factor`, as f64. */
static tsr_status check_file(tsr_comm *comm, int64_t rows, int64_t columns, double factor)
{
    double got[COUNT];
    tsr_status status = TSR_OK;
    if (tsr_comm_rank(comm) == 0) {
        FILE *const file = fopen(written, "rb");
        CHECK(file && fread(got, sizeof *got, COUNT, file) == COUNT && fgetc(file) == EOF);
        fclose(file);
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t j = 0; j < COLUMNS; j++)
                CHECK(got[i * COLUMNS + j] == factor * (double)value_of(i * rows + j * columns));
        remove(written);
    }
    return tsr_comm_share_status(comm, "check_file", status);
}

/* Reads the file into a tensor on the device, and writes it from there. */
static tsr_status read_and_write(tsr_comm *comm, tsr_dtensor *x)
{
    TSR_TRY(tsr_dtensor_fill(x, 7, NULL));
    TSR_TRY(tsr_distribute_file_into(written, 0, TSR_F64, NULL, x));
    TSR_TRY(tsr_comm_barrier(comm));
    return tsr_dtensor_write_as(x, written, 0, TSR_F64, NULL);
}

/* Writes a contiguous shard, the terms of a sum, and a strided tensor, all on the device, and reads
 * them. */
static tsr_status write_files(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm);
    tsr_mesh *mesh = NULL;
    tsr_layout *partial = NULL, *whole = NULL;
    tsr_tensor global;
    tsr_dtensor *x = NULL;
    TSR_TRY(mesh_over(comm, "4", &mesh));
    TSR_TRY(make_global(f, rank, &global));
    TSR_TRY(tsr_distribute(&global, mesh, "S(1)", &x));
    TSR_TRY(tsr_dtensor_write_as(x, written, 0, TSR_F64, NULL));
    TSR_TRY(read_and_write(comm, x));
    tsr_dtensor_destroy(x);
    TSR_TRY(check_file(comm, COLUMNS, 1, 1));
    TSR_TRY(layout_over(comm, "4", "48x50", "P", TSR_F32, &partial));
    TSR_TRY(tsr_dtensor_from_local(&global, partial, NULL, &x));
    TSR_TRY(tsr_dtensor_write_as(x, written, 0, TSR_F64, NULL));
    tsr_dtensor_destroy(x);
    TSR_TRY(check_file(comm, COLUMNS, 1, 4));
    TSR_TRY(layout_over(comm, "4", "48x50", "R", TSR_F32, &whole));
    global.strides[0] = 1;
    global.strides[1] = ROWS;
    TSR_TRY(tsr_dtensor_from_local(&global, whole, NULL, &x));
    TSR_TRY(tsr_dtensor_write_as(x, written, 0, TSR_F64, NULL));
    TSR_TRY(read_and_write(comm, x));
    tsr_dtensor_destroy(x);
    TSR_TRY(check_file(comm, 1, ROWS, 1));
    fixture_free(f, rank, global.data, COUNT * sizeof(float));
    tsr_layout_destroy(partial);
    tsr_layout_destroy(whole);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void dtensors_are_written_to_files_and_read(void **state)
{
    (void)state;
    snprintf(written, sizeof written, "/tmp/tessera-test-async-%d", (int)getpid());
    fixture_run(4, (async_options){.devices = 1}, write_files, NULL);
    fixture_run(4, (async_options){.devices = 3, .lazy = true}, write_files, NULL);
}

/* Reduces one tensor in place on the rank's stream, and another on the default stream, by one plan
 * with one workspace. The size is such that results wait in the workspace. */
static tsr_status take_turns(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm), ranks = tsr_comm_size(comm);
    const tsr_placement whole = tsr_replicate();
    tsr_layout *partial = NULL;
    tsr_dtensor *x[2] = {NULL};
    TSR_TRY(layout_over(comm, "2", "48x50", "P", TSR_F32, &partial));
    for (int round = 0; round < 5; round++) {
        tsr_tensor local[2];
        for (int i = 0; i < 2; i++) {
            TSR_TRY(make_global(f, rank, &local[i]));
            TSR_TRY(tsr_dtensor_from_local(&local[i], partial, NULL, &x[i]));
        }
        TSR_TRY(tsr_redistribute_in_place(x[0], &whole, f->device.streams[rank]));
        TSR_TRY(tsr_redistribute_in_place(x[1], &whole, NULL));
        TSR_TRY(fixture_wait(f, rank));
        for (int i = 0; i < 2; i++) {
            TSR_TRY(check_shard(f, x[i], (float)ranks));
            tsr_dtensor_destroy(x[i]);
            fixture_free(f, rank, local[i].data, COUNT * 4);
        }
    }
    tsr_layout_destroy(partial);
    return TSR_OK;
}

static void one_workspace_serves_streams_one_after_the_other(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        fixture_run(2, (async_options){.devices = 2, .seed = seed, .lazy = seed % 2 == 1}, take_turns, NULL);
}

static tsr_status capture_in_place(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm), index = fixture_device(f, rank).index;
    const tsr_placement whole = tsr_replicate();
    const tsr_stream stream = f->device.streams[rank];
    tsr_layout *partial = NULL;
    tsr_dtensor *x = NULL;
    tsr_tensor local;
    TSR_TRY(layout_over(comm, "2", "48x50", "P", TSR_F32, &partial));
    TSR_TRY(make_global(f, rank, &local));
    TSR_TRY(tsr_dtensor_from_local(&local, partial, NULL, &x));
    async_capture(f->machine, index, stream, 3);
    const tsr_status status = tsr_redistribute_in_place(x, &whole, stream);
    const bool told = status == TSR_ERROR_UNSUPPORTED && strstr(tsr_status_message(), "the stream is captured");
    async_capture(f->machine, index, stream, 0);
    TSR_TRY(
        told ? TSR_OK
             : tsr_status_set(TSR_ERROR_INTERNAL, "rank %d: status %d, %s", rank, (int)status, tsr_status_message()));
    TSR_TRY(tsr_redistribute_in_place(x, &whole, stream));
    TSR_TRY(fixture_wait(f, rank));
    TSR_TRY(check_shard(f, x, (float)tsr_comm_size(comm)));
    tsr_dtensor_destroy(x);
    fixture_free(f, rank, local.data, COUNT * 4);
    tsr_layout_destroy(partial);
    return TSR_OK;
}

static void a_capture_of_what_works_in_the_caches_memory_is_refused(void **state)
{
    (void)state;
    fixture_run(2, (async_options){.devices = 2}, capture_in_place, NULL);
}

static tsr_status outlive(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm);
    const tsr_placement rows = tsr_shard(0), whole = tsr_replicate();
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    tsr_tensor global;
    TSR_TRY(mesh_over(comm, "3", &mesh));
    TSR_TRY(make_global(f, rank, &global));
    TSR_TRY(tsr_distribute_tensor(&global, mesh, &rows, NULL, &x));
    fixture_free(f, rank, global.data, COUNT * 4);
    TSR_TRY(tsr_redistribute(x, &whole, &y));
    TSR_TRY(tsr_comm_barrier(comm));
    if (rank == 0)
        tsr_device_driver_destroy(f->driver);
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_driver_lives_as_long_as_dtensors_and_meshes_that_use_it(void **state)
{
    (void)state;
    fixture f;
    fixture_start(&f, 3, (async_options){.devices = 1});
    run_ranks(3, outlive, &f);
    f.driver = NULL;
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtensors_are_distributed_moved_and_gathered),
        cmocka_unit_test(dtensors_are_written_to_files_and_read),
        cmocka_unit_test(one_workspace_serves_streams_one_after_the_other),
        cmocka_unit_test(a_capture_of_what_works_in_the_caches_memory_is_refused),
        cmocka_unit_test(a_driver_lives_as_long_as_dtensors_and_meshes_that_use_it),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
