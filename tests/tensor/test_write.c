/* Writing a dtensor to a file: every layout gives the bytes of the global tensor, each written
 * once; and a failure of one rank reaches all. */
#include "buffer.h"
#include "layouts.h"
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Bytes before and behind the tensor that must stay. */
enum { HEAD = 29, TAIL = 17, GUARD = 0xa5 };

static char path[64];

static void make_path(void)
{
    strcpy(path, "/tmp/tessera-write-XXXXXX");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
}

/* The whole file on the heap; NULL if it has another size than `bytes`. */
static unsigned char *read_whole(size_t bytes)
{
    struct stat facts;
    unsigned char *const data = malloc(bytes + 1);
    const int file = open(path, O_RDONLY);
    const bool fits = data && file >= 0 && fstat(file, &facts) == 0 && (size_t)facts.st_size == bytes &&
                      read(file, data, bytes + 1) == (ssize_t)bytes;
    close(file);
    if (fits)
        return data;
    free(data);
    return NULL;
}

/* Rank 0 fills the file with the guard, as far as `bytes`. */
static tsr_status fill_file(tsr_comm *comm, size_t bytes)
{
    tsr_status status = TSR_OK;
    if (tsr_comm_rank(comm) == 0) {
        unsigned char *const data = malloc(bytes + 1);
        memset(data, GUARD, bytes);
        const int file = open(path, O_WRONLY | O_TRUNC);
        if (file < 0 || write(file, data, bytes) != (ssize_t)bytes)
            status = tsr_status_set(TSR_ERROR_INTERNAL, "the file cannot be filled");
        close(file);
        free(data);
    }
    return tsr_comm_share_status(comm, "fill_file", status);
}

static bool holds_guard(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != GUARD)
            return false;
    return true;
}

/* A random layout, the same on every rank; the file must hold its global tensor as `stored`. */
typedef struct draw {
    oracle_layout layout, whole;
    oracle_numbers numbers;
    oracle_move move;
    tsr_dtype stored;
    unsigned char *wanted; /* the tensor as the file must have it */
    size_t bytes;
} draw;

static bool is_float(tsr_dtype dtype)
{
    return tsr_dtype_get(dtype)->kind == TSR_CLASS_FLOAT;
}

static void draw_make(uint64_t number, int world, draw *d)
{
    oracle_random random = {.state = test_seed() * 77771 + number};
    memset(d, 0, sizeof *d);
    d->layout.dtype = oracle_random_dtype(&random);
    d->layout.mesh = oracle_random_mesh(&random, 3, world, world);
    oracle_random_shape(&random, 4, 400, &d->layout);
    oracle_random_placements(&random, &d->layout, &d->numbers);
    d->stored = d->layout.dtype;
    if (is_float(d->layout.dtype) && number % 3 == 0)
        d->stored = (tsr_dtype)(TSR_F64 + oracle_random_below(&random, 6));
    d->whole = d->layout;
    for (int m = 0; m < d->whole.mesh.ndim; m++)
        d->whole.placements[m] = tsr_replicate();
    oracle_move_make(&d->layout, &d->whole, &d->move);
    const size_t count = (size_t)oracle_count(&d->whole), size = oracle_bytes(d->layout.dtype);
    const size_t stored = oracle_bytes(d->stored);
    unsigned char *const global = calloc(count + 1, size);
    oracle_fill(&d->move, number, true, d->whole.mesh.ranks[0], global);
    d->bytes = count * stored;
    d->wanted = calloc(count + 1, stored);
    for (size_t i = 0; i < count; i++) {
        if (d->stored == d->layout.dtype)
            memcpy(d->wanted + i * stored, global + i * size, size);
        else
            oracle_convert(d->layout.dtype, global + i * size, d->stored, d->wanted + i * stored);
    }
    free(global);
}

