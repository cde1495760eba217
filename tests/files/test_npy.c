/* Facts about .npy files: what is read, what is refused, and that what is written is what NumPy
 * writes. */
#include "files_support.h"

#include <tessera/npy.h>

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define PATH_BYTES 64

/* A file in memory: magic, version, length, `dict` and a newline, then `bytes` elements' bytes 0,
 * 1, 2, .. */
static size_t make_file(unsigned char *file, int version, const char *dict, size_t bytes)
{
    const size_t length = strlen(dict) + 1;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[7] = 0;
    size_t at = 8;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        file[at++] = (unsigned char)(length >> (8 * i));
    memcpy(file + at, dict, length - 1);
    at += length;
    file[at - 1] = '\n';
    for (size_t i = 0; i < bytes; i++)
        file[at++] = (unsigned char)i;
    return at;
}

static tsr_status parse(int version, const char *dict, size_t bytes, tsr_npy_header *h)
{
    unsigned char file[2048];
    const size_t size = make_file(file, version, dict, bytes);
    /* On the heap, so that a byte read too many is seen by the address sanitizer. */
    unsigned char *const exact = malloc(size);
    assert_non_null(exact);
    memcpy(exact, file, size);
    const tsr_status status = tsr_npy_header_parse(exact, size, size, h);
    free(exact);
    return status;
}

static void put_file(char path[PATH_BYTES], const void *bytes, size_t size)
{
    strcpy(path, "/tmp/tessera-npy-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

static void headers_that_numpy_writes_are_read(void **state)
{
    (void)state;
    tsr_npy_header h;
    for (int version = 1; version <= 3; version++) {
        assert_int_equal(parse(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24, &h), TSR_OK);
        assert_int_equal(h.dtype, TSR_F32);
        assert_int_equal(h.ndim, 2);
        assert_int_equal(h.shape[0], 2);
        assert_int_equal(h.shape[1], 3);
        assert_int_equal(h.bytes, 24);
        assert_false(h.fortran || h.big_endian);
    }
}

static void every_dtype_of_the_table_has_its_descr_read_back(void **state)
{
    (void)state;
    for (int d = TSR_DTYPE_NONE + 1; d < TSR_DTYPE_END; d++) {
        const tsr_dtype_info *const info = tsr_dtype_get((tsr_dtype)d);
        char header[TSR_NPY_HEADER_BYTES];
        const size_t size = tsr_npy_header_print(info->dtype, 0, NULL, header);
        unsigned char file[TSR_NPY_HEADER_BYTES + 16] = {0};
        memcpy(file, header, size);
        tsr_npy_header h;
        print_message("%s\n", info->name);
        assert_int_equal(tsr_npy_header_parse(file, size + info->bytes, size + info->bytes, &h), TSR_OK);
        assert_string_equal(tsr_dtype_get(h.dtype)->npy, info->npy);
        assert_int_equal(h.ndim, 0);
    }
}

static void headers_are_what_numpy_prints(void **state)
{
    (void)state;
    static const struct {
        int ndim;
        int64_t shape[TSR_MAX_DIMS];
        const char *shape_text;
    } cases[] = {{0, {0}, "()"}, {1, {7}, "(7,)"}, {2, {3, 0}, "(3, 0)"}, {3, {1, 2, 3}, "(1, 2, 3)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[TSR_NPY_HEADER_BYTES], wanted[128];
        const size_t size = tsr_npy_header_print(TSR_F16, cases[i].ndim, cases[i].shape, header);
        assert_int_equal(size % 64, 0);
        assert_int_equal(header[size - 1], '\n');
        const int length = snprintf(wanted, sizeof wanted, "{'descr': '<f2', 'fortran_order': False, 'shape': %s, }",
                                    cases[i].shape_text);
        assert_memory_equal(header + 10, wanted, (size_t)length);
        assert_int_equal((unsigned char)header[8] | (unsigned char)header[9] << 8, size - 10);
    }
}

static void the_longest_header_fits(void **state)
{
    (void)state;
    int64_t shape[TSR_MAX_DIMS];
    for (int d = 0; d < TSR_MAX_DIMS; d++)
        shape[d] = INT64_MAX;
    char header[TSR_NPY_HEADER_BYTES];
    assert_in_range(tsr_npy_header_print(TSR_C128, TSR_MAX_DIMS, shape, header), 64, TSR_NPY_HEADER_BYTES);
}

static void other_spellings_of_the_same_dict_are_read(void **state)
{
    (void)state;
    static const char *const dicts[] = {
        "{\"descr\": \"<i4\", \"fortran_order\": False, \"shape\": (2,)}",
        "  { 'shape' : ( 2L , ) , 'descr' : 'i4' , 'fortran_order' : True }   ",
        "{'fortran_order':False,'shape':(1,2),'descr':'=i4',}",
        "{'descr': '|i4', 'fortran_order': False, 'shape': (2, 1, )}",
    };
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        tsr_npy_header h;
        print_message("%s\n", dicts[i]);
        assert_int_equal(parse(1, dicts[i], 8, &h), TSR_OK);
        assert_int_equal(h.dtype, TSR_I32);
    }
}

static void hostile_headers_are_refused_with_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        tsr_status status;
    } cases[] = {
        {"", TSR_ERROR_IO},
        {"{", TSR_ERROR_IO},
        {"{}", TSR_ERROR_IO},
        {"[]", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False 'shape': (2,)}", TSR_ERROR_IO},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 1)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (002,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", TSR_ERROR_IO},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '<U1', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '|V2', 'fortran_order': False, 'shape': (4,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '<f3', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '<f 4', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_IO},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", TSR_ERROR_UNSUPPORTED},
        {"{'descr': '<ffffffffffffffffffffffffffffffffffffffffffffff4', 'fortran_order': False, 'shape': (2,)}",
         TSR_ERROR_IO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_npy_header h = {.ndim = 77};
        print_message("%s\n", cases[i].dict);
        assert_int_equal(parse(1, cases[i].dict, 8, &h), cases[i].status);
        assert_int_not_equal(strlen(tsr_status_message()), 0);
        assert_null(strchr(tsr_status_message(), '\n'));
        assert_int_equal(h.ndim, 77);
    }
}

