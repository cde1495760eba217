/* Distributing from a tensor that all ranks have, from one rank, and from a file: what every rank
 * gets, and what is refused. */
#include "buffer.h"
#include "layouts.h"
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A random layout, the same on every rank, and the tensor that is distributed. */
typedef struct draw {
    oracle_layout whole, layout;
    oracle_numbers numbers;
    oracle_move move;
    local_buffer global;
    unsigned char *elements;
    int source; /* -1: every rank has the values */
} draw;

static void draw_make(uint64_t number, int world, draw *out)
{
    oracle_random random = {.state = test_seed() * 31337 + number};
    memset(out, 0, sizeof *out);
    out->layout.dtype = oracle_random_dtype(&random);
    out->layout.mesh = oracle_random_mesh(&random, 3, world, world);
    oracle_random_shape(&random, 4, 400, &out->layout);
    oracle_random_placements(&random, &out->layout, &out->numbers);
    out->whole = out->layout;
    for (int m = 0; m < out->whole.mesh.ndim; m++)
        out->whole.placements[m] = tsr_replicate();
    oracle_move_make(&out->whole, &out->layout, &out->move);
    out->elements = calloc((size_t)oracle_count(&out->whole) + 1, oracle_bytes(out->whole.dtype));
    oracle_fill(&out->move, number, false, out->whole.mesh.ranks[0], out->elements);
    buffer_create(&out->global, out->whole.dtype, out->whole.ndim, out->whole.shape, number % 2 ? &random : NULL);
    buffer_put(&out->global, out->elements);
    out->source = (int)oracle_random_below(&random, world + 1) - 1;
}

static void draw_destroy(draw *d)
{
    buffer_destroy(&d->global);
    free(d->elements);
}

/* A local tensor is contiguous and holds what the oracle says; outside the mesh it is empty. */
static tsr_status check_local(const draw *d, uint64_t number, int rank, const tsr_dtensor *x)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    oracle_shard shard;
    oracle_shard_create(&d->layout, rank, &shard);
    unsigned char *wanted = calloc((size_t)shard.count + 1, oracle_bytes(d->layout.dtype));
    oracle_fill(&d->move, number, true, rank, wanted);
    const bool inside = oracle_mesh_position(&d->layout.mesh, rank) >= 0;
    const bool shaped = inside ? local.ndim == d->layout.ndim &&
                                     memcmp(local.shape, shard.shape, sizeof(int64_t) * (size_t)local.ndim) == 0
                               : local.ndim == 1 && local.shape[0] == 0 && !local.data;
    const bool equal =
        shard.count == 0 || memcmp(local.data, wanted, (size_t)shard.count * oracle_bytes(d->layout.dtype)) == 0;
    oracle_shard_destroy(&shard);
    free(wanted);
    char text[512];
    if (shaped && equal && tsr_tensor_is_contiguous(&local))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "draw %llu, rank %d, source %d: wrong %s of %s as %s",
                          (unsigned long long)number, rank, d->source, shaped ? "values" : "shape",
                          oracle_dtype_name(d->layout.dtype),
                          oracle_print_placements(d->layout.placements, d->layout.mesh.ndim, text, sizeof text));
}

static tsr_status distribute_draw(tsr_comm *comm, uint64_t number)
{
    draw d;
    draw_make(number, tsr_comm_size(comm), &d);
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL;
    tsr_distribute_options options = TSR_DISTRIBUTE_OPTIONS_INIT;
    options.source_rank = d.source;
    if (d.source >= 0 && d.source != tsr_comm_rank(comm))
        d.global.view.data = NULL;
    tsr_status status =
        tsr_mesh_create(comm, d.layout.mesh.ndim, d.layout.mesh.shape, NULL, d.layout.mesh.ranks, &mesh);
    if (status == TSR_OK)
        status = tsr_distribute_tensor(&d.global.view, mesh, d.layout.placements, d.source < 0 ? NULL : &options, &x);
    if (status == TSR_OK)
        status = check_local(&d, number, tsr_comm_rank(comm), x);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    draw_destroy(&d);
    return status;
}

