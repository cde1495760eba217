/* Tensors that lie in files as boxes: any layout reads its elements of any boxes; boxes that do not
 * make up the tensor are refused; and the bytes that ranks are told are those of the file. */
#include "buffer.h"
#include "layouts.h"
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <tessera/sys/device.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_BOXES = 12, MOST_ELEMENTS = 400, HEAD = 5 };

static char path[64];

/* A random layout, and boxes of its tensor, whose elements are their own numbers; the same on every
 * rank. */
typedef struct draw {
    oracle_layout layout;
    oracle_numbers numbers;
    size_t count;
    tsr_file_box boxes[MOST_BOXES];
} draw;

/* Cuts a random box in two. */
static void cut_box(oracle_random *random, draw *d)
{
    tsr_file_box *const old = &d->boxes[oracle_random_below(random, (int64_t)d->count)];
    if (d->layout.ndim == 0)
        return;
    const int dim = (int)oracle_random_below(random, d->layout.ndim);
    const int64_t at = oracle_random_below(random, old->shape[dim] + 1);
    tsr_file_box *const added = &d->boxes[d->count++];
    *added = *old;
    added->begin[dim] += at;
    added->shape[dim] -= at;
    old->shape[dim] = at;
}

static void draw_make(uint64_t number, int world, draw *d)
{
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_I32};
    oracle_random random = {.state = test_seed() * 77773 + number};
    memset(d, 0, sizeof *d);
    d->layout.dtype = dtypes[number % 3];
    d->layout.mesh = oracle_random_mesh(&random, 3, world, world);
    oracle_random_shape(&random, 4, MOST_ELEMENTS, &d->layout);
    oracle_random_placements(&random, &d->layout, &d->numbers);
    d->boxes[0].path = path;
    for (int i = 0; i < d->layout.ndim; i++)
        d->boxes[0].shape[i] = d->layout.shape[i];
    d->count = 1;
    const int64_t cuts = oracle_random_below(&random, MOST_BOXES);
    for (int64_t i = 0; i < cuts; i++)
        cut_box(&random, d);
    int64_t offset = HEAD;
    for (size_t i = 0; i < d->count; i++) {
        tsr_file_box *const box = &d->boxes[i];
        int64_t stride = 1;
        box->offset = offset;
        box->dtype = d->layout.dtype == TSR_I32 ? TSR_I32 : dtypes[oracle_random_below(&random, 2)];
        for (int dim = d->layout.ndim - 1; dim >= 0; dim--) {
            box->strides[dim] = stride;
            stride *= box->shape[dim];
        }
        offset += stride * (int64_t)tsr_dtype_bytes(box->dtype);
    }
}

/* Element `number` of a tensor, in a dtype. */
static void put_number(int64_t number, tsr_dtype dtype, unsigned char *out)
{
    const float f32 = (float)number;
    const double f64 = (double)number;
    const int32_t i32 = (int32_t)number;
    memcpy(out,
           dtype == TSR_F32   ? (const void *)&f32
           : dtype == TSR_F64 ? (const void *)&f64
                              : &i32,
           tsr_dtype_bytes(dtype));
}

/* Writes one box, whose elements `at` counts. */
static bool write_box(int file, const draw *d, const tsr_file_box *box)
{
    int64_t count = 1;
    for (int dim = 0; dim < d->layout.ndim; dim++)
        count *= box->shape[dim];
    for (int64_t at = 0; at < count; at++) {
        unsigned char bytes[8];
        int64_t number = 0, scale = 1, rest = at;
        for (int dim = d->layout.ndim - 1; dim >= 0; dim--) {
            number += (box->begin[dim] + rest % box->shape[dim]) * scale;
            rest /= box->shape[dim];
            scale *= d->layout.shape[dim];
        }
        put_number(number, box->dtype, bytes);
        const ssize_t size = (ssize_t)tsr_dtype_bytes(box->dtype);
        if (write(file, bytes, (size_t)size) != size)
            return false;
    }
    return true;
}

static tsr_status write_boxes(tsr_comm *comm, const draw *d)
{
    if (tsr_comm_rank(comm) == 0) {
        const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        bool written = file >= 0 && write(file, "head!", HEAD) == HEAD;
        for (size_t i = 0; i < d->count && written; i++)
            written = write_box(file, d, &d->boxes[i]);
        CHECK(written && close(file) == 0);
    }
    return tsr_comm_barrier(comm);
}

