/* Files that ranks write together and read back: .npy and safetensors, in any layout and dtype, and
 * what a failure leaves. */
#include "files_support.h"
#include "layouts.h"
#include "oracle.h"
#include "ranks.h"
#include "support.h"

#include <tessera/npy.h>
#include <tessera/safetensors.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 13, COLUMNS = 7, COUNT = ROWS * COLUMNS };

static char folder[32], path[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tessera-files-XXXXXX");
    snprintf(path, sizeof path, "%s/x", mkdtemp(folder) ? folder : "");
    return 0;
}

/* Removes the folder and what is in it; fails if that is more than `path` itself. */
static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void put(const char *name, const void *bytes, size_t count)
{
    const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, count), (ssize_t)count);
    close(file);
}

static bool file_is(const char *wanted)
{
    char text[64] = {0};
    const int file = open(path, O_RDONLY);
    const bool good = file >= 0 && read(file, text, sizeof text - 1) >= 0 && strcmp(text, wanted) == 0;
    close(file);
    return good;
}

/* The elements of a dtype, the same on every rank. */
static void make_elements(tsr_dtype dtype, unsigned char *elements)
{
    for (int64_t i = 0; i < COUNT; i++)
        oracle_element(dtype, 7, i, 0, elements + (size_t)i * oracle_bytes(dtype));
}

