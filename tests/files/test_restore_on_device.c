/* Files that are read into dtensors on a device with streams: .npy files of every order, into
 * contiguous and strided memory. */
#include "fixture.h"

#include <tessera/mesh.h>
#include <tessera/npy.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 5, COLUMNS = 3, RANKS = 2, STRIDE = 4, BYTES = ROWS * STRIDE * 4 };

/* A file of f32, element (i, j) of which is i * COLUMNS + j. */
typedef enum order { ROW_MAJOR, FORTRAN, BIG_ENDIAN_ORDER, ORDERS } order;

static char path[64];

static void write_file(order o)
{
    char text[160];
    const int length = snprintf(text, sizeof text, "{'descr': '%cf4', 'fortran_order': %s, 'shape': (%d, %d), }\n",
                                o == BIG_ENDIAN_ORDER ? '>' : '<', o == FORTRAN ? "True" : "False", ROWS, COLUMNS);
    FILE *const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite("\x93NUMPY\1\0", 8, 1, file), 1);
    assert_int_equal(fputc(length, file), length);
    assert_int_equal(fputc(0, file), 0);
    assert_int_equal(fwrite(text, 1, (size_t)length, file), length);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const float value = (float)(o == FORTRAN ? i % ROWS * COLUMNS + i / ROWS : i);
        unsigned char bytes[4];
        memcpy(bytes, &value, sizeof bytes);
        for (int b = 0; b < 4; b++)
            assert_true(fputc(bytes[o == BIG_ENDIAN_ORDER ? 3 - b : b], file) >= 0);
    }
    assert_int_equal(fclose(file), 0);
}

/* Restores a dtensor in memory of the device whose rows are `stride` elements apart. */
static tsr_status restore(const fixture *f, tsr_comm *comm, const tsr_layout *layout, int64_t stride)
{
    const int rank = tsr_comm_rank(comm);
    int64_t shape[2], offset[2];
    float got[ROWS * STRIDE];
    tsr_dtensor *x;
    TSR_TRY(tsr_layout_local(layout, NULL, shape, offset));
    tsr_tensor local = tsr_tensor_contiguous(NULL, TSR_F32, 2, shape);
    local.device = fixture_device(f, rank);
    local.strides[0] = stride;
    TSR_TRY(fixture_alloc(f, rank, BYTES, &local.data));
    TSR_TRY(fixture_wait(f, rank));
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    TSR_TRY(tsr_npy_restore(x, path, TSR_DTYPE_NONE));
    TSR_TRY(fixture_get(f, rank, got, local.data, BYTES));
    TSR_TRY(fixture_wait(f, rank));
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++)
            CHECK(got[i * stride + j] == (float)((offset[0] + i) * COLUMNS + offset[1] + j));
    tsr_dtensor_destroy(x);
    fixture_free(f, rank, local.data, BYTES);
    return fixture_wait(f, rank);
}

static tsr_status restore_all(tsr_comm *comm, void *arg)
{
    static const char *const placements[] = {"S(0)", "R", "S(0;sizes=5,0)"};
    const int64_t shape[] = {ROWS, COLUMNS};
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    for (size_t i = 0; i < sizeof placements / sizeof *placements; i++) {
        tsr_layout *layout;
        TSR_TRY(tsr_layout_parse(mesh, placements[i], 2, shape, TSR_F32, &layout));
        TSR_TRY(restore(arg, comm, layout, COLUMNS));
        TSR_TRY(restore(arg, comm, layout, STRIDE));
        tsr_layout_destroy(layout);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void files_of_every_order_are_restored(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/tessera-test-restore-on-device-%d", (int)getpid());
    for (order o = ROW_MAJOR; o < ORDERS; o++) {
        write_file(o);
        fixture_run(RANKS, (async_options){.devices = 2, .lazy = true}, restore_all, NULL);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_every_order_are_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
