/* Placements as text: what parses, how it prints, and where an error points. */
#include "layouts.h"
#include "oracle_random.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Equal but for orders. */
static bool equal_placements(const tsr_placement *a, const tsr_placement *b)
{
    if (a->kind != b->kind || (a->kind == TSR_PARTIAL && a->op != b->op))
        return false;
    return a->kind != TSR_SHARD || oracle_same_cut(a, b);
}

static void expect_round_trip(const oracle_layout *layout)
{
    char wanted[4096], printed[4096], again[4096];
    const int ndim = layout->mesh.ndim;
    oracle_print_placements(layout->placements, ndim, wanted, sizeof wanted);
    test_case("%s", wanted);
    const size_t length = tsr_placements_print(layout->placements, ndim, printed, sizeof printed);
    assert_string_equal(printed, wanted);
    assert_int_equal(length, strlen(wanted));

    oracle_layout parsed = *layout;
    int64_t numbers[ORACLE_NUMBERS];
    int count = -1;
    expect_ok(tsr_placements_parse(printed, parsed.placements, TSR_MAX_DIMS, &count, numbers, ORACLE_NUMBERS, NULL));
    assert_int_equal(count, ndim);
    for (int m = 0; m < ndim; m++)
        assert_true(equal_placements(&layout->placements[m], &parsed.placements[m]));
    for (int d = 0; d < layout->ndim; d++) {
        int a[TSR_MAX_DIMS], b[TSR_MAX_DIMS];
        const int cuts = oracle_cuts_of(layout, d, a);
        assert_int_equal(oracle_cuts_of(&parsed, d, b), cuts);
        assert_memory_equal(a, b, (size_t)cuts * sizeof *a);
    }
    tsr_placements_print(parsed.placements, ndim, again, sizeof again);
    assert_string_equal(again, printed);
}

static void what_is_printed_parses_to_the_same(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    for (uint64_t n = 0; n < 5000; n++) {
        oracle_random random = {.state = seed * 7919 + n};
        oracle_numbers numbers = {.count = 0};
        oracle_layout layout = {.dtype = oracle_random_dtype(&random)};
        layout.mesh = oracle_random_mesh(&random, 6, 16, 16);
        oracle_random_shape(&random, 4, 2000, &layout);
        oracle_random_placements(&random, &layout, &numbers);
        expect_round_trip(&layout);
    }
}

typedef struct spelling {
    const char *text, *printed;
} spelling;