/* This rank's local tensor, with odd strides for every other draw, and the dtensor over it. */
static tsr_status make_source(const draw *d, uint64_t number, tsr_comm *comm, tsr_mesh *mesh, local_buffer *buffer,
                              tsr_dtensor **out)
{
    const int rank = tsr_comm_rank(comm);
    oracle_random random = {.state = number + (uint64_t)rank};
    oracle_shard shard;
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_layout_create(mesh, d->layout.placements, d->layout.ndim, d->layout.shape, d->layout.dtype, &layout));
    oracle_shard_create(&d->layout, rank, &shard);
    unsigned char *const elements = calloc((size_t)shard.count + 1, oracle_bytes(d->layout.dtype));
    oracle_fill(&d->move, number, false, rank, elements);
    const int64_t none = 0;
    const bool inside = oracle_mesh_position(&d->layout.mesh, rank) >= 0;
    buffer_create(buffer, d->layout.dtype, inside ? shard.ndim : 1, inside ? shard.shape : &none,
                  number % 2 ? &random : NULL);
    if (inside)
        buffer_put(buffer, elements);
    const tsr_status status = tsr_dtensor_from_local(&buffer->view, layout, NULL, out);
    free(elements);
    oracle_shard_destroy(&shard);
    tsr_layout_destroy(layout);
    return status;
}

