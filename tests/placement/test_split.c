/* What a cut says of its kind of split, against the part of each position, over every small cut;
 * and which placements are the same. */
#include "placement/cut.h"

#include <tessera/placement.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LONGEST 23

/* The cut at hand, for messages. */
static char words[160];

typedef void check_cut(const tsr_cut *cut, int64_t length);

static void name_cut(const tsr_cut *cut, int64_t length)
{
    snprintf(words, sizeof words, "%lld in %lld parts, balanced %d, interleave %lld, unit %lld, %s", (long long)length,
             (long long)cut->parts, cut->balanced, (long long)cut->interleave, (long long)cut->unit,
             cut->size_starts    ? "sizes"
             : cut->block_starts ? "blocks"
                                 : "no list");
}

static void visit(const tsr_cut *cut, int64_t length, check_cut *check)
{
    name_cut(cut, length);
    check(cut, length);
}

/* Visits cuts of a piece in two blocks, and cuts by sizes that rise, that fall, and that are as
 * equal as possible. */
static void visit_lists(int64_t parts, int64_t length, check_cut *check)
{
    int64_t rising[8] = {0}, falling[8] = {0}, even[8] = {0};
    const int64_t blocks[] = {0, length / 3, length};
    for (int64_t p = 0; p < parts; p++) {
        rising[p + 1] = length * (p + 1) * (p + 1) / (parts * parts);
        falling[parts - p - 1] = length - rising[p + 1];
        even[p + 1] = length * (p + 1) / parts;
    }
    falling[parts] = length;
    const int64_t *const lists[] = {rising, falling, even};
    for (int i = 0; i < 3; i++)
        visit(&(tsr_cut){.parts = parts, .interleave = 1, .unit = 1, .size_starts = lists[i]}, length, check);
    for (int balanced = 0; balanced < 2; balanced++)
        visit(&(tsr_cut){.parts = parts,
                         .balanced = balanced,
                         .interleave = 1,
                         .unit = 1,
                         .block_starts = blocks,
                         .block_count = 2},
              length, check);
}

static void visit_all(check_cut *check)
{
    for (int64_t length = 0; length <= LONGEST; length++)
        for (int64_t parts = 1; parts <= 6; parts++) {
            visit_lists(parts, length, check);
            for (int balanced = 0; balanced < 2; balanced++)
                for (int64_t interleave = 1; interleave <= 3; interleave++)
                    for (int64_t unit = 1; unit <= 4; unit++)
                        visit(&(tsr_cut){.parts = parts, .balanced = balanced, .interleave = interleave, .unit = unit},
                              length, check);
        }
}

/* Positions of each part, counted one by one. */
static void count_parts(const tsr_cut *cut, int64_t length, int64_t *counts)
{
    memset(counts, 0, 8 * sizeof *counts);
    for (int64_t at = 0; at < length; at++)
        counts[tsr_cut_part(cut, length, at)]++;
}

static bool parts_ascend(const tsr_cut *cut, int64_t length)
{
    for (int64_t at = 1; at < length; at++)
        if (tsr_cut_part(cut, length, at) < tsr_cut_part(cut, length, at - 1))
            return false;
    return true;
}

static int cuts_in_turns;

/* Checks a cut that says that it deals intervals: it must do so for every piece. Another cut may do
 * so for some pieces. */
static void check_intervals(const tsr_cut *cut, int64_t length)
{
    if (tsr_cut_deals_intervals(cut) && !parts_ascend(cut, length))
        fail_msg("parts are no intervals: %s", words);
    cuts_in_turns += !parts_ascend(cut, length);
}

static void parts_are_intervals_where_the_cut_says_so(void **state)
{
    (void)state;
    cuts_in_turns = 0;
    visit_all(check_intervals);
    assert_true(cuts_in_turns > 1000);
}

static int even_cuts;

static void check_even(const tsr_cut *cut, int64_t length)
{
    int64_t counts[8];
    bool even = true;
    count_parts(cut, length, counts);
    for (int64_t p = 1; p < cut->parts; p++)
        even &= counts[p] == counts[0];
    if (tsr_cut_is_even(cut, length) != even)
        fail_msg("even is %d: %s", even, words);
    even_cuts += even && length > 0 && cut->parts > 1;
}