static tsr_status distribute(tsr_comm *comm, const char *mesh_text, const char *placements, tsr_dtype dtype,
                             tsr_dtensor **out)
{
    unsigned char elements[COUNT * 16];
    const int64_t shape[] = {ROWS, COLUMNS};
    const tsr_tensor global = tsr_tensor_contiguous(elements, dtype, 2, shape);
    tsr_mesh *mesh;
    make_elements(dtype, elements);
    TSR_TRY(mesh_over(comm, mesh_text, &mesh));
    const tsr_status status = tsr_distribute(&global, mesh, placements, out);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Every rank gets the whole tensor, which must be the elements of `dtype` converted to `stored`. */
static tsr_status check_whole(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtype stored)
{
    unsigned char elements[COUNT * 16], wanted[16];
    const size_t from = oracle_bytes(dtype), to = oracle_bytes(stored);
    tsr_dtensor *whole;
    make_elements(dtype, elements);
    TSR_TRY(tsr_full_tensor(x, &whole));
    const unsigned char *const has = tsr_dtensor_to_local(whole).data;
    for (size_t i = 0; i < COUNT; i++) {
        if (dtype == stored)
            memcpy(wanted, elements + i * from, from);
        else
            oracle_convert(dtype, elements + i * from, stored, wanted);
        CHECK(memcmp(has + i * to, wanted, to) == 0);
    }
    tsr_dtensor_destroy(whole);
    return TSR_OK;
}

typedef struct conversion {
    tsr_dtype dtype, stored;
} conversion;

/* Writes a tensor as S(0),S(1), and reads it on another mesh. */
static tsr_status there_and_back(tsr_comm *comm, void *arg)
{
    const conversion *const c = arg;
    const int64_t shape[] = {ROWS, COLUMNS};
    tsr_dtensor *x, *y;
    tsr_npy *file;
    tsr_mesh *mesh;
    tsr_layout *layout;
    int64_t bytes_read = -1;
    TSR_TRY(distribute(comm, "2x2", "S(0),S(1;balanced)", c->dtype, &x));
    TSR_TRY(tsr_npy_write(x, path, c->stored == c->dtype ? TSR_DTYPE_NONE : c->stored));
    tsr_dtensor_destroy(x);
    TSR_TRY(tsr_npy_open(path, c->stored, &file));
    TSR_TRY(mesh_over(comm, "3@1", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, shape, c->stored, &layout));
    TSR_TRY(tsr_npy_read(file, layout, &bytes_read, &y));
    CHECK(bytes_read == tsr_dtensor_to_local(y).shape[0] * COLUMNS * (int64_t)oracle_bytes(c->stored) ||
          tsr_comm_rank(comm) == 0);
    TSR_TRY(tsr_comm_rank(comm) == 0 ? tsr_full_tensor(y, &x) : check_whole(y, c->dtype, c->stored));
    if (tsr_comm_rank(comm) == 0)
        tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    tsr_npy_destroy(file);
    return tsr_comm_barrier(comm);
}

static void npy_files_are_read_as_they_were_written(void **state)
{
    (void)state;
    for (int dtype = TSR_F64; dtype <= TSR_C128; dtype++) {
        for (int stored = TSR_F64; stored <= TSR_C128; stored++) {
            if (stored != dtype && (stored > TSR_F8E5M2 || dtype > TSR_F8E5M2))
                continue;
            conversion c = {(tsr_dtype)dtype, (tsr_dtype)stored};
            test_case("%s written as %s", oracle_dtype_name(c.dtype), oracle_dtype_name(c.stored));
            run_ranks(4, there_and_back, &c);
        }
    }
}

/* A 2x3 file of f32 0 to 5, in an order and with an endianness that the library does not have. */
static tsr_status read_odd_file(tsr_comm *comm, void *arg)
{
    const int loaded = *(const int *)arg;
    static const double wanted[] = {0, 1, 2, 3, 4, 5};
    const int64_t shape[] = {2, 3};
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x, *whole;
    tsr_npy *file;
    tsr_tensor tensor;
    TSR_TRY(mesh_over(comm, "2", &mesh));
    TSR_TRY(tsr_npy_open(path, TSR_DTYPE_NONE, &file));
    if (loaded)
        TSR_TRY(tsr_npy_load(file, &tensor));
    TSR_TRY(tsr_layout_parse(mesh, "S(1)", 2, shape, TSR_F64, &layout));
    TSR_TRY(tsr_npy_read(file, layout, NULL, &x));
    TSR_TRY(tsr_full_tensor(x, &whole));
    CHECK(memcmp(tsr_dtensor_to_local(whole).data, wanted, sizeof wanted) == 0);
    tsr_dtensor_destroy(whole);
    tsr_dtensor_destroy(x);
    TSR_TRY(tsr_npy_distribute(path, mesh, "S(0)", &x));
    CHECK(((const float *)tsr_dtensor_to_local(x).data)[2] == (float)(3 * tsr_comm_rank(comm) + 2));
    tsr_dtensor_destroy(x);
    CHECK_ERROR(tsr_npy_distribute(path, mesh, "S(2)", &x), TSR_ERROR_ARGUMENT, "S(2)");
    tsr_layout_destroy(layout);
    TSR_TRY(layout_over(comm, "2", "3x2", "S(0)", TSR_F32, &layout));
    CHECK_ERROR(tsr_npy_read(file, layout, NULL, &x), TSR_ERROR_ARGUMENT, "2x3");
    tsr_layout_destroy(layout);
    tsr_npy_destroy(file);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void files_of_another_order_are_distributed_too(void **state)
{
    (void)state;
    static const char *const dicts[] = {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                                        "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }"};
    for (int order = 0; order < 2; order++) {
        unsigned char file[256];
        const size_t length = strlen(dicts[order]) + 1;
        memcpy(file, "\x93NUMPY\1\0", 8);
        file[8] = (unsigned char)length;
        file[9] = 0;
        memcpy(file + 10, dicts[order], length - 1);
        file[10 + length - 1] = '\n';
        for (int i = 0; i < 6; i++) {
            const float value = (float)(order == 0 ? i % 2 * 3 + i / 2 : i);
            unsigned char bytes[4];
            memcpy(bytes, &value, 4);
            for (int b = 0; b < 4; b++)
                file[10 + length + (size_t)(4 * i + b)] = bytes[order == 0 ? b : 3 - b];
        }
        put(path, file, 10 + length + 24);
        for (int loaded = 0; loaded < 2; loaded++) {
            test_case("%s, loaded: %d", dicts[order], loaded);
            run_ranks(2, read_odd_file, &loaded);
        }
    }
}

/* Four tensors of three layouts and four dtypes, one of them stored as another. */
static tsr_status write_many(tsr_comm *comm, void *arg)
{
    static const tsr_safetensors_text metadata[] = {{"format", "pt"}, {"by \"us\"", "tess\xc3\xa9ra"}};
    tsr_safetensors_write_options options = TSR_SAFETENSORS_WRITE_OPTIONS_INIT;
    tsr_dtensor *x[4], *read;
    tsr_safetensors *file;
    tsr_layout *layout;
    const bool turned = tsr_comm_rank(comm) == 1;
    (void)arg;
    options.metadata_count = 2;
    options.metadata = metadata;
    TSR_TRY(distribute(comm, "2x2", "S(0),S(1)", TSR_F32, &x[0]));
    TSR_TRY(distribute(comm, "4", "R", TSR_U8, &x[1]));
    TSR_TRY(distribute(comm, "3@1", "S(1)", TSR_BF16, &x[2]));
    TSR_TRY(distribute(comm, "4", "P", TSR_F32, &x[3]));
    const tsr_safetensors_tensor tensors[] = {{"layer.0", x[0], TSR_DTYPE_NONE},
                                              {"ids", x[1], TSR_DTYPE_NONE},
                                              {"a \"name\"\n\xe2\x82\xac", x[2], TSR_DTYPE_NONE},
                                              {"layer.1", x[3], TSR_F16}};
    /* The order of the tensors does not matter, not even from rank to rank. */
    const tsr_safetensors_tensor other[] = {tensors[3], tensors[1], tensors[0], tensors[2]};
    TSR_TRY(tsr_safetensors_write(path, 4, turned ? other : tensors, &options));
    TSR_TRY(tsr_safetensors_open(path, &file));
    CHECK(tsr_safetensors_count(file) == 4 && !tsr_safetensors_get(file, 4));
    CHECK(strcmp(tsr_safetensors_get(file, 0)->name, tensors[2].name) == 0);
    CHECK(strcmp(tsr_safetensors_metadata(file, "by \"us\""), "tess\xc3\xa9ra") == 0);
    CHECK(!tsr_safetensors_metadata(file, "none") && !tsr_safetensors_find(file, "none"));
    for (int i = 0; i < 4; i++) {
        const tsr_safetensors_entry *const entry = tsr_safetensors_find(file, tensors[i].name);
        const tsr_dtype dtype = tsr_layout_dtype(tsr_dtensor_layout(x[i]));
        CHECK(entry && entry->dtype == (i == 3 ? TSR_F16 : dtype) && strcmp(entry->path, path) == 0);
        CHECK(entry->offset % (int64_t)oracle_bytes(entry->dtype) == 0);
        TSR_TRY(layout_over(comm, "4", "13x7", "S(1)", entry->dtype, &layout));
        TSR_TRY(tsr_safetensors_distribute(file, tensors[i].name, layout, NULL, &read));
        TSR_TRY(check_whole(read, dtype, entry->dtype));
        tsr_dtensor_destroy(read);
        tsr_layout_destroy(layout);
    }
    TSR_TRY(layout_over(comm, "4", "7x13", "S(1)", TSR_F32, &layout));
    CHECK_ERROR(tsr_safetensors_distribute(file, "layer.0", layout, NULL, &read), TSR_ERROR_ARGUMENT, "size 13");
    CHECK_ERROR(tsr_safetensors_distribute(file, "layer.7", layout, NULL, &read), TSR_ERROR_ARGUMENT, "layer.7");
    tsr_layout_destroy(layout);
    tsr_safetensors_destroy(file);
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(x[i]);
    return tsr_comm_barrier(comm);
}

static void safetensors_files_are_read_as_they_were_written(void **state)
{
    (void)state;
    test_case("four tensors");
    run_ranks(4, write_many, NULL);
}

/* Whatever fails, the older file stays, and nothing is beside it. */
static tsr_status refuse(tsr_comm *comm, void *arg)
{
    const int rank = tsr_comm_rank(comm);
    tsr_dtensor *x, *c;
    (void)arg;
    TSR_TRY(distribute(comm, "2", "S(0)", TSR_F32, &x));
    TSR_TRY(distribute(comm, "2", "S(0)", TSR_C128, &c));
    const tsr_status root = rank == 0 ? TSR_ERROR_IO : TSR_ERROR_PEER;
    CHECK_ERROR(tsr_npy_write(NULL, path, TSR_F32), TSR_ERROR_ARGUMENT, "x is NULL");
    CHECK_ERROR(tsr_npy_write(x, rank == 1 ? NULL : path, TSR_F32), rank == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "path is NULL");
    CHECK_ERROR(tsr_npy_write(x, path, (tsr_dtype)99), TSR_ERROR_ARGUMENT, "99");
    CHECK_ERROR(tsr_npy_write(x, path, TSR_I32), TSR_ERROR_UNSUPPORTED, "i32");
    CHECK_ERROR(tsr_npy_write(x, path, rank == 1 ? TSR_F64 : TSR_F32), TSR_ERROR_ARGUMENT, "f64");
    CHECK_ERROR(tsr_npy_write(x, "/nowhere/x.npy", TSR_F32), root, "/nowhere/x.npy");
    CHECK_ERROR(tsr_npy_write(x, "/dev/null", TSR_F32), root, "regular file");
    const tsr_safetensors_tensor good = {"x", x, TSR_DTYPE_NONE}, twice[] = {good, good};
    tsr_safetensors_tensor bad[] = {good, {"y", x, TSR_DTYPE_NONE}};
    CHECK_ERROR(tsr_safetensors_write(path, 0, &good, NULL), TSR_ERROR_ARGUMENT, "count is 0");
    CHECK_ERROR(tsr_safetensors_write(path, 2, NULL, NULL), TSR_ERROR_ARGUMENT, "tensors is NULL");
    CHECK_ERROR(tsr_safetensors_write(path, 2, twice, NULL), TSR_ERROR_ARGUMENT, "twice");
    bad[1].name = "\xff";
    CHECK_ERROR(tsr_safetensors_write(path, 2, bad, NULL), TSR_ERROR_ARGUMENT, "UTF-8");
    bad[1].name = "__metadata__";
    CHECK_ERROR(tsr_safetensors_write(path, 2, bad, NULL), TSR_ERROR_ARGUMENT, "__metadata__");
    bad[1] = (tsr_safetensors_tensor){rank == 1 ? "z" : "y", x, TSR_DTYPE_NONE};
    CHECK_ERROR(tsr_safetensors_write(path, 2, bad, NULL), TSR_ERROR_ARGUMENT, "different");
    bad[1].x = rank == 1 ? NULL : x;
    CHECK_ERROR(tsr_safetensors_write(path, 2, bad, NULL), rank == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "tensors[1].x is NULL");
    bad[1] = (tsr_safetensors_tensor){"c", c, TSR_DTYPE_NONE};
    CHECK_ERROR(tsr_safetensors_write(path, 2, bad, NULL), TSR_ERROR_UNSUPPORTED, "c128");
    bad[1] = (tsr_safetensors_tensor){"y", x, TSR_I32};
    CHECK_ERROR(tsr_safetensors_write(path, 2, bad, NULL), TSR_ERROR_UNSUPPORTED, "i32");
    CHECK_ERROR(tsr_safetensors_write("/nowhere/x", 1, &good, NULL), root, "/nowhere/x");
    CHECK(file_is("old"));
    tsr_dtensor_destroy(c);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void a_refused_write_leaves_what_was_there(void **state)
{
    (void)state;
    put(path, "old", 3);
    test_case("refused writes");
    run_ranks(2, refuse, NULL);
    assert_int_equal(support_count_names(folder), 3);
}

/* Files may have 600 bytes: the header and the first of three ranks' elements. */
static tsr_status run_out_of_room(tsr_comm *comm, void *arg)
{
    const bool npy = *(const bool *)arg;
    const int rank = tsr_comm_rank(comm);
    tsr_dtensor *x;
    TSR_TRY(distribute(comm, "3", "S(0)", TSR_F64, &x));
    const tsr_safetensors_tensor tensor = {"x", x, TSR_DTYPE_NONE};
    CHECK_ERROR(npy ? tsr_npy_write(x, path, TSR_DTYPE_NONE) : tsr_safetensors_write(path, 1, &tensor, NULL),
                rank == 0 ? TSR_ERROR_PEER : TSR_ERROR_IO, "writing");
    TSR_TRY(tsr_comm_barrier(comm));
    CHECK(file_is("old"));
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void a_rank_without_room_leaves_what_was_there(void **state)
{
    (void)state;
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (int npy = 0; npy < 2; npy++) {
        const struct rlimit small = {600, before.rlim_max};
        bool arg = npy;
        put(path, "old", 3);
        test_case("files of at most 600 bytes, npy: %d", npy);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const tsr_status status = tsr_threads_run(3, run_out_of_room, &arg, NULL);
        setrlimit(RLIMIT_FSIZE, &before);
        expect_ok(status);
        assert_int_equal(support_count_names(folder), 3);
    }
}

/* An index and its two files, each with one u8 tensor of one element. */
static void put_model(const char *index)
{
    static const char *const names[] = {"a", "b"};
    char at[96];
    for (int i = 0; i < 2; i++) {
        char bytes[128] = {0};
        const int length = snprintf(bytes + 8, sizeof bytes - 8,
                                    "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", names[i]);
        bytes[0] = (char)length;
        bytes[8 + length] = (char)(i + 5);
        snprintf(at, sizeof at, "%s/%s.safetensors", folder, names[i]);
        put(at, bytes, (size_t)length + 9);
    }
    snprintf(at, sizeof at, "%s/model.safetensors.index.json", folder);
    put(at, index, strlen(index));
}

static void a_model_in_several_files_is_opened_by_its_index(void **state)
{
    (void)state;
    static const struct {
        const char *index, *said;
    } bad[] = {
        {"{\"weight_map\":{\"a\":\"../a.safetensors\"}}", "beside it"},
        {"{\"weight_map\":{\"a\":\"b.safetensors\"}}", "is not"},
        {"{\"weight_map\":{\"a\":7}}", "beside it"},
        {"{\"weight_map\":[]}", "weight_map"},
        {"{\"weight_map\":{\"a\":\"a.safetensors\",\"a\":\"a.safetensors\"}}", "line 1"},
        {"{\"weight_map\":{\"a\":\"none.safetensors\"}}", "neither"},
        {"{", "line 1"},
    };
    char index[96];
    tsr_safetensors *file = NULL;
    snprintf(index, sizeof index, "%s/model.safetensors.index.json", folder);
    assert_int_equal(tsr_safetensors_open(folder, &file), TSR_ERROR_IO);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        print_message("%s\n", bad[i].index);
        put_model(bad[i].index);
        assert_int_not_equal(tsr_safetensors_open(folder, &file), TSR_OK);
        if (!strstr(tsr_status_message(), bad[i].said) && i != 5)
            fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), bad[i].said);
    }
    assert_null(file);
    put_model("{\"metadata\":{\"total_size\":2},\"weight_map\":{\"b\":\"b.safetensors\",\"a\":\"a.safetensors\"}}");
    for (int by_index = 0; by_index < 2; by_index++) {
        assert_int_equal(tsr_safetensors_open(by_index ? index : folder, &file), TSR_OK);
        assert_int_equal(tsr_safetensors_count(file), 2);
        assert_string_equal(tsr_safetensors_get(file, 1)->name, "b");
        assert_non_null(strstr(tsr_safetensors_get(file, 1)->path, "/b.safetensors"));
        tsr_safetensors_destroy(file);
    }
    for (const char *const *name = (const char *const[]){"a.safetensors", "b.safetensors", NULL}; *name; name++) {
        snprintf(index, sizeof index, "%s/%s", folder, *name);
        unlink(index);
    }
    snprintf(index, sizeof index, "%s/model.safetensors.index.json", folder);
    unlink(index);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(npy_files_are_read_as_they_were_written),         CASE(files_of_another_order_are_distributed_too),
        CASE(safetensors_files_are_read_as_they_were_written), CASE(a_refused_write_leaves_what_was_there),
        CASE(a_rank_without_room_leaves_what_was_there),       CASE(a_model_in_several_files_is_opened_by_its_index),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
