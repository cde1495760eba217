/* Objects as bytes: what writers write is what readers read, on every machine, and frames tell what
 * is not so. */
#include <tessera/sys/bytes.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const tsr_frame frame = {"sum", "test-sum", 2, 4}, one_version = {"sum", "test-sum", 3, 3};
static const int64_t numbers[] = {INT64_MIN, -2};

enum { INSIDE = 4 + 8 + 8 + 8 + 2 * 8 + 3, ALL = INSIDE + TSR_FRAME_BYTES };

/* A record with one of each, in a frame. */
static void write_record(tsr_writer *w, size_t bytes)
{
    tsr_write_frame(w, &frame, 3, bytes);
    tsr_write_u32(w, 0x01020304);
    tsr_write_u64(w, UINT64_C(0xfffefdfcfbfaf9f8));
    tsr_write_i64(w, -1);
    tsr_write_f64(w, -0.5);
    tsr_write_numbers(w, numbers, 2);
    tsr_write_text(w, "ab");
    tsr_write_frame_end(w);
}

static void make_record(unsigned char bytes[ALL])
{
    tsr_writer count = {.buffer = NULL}, written = {.buffer = bytes, .capacity = ALL};
    write_record(&count, 0);
    assert_int_equal(count.length, ALL);
    write_record(&written, count.length);
    assert_int_equal(written.length, ALL);
}

static void bytes_are_the_same_on_every_machine(void **state)
{
    (void)state;
    static const unsigned char head[] = {'t', 'e', 's', 't', '-', 's', 'u', 'm', 3, 0, 0, 0,   ALL,
                                         0,   0,   0,   0,   0,   0,   0,   4,   3, 2, 1, 0xf8};
    static const unsigned char empty[] = {0x25, 0x23, 0x22, 0x84, 0xe4, 0x9c, 0xf2, 0xcb}; /* FNV-1a of nothing */
    unsigned char bytes[ALL], end[8];
    tsr_writer writer = {.buffer = end, .capacity = sizeof end};
    make_record(bytes);
    assert_memory_equal(bytes, head, sizeof head);
    tsr_write_frame_end(&writer);
    assert_memory_equal(end, empty, sizeof empty);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    unsigned char bytes[ALL];
    uint32_t version = 0;
    int64_t read[2];
    tsr_reader reader;
    make_record(bytes);
    assert_int_equal(tsr_read_frame("test", &frame, bytes, ALL, &version, &reader), TSR_OK);
    assert_int_equal(tsr_read_frame("test", &one_version, bytes, ALL, NULL, &reader), TSR_OK);
    assert_int_equal(version, 3);
    assert_int_equal(reader.left, INSIDE);
    assert_int_equal(tsr_read_u32(&reader), 0x01020304);
    assert_true(tsr_read_u64(&reader) == UINT64_C(0xfffefdfcfbfaf9f8));
    assert_int_equal(tsr_read_i64(&reader), -1);
    assert_true(tsr_read_f64(&reader) == -0.5);
    tsr_read_numbers(&reader, read, 2);
    assert_memory_equal(read, numbers, sizeof numbers);
    assert_string_equal(tsr_read_text(&reader), "ab");
    assert_true(!reader.ended && reader.left == 0);
}

static void past_the_end_all_is_nothing(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {1, 2, 3};
    int64_t read[] = {7};
    tsr_reader reader = {.at = bytes, .left = 3}, text = reader, more = reader;
    assert_int_equal(tsr_read_u32(&reader), 0);
    assert_true(reader.ended && reader.left == 3);
    assert_null(tsr_read_bytes(&reader, 1));
    tsr_read_numbers(&reader, read, 1);
    assert_int_equal(read[0], 0);
    assert_true(tsr_read_f64(&reader) == 0 && !signbit(tsr_read_f64(&reader)));
    assert_string_equal(tsr_read_text(&text), ""); /* no NUL ends it */
    assert_true(text.ended);
    assert_ptr_equal(tsr_read_bytes(&more, 3), bytes);
    assert_true(!more.ended && more.left == 0);
}

static void a_writer_compares_and_counts(void **state)
{
    (void)state;
    unsigned char bytes[ALL], part[ALL] = {0};
    make_record(bytes);
    tsr_writer same = {.expected = bytes, .capacity = ALL}, short_of = {.expected = bytes, .capacity = ALL - 1};
    tsr_writer cut = {.buffer = part, .capacity = 10};
    write_record(&same, ALL);
    write_record(&short_of, ALL);
    write_record(&cut, ALL);
    assert_true(!same.differs && short_of.differs);
    assert_true(cut.length == ALL && cut.checksum == same.checksum);
    assert_memory_equal(part, bytes, 10);
    assert_int_equal(part[10], 0);
    bytes[30]++;
    tsr_writer other = {.expected = bytes, .capacity = ALL};
    tsr_write_bytes(&other, bytes, 30);
    assert_false(other.differs);
    tsr_write_bytes(&other, "", 1);
    assert_true(other.differs);
}

static void expect_refusal(const tsr_frame *f, const unsigned char *bytes, size_t size, tsr_status status,
                           const char *sentence)
{
    tsr_reader reader = {.left = 77};
    assert_int_equal(tsr_read_frame("test", f, bytes, size, NULL, &reader), status);
    assert_string_equal(tsr_status_message(), sentence);
    assert_int_equal(reader.left, 77);
}

static void frames_tell_what_is_wrong(void **state)
{
    (void)state;
    unsigned char bytes[ALL];
    make_record(bytes);
    expect_refusal(&frame, bytes, 7, TSR_ERROR_ARGUMENT,
                   "test: the 7 bytes are not a saved sum: they do not begin with \"test-sum\"");
    expect_refusal(&frame, bytes, 12, TSR_ERROR_ARGUMENT, "test: the sum was saved in 0 bytes, but here are 12");
    expect_refusal(&frame, bytes, ALL - 1, TSR_ERROR_ARGUMENT, "test: the sum was saved in 75 bytes, but here are 74");
    for (size_t i = 20; i < ALL; i++) {
        bytes[i] ^= 0x10;
        expect_refusal(&frame, bytes, ALL, TSR_ERROR_ARGUMENT,
                       "test: the bytes are damaged: their checksum does not match");
        bytes[i] ^= 0x10;
    }
    bytes[8] = 5;
    expect_refusal(&frame, bytes, ALL, TSR_ERROR_UNSUPPORTED,
                   "test: the sum was saved in format 5, but this library reads formats 2 to 4");
    expect_refusal(&one_version, bytes, ALL, TSR_ERROR_UNSUPPORTED,
                   "test: the sum was saved in format 5, but this library reads format 3");
    bytes[0] = 'T';
    expect_refusal(&frame, bytes, ALL, TSR_ERROR_ARGUMENT,
                   "test: the 75 bytes are not a saved sum: they do not begin with \"test-sum\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_the_same_on_every_machine), cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(past_the_end_all_is_nothing),         cmocka_unit_test(a_writer_compares_and_counts),
        cmocka_unit_test(frames_tell_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