static void a_cut_is_even_where_all_parts_are_of_one_length(void **state)
{
    (void)state;
    even_cuts = 0;
    visit_all(check_even);
    assert_true(even_cuts > 200);
}

static void check_stretches(const tsr_cut *cut, int64_t length)
{
    int64_t counts[8];
    tsr_cut_stretch found[TSR_CUT_STRETCHES];
    if (!tsr_cut_deals_intervals(cut) || tsr_cut_lists_sizes(cut))
        return;
    count_parts(cut, length, counts);
    const int count = tsr_cut_stretches(cut, length, found);
    int64_t part = 0;
    assert_in_range(count, 0, TSR_CUT_STRETCHES);
    for (int i = 0; i < count; i++) {
        if (found[i].begin != part || found[i].end <= part || found[i].end > cut->parts)
            fail_msg("stretch %d is [%lld, %lld) after part %lld: %s", i, (long long)found[i].begin,
                     (long long)found[i].end, (long long)part, words);
        for (; part < found[i].end; part++)
            if (counts[part] != found[i].length || counts[part] == 0)
                fail_msg("part %lld has %lld positions, its stretch says %lld: %s", (long long)part,
                         (long long)counts[part], (long long)found[i].length, words);
    }
    for (; part < cut->parts; part++)
        if (counts[part] != 0)
            fail_msg("part %lld is in no stretch: %s", (long long)part, words);
}

static void stretches_are_the_parts_that_hold_something(void **state)
{
    (void)state;
    visit_all(check_stretches);
}

static void a_balanced_cut_gives_units_in_turn(void **state)
{
    const tsr_cut cut = tsr_cut_balanced(4, 8);
    static const int64_t sizes[] = {16, 16, 8, 3}; /* of 43: six units, the last of 3 */
    (void)state;
    for (int64_t part = 0; part < 4; part++)
        assert_int_equal(tsr_cut_size(&cut, 43, part), sizes[part]);
    assert_true(tsr_cut_deals_intervals(&cut));
    assert_false(tsr_cut_lists_sizes(&cut));
    assert_false(tsr_cut_interleaves(&cut));
}

/* Parses one placement; its numbers are the case's own. */
static tsr_placement parse(const char *text, int64_t *numbers)
{
    tsr_placement out;
    int count;
    assert_int_equal(tsr_placements_parse(text, &out, 1, &count, numbers, 8, NULL), TSR_OK);
    assert_int_equal(count, 1);
    return out;
}

static void placements_are_the_same_by_what_they_say(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"R", "R", true},
        {"R", "P", false},
        {"P", "P(sum)", true},
        {"P(max)", "P(min)", false},
        {"S(0)", "S(0)", true},
        {"S(0)", "S(1)", false},
        {"S(0)", "R", false},
        {"S(0;unit=1)", "S(0)", true},
        {"S(0;interleave=1)", "S(0)", true},
        {"S(0;interleave=2)", "S(0)", false},
        {"S(0;balanced)", "S(0)", false},
        {"S(0;unit=4)", "S(0;unit=8)", false},
        {"S(0;sizes=1,2)", "S(0;sizes=1,2)", true},
        {"S(0;sizes=1,2)", "S(0;sizes=2,1)", false},
        {"S(0;sizes=1,2)", "S(0;sizes=1,2,0)", false},
        {"S(0;sizes=1,2)", "S(0;blocks=1,2)", false},
        {"S(0;blocks=1,2)", "S(0;blocks=1,2)", true},
        {"S(0;blocks=1,2)", "S(0;blocks=1,3)", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t left[8], right[8];
        const tsr_placement a = parse(rows[i].a, left), b = parse(rows[i].b, right);
        if (tsr_placement_same(&a, &b) != rows[i].same || tsr_placement_same(&b, &a) != rows[i].same)
            fail_msg("%s and %s", rows[i].a, rows[i].b);
    }
    tsr_placement late = tsr_shard(0);
    const tsr_placement plain = tsr_shard(0);
    late.order = 3;
    assert_true(tsr_placement_same(&late, &plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_intervals_where_the_cut_says_so),
        cmocka_unit_test(a_cut_is_even_where_all_parts_are_of_one_length),
        cmocka_unit_test(stretches_are_the_parts_that_hold_something),
        cmocka_unit_test(a_balanced_cut_gives_units_in_turn),
        cmocka_unit_test(placements_are_the_same_by_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