static void every_truncation_of_a_file_is_refused(void **state)
{
    (void)state;
    for (int version = 1; version <= 3; version++) {
        unsigned char file[512];
        const size_t size = make_file(file, version, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}", 48);
        for (size_t cut = 0; cut < size; cut++) {
            unsigned char *const exact = malloc(cut + 1);
            assert_non_null(exact);
            memcpy(exact + 1, file, cut);
            tsr_npy_header h;
            print_message("version %d cut at %zu of %zu\n", version, cut, size);
            assert_int_not_equal(tsr_npy_header_parse(exact + 1, cut, cut, &h), TSR_OK);
            free(exact);
        }
    }
}

static void unknown_versions_are_refused(void **state)
{
    (void)state;
    tsr_npy_header h;
    unsigned char file[512];
    const size_t size = make_file(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
    static const unsigned char versions[][2] = {{0, 0}, {4, 0}, {1, 1}, {255, 255}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        memcpy(file + 6, versions[i], 2);
        assert_int_equal(tsr_npy_header_parse(file, size, size, &h), TSR_ERROR_UNSUPPORTED);
    }
}

static void a_header_length_beyond_the_file_is_refused(void **state)
{
    (void)state;
    tsr_npy_header h;
    unsigned char file[512];
    const size_t size = make_file(file, 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 8);
    memset(file + 8, 0xff, 4);
    assert_int_equal(tsr_npy_header_parse(file, size, size, &h), TSR_ERROR_IO);
}

static void an_empty_tensor_may_have_any_other_sizes(void **state)
{
    (void)state;
    tsr_npy_header h;
    assert_int_equal(parse(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 4611686018427387904, 8)}", 0, &h),
                     TSR_OK);
    assert_int_equal(h.bytes, 0);
}

static void big_endian_elements_are_turned(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        size_t bytes;
        unsigned char wanted[16];
    } cases[] = {
        {"{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", 4, {1, 0, 3, 2}},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8, {3, 2, 1, 0, 7, 6, 5, 4}},
        {"{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}", 8, {3, 2, 1, 0, 7, 6, 5, 4}},
        {"{'descr': '>i8', 'fortran_order': False, 'shape': (1,)}", 8, {7, 6, 5, 4, 3, 2, 1, 0}},
        {"{'descr': '>u1', 'fortran_order': False, 'shape': (4,)}", 4, {0, 1, 2, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char bytes[512];
        char path[PATH_BYTES];
        tsr_npy *file;
        tsr_tensor tensor;
        put_file(path, bytes, make_file(bytes, 1, cases[i].dict, cases[i].bytes));
        assert_int_equal(tsr_npy_open(path, TSR_DTYPE_NONE, &file), TSR_OK);
        assert_int_equal(tsr_npy_load(file, &tensor), TSR_OK);
        assert_memory_equal(tensor.data, cases[i].wanted, cases[i].bytes);
        tsr_npy_destroy(file);
        unlink(path);
    }
}

