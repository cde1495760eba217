/* How the host's kernels choose their ways, seen from inside the library and timed by a clock of
 * the test. */
#include "device/host/choose.h"
#include "variants.h"

#include <tessera/context.h>

#define MIB ((size_t)1 << 20)

/* A machine on which each way takes `takes` microseconds for a MiB. */
typedef struct machine {
    tsr_kernel_choices *choices;
    uint64_t now;
    uint32_t takes[TSR_WAYS];
    size_t moved[TSR_WAYS]; /* bytes since forget_moved() */
    int looks;              /* at the clock */
    tsr_way way, before;    /* the way of the last piece, and the other way before it */
    bool soiled;            /* ordinary stores leave lines that the next way, if it streams, writes back */
} machine;

static uint64_t look(void *user)
{
    machine *const m = user;
    m->looks++;
    return m->now;
}

static machine start(const char *kernels)
{
    machine m = {.takes = {300, 900, 250, 200, 500, 180}};
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context;
    options.kernels = kernels;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    assert_int_equal(tsr_kernel_choices_create(context, &m.choices), TSR_OK);
    tsr_context_destroy(context);
    return m;
}

/* Makes the machine the clock, now that its address is final. */
static void wind(machine *m)
{
    m->choices->now = look;
    m->choices->user = m;
}

/* One call that writes `total` bytes in runs of `run`. */
static void call(machine *m, tsr_task task, size_t run, size_t total)
{
    tsr_stretch here, *const s = tsr_stretch_begin(&here, m->choices, task, total);
    if (s)
        tsr_stretch_enter_run(s, run);
    for (size_t left = total; left > 0;) {
        const size_t piece = left < TSR_PIECE ? left : TSR_PIECE;
        const tsr_way way = tsr_stretch_next(s, piece);
        m->before = way == m->way ? m->before : m->way;
        m->way = way;
        const bool slow = m->soiled && tsr_way_streams(way) && !tsr_way_streams(m->before);
        m->now += (uint64_t)m->takes[way] * (slow ? 2000 : 1000) * piece / MIB;
        m->moved[way] += piece;
        left -= piece;
    }
    if (s)
        tsr_stretch_end(s);
}

static void forget_moved(machine *m)
{
    memset(m->moved, 0, sizeof m->moved);
}

static const char *chosen(const machine *m, size_t run, size_t total)
{
    return tsr_kernel_choices_way(m->choices, "copy", run, total);
}

static void every_way_is_tried_and_the_best_is_taken(void **state)
{
    machine m = start("measured");
    (void)state;
    wind(&m);
    assert_null(chosen(&m, 16384, 128 * MIB));
    call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    for (tsr_way way = TSR_WAY_PLAIN; way < TSR_WAYS; way++)
        assert_true(m.moved[way] > 0);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "stream-rows");
    forget_moved(&m);
    call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_true(m.moved[TSR_WAY_STREAM_ROWS] >= 100 * MIB);
    tsr_kernel_choices_destroy(m.choices);
}

/* If ways were tried in one order only, `stream` would always follow ordinary stores, and
 * `stream-rows` never. */
static void ways_are_tried_in_both_orders(void **state)
{
    machine m = start("measured");
    (void)state;
    wind(&m);
    m.soiled = true;
    m.takes[TSR_WAY_STREAM] = 200;
    m.takes[TSR_WAY_STREAM_ROWS] = 260;
    m.takes[TSR_WAY_PLAIN] = m.takes[TSR_WAY_PLAIN_ROWS] = 320;
    call(&m, TSR_TASK_COPY, 16384, 512 * MIB);
    assert_string_equal(chosen(&m, 16384, 512 * MIB), "stream");
    tsr_kernel_choices_destroy(m.choices);
}

static void trying_costs_no_more_than_a_few_stretches_of_each_way(void **state)
{
    machine m = start("measured");
    (void)state;
    wind(&m);
    call(&m, TSR_TASK_COPY, 16384, 512 * MIB);
    /* A way that takes half as long again as the best is given up after two samples. */
    assert_true(m.moved[TSR_WAY_PLAIN_AHEAD] <= 8 * MIB);
    assert_true(m.moved[TSR_WAY_PLAIN] <= 12 * MIB);
    tsr_kernel_choices_destroy(m.choices);
}