static void other_spellings_print_in_one_way(void **state)
{
    (void)state;
    static const spelling rows[] = {
        {"P(sum)", "P"},
        {"P(avg),P(max),P(min),P(prod)", "P(avg),P(max),P(min),P(prod)"},
        {"R , S(0) ,R", "R,S(0),R"},
        {"S(0)[0],S(0)[1]", "S(0),S(0)"},
        {"S(0)[7],S(0)[3]", "S(0)[1],S(0)[0]"},
        {"S(0)[2],S(0)", "S(0)[1],S(0)[0]"},
        {"S(0)[5],S(1)[2]", "S(0),S(1)"},
        {"S(3;unit=4;balanced)", "S(3;balanced;unit=4)"},
        {"S(0;unit=2;interleave=3)", "S(0;interleave=3;unit=2)"},
        {"S(0;sizes=1,0,2),R", "S(0;sizes=1,0,2),R"},
        {"S(0;unit=2;blocks=4,2,2;balanced)", "S(0;balanced;blocks=4,2,2;unit=2)"},
        {"S(0)[1],R,S(0)[0]", "S(0)[1],R,S(0)[0]"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof rows[0]; i++) {
        tsr_placement placements[8];
        int64_t numbers[64];
        char text[128];
        int count;
        test_case("%s", rows[i].text);
        expect_ok(tsr_placements_parse(rows[i].text, placements, 8, &count, numbers, 64, NULL));
        const size_t length = tsr_placements_print(placements, count, text, sizeof text);
        assert_string_equal(text, rows[i].printed);
        assert_int_equal(length, strlen(rows[i].printed));
    }
}

typedef struct mistake {
    const char *text;
    size_t position; /* of the character that is wrong */
} mistake;

static void an_error_points_at_the_character(void **state)
{
    (void)state;
    static const mistake rows[] = {
        {"", 0},
        {"X", 0},
        {"R,", 2},
        {"R,,R", 2},
        {"R S(0)", 1},
        {"S", 1},
        {"S(", 2},
        {"S()", 2},
        {"S(0", 3},
        {"S(-1)", 2},
        {"S(a)", 2},
        {"S(0))", 4},
        {"P(", 2},
        {"P(mean)", 2},
        {"P(sum", 5},
        {"S(0;)", 4},
        {"S(0;blanced)", 4},
        {"S(0;unit)", 4},
        {"S(0;unit=)", 9},
        {"S(0;unit=x)", 9},
        {"S(0;sizes=1,)", 12},
        {"S(0)[", 5},
        {"S(0)[x]", 5},
        {"S(0)[0", 6},
        {"R(0)", 1},
        {"s(0)", 0},
        {"S(0)[-1]", 5},
        {"R;R", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof rows[0]; i++) {
        tsr_placement placements[8];
        int64_t numbers[64];
        int count = -5;
        size_t position = 999;
        test_case("\"%s\"", rows[i].text);
        expect_error(tsr_placements_parse(rows[i].text, placements, 8, &count, numbers, 64, &position),
                     TSR_ERROR_ARGUMENT, rows[i].text);
        assert_int_equal(count, -5);
        if (position != rows[i].position)
            fail_msg("\"%s\" points at %zu, not %zu: %s", rows[i].text, position, rows[i].position,
                     tsr_status_message());
    }
}

static void pytorchs_spelling_is_refused_with_ours(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"Shard(0)", "placements \"Shard(0)\", character 1: this is PyTorch's spelling; write S(0)"},
        {"R, Shard(dim=12)", "placements \"R, Shard(dim=12)\", character 4: this is PyTorch's spelling; write S(12)"},
        {"Shard(-1)", "placements \"Shard(-1)\", character 1: this is PyTorch's spelling; write S(dim)"},
        {"_StridedShard(0, sf=2)",
         "placements \"_StridedShard(0, sf=2)\", character 1: this is PyTorch's spelling; write S(0;interleave=k)"},
        {"Replicate()", "placements \"Replicate()\", character 1: this is PyTorch's spelling; write R"},
        {"Partial(sum)", "placements \"Partial(sum)\", character 1: this is PyTorch's spelling; write P, or P(max)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tsr_placement placements[8];
        int count;
        assert_int_equal(tsr_placements_parse(rows[i].text, placements, 8, &count, NULL, 0, NULL), TSR_ERROR_ARGUMENT);
        assert_string_equal(tsr_status_message(), rows[i].sentence);
    }
}

static void other_nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "S(0;unit=0)",
        "S(0;interleave=0)",
        "S(0;unit=2;unit=2)",
        "S(0;balanced;balanced)",
        "S(99999999999999999999)",
        "S(0;sizes=-1,2)",
        "S(0;unit=-1)",
        "S(0;unit=9223372036854775808)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tsr_placement placements[8];
        int64_t numbers[64];
        int count;
        test_case("\"%s\"", texts[i]);
        expect_error(tsr_placements_parse(texts[i], placements, 8, &count, numbers, 64, NULL), TSR_ERROR_ARGUMENT,
                     NULL);
    }
}

static void room_is_respected(void **state)
{
    (void)state;
    tsr_placement placements[3] = {{.dim = 77}, {.dim = 77}, {.dim = 77}};
    int64_t numbers[4] = {7, 7, 7, 7};
    int count = 0;
    const tsr_status status = tsr_placements_parse("R,S(1),S(0)", placements, 2, &count, numbers, 4, NULL);
    assert_true(status != TSR_OK || count == 3);
    assert_int_equal(placements[2].dim, 77);
    expect_error(tsr_placements_parse("R,S(0;sizes=1,2,3,4,5)", placements, 3, &count, numbers, 4, NULL),
                 TSR_ERROR_ARGUMENT, "character 21: there is room for 4 numbers of sizes= and blocks=");
    char text[8];
    memset(text, 'x', sizeof text);
    const tsr_placement shard = tsr_shard(12);
    assert_int_equal(tsr_placements_print(&shard, 1, text, 4), strlen("S(12)"));
    assert_string_equal(text, "S(1");
    assert_int_equal(text[4], 'x');
    assert_int_equal(tsr_placements_print(&shard, 1, NULL, 0), strlen("S(12)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_spellings_print_in_one_way),
        cmocka_unit_test(an_error_points_at_the_character),
        cmocka_unit_test(pytorchs_spelling_is_refused_with_ours),
        cmocka_unit_test(other_nonsense_is_refused),
        cmocka_unit_test(room_is_respected),
        cmocka_unit_test(what_is_printed_parses_to_the_same),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