/* The dtensor with the tensor's numbers. */
static tsr_status make_wanted(const draw *d, tsr_mesh *mesh, tsr_dtensor **out)
{
    unsigned char *const values = calloc(MOST_ELEMENTS + 1, 8);
    const size_t size = tsr_dtype_bytes(d->layout.dtype);
    for (int64_t i = 0; i < MOST_ELEMENTS; i++)
        put_number(i, d->layout.dtype, values + (size_t)i * size);
    tsr_tensor whole = tsr_tensor_contiguous(values, d->layout.dtype, d->layout.ndim, d->layout.shape);
    const tsr_status status = tsr_distribute_tensor(&whole, mesh, d->layout.placements, NULL, out);
    free(values);
    return status;
}

/* Reads into a local tensor with odd strides, for every other draw. */
static tsr_status read_draw(const draw *d, uint64_t number, const tsr_dtensor *wanted)
{
    const tsr_tensor local = tsr_dtensor_to_local(wanted);
    oracle_random random = {.state = number};
    local_buffer buffer = {0};
    tsr_dtensor *x;
    int64_t count, bytes = -1;
    char text[512];
    TSR_TRY(tsr_tensor_count(&local, &count));
    buffer_create(&buffer, local.dtype, local.ndim, local.shape, number % 2 ? &random : NULL);
    TSR_TRY(tsr_dtensor_from_local(&buffer.view, tsr_dtensor_layout(wanted), NULL, &x));
    TSR_TRY(tsr_distribute_file_boxes_into(d->count, d->boxes, &bytes, x));
    CHECK(bytes >= 0 && bytes <= count * 8);
    const bool held = buffer_holds(&buffer, count > 0 ? local.data : (const void *)text, text, sizeof text);
    tsr_dtensor_destroy(x);
    buffer_destroy(&buffer);
    return held ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "draw %llu: %s", (unsigned long long)number, text);
}

static tsr_status try_draw(tsr_comm *comm, uint64_t number)
{
    draw d;
    tsr_mesh *mesh;
    tsr_dtensor *wanted;
    draw_make(number, tsr_comm_size(comm), &d);
    TSR_TRY(tsr_mesh_create(comm, d.layout.mesh.ndim, d.layout.mesh.shape, NULL, d.layout.mesh.ranks, &mesh));
    TSR_TRY(make_wanted(&d, mesh, &wanted));
    TSR_TRY(write_boxes(comm, &d));
    TSR_TRY(tsr_file_boxes_check(d.count, d.boxes, tsr_dtensor_layout(wanted)));
    TSR_TRY(read_draw(&d, number, wanted));
    tsr_dtensor_destroy(wanted);
    tsr_mesh_destroy(mesh);
    return tsr_comm_barrier(comm);
}

static tsr_status try_many(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (uint64_t number = 0; number < 90; number++)
        TSR_TRY(try_draw(comm, number));
    return TSR_OK;
}

static void any_layout_reads_any_boxes(void **state)
{
    (void)state;
    for (int world = 1; world <= 6; world += world < 3 ? 1 : 3) {
        test_case("boxes on %d ranks, seed %llu", world, (unsigned long long)test_seed());
        run_ranks(world, try_many, NULL);
    }
    unlink(path);
}

static void boxes_that_do_not_make_up_the_tensor_are_refused(void **state)
{
    (void)state;
    tsr_layout *const layout = layout_of("2", "4x6", "S(0)");
    const tsr_file_box left = {"x", 0, TSR_F32, {0, 0}, {4, 3}, {3, 1}},
                       right = {"x", 48, TSR_F32, {0, 3}, {4, 3}, {3, 1}};
    tsr_file_box boxes[] = {left, right};
    expect_ok(tsr_file_boxes_check(2, boxes, layout));
    expect_error(tsr_file_boxes_check(2, NULL, layout), TSR_ERROR_ARGUMENT, "boxes is NULL");
    expect_error(tsr_file_boxes_check(2, boxes, NULL), TSR_ERROR_ARGUMENT, "layout is NULL");
    expect_error(tsr_file_boxes_check(0, NULL, layout), TSR_ERROR_ARGUMENT, "elements [0:4, 0:6] of [0:4, 0:6]");
    expect_error(tsr_file_boxes_check(1, boxes, layout), TSR_ERROR_ARGUMENT, "elements [0:4, 3:6] of [0:4, 0:6]");
    boxes[1].shape[0] = 3;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_ARGUMENT, "elements [3:4, 3:6] of");
    boxes[1].shape[0] = 5;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_ARGUMENT,
                 "boxes[1], [0:5, 3:6] in x, is not within");
    boxes[1] = right;
    boxes[1].begin[1] = 2;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_ARGUMENT, "another box has too");
    boxes[1] = right;
    boxes[1].dtype = TSR_I32;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_UNSUPPORTED, "from i32 to f32");
    boxes[1].dtype = (tsr_dtype)99;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_ARGUMENT, "99, which is not a dtype");
    boxes[1] = right;
    boxes[1].path = NULL;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_ARGUMENT, "boxes[1].path is NULL");
    boxes[1] = right;
    boxes[1].strides[0] = -1;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_ARGUMENT, "strides that are negative");
    boxes[1].strides[0] = INT64_MAX / 2;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_ARGUMENT, "or too large");
    boxes[1] = right;
    boxes[1].offset = -4;
    expect_error(tsr_file_boxes_check(2, boxes, layout), TSR_ERROR_ARGUMENT, "an offset that is negative");
    tsr_layout_destroy(layout);
}