static void small_calls_are_never_timed(void **state)
{
    machine m = start("measured");
    (void)state;
    wind(&m);
    for (int i = 0; i < 100; i++)
        call(&m, TSR_TASK_COPY, 16384, TSR_LARGE_CALL - 4096);
    for (int i = 0; i < 100; i++)
        call(&m, TSR_TASK_COPY, TSR_SHORTEST_RUN - 1, 2 * TSR_LARGE_CALL);
    assert_int_equal(m.looks, 0);
    for (tsr_way way = TSR_WAY_PLAIN_AHEAD; way < TSR_WAYS; way++)
        assert_int_equal(m.moved[way], 0);
    tsr_kernel_choices_destroy(m.choices);
}

static void calls_of_one_stretch_choose_too(void **state)
{
    machine m = start("measured");
    int calls = 0;
    (void)state;
    wind(&m);
    for (; calls < 40 && !chosen(&m, 1024, 8 * MIB); calls++)
        call(&m, TSR_TASK_COPY, 1024, 8 * MIB);
    assert_string_equal(chosen(&m, 1024, 8 * MIB), "stream-rows");
    assert_in_range(calls, 2, 20);
    tsr_kernel_choices_destroy(m.choices);
}

static void classes_choose_apart(void **state)
{
    machine m = start("measured");
    (void)state;
    wind(&m);
    call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    m.takes[TSR_WAY_PLAIN] = 100;
    call(&m, TSR_TASK_COPY, 2048, 128 * MIB);
    m.takes[TSR_WAY_STREAM] = 50;
    call(&m, TSR_TASK_COPY, 16384, 100 * MIB);
    m.takes[TSR_WAY_STREAM_AHEAD] = 20;
    call(&m, TSR_TASK_REDUCE, 16384, 128 * MIB);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "stream-rows");
    assert_string_equal(chosen(&m, 2048, 128 * MIB), "plain");
    assert_string_equal(chosen(&m, 16384, 100 * MIB), "stream");
    assert_string_equal(tsr_kernel_choices_way(m.choices, "reduce", 16384, 128 * MIB), "stream-ahead");
    assert_null(tsr_kernel_choices_way(m.choices, "reduce-to-all", 16384, 128 * MIB));
    assert_null(tsr_kernel_choices_way(m.choices, "dance", 16384, 128 * MIB));
    tsr_kernel_choices_destroy(m.choices);
}

/* The machine gets another load, or its clock another rate: the way that was best is slow from now
 * on. */
static void a_choice_changes_after_calls_that_were_slow(void **state)
{
    machine m = start("measured");
    (void)state;
    wind(&m);
    for (int i = 0; i < 4; i++)
        call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "stream-rows");
    m.takes[TSR_WAY_STREAM_ROWS] = 600;
    for (int i = 0; i < 4; i++)
        call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "stream");
    tsr_kernel_choices_destroy(m.choices);
}

/* A way that has become slow may still be faster than the others were at first, which says nothing
 * of how fast they are now. */
static void all_ways_are_tried_again_when_the_best_is_slow(void **state)
{
    machine m = start("measured");
    tsr_kernel_choice told;
    int restarts = 0, found = 1;
    (void)state;
    wind(&m);
    for (tsr_way way = TSR_WAY_PLAIN; way < TSR_WAYS; way++)
        m.takes[way] = way == TSR_WAY_PLAIN_ROWS ? 200 : 400;
    for (int i = 0; i < 4; i++)
        call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "plain-rows");
    m.takes[TSR_WAY_PLAIN_ROWS] = 350;
    m.takes[TSR_WAY_PLAIN_AHEAD] = 250;
    for (int i = 0; i < 4; i++)
        call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "plain-ahead");
    for (size_t i = 0; found; i++) {
        assert_int_equal(tsr_kernel_choices_get(m.choices, i, &told, &found), TSR_OK);
        restarts += found ? told.restarts : 0;
    }
    assert_int_equal(restarts, 1);
    tsr_kernel_choices_destroy(m.choices);
}

/* On memory that the system has not yet cleared, ordinary stores win, because clearing leaves its
 * lines in the cache. Later, on the same memory, every way is faster. */
