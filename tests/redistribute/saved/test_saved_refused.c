/* Bytes that tsr_plan_save() did not write: cut short, damaged, hostile or mutated; and loading
 * without memory. */
#include "counted_memory.h"
#include "layouts.h"
#include "oracle_random.h"
#include "saved_support.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Where its numbers stand: dtype 100, ndim 104, shape 108; the source's mesh 124 (ndim 132, named
 * 136, listed 140, shape 144, names 160, first rank 164, strides 172, nodes 188), Shard 196 (dim
 * 200, order 204, balanced 208, list 212, interleave 216, unit 224, count 232, sizes 240), Partial
 * 256 (op 260); the destination's mesh 264, Replicate 272, Shard 276 (dim 280, order 284, balanced
 * 288, list 292, interleave 296, unit 304, count 312); checksum 320. */
static const saved_move example = {"a=2,b=3", NULL, "6x4", "S(0;sizes=2,4),P(max)", "R,S(1)", TSR_F32};
enum { EXAMPLE_BYTES = 328 };

static saved_bytes example_bytes(void)
{
    tsr_plan *plan = plan_of(&example, NULL);
    const saved_bytes bytes = bytes_of(plan);
    tsr_plan_destroy(plan);
    assert_int_equal(bytes.size, EXAMPLE_BYTES);
    return bytes;
}

static void expect_refused(const saved_bytes *bytes, tsr_status wanted, const char *part)
{
    tsr_plan *plan = NULL;
    expect_error(tsr_plan_load(NULL, bytes->at, bytes->size, 0, &plan), wanted, part);
    assert_null(plan);
}

static void every_beginning_of_a_saved_plan_is_refused(void **state)
{
    (void)state;
    saved_bytes whole = example_bytes();
    for (size_t size = 0; size < whole.size; size++) {
        test_case("the first %zu bytes", size);
        saved_bytes cut = {malloc(size > 0 ? size : 1), size}; /* of just that size, so that reading past it shows */
        memcpy(cut.at, whole.at, size);
        expect_refused(&cut, TSR_ERROR_ARGUMENT, size < AT_VERSION ? "not a saved plan" : "bytes");
        if (size >= FRAME_BYTES) {
            test_case("the first %zu bytes, with their own length and checksum", size);
            seal(&cut);
            expect_refused(&cut, TSR_ERROR_ARGUMENT, NULL);
        }
        bytes_free(&cut);
    }
    bytes_free(&whole);
}

static void every_byte_that_is_another_is_noticed(void **state)
{
    (void)state;
    saved_bytes bytes = example_bytes();
    for (size_t at = 0; at < bytes.size; at++) {
        const unsigned char kept = bytes.at[at];
        for (int other = 0; other < 256; other++) {
            tsr_plan *plan = NULL;
            test_case("byte %zu is %d, not %d", at, other, kept);
            bytes.at[at] = (unsigned char)other;
            if (other != kept)
                assert_int_not_equal(tsr_plan_load(NULL, bytes.at, bytes.size, 0, &plan), TSR_OK);
            assert_null(plan);
        }
        bytes.at[at] = kept;
    }
    bytes_free(&bytes);
}

/* Changes one number, with length and checksum corrected. */
typedef struct wrong {
    size_t at;
    int width;
    uint64_t value;
    tsr_status status;
    const char *names; /* words of the sentence */
} wrong;

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void expect_wrong(const wrong *row)
{
    saved_bytes bytes = example_bytes();
    test_case("%d bytes at %zu are %llu", row->width, row->at, (unsigned long long)row->value);
    put_number(&bytes, row->at, row->width, row->value);
    seal(&bytes);
    expect_refused(&bytes, row->status, row->names);
    bytes_free(&bytes);
}

#define BAD   TSR_ERROR_ARGUMENT
#define OTHER TSR_ERROR_UNSUPPORTED