static void elements_are_aligned_wherever_they_begin(void **state)
{
    (void)state;
    for (int spaces = 0; spaces < 16; spaces++) {
        char dict[128];
        snprintf(dict, sizeof dict, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}%*s", spaces, "");
        unsigned char bytes[512];
        char path[PATH_BYTES];
        tsr_npy *file;
        tsr_tensor tensor;
        put_file(path, bytes, make_file(bytes, 1, dict, 24));
        assert_int_equal(tsr_npy_open(path, TSR_DTYPE_NONE, &file), TSR_OK);
        assert_int_equal(tsr_npy_load(file, &tensor), TSR_OK);
        assert_int_equal((uintptr_t)tensor.data % sizeof(double), 0);
        for (unsigned char i = 0; i < 24; i++)
            assert_int_equal(((unsigned char *)tensor.data)[i], i);
        tsr_npy_destroy(file);
        unlink(path);
    }
}

static void fortran_order_gives_strides(void **state)
{
    (void)state;
    unsigned char bytes[512];
    char path[PATH_BYTES];
    tsr_npy *file;
    tsr_tensor tensor;
    put_file(path, bytes, make_file(bytes, 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}", 24));
    assert_int_equal(tsr_npy_open(path, TSR_DTYPE_NONE, &file), TSR_OK);
    assert_int_equal(tsr_npy_load(file, &tensor), TSR_OK);
    assert_int_equal(tensor.strides[0], 1);
    assert_int_equal(tensor.strides[1], 2);
    assert_int_equal(tensor.strides[2], 6);
    tsr_npy_destroy(file);
    unlink(path);
}

static void another_dtype_needs_the_same_descr(void **state)
{
    (void)state;
    unsigned char bytes[512];
    char path[PATH_BYTES];
    tsr_npy *file = NULL;
    put_file(path, bytes, make_file(bytes, 1, "{'descr': '<u2', 'fortran_order': False, 'shape': (4,)}", 8));
    assert_int_equal(tsr_npy_open(path, TSR_F32, &file), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_npy_open(path, TSR_F16, &file), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_npy_open(path, (tsr_dtype)99, &file), TSR_ERROR_ARGUMENT);
    assert_null(file);
    assert_int_equal(tsr_npy_open(path, TSR_DTYPE_NONE, &file), TSR_OK);
    assert_int_equal(tsr_npy_get_header(file)->dtype, TSR_U16);
    tsr_npy_destroy(file);
    tsr_tensor tensor;
    assert_int_equal(tsr_npy_open(path, TSR_BF16, &file), TSR_OK);
    assert_int_equal(tsr_npy_load(file, &tensor), TSR_OK);
    assert_int_equal(tensor.dtype, TSR_BF16);
    tsr_npy_destroy(file);
    unlink(path);
}

static void what_is_saved_is_read_back(void **state)
{
    (void)state;
    double elements[6] = {0, -1, 2.5, 3, 4, 5};
    const int64_t shape[2] = {2, 3};
    const tsr_tensor saved = tsr_tensor_contiguous(elements, TSR_F64, 2, shape);
    char path[PATH_BYTES];
    tsr_npy *file;
    tsr_tensor tensor;
    put_file(path, "", 0);
    assert_int_equal(tsr_npy_save(path, &saved), TSR_OK);
    assert_int_equal(tsr_npy_open(path, TSR_DTYPE_NONE, &file), TSR_OK);
    assert_int_equal(tsr_npy_load(file, &tensor), TSR_OK);
    assert_int_equal(tensor.dtype, TSR_F64);
    assert_int_equal(tensor.ndim, 2);
    assert_memory_equal(tensor.shape, shape, sizeof shape);
    assert_memory_equal(tensor.data, elements, sizeof elements);
    tsr_npy_destroy(file);
    unlink(path);
}

static void tensors_that_cannot_be_saved_are_refused(void **state)
{
    (void)state;
    double elements[6] = {0};
    const int64_t shape[2] = {2, 3};
    tsr_tensor strided = tsr_tensor_contiguous(elements, TSR_F64, 2, shape), lacking = strided, odd = strided;
    strided.strides[0] = 1;
    strided.strides[1] = 2;
    lacking.data = NULL;
    odd.dtype = TSR_DTYPE_NONE;
    assert_int_equal(tsr_npy_save("/tmp/tessera-never", &strided), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "strided"));
    assert_int_equal(tsr_npy_save("/tmp/tessera-never", &lacking), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_npy_save("/tmp/tessera-never", &odd), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_npy_save(NULL, &odd), TSR_ERROR_ARGUMENT);
    assert_int_equal(access("/tmp/tessera-never", F_OK), -1);
}