static void all_ways_are_tried_again_when_the_best_got_much_faster(void **state)
{
    static const uint32_t later[TSR_WAYS] = {400, 450, 420, 280, 480, 300};
    machine m = start("measured");
    (void)state;
    wind(&m);
    for (tsr_way way = TSR_WAY_PLAIN; way < TSR_WAYS; way++)
        m.takes[way] = 1000 + 300 * (uint32_t)way;
    call(&m, TSR_TASK_COPY, 16384, 256 * MIB);
    assert_string_equal(chosen(&m, 16384, 256 * MIB), "plain");
    memcpy(m.takes, later, sizeof later);
    for (int i = 0; i < 2; i++)
        call(&m, TSR_TASK_COPY, 16384, 256 * MIB);
    assert_string_equal(chosen(&m, 16384, 256 * MIB), "stream");
    tsr_kernel_choices_destroy(m.choices);
}

static void one_slow_stretch_changes_nothing(void **state)
{
    machine m = start("measured");
    (void)state;
    wind(&m);
    for (int i = 0; i < 4; i++)
        call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    /* Part of a call; the pieces after it come from elsewhere. */
    tsr_stretch here, *const s = tsr_stretch_begin(&here, m.choices, TSR_TASK_COPY, 128 * MIB);
    tsr_stretch_enter_run(s, 16384);
    for (int piece = 0; piece < 6; piece++) {
        tsr_stretch_next(s, TSR_PIECE);
        m.now += 50 * 1000 * 1000;
    }
    tsr_stretch_end(s);
    forget_moved(&m);
    call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_true(m.moved[TSR_WAY_STREAM_ROWS] >= 100 * MIB);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "stream-rows");
    tsr_kernel_choices_destroy(m.choices);
}

/* A disturbed first sample does not rule out a way for ever. */
static void rivals_are_tried_again(void **state)
{
    machine m = start("measured");
    (void)state;
    wind(&m);
    m.takes[TSR_WAY_STREAM] = 210;
    m.takes[TSR_WAY_STREAM_ROWS] = 230;
    call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "stream");
    m.takes[TSR_WAY_STREAM_ROWS] = 150;
    for (int i = 0; i < 40; i++)
        call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_string_equal(chosen(&m, 16384, 128 * MIB), "stream-rows");
    tsr_kernel_choices_destroy(m.choices);
}

static void a_way_that_is_asked_for_is_taken_and_nothing_is_timed(void **state)
{
    (void)state;
    for (size_t i = 0; tsr_kernel_way_get(i); i++) {
        machine m = start(tsr_kernel_way_get(i));
        wind(&m);
        for (int n = 0; n < 4; n++)
            call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
        assert_int_equal(m.moved[i], 512 * MIB);
        assert_int_equal(m.looks, 0);
        assert_string_equal(chosen(&m, 16384, 128 * MIB), tsr_kernel_way_get(i));
        assert_string_equal(chosen(&m, 16384, MIB), "plain");
        tsr_kernel_choices_destroy(m.choices);
    }
}

/* The way of a part of 128 KiB in runs of 16 KiB, as a call takes it. */
static tsr_way way_of_part(const tsr_kernel_choices *self)
{
    tsr_stretch here, *const s = tsr_stretch_begin(&here, tsr_choices_of_parts(self), TSR_TASK_COPY, 128 << 10);
    assert_non_null(s);
    assert_null(
        tsr_stretch_begin(&(tsr_stretch){.total = 0}, tsr_choices_of_parts(self), TSR_TASK_COPY, TSR_LARGE_PART - 1));
    tsr_stretch_enter_run(s, 16384);
    const tsr_way way = tsr_stretch_next(s, 16384);
    tsr_stretch_end(s);
    return way;
}

static void parts_of_large_moves_stream_what_those_stream(void **state)
{
    machine m = start("measured"), pinned = start("plain-rows");
    (void)state;
    wind(&m);
    assert_int_equal(way_of_part(NULL), TSR_WAY_STREAM);
    assert_int_equal(way_of_part(m.choices), TSR_WAY_STREAM);
    assert_int_equal(way_of_part(pinned.choices), TSR_WAY_PLAIN_ROWS);
    call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    assert_int_equal(way_of_part(m.choices), TSR_WAY_STREAM);
    m.takes[TSR_WAY_PLAIN] = 20;
    for (int i = 0; i < 20 && strcmp(chosen(&m, 16384, 512 * MIB), "plain") != 0; i++) {
        m.takes[TSR_WAY_STREAM] = m.takes[TSR_WAY_STREAM_ROWS] = m.takes[TSR_WAY_STREAM_AHEAD] = 2000;
        call(&m, TSR_TASK_COPY, 16384, 512 * MIB);
    }
    const int looks = m.looks;
    assert_int_equal(way_of_part(m.choices), TSR_WAY_PLAIN);
    assert_int_equal(m.looks, looks);
    tsr_kernel_choices_destroy(m.choices);
    tsr_kernel_choices_destroy(pinned.choices);
}