static tsr_status distribute_many(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (uint64_t number = 0; number < 400; number++)
        TSR_TRY(distribute_draw(comm, number));
    return TSR_OK;
}

static tsr_status distribute_by_messages(tsr_comm *comm, void *arg)
{
    tsr_comm *messages = NULL;
    TSR_TRY(message_engine_create(comm, NULL, &messages));
    const tsr_status status = distribute_many(messages, arg);
    tsr_comm_destroy(messages);
    return status;
}

static void every_rank_gets_its_shard_of_any_layout(void **state)
{
    (void)state;
    for (int world = 1; world <= 6; world += world < 3 ? 1 : 3) {
        test_case("distribute on %d ranks, seed %llu", world, (unsigned long long)test_seed());
        run_ranks(world, distribute_many, NULL);
        test_case("distribute over messages on %d ranks, seed %llu", world, (unsigned long long)test_seed());
        run_ranks(world, distribute_by_messages, NULL);
    }
}

static tsr_status refuse_bad_tensors(tsr_comm *comm, void *arg)
{
    (void)arg;
    float values[64] = {0};
    const int64_t shape[] = {8, 8};
    tsr_tensor good = tsr_tensor_contiguous(values, TSR_F32, 2, shape), bad = good;
    const tsr_placement shard = tsr_shard(0), far = tsr_shard(2);
    tsr_mesh *mesh = NULL, *abstract = NULL;
    tsr_dtensor *x = NULL;
    TSR_TRY(mesh_over(comm, "2", &mesh));
    TSR_TRY(tsr_mesh_parse(NULL, NULL, "2", &abstract));
    CHECK_ERROR(tsr_distribute_tensor(NULL, mesh, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "global");
    CHECK_ERROR(tsr_distribute_tensor(&good, NULL, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "mesh");
    CHECK_ERROR(tsr_distribute_tensor(&good, mesh, NULL, NULL, &x), TSR_ERROR_ARGUMENT, "placements");
    CHECK_ERROR(tsr_distribute_tensor(&good, mesh, &shard, NULL, NULL), TSR_ERROR_ARGUMENT, "out");
    CHECK_ERROR(tsr_distribute_tensor(&good, mesh, &far, NULL, &x), TSR_ERROR_ARGUMENT, "S(2)");
    tsr_tensor nothing = good;
    nothing.data = NULL;
    CHECK_ERROR(tsr_distribute_tensor(&nothing, mesh, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "global has no data");
    CHECK_ERROR(tsr_distribute_tensor(&good, abstract, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "abstract");
    bad.data = NULL;
    CHECK_ERROR(tsr_distribute_tensor(&bad, mesh, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "data");
    bad = good;
    bad.shape[1] = -8;
    CHECK_ERROR(tsr_distribute_tensor(&bad, mesh, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "-8");
    bad = good;
    bad.shape[0] = bad.shape[1] = INT64_C(1) << 40;
    CHECK_ERROR(tsr_distribute_tensor(&bad, mesh, &shard, NULL, &x), TSR_ERROR_ARGUMENT, NULL);
    bad = good;
    bad.dtype = TSR_DTYPE_NONE;
    CHECK_ERROR(tsr_distribute_tensor(&bad, mesh, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "dtype");
    bad = good;
    bad.ndim = 9;
    CHECK_ERROR(tsr_distribute_tensor(&bad, mesh, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "9");
    tsr_distribute_options options = TSR_DISTRIBUTE_OPTIONS_INIT;
    bad = good;
    bad.device.index = 3;
    CHECK_ERROR(tsr_distribute_tensor(&bad, mesh, &shard, NULL, &x), TSR_ERROR_ARGUMENT, "global: device is host:3");
    options.source_rank = 0;
    if (tsr_comm_rank(comm) == 1)
        CHECK_ERROR(tsr_distribute_tensor(&bad, mesh, &shard, &options, &x), TSR_ERROR_ARGUMENT,
                    "global: device is host:3");
    else
        CHECK_ERROR(tsr_distribute_tensor(&good, mesh, &shard, &options, &x), TSR_ERROR_PEER,
                    "global: device is host:3");
    options.source_rank = 2;
    CHECK_ERROR(tsr_distribute_tensor(&good, mesh, &shard, &options, &x), TSR_ERROR_ARGUMENT, "2");
    options.source_rank = -2;
    CHECK_ERROR(tsr_distribute_tensor(&good, mesh, &shard, &options, &x), TSR_ERROR_ARGUMENT, "-2");
    CHECK(!x);
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_mesh_destroy(abstract);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void bad_tensors_are_refused_and_nothing_breaks(void **state)
{
    (void)state;
    test_case("bad tensors");
    run_ranks(2, refuse_bad_tensors, NULL);
}

/* Files. */

static char file_path[64];

static void write_file(const void *bytes, size_t count)
{
    strcpy(file_path, "/tmp/tessera-test-XXXXXX");
    const int descriptor = mkstemp(file_path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, count), (ssize_t)count);
    close(descriptor);
}

enum { ROWS = 13, COLUMNS = 7, HEAD = 37 };

typedef struct conversion {
    tsr_dtype stored, wanted;
    const unsigned char *bytes;
} conversion;

/* Reads the file into memory whose rows lie apart, which must then have the elements of `x`. */
static tsr_status check_file_into(const conversion *c, const tsr_layout *layout, const tsr_dtensor *x)
{
    unsigned char rows[(COLUMNS + 1) * ROWS * 16];
    tsr_tensor local = tsr_dtensor_to_local(x);
    const unsigned char *const from = local.data;
    const size_t bytes = oracle_bytes(c->wanted), row = (size_t)local.shape[1] * bytes;
    int64_t bytes_read = -1;
    tsr_dtensor *y = NULL;
    local.data = rows;
    local.strides[0] = COLUMNS + 1;
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &y));
    TSR_TRY(tsr_distribute_file_into(file_path, HEAD, c->stored, &bytes_read, y));
    CHECK(bytes_read == local.shape[0] * local.shape[1] * (int64_t)oracle_bytes(c->stored));
    for (int64_t i = 0; i < local.shape[0]; i++)
        CHECK(memcmp(rows + (size_t)(i * (COLUMNS + 1)) * bytes, from + (size_t)i * row, row) == 0);
    tsr_dtensor_destroy(y);
    return TSR_OK;
}

static tsr_status check_file_shard(tsr_comm *comm, const conversion *c, const char *mesh, const char *placements)
{
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL;
    int64_t bytes_read = -1, shape[2], rows_begin[2];
    tsr_interval intervals[16];
    size_t count = 0;
    TSR_TRY(layout_over(comm, mesh, "13x7", placements, c->wanted, &layout));
    TSR_TRY(tsr_distribute_file(file_path, HEAD, c->stored, layout, &bytes_read, &x));
    TSR_TRY(tsr_layout_local(layout, NULL, shape, rows_begin));
    TSR_TRY(tsr_layout_intervals(layout, NULL, 0, intervals, 16, &count));
    const tsr_tensor local = tsr_dtensor_to_local(x);
    const size_t stored = oracle_bytes(c->stored), wanted = oracle_bytes(c->wanted);
    CHECK(bytes_read == shape[0] * shape[1] * (int64_t)stored);
    const unsigned char *at = local.data;
    for (size_t i = 0; i < count; i++) {
        for (int64_t row = intervals[i].begin; row < intervals[i].end; row++) {
            for (int64_t column = rows_begin[1]; column < rows_begin[1] + shape[1]; column++, at += wanted) {
                const unsigned char *element = c->bytes + HEAD + (size_t)(row * COLUMNS + column) * stored;
                unsigned char converted[16];
                if (c->stored == c->wanted)
                    memcpy(converted, element, stored);
                else
                    oracle_convert(c->stored, element, c->wanted, converted);
                CHECK(memcmp(at, converted, wanted) == 0);
            }
        }
    }
    TSR_TRY(check_file_into(c, layout, x));
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static tsr_status read_file(tsr_comm *comm, void *arg)
{
    TSR_TRY(check_file_shard(comm, arg, "4", "S(0)"));
    TSR_TRY(check_file_shard(comm, arg, "4", "S(1;balanced)"));
    TSR_TRY(check_file_shard(comm, arg, "2x2", "S(0),S(1)"));
    TSR_TRY(check_file_shard(comm, arg, "2x2", "S(0;interleave=3),R"));
    return check_file_shard(comm, arg, "4", "R");
}

static void a_file_is_read_where_owned_and_converted_rounding_once(void **state)
{
    (void)state;
    static unsigned char bytes[HEAD + ROWS * COLUMNS * 16];
    for (int stored = TSR_F64; stored <= TSR_C128; stored++) {
        for (int wanted = TSR_F64; wanted <= TSR_C128; wanted++) {
            if (stored != wanted && (stored > TSR_F8E5M2 || wanted > TSR_F8E5M2))
                continue;
            const size_t size = oracle_bytes((tsr_dtype)stored);
            for (int64_t i = 0; i < ROWS * COLUMNS; i++)
                oracle_element((tsr_dtype)stored, (uint64_t)stored, i, wanted, bytes + HEAD + (size_t)i * size);
            write_file(bytes, HEAD + ROWS * COLUMNS * size);
            conversion c = {(tsr_dtype)stored, (tsr_dtype)wanted, bytes};
            test_case("tsr_distribute_file, %s read as %s", oracle_dtype_name(c.stored), oracle_dtype_name(c.wanted));
            run_ranks(4, read_file, &c);
            unlink(file_path);
        }
    }
}

/* A tensor of f32 in parts that lie in two files, in other order, and in two dtypes. The files are
 * f32 elements 0 .. 90, and the same as bf16, which is exact. */
static char narrow_path[64];

static tsr_status check_parts(tsr_comm *comm, const char *mesh, const char *placements)
{
    const tsr_file_part parts[] = {{file_path, 10 * 4, TSR_F32, 20}, {narrow_path, 30 * 2, TSR_BF16, 1},
                                   {file_path, 90 * 4, TSR_F32, 0},  {narrow_path, 60 * 2, TSR_BF16, 31},
                                   {narrow_path, 0, TSR_BF16, 10},   {file_path, 31 * 4, TSR_F32, 29}};
    const int begins[] = {10, 30, 90, 60, 0, 31};
    int64_t shape[2], offset[2], bytes_read = -1, wanted_bytes = 0;
    tsr_interval rows[16];
    size_t count = 0;
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL;
    TSR_TRY(layout_over(comm, mesh, "13x7", placements, TSR_F32, &layout));
    TSR_TRY(tsr_distribute_file_parts(6, parts, layout, &bytes_read, &x));
    TSR_TRY(tsr_layout_local(layout, NULL, shape, offset));
    TSR_TRY(tsr_layout_intervals(layout, NULL, 0, rows, 16, &count));
    const float *at = tsr_dtensor_to_local(x).data;
    for (size_t i = 0; i < count; i++) {
        for (int64_t row = rows[i].begin; row < rows[i].end; row++) {
            for (int64_t column = offset[1]; column < offset[1] + shape[1]; column++) {
                int part = 0;
                int64_t within = row * COLUMNS + column;
                for (; within >= parts[part].count; part++)
                    within -= parts[part].count;
                CHECK(*at++ == (float)(begins[part] + within));
                wanted_bytes += parts[part].dtype == TSR_F32 ? 4 : 2;
            }
        }
    }
    CHECK(bytes_read == wanted_bytes);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static tsr_status read_parts(tsr_comm *comm, void *arg)
{
    (void)arg;
    TSR_TRY(check_parts(comm, "4", "S(0)"));
    TSR_TRY(check_parts(comm, "4", "S(1)"));
    TSR_TRY(check_parts(comm, "2x2", "S(1;balanced),S(0)"));
    TSR_TRY(check_parts(comm, "2x2", "S(0;interleave=3),R"));
    return check_parts(comm, "4", "R");
}

static tsr_status refuse_bad_parts(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL;
    int64_t bytes = -1;
    tsr_file_part parts[] = {{file_path, 0, TSR_F32, 90}, {narrow_path, 0, TSR_BF16, 1}};
    TSR_TRY(layout_over(comm, "2", "13x7", "S(0)", TSR_F32, &layout));
    CHECK_ERROR(tsr_distribute_file_parts(1, parts, layout, &bytes, &x), TSR_ERROR_ARGUMENT, "90 elements");
    CHECK_ERROR(tsr_distribute_file_parts(2, NULL, layout, &bytes, &x), TSR_ERROR_ARGUMENT, "parts is NULL");
    CHECK_ERROR(tsr_distribute_file_parts(2, parts, NULL, &bytes, &x), TSR_ERROR_ARGUMENT, "layout");
    CHECK_ERROR(tsr_distribute_file_parts(0, NULL, layout, &bytes, &x), TSR_ERROR_ARGUMENT, "0 elements");
    parts[1].offset = 91 * 2;
    CHECK_ERROR(tsr_distribute_file_parts(2, parts, layout, &bytes, &x), TSR_ERROR_IO, narrow_path);
    parts[1].offset = -2;
    CHECK_ERROR(tsr_distribute_file_parts(2, parts, layout, &bytes, &x), TSR_ERROR_ARGUMENT, "-2");
    parts[1] = (tsr_file_part){narrow_path, 0, TSR_I16, 1};
    CHECK_ERROR(tsr_distribute_file_parts(2, parts, layout, &bytes, &x), TSR_ERROR_UNSUPPORTED, "i16");
    parts[1] = (tsr_file_part){narrow_path, 0, TSR_BF16, -1};
    CHECK_ERROR(tsr_distribute_file_parts(2, parts, layout, &bytes, &x), TSR_ERROR_ARGUMENT, "-1 elements");
    parts[1] = (tsr_file_part){NULL, 0, TSR_BF16, 1};
    CHECK_ERROR(tsr_distribute_file_parts(2, parts, layout, &bytes, &x), TSR_ERROR_ARGUMENT, "path");
    parts[0].count = parts[1].count = INT64_MAX;
    parts[1].path = narrow_path;
    CHECK_ERROR(tsr_distribute_file_parts(2, parts, layout, &bytes, &x), TSR_ERROR_ARGUMENT, "2^63");
    CHECK(!x && bytes == -1);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void parts_of_a_tensor_are_read_from_several_files(void **state)
{
    (void)state;
    float wide[ROWS * COLUMNS];
    unsigned short narrow[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        unsigned bits;
        wide[i] = (float)i;
        memcpy(&bits, &wide[i], sizeof bits);
        narrow[i] = (unsigned short)(bits >> 16);
    }
    write_file(narrow, sizeof narrow);
    strcpy(narrow_path, file_path);
    write_file(wide, sizeof wide);
    test_case("parts of two files");
    run_ranks(4, read_parts, NULL);
    run_ranks(2, refuse_bad_parts, NULL);
    unlink(file_path);
    unlink(narrow_path);
}

static tsr_status refuse_bad_targets(const tsr_layout *layout)
{
    float values[32] = {0};
    const int64_t shape[] = {4, 8};
    tsr_tensor local = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    tsr_dtensor *x = NULL;
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    CHECK_ERROR(tsr_distribute_file_into(NULL, 0, TSR_F32, NULL, x), TSR_ERROR_ARGUMENT, "path is NULL");
    CHECK_ERROR(tsr_distribute_file_into(file_path, 0, TSR_F32, NULL, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    CHECK_ERROR(tsr_distribute_file_into(file_path, -2, TSR_F32, NULL, x), TSR_ERROR_ARGUMENT,
                "tsr_distribute_file_into: offset -2");
    CHECK_ERROR(tsr_distribute_file_into(file_path, 0, TSR_I32, NULL, x), TSR_ERROR_UNSUPPORTED, "i32");
    CHECK_ERROR(tsr_distribute_file_into(file_path, 0, TSR_F32, NULL, x), TSR_ERROR_IO, file_path);
    tsr_dtensor_destroy(x);
    local.strides[0] = 0;
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    CHECK_ERROR(tsr_distribute_file_into(file_path, 0, TSR_F32, NULL, x), TSR_ERROR_ARGUMENT, "share memory");
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static tsr_status refuse_bad_files(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *layout = NULL, *integers = NULL;
    tsr_dtensor *x = NULL;
    int64_t bytes_read = -1;
    TSR_TRY(layout_over(comm, "2", "8x8", "S(0)", TSR_F32, &layout));
    TSR_TRY(layout_over(comm, "2", "8x8", "S(0)", TSR_I32, &integers));
    CHECK_ERROR(tsr_distribute_file("/nonexistent/weights", 0, TSR_F32, layout, &bytes_read, &x), TSR_ERROR_IO,
                "/nonexistent/weights");
    CHECK_ERROR(tsr_distribute_file(file_path, 1000, TSR_F32, layout, &bytes_read, &x), TSR_ERROR_IO, file_path);
    CHECK_ERROR(tsr_distribute_file(file_path, INT64_MAX - 3, TSR_F32, layout, &bytes_read, &x), TSR_ERROR_IO,
                file_path);
    CHECK_ERROR(tsr_distribute_file(file_path, -1, TSR_F32, layout, &bytes_read, &x), TSR_ERROR_ARGUMENT, "-1");
    CHECK_ERROR(tsr_distribute_file(NULL, 0, TSR_F32, layout, &bytes_read, &x), TSR_ERROR_ARGUMENT, "path");
    CHECK_ERROR(tsr_distribute_file(file_path, 0, TSR_F32, NULL, &bytes_read, &x), TSR_ERROR_ARGUMENT, "layout");
    CHECK_ERROR(tsr_distribute_file(file_path, 0, TSR_DTYPE_NONE, layout, &bytes_read, &x), TSR_ERROR_ARGUMENT,
                "dtype");
    CHECK_ERROR(tsr_distribute_file(file_path, 0, TSR_F32, integers, &bytes_read, &x), TSR_ERROR_UNSUPPORTED, "i32");
    CHECK_ERROR(tsr_distribute_file(file_path, 0, TSR_U8, layout, &bytes_read, &x), TSR_ERROR_UNSUPPORTED, "u8");
    CHECK_ERROR(tsr_distribute_file("/tmp", 0, TSR_F32, layout, &bytes_read, &x), TSR_ERROR_IO, "/tmp");
    CHECK(!x && bytes_read == -1);
    TSR_TRY(refuse_bad_targets(layout));
    tsr_layout_destroy(layout);
    tsr_layout_destroy(integers);
    return TSR_OK;
}

static tsr_status refuse_a_pipe(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL;
    TSR_TRY(layout_over(comm, "2", "8x8", "S(0)", TSR_F32, &layout));
    CHECK_ERROR(tsr_distribute_file(file_path, 0, TSR_F32, layout, NULL, &x), TSR_ERROR_IO, file_path);
    CHECK(!x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void a_pipe_without_a_writer_is_refused_and_not_waited_for(void **state)
{
    (void)state;
    write_file("", 0);
    unlink(file_path);
    assert_int_equal(mkfifo(file_path, 0600), 0);
    test_case("a pipe");
    run_ranks(2, refuse_a_pipe, NULL);
    unlink(file_path);
}

static void files_that_are_missing_short_or_of_other_kinds_are_refused(void **state)
{
    (void)state;
    static const unsigned char bytes[100];
    write_file(bytes, sizeof bytes);
    test_case("bad files");
    run_ranks(2, refuse_bad_files, NULL);
    unlink(file_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_gets_its_shard_of_any_layout),
        cmocka_unit_test(bad_tensors_are_refused_and_nothing_breaks),
        cmocka_unit_test(a_file_is_read_where_owned_and_converted_rounding_once),
        cmocka_unit_test(parts_of_a_tensor_are_read_from_several_files),
        cmocka_unit_test(a_pipe_without_a_writer_is_refused_and_not_waited_for),
        cmocka_unit_test(files_that_are_missing_short_or_of_other_kinds_are_refused),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