static void a_failure_leaves_what_was_there(void **state)
{
    (void)state;
    static const double elements[64] = {1};
    const int64_t shape[1] = {64};
    const tsr_tensor tensor = tsr_tensor_contiguous((void *)elements, TSR_F64, 1, shape);
    char folder[] = "/tmp/tessera-npy-XXXXXX", path[PATH_BYTES], kept[4] = {0};
    struct rlimit before;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.npy", folder);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fputs("old", file) >= 0, 1);
    fclose(file);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {100, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const tsr_status status = tsr_npy_save(path, &tensor);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, TSR_ERROR_IO);
    FILE *const again = fopen(path, "r");
    assert_non_null(again);
    assert_int_equal(fread(kept, 1, sizeof kept, again), 3);
    fclose(again);
    assert_string_equal(kept, "old");
    assert_int_equal(support_count_names(folder), 3);
    unlink(path);
    rmdir(folder);
}

static void new_files_have_names_of_their_own_until_they_are_published(void **state)
{
    (void)state;
    enum { FILES = 64 };
    tsr_new_file *files[FILES];
    char folder[] = "/tmp/tessera-npy-XXXXXX", path[PATH_BYTES], text[8] = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x", folder);
    for (int i = 0; i < FILES; i++) {
        assert_int_equal(tsr_new_file_create(path, &files[i]), TSR_OK);
        assert_int_equal(access(tsr_new_file_path(files[i]), F_OK), 0);
        assert_int_equal(tsr_new_file_write(files[i], i == 1 ? "two" : "one", 3), TSR_OK);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(tsr_new_file_path(files[i]), tsr_new_file_path(files[j]));
    }
    assert_int_equal(support_count_names(folder), FILES + 2);
    assert_int_equal(tsr_new_file_settle(files[1]), TSR_OK);
    assert_int_equal(tsr_new_file_write(files[1], "more", 4), TSR_ERROR_STATE);
    assert_int_equal(tsr_new_file_close(files[0]), TSR_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tsr_new_file_publish(files[i]), TSR_OK);
    for (int i = 2; i < FILES; i++)
        tsr_new_file_discard(files[i]);
    assert_int_equal(support_count_names(folder), 3);
    const int file = open(path, O_RDONLY);
    assert_int_equal(read(file, text, sizeof text), 3);
    assert_string_equal(text, "two");
    close(file);
    assert_int_equal(tsr_new_file_create(folder, files), TSR_ERROR_IO);
    assert_int_equal(tsr_new_file_create("/dev/null", files), TSR_ERROR_IO);
    assert_int_equal(tsr_new_file_create(NULL, files), TSR_ERROR_ARGUMENT);
    unlink(path);
    rmdir(folder);
}

/* The status is TSR_ERROR_ARGUMENT, and its sentence has `part`. */
static void assert_argument(tsr_status status, const char *part)
{
    assert_int_equal(status, TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), part));
}

static void what_is_null_is_refused(void **state)
{
    tsr_npy_header header;
    tsr_new_file *file;
    char path[] = "/tmp/tessera-null-XXXXXX";
    (void)state;
    assert_argument(tsr_npy_header_parse(NULL, 10, 10, &header), "beginning is NULL");
    assert_argument(tsr_npy_header_parse("", 0, 0, NULL), "out is NULL");
    assert_argument(tsr_new_file_write(NULL, "x", 1), "file is NULL");
    assert_argument(tsr_new_file_settle(NULL), "file is NULL");
    assert_argument(tsr_new_file_close(NULL), "file is NULL");
    assert_argument(tsr_new_file_publish(NULL), "file is NULL");
    close(mkstemp(path));
    assert_int_equal(tsr_new_file_create(path, &file), TSR_OK);
    assert_argument(tsr_new_file_write(file, NULL, 1), "data is NULL");
    assert_int_equal(tsr_new_file_write(file, NULL, 0), TSR_OK);
    tsr_new_file_discard(file);
    unlink(path);
}