/* Ranks' bytes add up to those of the tensor, and the file holds it, with the guards around. */
static tsr_status check_file(tsr_comm *comm, const draw *d, uint64_t number, int64_t written)
{
    TSR_TRY(tsr_comm_all_reduce(comm, &written, &written, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    if (written != (int64_t)d->bytes)
        return tsr_status_set(TSR_ERROR_INTERNAL, "draw %llu: %lld bytes were written, not %zu",
                              (unsigned long long)number, (long long)written, d->bytes);
    if (tsr_comm_rank(comm) != 0)
        return TSR_OK;
    char text[512];
    unsigned char *const file = read_whole(HEAD + d->bytes + TAIL);
    const bool equal = file && holds_guard(file, HEAD) && holds_guard(file + HEAD + d->bytes, TAIL) &&
                       memcmp(file + HEAD, d->wanted, d->bytes) == 0;
    free(file);
    return equal
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_INTERNAL, "draw %llu: wrong file of %s as %s, %s", (unsigned long long)number,
                                oracle_dtype_name(d->layout.dtype), oracle_dtype_name(d->stored),
                                oracle_print_placements(d->layout.placements, d->layout.mesh.ndim, text, sizeof text));
}

static tsr_status write_draw(tsr_comm *comm, uint64_t number)
{
    draw d;
    draw_make(number, tsr_comm_size(comm), &d);
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL;
    local_buffer buffer = {0};
    int64_t written = -1;
    tsr_status status = fill_file(comm, HEAD + d.bytes + TAIL);
    if (status == TSR_OK)
        status = tsr_mesh_create(comm, d.layout.mesh.ndim, d.layout.mesh.shape, NULL, d.layout.mesh.ranks, &mesh);
    if (status == TSR_OK)
        status = make_source(&d, number, comm, mesh, &buffer, &x);
    if (status == TSR_OK)
        status = tsr_dtensor_write_as(x, path, HEAD, d.stored, &written);
    if (status == TSR_OK)
        status = check_file(comm, &d, number, written);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    buffer_destroy(&buffer);
    free(d.wanted);
    return tsr_comm_share_status(comm, "write_draw", status);
}

static tsr_status write_many(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (uint64_t number = 0; number < 60; number++)
        TSR_TRY(write_draw(comm, number));
    return TSR_OK;
}

static tsr_status write_by_messages(tsr_comm *comm, void *arg)
{
    tsr_comm *messages = NULL;
    TSR_TRY(message_engine_create(comm, NULL, &messages));
    const tsr_status status = write_many(messages, arg);
    tsr_comm_destroy(messages);
    return status;
}

static void any_layout_is_written_once_where_it_belongs(void **state)
{
    (void)state;
    make_path();
    for (int world = 1; world <= 6; world += world < 3 ? 1 : 3) {
        test_case("write on %d ranks, seed %llu", world, (unsigned long long)test_seed());
        run_ranks(world, write_many, NULL);
        test_case("write over messages on %d ranks, seed %llu", world, (unsigned long long)test_seed());
        run_ranks(world, write_by_messages, NULL);
    }
    unlink(path);
}

enum { BIG_ROWS = 300, BIG_COLUMNS = 1001 };

/* Large enough for replicas to divide the work, and for more than one stage. */
static tsr_status write_big(tsr_comm *comm, void *arg)
{
    const char *const placements = arg;
    const int64_t shape[] = {BIG_ROWS, BIG_COLUMNS}, count = BIG_ROWS * BIG_COLUMNS;
    float *const values = malloc((size_t)count * sizeof *values);
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL;
    int64_t written = -1, least;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(i % 16384);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    TSR_TRY(mesh_over(comm, "2x2", &mesh));
    TSR_TRY(tsr_distribute(&global, mesh, placements, &x));
    TSR_TRY(tsr_dtensor_write_as(x, path, 0, TSR_F64, &written));
    TSR_TRY(tsr_comm_all_reduce(comm, &written, &least, 1, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    CHECK(least >= count * 8 / 4 - 8 * BIG_COLUMNS);
    unsigned char *const file = read_whole((size_t)count * sizeof(double));
    CHECK(file);
    for (int64_t i = 0; i < count; i++)
        CHECK(((const double *)(const void *)file)[i] == (double)(i % 16384));
    free(file);
    free(values);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void replicas_divide_a_large_shard(void **state)
{
    (void)state;
    static const char *const layouts[] = {"R,R", "S(0),R", "R,S(1)", "S(1),S(0)", "P,R"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        make_path();
        test_case("a large tensor as %s", layouts[i]);
        run_ranks(4, write_big, (void *)(uintptr_t)layouts[i]);
        unlink(path);
    }
}

static tsr_status write_new(tsr_comm *comm, void *arg)
{
    (void)arg;
    float value = 3;
    const int64_t empty[] = {0, 5};
    const tsr_tensor scalar = tsr_tensor_contiguous(&value, TSR_F32, 0, NULL);
    const tsr_tensor nothing = tsr_tensor_contiguous(NULL, TSR_F32, 2, empty);
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(mesh_over(comm, "3", &mesh));
    TSR_TRY(tsr_distribute(&nothing, mesh, "S(1)", &x));
    TSR_TRY(tsr_distribute(&scalar, mesh, "P", &y));
    TSR_TRY(tsr_dtensor_write(x, path, 8));
    free(read_whole(0));
    CHECK(access(path, F_OK) == 0);
    TSR_TRY(tsr_comm_barrier(comm));
    TSR_TRY(tsr_dtensor_write(y, path, 8));
    unsigned char *const file = read_whole(12);
    CHECK(file && memcmp(file, "\0\0\0\0\0\0\0\0", 8) == 0 && memcmp(file + 8, &value, 4) == 0);
    free(file);
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_file_is_made_and_grows_as_far_as_the_tensor(void **state)
{
    (void)state;
    make_path();
    unlink(path);
    test_case("a new file");
    run_ranks(3, write_new, NULL);
    unlink(path);
}

static tsr_status refuse(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    const tsr_status own = rank == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    tsr_layout *layout = NULL, *integers = NULL;
    tsr_dtensor *x = NULL, *i = NULL;
    int64_t written = -1;
    TSR_TRY(layout_over(comm, "2", "8x8", "S(0)", TSR_F32, &layout));
    TSR_TRY(layout_over(comm, "2", "8x8", "S(0)", TSR_I32, &integers));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    TSR_TRY(tsr_dtensor_create(integers, tsr_device_host(), &i));
    memset(tsr_dtensor_to_local(x).data, 0, 128);
    memset(tsr_dtensor_to_local(i).data, 0, 128);
    CHECK_ERROR(tsr_dtensor_write(NULL, path, 0), TSR_ERROR_ARGUMENT, "tsr_dtensor_write: x is NULL");
    CHECK_ERROR(tsr_dtensor_write(x, NULL, 0), TSR_ERROR_ARGUMENT, "path");
    CHECK_ERROR(tsr_dtensor_write(x, path, -1), TSR_ERROR_ARGUMENT, "-1");
    CHECK_ERROR(tsr_dtensor_write(x, path, INT64_MAX - 3), TSR_ERROR_ARGUMENT, "2^63");
    CHECK_ERROR(tsr_dtensor_write_as(NULL, path, 0, TSR_F32, NULL), TSR_ERROR_ARGUMENT,
                "tsr_dtensor_write_as: x is NULL");
    CHECK_ERROR(tsr_dtensor_write_as(x, path, 0, TSR_DTYPE_NONE, NULL), TSR_ERROR_ARGUMENT,
                "tsr_dtensor_write_as: dtype");
    CHECK_ERROR(tsr_dtensor_write_as(x, path, 0, TSR_I32, &written), TSR_ERROR_UNSUPPORTED,
                "tsr_dtensor_write_as: from f32 to i32");
    CHECK_ERROR(tsr_dtensor_write_as(i, path, 0, TSR_F32, &written), TSR_ERROR_UNSUPPORTED, "i32");
    CHECK(access(path, F_OK) != 0);
    /* One rank alone is at fault, or ranks differ. */
    CHECK_ERROR(tsr_dtensor_write(x, path, rank == 1 ? -5 : 0), own, "-5");
    CHECK_ERROR(tsr_dtensor_write(x, path, rank), TSR_ERROR_ARGUMENT, "at byte 1");
    CHECK_ERROR(tsr_dtensor_write(x, rank ? path : "/tmp/other", 0), TSR_ERROR_ARGUMENT, "/tmp/other");
    CHECK(access(path, F_OK) != 0 && access("/tmp/other", F_OK) != 0);
    /* What the system refuses, on rank 0 or on every rank. */
    CHECK_ERROR(tsr_dtensor_write(x, "/nonexistent/x", 0), rank ? TSR_ERROR_PEER : TSR_ERROR_IO, "/nonexistent/x");
    CHECK_ERROR(tsr_dtensor_write(x, "/tmp", 0), rank ? TSR_ERROR_PEER : TSR_ERROR_IO, "/tmp");
    CHECK_ERROR(tsr_dtensor_write_as(x, "/dev/full", 0, TSR_F32, &written), TSR_ERROR_IO, "/dev/full");
    CHECK(written == -1);
    TSR_TRY(tsr_dtensor_write(x, path, 0));
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(i);
    tsr_layout_destroy(layout);
    tsr_layout_destroy(integers);
    return TSR_OK;
}

static void bad_calls_are_refused_on_every_rank(void **state)
{
    (void)state;
    make_path();
    unlink(path);
    test_case("bad calls");
    run_ranks(2, refuse, NULL);
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

/* Files may have 200 bytes: of four ranks with 64 bytes each, the last fails, and all hear of
 * it. */
static tsr_status run_out_of_room(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL;
    TSR_TRY(layout_over(comm, "4", "8x8", "S(0)", TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    memset(tsr_dtensor_to_local(x).data, 0, 64);
    CHECK_ERROR(tsr_dtensor_write(x, path, 0), tsr_comm_rank(comm) == 3 ? TSR_ERROR_IO : TSR_ERROR_PEER, path);
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void a_rank_without_room_fails_all(void **state)
{
    (void)state;
    struct rlimit before;
    make_path();
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {200, before.rlim_max};
    test_case("files of at most 200 bytes");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const tsr_status status = tsr_threads_run(4, run_out_of_room, NULL, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    unlink(path);
    expect_ok(status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_layout_is_written_once_where_it_belongs),
        cmocka_unit_test(replicas_divide_a_large_shard),
        cmocka_unit_test(a_file_is_made_and_grows_as_far_as_the_tensor),
        cmocka_unit_test(bad_calls_are_refused_on_every_rank),
        cmocka_unit_test(a_rank_without_room_fails_all),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