static void the_rule_streams_runs_from_1_kib(void **state)
{
    machine m = start("fixed");
    tsr_kernel_choice told;
    int found = 1;
    (void)state;
    wind(&m);
    call(&m, TSR_TASK_COPY, 1024, 128 * MIB);
    assert_int_equal(m.moved[TSR_WAY_STREAM], 128 * MIB);
    call(&m, TSR_TASK_COPY, 1023, 128 * MIB);
    assert_int_equal(m.moved[TSR_WAY_PLAIN], 128 * MIB);
    assert_int_equal(m.looks, 0);
    assert_string_equal(tsr_kernel_choices_way(NULL, "copy", 1024, 128 * MIB), "stream");
    assert_string_equal(tsr_kernel_choices_way(NULL, "copy", 1024, MIB), "plain");
    assert_int_equal(tsr_kernel_choices_get(m.choices, 0, &told, &found), TSR_OK);
    assert_false(found);
    tsr_kernel_choices_destroy(m.choices);
}

static void what_was_timed_is_told(void **state)
{
    machine m = start("measured");
    tsr_kernel_choice told;
    size_t classes = 0, timed = 0;
    int found;
    (void)state;
    wind(&m);
    call(&m, TSR_TASK_COPY, 16384, 128 * MIB);
    for (;; classes++) {
        assert_int_equal(tsr_kernel_choices_get(m.choices, classes, &told, &found), TSR_OK);
        if (!found)
            break;
        assert_true(told.run_from < told.run_to && told.bytes_from < told.bytes_to);
        if (told.samples == 0) {
            assert_null(told.way);
            continue;
        }
        timed++;
        assert_string_equal(told.kernel, "copy");
        assert_in_range(16384, told.run_from, told.run_to - 1);
        assert_in_range(128 * MIB, told.bytes_from, told.bytes_to - 1);
        assert_string_equal(told.way, "stream-rows");
        /* The way takes 180 us for a MiB. */
        assert_in_range((uint64_t)told.bandwidth[TSR_WAY_STREAM_ROWS], UINT64_C(5825000000), UINT64_C(5826000000));
    }
    assert_int_equal(timed, 1);
    assert_int_equal(classes, TSR_TASKS * TSR_RUN_CLASSES * TSR_SIZE_CLASSES);
    tsr_kernel_choices_destroy(m.choices);
}

static void what_lacks_a_pointer_is_refused(void **state)
{
    tsr_kernel_choice told;
    tsr_kernel_choices *choices;
    int found;
    (void)state;
    assert_int_equal(tsr_kernel_choices_create(NULL, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_kernel_choices_get(NULL, 0, &told, &found), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "choices is NULL"));
    assert_int_equal(tsr_kernel_choices_create(NULL, &choices), TSR_OK);
    assert_int_equal(tsr_kernel_choices_get(choices, 0, NULL, &found), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_kernel_choices_get(choices, 0, &told, NULL), TSR_ERROR_ARGUMENT);
    tsr_kernel_choices_destroy(choices);
    tsr_kernel_choices_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_is_tried_and_the_best_is_taken),
        cmocka_unit_test(ways_are_tried_in_both_orders),
        cmocka_unit_test(trying_costs_no_more_than_a_few_stretches_of_each_way),
        cmocka_unit_test(small_calls_are_never_timed),
        cmocka_unit_test(calls_of_one_stretch_choose_too),
        cmocka_unit_test(classes_choose_apart),
        cmocka_unit_test(a_choice_changes_after_calls_that_were_slow),
        cmocka_unit_test(all_ways_are_tried_again_when_the_best_is_slow),
        cmocka_unit_test(all_ways_are_tried_again_when_the_best_got_much_faster),
        cmocka_unit_test(one_slow_stretch_changes_nothing),
        cmocka_unit_test(rivals_are_tried_again),
        cmocka_unit_test(a_way_that_is_asked_for_is_taken_and_nothing_is_timed),
        cmocka_unit_test(parts_of_large_moves_stream_what_those_stream),
        cmocka_unit_test(the_rule_streams_runs_from_1_kib),
        cmocka_unit_test(what_was_timed_is_told),
        cmocka_unit_test(what_lacks_a_pointer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