static void options_that_no_plan_has_are_refused_by_a_sentence(void **state)
{
    (void)state;
    const wrong rows[] = {
        {AT_VERSION, 4, 1, OTHER, "format 1"},
        {AT_MODE, 4, 2, BAD, "the mode is 2"},
        {24, 4, 7, BAD, "the objective is 7"},
        {28, 4, 2, BAD, "no_split is 2"},
        {32, 4, 2, BAD, "the order of reductions is 2"},
        {44, 8, UINT64_C(1) << 63, BAD, "9223372036854775808 nodes of ranks do not fit"},
        {52, 8, bits_of(NAN), BAD, "inside.latency"},
        {52, 8, bits_of(-1), BAD, "inside.latency"},
        {60, 8, bits_of(INFINITY), BAD, "inside.bandwidth"},
        {60, 8, bits_of(0), BAD, "inside.bandwidth"},
        {68, 8, bits_of(-INFINITY), BAD, "between.latency"},
        {76, 8, bits_of(-2), BAD, "between.bandwidth"},
        {AT_HASH, 8, 12345, OTHER, "plans these layouts otherwise"},
        {24, 4, 1, OTHER, "otherwise"}, /* a good objective, but the hash is that of another plan */
        {36, 8, 1 << 20, OTHER, "otherwise"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_wrong(&rows[i]);
}

static void layouts_that_cannot_be_are_refused_by_a_sentence(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {AT_ITEMS, 8, 0, BAD, "220 bytes follow"},
        {AT_ITEMS, 8, 2, BAD, "end inside"},
        {AT_ITEMS, 8, 7, BAD, "7 items do not fit"},
        {AT_ITEMS, 8, UINT64_C(1) << 63, BAD, "items do not fit"},
        {100, 4, 0, BAD, "0 is not a dtype"},
        {100, 4, 99, BAD, "99 is not a dtype"},
        {100, 4, UINT32_MAX, BAD, "dtype"},
        {100, 4, TSR_C64, BAD, "max"},
        {104, 4, 9, BAD, "tensor of 9 dims"},
        {104, 4, 0, BAD, NULL},
        {108, 8, UINT64_MAX, BAD, "negative"},
        {108, 8, UINT64_C(1) << 62, BAD, "2^63"},
        {108, 8, 7, BAD, "sum to 6"},
        {124, 8, 1, BAD, "the side whose mesh"},
        {132, 4, 0, BAD, "ndim is 0"},
        {132, 4, 9, BAD, "mesh of 9 dims"},
        {136, 4, 0, BAD, NULL},
        {140, 4, 1, BAD, "ranks[0] and ranks[5] are both 0"},
        {144, 8, 0, BAD, "shape[0] is 0"},
        {144, 8, UINT64_MAX, BAD, "shape[0] is -1"},
        {144, 8, UINT64_C(1) << 40, BAD, "more ranks"},
        {160, 1, '1', BAD, "names[0] is \"1\""},
        {160, 1, 'b', BAD, "both be called \"b\""},
        {164, 8, UINT64_MAX, BAD, "from rank -1 on"},
        {164, 8, 0x7ffffffa, BAD, "the strides leave the ranks"},
        {172, 8, 0, BAD, "a stride is not larger"},
        {172, 8, 2, BAD, "a stride is not larger"},
        {172, 8, UINT64_MAX, BAD, "the strides leave the ranks"},
        {172, 8, UINT64_C(1) << 63, BAD, "the strides leave the ranks"},
        {188, 8, UINT64_C(1) << 63, BAD, "9223372036854775808 nodes of ranks do not fit"},
        {264, 8, 2, BAD, "the side whose mesh"},
        {264, 8, 1, BAD, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_wrong(&rows[i]);
}

static void placements_that_cannot_be_are_refused_by_a_sentence(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {196, 4, 3, BAD, "the kind of a placement is 3"},
        {200, 4, 2, BAD, "shard dim 2"},
        {200, 4, UINT32_MAX, BAD, "shard dim -1"},
        {204, 4, UINT32_MAX - 1, BAD, "order -2"},
        {208, 4, 1, BAD, "sizes stand alone"},
        {212, 4, 0, BAD, "2 numbers that are list 0"},
        {212, 4, 3, BAD, "list 3"},
        {216, 8, 2, BAD, "combine sizes="},
        {216, 8, UINT64_MAX, BAD, "interleave -1"},
        {224, 8, 2, BAD, "combine sizes="},
        {232, 8, 0, BAD, "0 numbers that are list 1"},
        {232, 8, UINT64_C(1) << 61, BAD, "sizes or blocks do not fit"},
        {232, 8, UINT64_MAX, BAD, "sizes or blocks do not fit"},
        {240, 8, UINT64_MAX, BAD, "number 0 of sizes is -1"},
        {240, 8, 3, BAD, "sum to 7"},
        {260, 4, 9, BAD, "op 9"},
        {260, 4, TSR_MIN, OTHER, "otherwise"},
        {292, 4, 1, BAD, "0 numbers that are list 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_wrong(&rows[i]);
}

/* A plan has one form, so that equal plans have equal bytes. */
static void another_spelling_of_the_same_plan_is_refused(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {136, 4, 2, BAD, "not those that tsr_plan_save() writes"}, /* named is 0 or 1 */
        {204, 4, 0, BAD, "not those"},                             /* an order that ascending mesh dims say already */
        {284, 4, 5, BAD, "not those"},
        {296, 8, 1, BAD, "not those"}, /* an interleave of 1 is saved as 0 */
        {304, 8, 1, BAD, "not those"}, /* a unit of 1 is saved as 0 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_wrong(&rows[i]);
}

static void a_plan_without_items_is_refused(void **state)
{
    (void)state;
    saved_bytes bytes = example_bytes();
    put_number(&bytes, AT_ITEMS, 8, 0);
    bytes.size = AT_FIRST_ITEM + 8;
    seal(&bytes);
    expect_refused(&bytes, TSR_ERROR_ARGUMENT, "0 items; it has at least one");
    bytes_free(&bytes);
}

static void bytes_after_the_last_item_are_refused(void **state)
{
    (void)state;
    saved_bytes bytes = example_bytes();
    saved_bytes longer = {calloc(bytes.size + 4, 1), bytes.size + 4};
    memcpy(longer.at, bytes.at, bytes.size);
    test_case("four bytes more");
    expect_refused(&longer, TSR_ERROR_ARGUMENT, "saved in 328 bytes, but here are 332");
    seal(&longer);
    expect_refused(&longer, TSR_ERROR_ARGUMENT, "4 bytes follow the last item");
    bytes_free(&longer);
    bytes_free(&bytes);
}

/* No memory is taken for the length that a list claims. */
static void lists_take_no_memory_that_the_bytes_do_not_fill(void **state)
{
    (void)state;
    static const wrong rows[] = {
        {AT_ITEMS, 8, UINT64_C(1) << 40, BAD, "items do not fit"},
        {232, 8, UINT64_C(1) << 40, BAD, "sizes or blocks do not fit"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_wrong(&rows[i]);
    saved_bytes bytes = example_bytes();
    put_number(&bytes, 140, 4, 1);
    put_number(&bytes, 144, 8, 1 << 30);
    put_number(&bytes, 152, 8, 1);
    seal(&bytes);
    test_case("a list of 2^30 ranks");
    expect_refused(&bytes, TSR_ERROR_ARGUMENT, "1073741824 listed ranks do not fit");
    put_number(&bytes, 144, 8, UINT64_MAX);
    seal(&bytes);
    expect_refused(&bytes, TSR_ERROR_ARGUMENT, "listed ranks do not fit");
    bytes_free(&bytes);
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    saved_bytes bytes = example_bytes();
    tsr_plan *plan = NULL, *good = NULL;
    size_t size = 99;
    test_case("bad arguments");
    expect_error(tsr_plan_load(NULL, NULL, 10, 0, &plan), TSR_ERROR_ARGUMENT, "bytes is NULL");
    expect_error(tsr_plan_load(NULL, bytes.at, bytes.size, 0, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    expect_error(tsr_plan_load(NULL, bytes.at, bytes.size, TSR_RANK_DEFAULT, &plan), TSR_ERROR_ARGUMENT, "rank is -2");
    expect_error(tsr_plan_load(NULL, bytes.at, bytes.size, INT64_C(1) << 31, &plan), TSR_ERROR_ARGUMENT,
                 "rank is 2147483648");
    assert_null(plan);
    expect_ok(tsr_plan_load(NULL, bytes.at, bytes.size, 0, &good));
    expect_error(tsr_plan_save(NULL, bytes.at, bytes.size, &size), TSR_ERROR_ARGUMENT, "plan is NULL");
    expect_error(tsr_plan_save(good, bytes.at, bytes.size, NULL), TSR_ERROR_ARGUMENT, "bytes is NULL");
    expect_error(tsr_plan_save(good, NULL, 5, &size), TSR_ERROR_ARGUMENT, "buffer is NULL");
    assert_int_equal(size, 99);
    tsr_plan_destroy(good);
    bytes_free(&bytes);
}

/* Changes some bytes of a saved plan, often to values with which numbers begin. */
static void mutate(oracle_random *random, saved_bytes *bytes)
{
    static const unsigned char likely[] = {0, 1, 2, 3, 4, 8, 0x7f, 0x80, 0xff};
    const int64_t count = 1 + oracle_random_below(random, 4);
    for (int64_t i = 0; i < count; i++) {
        const size_t at = (size_t)oracle_random_below(random, (int64_t)bytes->size - 8);
        const size_t pick = (size_t)oracle_random_below(random, sizeof likely);
        bytes->at[at] = oracle_random_below(random, 3) == 0 ? (unsigned char)oracle_random_next(random) : likely[pick];
    }
    if (oracle_random_below(random, 8) == 0)
        bytes->size = FRAME_BYTES + (size_t)oracle_random_below(random, (int64_t)bytes->size - FRAME_BYTES);
}

/* The memory is counted, so that a leak in any failing case is found without a sanitizer too. */
static void mutated_bytes_are_refused_or_are_what_they_say(void **state)
{
    (void)state;
    counted_memory memory = {.allocations = 0};
    tsr_context *context = counted_context(&memory);
    const size_t blocks = memory.live_blocks;
    saved_bytes whole = example_bytes();
    oracle_random random = {.state = test_seed()};
    int loaded = 0;
    for (int i = 0; i < 20000; i++) {
        saved_bytes bytes = bytes_copy(&whole);
        mutate(&random, &bytes);
        seal(&bytes);
        test_case("mutation %d of seed %llu", i, (unsigned long long)test_seed());
        tsr_plan *plan = NULL;
        if (tsr_plan_load(context, bytes.at, bytes.size, oracle_random_below(&random, 2) - 1, &plan) == TSR_OK) {
            expect_bytes(plan, &bytes);
            loaded++;
        }
        tsr_plan_destroy(plan);
        assert_int_equal(memory.live_blocks, blocks);
        bytes_free(&bytes);
    }
    assert_true(loaded < 20000);
    bytes_free(&whole);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

/* Two items on two meshes, one of them listed, over listed nodes: every kind of allocation that
 * loading makes. */
static saved_bytes batch_bytes(void)
{
    static const int64_t node[] = {0, 0, 0, 1, 1, 2, 2, 0};
    const saved_move uneven = {"4@[3,0,1,7]", "2x2", "8", "S(0;blocks=2,6)", "S(0;sizes=1,7),R", TSR_I16, {0, 8, node}};
    tsr_plan *a = plan_of(&example, NULL), *b = plan_of(&uneven, NULL), *plan = NULL;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.nodes = uneven.nodes;
    const tsr_layout *const src[] = {tsr_plan_source(a), tsr_plan_source(b)};
    const tsr_layout *const dst[] = {tsr_plan_destination(a), tsr_plan_destination(b)};
    expect_ok(tsr_plan_create_batch(2, src, dst, &options, &plan));
    const saved_bytes bytes = bytes_of(plan);
    tsr_plan_destroy(plan);
    tsr_plan_destroy(a);
    tsr_plan_destroy(b);
    return bytes;
}

static void loading_fails_cleanly_at_every_allocation(void **state)
{
    (void)state;
    saved_bytes bytes = batch_bytes();
    tsr_status status = TSR_ERROR_MEMORY;
    size_t failed = 0;
    for (size_t n = 1; status != TSR_OK; n++) {
        counted_memory memory = {.allocations = 0};
        tsr_context *context = counted_context(&memory);
        tsr_plan *plan = NULL;
        memory.fail_at = memory.allocations + n;
        test_case("allocation %zu of tsr_plan_load() fails", n);
        status = tsr_plan_load(context, bytes.at, bytes.size, 0, &plan);
        assert_true(status == TSR_OK || (status == TSR_ERROR_MEMORY && !plan));
        failed += status != TSR_OK;
        tsr_plan_destroy(plan);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
    assert_true(failed > 10);
    bytes_free(&bytes);
}

static void saving_allocates_nothing(void **state)
{
    (void)state;
    counted_memory memory = {.allocations = 0};
    tsr_context *context = counted_context(&memory);
    saved_bytes bytes = batch_bytes();
    tsr_plan *plan = NULL;
    expect_ok(tsr_plan_load(context, bytes.at, bytes.size, 0, &plan));
    const size_t before = memory.allocations;
    expect_bytes(plan, &bytes);
    assert_int_equal(memory.allocations, before);
    tsr_plan_destroy(plan);
    tsr_context_destroy(context);
    bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_beginning_of_a_saved_plan_is_refused),
        cmocka_unit_test(every_byte_that_is_another_is_noticed),
        cmocka_unit_test(options_that_no_plan_has_are_refused_by_a_sentence),
        cmocka_unit_test(layouts_that_cannot_be_are_refused_by_a_sentence),
        cmocka_unit_test(placements_that_cannot_be_are_refused_by_a_sentence),
        cmocka_unit_test(another_spelling_of_the_same_plan_is_refused),
        cmocka_unit_test(a_plan_without_items_is_refused),
        cmocka_unit_test(bytes_after_the_last_item_are_refused),
        cmocka_unit_test(lists_take_no_memory_that_the_bytes_do_not_fill),
        cmocka_unit_test(bad_arguments_are_named),
        cmocka_unit_test(mutated_bytes_are_refused_or_are_what_they_say),
        cmocka_unit_test(loading_fails_cleanly_at_every_allocation),
        cmocka_unit_test(saving_allocates_nothing),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