static void a_prepared_file_is_published_or_discarded(void **state)
{
    (void)state;
    double element = 7;
    const tsr_tensor tensor = tsr_tensor_contiguous(&element, TSR_F64, 0, NULL);
    char path[PATH_BYTES];
    tsr_new_file *file;
    tsr_npy *saved;
    put_file(path, "", 0);
    assert_int_equal(tsr_npy_prepare(path, &tensor, &file), TSR_OK);
    assert_int_equal(tsr_npy_open(path, TSR_DTYPE_NONE, &saved), TSR_ERROR_IO);
    tsr_new_file_discard(file);
    assert_int_equal(tsr_npy_prepare(path, &tensor, &file), TSR_OK);
    assert_int_equal(tsr_new_file_publish(file), TSR_OK);
    assert_int_equal(tsr_npy_open(path, TSR_DTYPE_NONE, &saved), TSR_OK);
    tsr_npy_destroy(saved);
    assert_int_equal(tsr_npy_prepare("/dev/null", &tensor, &file), TSR_OK);
    assert_null(file);
    unlink(path);
}

static void elements_are_those_of_the_file_that_was_opened(void **state)
{
    (void)state;
    unsigned char bytes[512];
    char path[PATH_BYTES];
    tsr_npy *file;
    tsr_tensor tensor;
    const size_t size = make_file(bytes, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", 24);
    put_file(path, bytes, size);
    assert_int_equal(tsr_npy_open(path, TSR_DTYPE_NONE, &file), TSR_OK);
    assert_int_equal(truncate(path, (off_t)size - 8), 0);
    assert_int_equal(tsr_npy_load(file, &tensor), TSR_ERROR_IO);
    assert_non_null(strstr(tsr_status_message(), "16"));
    make_file(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", 24);
    FILE *const other = fopen(path, "w");
    assert_non_null(other);
    assert_int_equal(fwrite(bytes, 1, size, other), size);
    fclose(other);
    assert_int_equal(tsr_npy_load(file, &tensor), TSR_ERROR_IO);
    assert_non_null(strstr(tsr_status_message(), "replaced"));
    tsr_npy_destroy(file);
    unlink(path);
}

static void a_file_that_cannot_be_had_is_named(void **state)
{
    (void)state;
    double element = 1;
    const tsr_tensor tensor = tsr_tensor_contiguous(&element, TSR_F64, 0, NULL);
    tsr_npy *file;
    assert_int_equal(tsr_npy_open("/nowhere/x.npy", TSR_DTYPE_NONE, &file), TSR_ERROR_IO);
    assert_non_null(strstr(tsr_status_message(), "/nowhere/x.npy"));
    assert_int_equal(tsr_npy_open("/tmp", TSR_DTYPE_NONE, &file), TSR_ERROR_IO);
    assert_non_null(strstr(tsr_status_message(), "regular file"));
    assert_int_equal(tsr_npy_save("/nowhere/x.npy", &tensor), TSR_ERROR_IO);
    assert_non_null(strstr(tsr_status_message(), "/nowhere/x.npy"));
    assert_int_equal(tsr_npy_save("/dev/full", &tensor), TSR_ERROR_IO);
    assert_int_equal(access("/dev/full", F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_that_numpy_writes_are_read),
        cmocka_unit_test(every_dtype_of_the_table_has_its_descr_read_back),
        cmocka_unit_test(headers_are_what_numpy_prints),
        cmocka_unit_test(the_longest_header_fits),
        cmocka_unit_test(other_spellings_of_the_same_dict_are_read),
        cmocka_unit_test(hostile_headers_are_refused_with_a_sentence),
        cmocka_unit_test(every_truncation_of_a_file_is_refused),
        cmocka_unit_test(unknown_versions_are_refused),
        cmocka_unit_test(a_header_length_beyond_the_file_is_refused),
        cmocka_unit_test(an_empty_tensor_may_have_any_other_sizes),
        cmocka_unit_test(big_endian_elements_are_turned),
        cmocka_unit_test(elements_are_aligned_wherever_they_begin),
        cmocka_unit_test(fortran_order_gives_strides),
        cmocka_unit_test(another_dtype_needs_the_same_descr),
        cmocka_unit_test(what_is_saved_is_read_back),
        cmocka_unit_test(tensors_that_cannot_be_saved_are_refused),
        cmocka_unit_test(a_failure_leaves_what_was_there),
        cmocka_unit_test(new_files_have_names_of_their_own_until_they_are_published),
        cmocka_unit_test(what_is_null_is_refused),
        cmocka_unit_test(a_prepared_file_is_published_or_discarded),
        cmocka_unit_test(elements_are_those_of_the_file_that_was_opened),
        cmocka_unit_test(a_file_that_cannot_be_had_is_named),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