/* A file that is not there, one that is too short, and a dtensor whose elements share memory. */
static tsr_status refuse_files(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {4};
    float one[4] = {0};
    const tsr_file_box box = {path, 0, TSR_F32, {0}, {4}, {1}}, none = {"/tmp/none/none", 0, TSR_F32, {0}, {4}, {1}};
    tsr_layout *layout;
    tsr_dtensor *x, *shared;
    (void)arg;
    TSR_TRY(layout_over(comm, "2", "4", "R", TSR_F32, &layout));
    tsr_tensor local = tsr_tensor_contiguous(one, TSR_F32, 1, shape);
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    local.strides[0] = 0;
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &shared));
    CHECK_ERROR(tsr_distribute_file_boxes_into(1, &box, NULL, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    CHECK_ERROR(tsr_distribute_file_boxes_into(1, NULL, NULL, x), TSR_ERROR_ARGUMENT, "boxes is NULL");
    CHECK_ERROR(tsr_distribute_file_boxes_into(1, &none, NULL, x), TSR_ERROR_IO, "/tmp/none/none");
    CHECK_ERROR(tsr_distribute_file_boxes_into(1, &box, NULL, x), TSR_ERROR_IO, "ends at byte");
    CHECK_ERROR(tsr_distribute_file_boxes_into(1, &box, NULL, shared), TSR_ERROR_ARGUMENT, "share memory");
    CHECK_ERROR(tsr_distribute_file_boxes_into(0, NULL, NULL, x), TSR_ERROR_ARGUMENT, "elements [0:4] of [0:4]");
    tsr_dtensor_destroy(shared);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void files_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_int_equal(write(file, "short", 5), 5);
    close(file);
    run_ranks(2, refuse_files, NULL);
    unlink(path);
}

/* A device on host memory, which counts what it copies. */
static atomic_int copies;

static tsr_status copy(void *self, int index, void *to, const void *from, size_t bytes, tsr_copy_kind kind,
                       tsr_stream stream)
{
    (void)self;
    atomic_fetch_add(&copies, kind == TSR_COPY_FROM_HOST);
    void *host;
    const tsr_device_table *const table = tsr_device_driver_table(NULL, &host);
    return table->copy(host, index, to, from, bytes, kind, stream);
}

static tsr_status read_to_device(tsr_comm *comm, void *arg)
{
    const tsr_file_box boxes[] = {{path, 0, TSR_F64, {0, 2}, {3, 2}, {2, 1}},
                                  {path, 48, TSR_F32, {0, 0}, {3, 2}, {2, 1}}};
    tsr_layout *layout;
    tsr_dtensor *x;
    int64_t bytes;
    TSR_TRY(layout_over(comm, "2", "3x4", "S(1;sizes=3,1)", TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, *(const tsr_device *)arg, &x));
    TSR_TRY(tsr_distribute_file_boxes_into(2, boxes, &bytes, x));
    CHECK(bytes == (tsr_comm_rank(comm) == 0 ? 3 * (2 * 4 + 8) : 3 * 8));
    const tsr_tensor local = tsr_dtensor_to_local(x);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < local.shape[1]; j++) {
            const int64_t column = tsr_comm_rank(comm) * 3 + j;
            CHECK(((const float *)local.data)[i * local.shape[1] + j] ==
                  (float)(column < 2 ? 100 + 2 * i + column : 2 * i + column - 2));
        }
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void a_device_reads_boxes_by_way_of_the_host(void **state)
{
    (void)state;
    void *self;
    tsr_device_driver *driver;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    double first[6];
    float second[6];
    for (int i = 0; i < 6; i++) {
        first[i] = i;
        second[i] = (float)(100 + i);
    }
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_int_equal(write(file, first, sizeof first), (ssize_t)sizeof first);
    assert_int_equal(write(file, second, sizeof second), (ssize_t)sizeof second);
    close(file);
    table.name = "counting";
    table.copy = copy;
    expect_ok(tsr_device_driver_create(&table, self, &driver));
    tsr_device device = {driver, 0};
    run_ranks(2, read_to_device, &device);
    assert_int_equal(copies, 2);
    tsr_device_driver_destroy(driver);
    unlink(path);
}

/* What a visit of bytes brings. */
typedef struct taken {
    unsigned char bytes[64];
    int64_t order[64]; /* of the bytes, as they came */
    int64_t count;
} taken;

static tsr_status take(void *arg, int64_t at, const void *bytes, size_t count)
{
    taken *const t = arg;
    memcpy(t->bytes + at, bytes, count);
    for (size_t i = 0; i < count; i++)
        t->order[t->count++] = at + (int64_t)i;
    return TSR_OK;
}

static tsr_status stop(void *arg, int64_t at, const void *bytes, size_t count)
{
    (void)arg, (void)at, (void)bytes, (void)count;
    return tsr_status_set(TSR_ERROR_STATE, "enough");
}

static tsr_status visit(tsr_comm *comm, void *arg)
{
    const int rank = tsr_comm_rank(comm);
    const int64_t shape[] = {4, 4};
    tsr_mesh *mesh;
    tsr_dtensor *x, *y;
    int64_t bytes = -1, sum;
    (void)arg;
    TSR_TRY(mesh_over(comm, "2x2", &mesh));
    TSR_TRY(numbered_over(mesh, "S(1),R", shape, 1, &x));
    for (int whole = 0; whole < 2; whole++) {
        taken t = {.count = 0};
        TSR_TRY(tsr_dtensor_visit_bytes(x, TSR_I32, whole, take, &t, &bytes));
        CHECK(bytes == t.count && bytes == (rank % 2 == 0 ? 32 : 0));
        for (int64_t i = 0; i < bytes; i++) /* rows of 8 bytes, at every 16th */
            CHECK(t.order[i] == i / 8 * 16 + rank / 2 * 8 + i % 8);
        for (int64_t i = 0; i < bytes; i += 4) {
            int32_t number;
            memcpy(&number, t.bytes + t.order[i], 4);
            CHECK(number == t.order[i] / 4);
        }
        TSR_TRY(tsr_dtensor_visit_bytes(x, TSR_I32, whole, NULL, NULL, &sum));
        CHECK(sum == bytes);
    }
    if (bytes > 0)
        CHECK_ERROR(tsr_dtensor_visit_bytes(x, TSR_I32, 0, stop, NULL, NULL), TSR_ERROR_STATE, "enough");
    CHECK_ERROR(tsr_dtensor_visit_bytes(NULL, TSR_I32, 0, stop, NULL, NULL), TSR_ERROR_ARGUMENT, "x is NULL");
    CHECK_ERROR(tsr_dtensor_visit_bytes(x, TSR_F32, 0, stop, NULL, NULL), TSR_ERROR_UNSUPPORTED, "from i32 to f32");
    CHECK_ERROR(tsr_dtensor_visit_bytes(x, (tsr_dtype)99, 0, stop, NULL, NULL), TSR_ERROR_ARGUMENT, "not a dtype");
    TSR_TRY(numbered_over(mesh, "P,R", shape, 1, &y));
    CHECK_ERROR(tsr_dtensor_visit_bytes(y, TSR_I32, 0, stop, NULL, NULL), TSR_ERROR_ARGUMENT, "Partial on mesh dim 0");
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void ranks_are_told_the_bytes_that_they_write(void **state)
{
    (void)state;
    run_ranks(4, visit, NULL);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/tessera-boxes-%d", (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_layout_reads_any_boxes),
        cmocka_unit_test(boxes_that_do_not_make_up_the_tensor_are_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_refused),
        cmocka_unit_test(a_device_reads_boxes_by_way_of_the_host),
        cmocka_unit_test(ranks_are_told_the_bytes_that_they_write),
    };
    return cmocka_run_group_tests_name("boxes in files", tests, NULL, NULL);
}
