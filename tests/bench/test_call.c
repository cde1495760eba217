/* tsr_bench_call(), tsr_bench_turns() and tsr_bench_copy(): what is called how often, what results
 * say, and how a measurement ends where a rank fails. */
#include "ranks.h"

#include <tessera/bench.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RANKS = 3, ITERATIONS = 5, WARM_UPS = 2, CALLS = 3, COUNT = 100 };

/* What one rank's callbacks did. */
typedef struct counter {
    int calls, prepared, checked, steps;
    int fails_at;       /* the call, prepare or check that fails on rank 1, from 1; 0: none */
    tsr_status failure; /* with which it fails */
    bool alone;         /* the call does not communicate */
    int32_t value[COUNT];
} counter;

static tsr_status fail_here(const tsr_comm *comm, const counter *c, int at)
{
    if (tsr_comm_rank(comm) == 1 && at == c->fails_at)
        return tsr_status_set(c->failure, "the printer is out of paper");
    return TSR_OK;
}

static tsr_status add_up(tsr_comm *comm, void *arg)
{
    counter *const c = arg;
    TSR_TRY(fail_here(comm, c, ++c->calls));
    for (int i = 0; i < COUNT; i++)
        c->value[i] = i;
    if (c->alone)
        return TSR_OK;
    return tsr_comm_all_reduce(comm, c->value, c->value, COUNT, TSR_I32, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status count_prepare(tsr_comm *comm, void *arg)
{
    (void)comm;
    ((counter *)arg)->prepared++;
    return TSR_OK;
}

/* Each rank says that one element more than its number is wrong, beside those that are. */
static tsr_status count_wrong(tsr_comm *comm, void *arg, int64_t *wrong)
{
    counter *const c = arg;
    c->checked++;
    *wrong += tsr_comm_rank(comm) + 1;
    for (int i = 0; i < COUNT; i++)
        *wrong += c->value[i] != RANKS * i;
    return TSR_OK;
}

static void count_step(void *arg)
{
    ((counter *)arg)->steps++;
}

static tsr_bench_options few_calls(counter *c)
{
    tsr_bench_options o = TSR_BENCH_OPTIONS_INIT;
    o.iterations = ITERATIONS;
    o.warm_ups = WARM_UPS;
    o.calls = CALLS;
    o.step = c ? count_step : NULL;
    o.step_arg = c;
    return o;
}

static tsr_bench_subject subject_of(counter *c)
{
    return (tsr_bench_subject){.call = add_up,
                               .prepare = count_prepare,
                               .check = count_wrong,
                               .arg = c,
                               .bytes = sizeof c->value,
                               .result = c->value};
}

static tsr_status check_spread(const tsr_bench_spread *s)
{
    CHECK(0 < s->min && s->min <= s->low && s->low <= s->median);
    CHECK(s->median <= s->high && s->high <= s->max && s->max < INFINITY);
    return TSR_OK;
}

/* True if all ranks have the result of rank 0. */
static tsr_status check_equal(tsr_comm *comm, const tsr_bench_result *r)
{
    tsr_bench_result first = *r;
    TSR_TRY(tsr_comm_broadcast(comm, &first, sizeof first, TSR_U8, 0, tsr_device_host(), NULL));
    CHECK(memcmp(&first, r, sizeof first) == 0);
    return TSR_OK;
}

static tsr_status count_calls(tsr_comm *comm, void *arg)
{
    (void)arg;
    counter c = {.calls = 0};
    const tsr_bench_options options = few_calls(&c);
    const tsr_bench_subject subject = subject_of(&c);
    tsr_bench_result r;
    TSR_TRY(tsr_bench_call(comm, &subject, &options, &r));
    /* One call first, and one that is not timed before the calls of each iteration. */
    CHECK(c.calls == 1 + (WARM_UPS + ITERATIONS) * (1 + CALLS));
    CHECK(c.prepared == 1 + WARM_UPS + ITERATIONS && c.checked == 1 && c.steps == WARM_UPS + ITERATIONS);
    CHECK(r.iterations == ITERATIONS && r.calls == CALLS);
    CHECK(r.wrong == 1 + 2 + 3);
    CHECK(r.bytes == (int64_t)(RANKS * sizeof c.value));
    TSR_TRY(check_spread(&r.seconds));
    TSR_TRY(check_spread(&r.enqueue));
    CHECK(r.enqueue.max <= r.seconds.max);
    CHECK(r.bandwidth == (double)r.bytes / r.seconds.median);
    CHECK(r.peak_copy && r.peak_bandwidth > 0 && r.of_peak == r.bandwidth / r.peak_bandwidth);
    return check_equal(comm, &r);
}

static void calls_are_counted_and_results_are_those_of_all_ranks(void **state)
{
    (void)state;
    run_ranks(RANKS, count_calls, NULL);
}

/* Without checks, copies and a payload; as many calls as take the seconds, by rank 0's clock. */
static tsr_status leave_out(tsr_comm *comm, void *arg)
{
    (void)arg;
    counter c = {.alone = true};
    tsr_bench_options options = few_calls(NULL);
    const tsr_bench_subject subject = {.call = add_up, .check = count_wrong, .arg = &c};
    tsr_bench_result r;
    options.no_check = options.no_copy = 1;
    options.calls = 0;
    TSR_TRY(tsr_bench_call(comm, &subject, &options, &r));
    CHECK(c.checked == 0 && r.wrong == -1 && r.calls >= 1);
    CHECK(!r.peak_copy && r.peak_bandwidth == 0 && r.of_peak == 0 && r.bandwidth == 0 && r.bytes == 0);
    options.warm_seconds = 1e-3;
    TSR_TRY(tsr_bench_call(comm, &subject, &options, &r));
    options.most_seconds = 1e-9;
    options.calls = 1;
    options.warm_seconds = 0;
    c.calls = 0;
    TSR_TRY(tsr_bench_call(comm, &subject, &options, &r));
    /* The call that tells how many would be needed, and the only iteration; no warm-up. */
    CHECK(c.calls == 2);
    CHECK(r.iterations == 1 && r.seconds.low == 0 && r.seconds.high == INFINITY);
    CHECK(r.seconds.min == r.seconds.median && r.seconds.max == r.seconds.median);
    TSR_TRY(tsr_bench_call(comm, &subject, NULL, &r));
    CHECK(r.iterations == 11);
    return check_equal(comm, &r);
}

static void checks_copies_and_iterations_can_be_left_out(void **state)
{
    (void)state;
    run_ranks(RANKS, leave_out, NULL);
}

/* Takes as many seconds as the rank's number, it says. */
static tsr_status measure_rank(tsr_comm *comm, void *arg, double *seconds)
{
    ++*(int *)arg;
    *seconds = tsr_comm_rank(comm);
    return TSR_OK;
}

static tsr_status take_turns(tsr_comm *comm, void *arg)
{
    (void)arg;
    counter c[2] = {{.calls = 0}, {.calls = 0}};
    int measured = 0;
    const tsr_bench_options options = few_calls(NULL);
    const tsr_bench_subject subjects[] = {
        subject_of(&c[0]), {.measure = measure_rank, .arg = &measured}, {.call = add_up, .arg = &c[1], .bytes = 4}};
    tsr_bench_result r[3];
    TSR_TRY(tsr_bench_turns(comm, subjects, 3, &options, r));
    CHECK(c[0].calls == c[1].calls && measured == WARM_UPS + ITERATIONS);
    CHECK(r[0].wrong == 6 && r[1].wrong == -1 && r[2].wrong == -1 && c[1].checked == 0);
    CHECK(r[1].seconds.min == RANKS - 1 && r[1].seconds.max == RANKS - 1 && r[1].seconds.median == RANKS - 1);
    CHECK(r[1].calls == 1 && r[1].enqueue.max == 0 && r[2].bytes == 4 * RANKS);
    CHECK(r[1].peak_bandwidth == r[0].peak_bandwidth && r[2].of_peak == r[2].bandwidth / r[0].peak_bandwidth);
    for (int i = 0; i < 3; i++)
        TSR_TRY(check_equal(comm, &r[i]));
    return TSR_OK;
}

static void subjects_take_turns_and_may_measure_by_themselves(void **state)
{
    (void)state;
    run_ranks(RANKS, take_turns, NULL);
}

/* Expects the status and sentence of a rank where rank 1 failed. */
static tsr_status check_failed(tsr_comm *comm, tsr_status status, tsr_status wanted)
{
    int32_t one = 1, sum;
    if (tsr_comm_rank(comm) == 1)
        CHECK_ERROR(status, wanted, "the printer is out of paper");
    else
        CHECK_ERROR(status, TSR_ERROR_PEER, "rank 1 failed: the printer is out of paper");
    TSR_TRY(tsr_comm_all_reduce(comm, &one, &sum, 1, TSR_I32, TSR_SUM, tsr_device_host(), NULL));
    CHECK(sum == RANKS);
    return TSR_OK;
}

/* Rank 1 fails in one of its calls, while the others wait for it there, or do not. */
static tsr_status fail_in_call(tsr_comm *comm, void *arg)
{
    static const int calls[] = {1, 2, 3, 5, 12};
    static const tsr_status failures[] = {TSR_ERROR_IO, TSR_ERROR_ARGUMENT, TSR_ERROR_PEER};
    (void)arg;
    for (size_t i = 0; i < 2 * sizeof calls / sizeof *calls; i++) {
        counter c = {.fails_at = calls[i / 2], .alone = i % 2 == 0, .failure = failures[i % 3]};
        const tsr_bench_options options = few_calls(&c);
        const tsr_bench_subject subject = subject_of(&c);
        tsr_bench_result r = {.calls = 17};
        TSR_TRY(check_failed(comm, tsr_bench_call(comm, &subject, &options, &r), c.failure));
        CHECK(r.calls == 17 && c.checked == 0);
    }
    return TSR_OK;
}

static void a_call_that_fails_on_one_rank_ends_the_measurement_on_all(void **state)
{
    (void)state;
    run_ranks(RANKS, fail_in_call, NULL);
}

/* These communicate on the other ranks. */
static tsr_status prepare_badly(tsr_comm *comm, void *arg)
{
    counter *const c = arg;
    TSR_TRY(fail_here(comm, c, ++c->prepared));
    return tsr_comm_barrier(comm);
}

static tsr_status check_badly(tsr_comm *comm, void *arg, int64_t *wrong)
{
    counter *const c = arg;
    TSR_TRY(fail_here(comm, c, -1));
    return tsr_comm_all_reduce(comm, wrong, wrong, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status measure_badly(tsr_comm *comm, void *arg, double *seconds)
{
    counter *const c = arg;
    TSR_TRY(fail_here(comm, c, ++c->calls));
    *seconds = 1;
    return tsr_comm_barrier(comm);
}

static tsr_status fail_beside_call(tsr_comm *comm, void *arg)
{
    (void)arg;
    counter c[3] = {{.fails_at = 4}, {.fails_at = -1}, {.fails_at = 3}};
    const tsr_bench_subject subjects[] = {{.call = add_up, .prepare = prepare_badly, .arg = &c[0]},
                                          {.call = add_up, .check = check_badly, .arg = &c[1]},
                                          {.measure = measure_badly, .arg = &c[2]}};
    for (int i = 0; i < 3; i++) {
        const tsr_bench_options options = few_calls(NULL);
        tsr_bench_result r;
        c[i].failure = TSR_ERROR_IO;
        c[i].alone = true;
        TSR_TRY(check_failed(comm, tsr_bench_call(comm, &subjects[i], &options, &r), TSR_ERROR_IO));
    }
    return TSR_OK;
}

static void so_do_prepare_check_and_measure(void **state)
{
    (void)state;
    run_ranks(RANKS, fail_beside_call, NULL);
}

/* Fails without a sentence, as code that does not know of them. */
static tsr_status fail_in_silence(tsr_comm *comm, void *arg)
{
    (void)arg;
    return tsr_comm_rank(comm) == 2 ? TSR_ERROR_IO : TSR_OK;
}

static tsr_status refuse_arguments(tsr_comm *comm, void *arg)
{
    (void)arg;
    static const struct {
        tsr_bench_options options;
        const char *sentence;
    } rows[] = {
        {{.size = sizeof rows->options, .iterations = 0}, "options.iterations is 0; it must be from 1 to 1000000"},
        {{.size = sizeof rows->options, .iterations = 1, .warm_ups = -1}, "options.warm_ups is -1"},
        {{.size = sizeof rows->options, .iterations = 1, .calls = 1000001}, "options.calls is 1000001"},
        {{.size = sizeof rows->options, .iterations = 1, .loop_seconds = -1}, "options.loop_seconds is -1"},
        {{.size = sizeof rows->options, .iterations = 1, .most_seconds = NAN}, "options.most_seconds is "},
        {{.size = sizeof rows->options, .iterations = 1, .device = {NULL, 2}}, "options.device is host 2"},
        {{.size = sizeof rows->options, .iterations = 1, .stream = (void *)&rows}, "options.stream is not NULL"},
        {{.size = 0}, "size"},
    };
    counter c = {.alone = true};
    const tsr_bench_options usual = few_calls(NULL);
    const bool bad = tsr_comm_rank(comm) == 1;
    tsr_bench_subject subject = subject_of(&c);
    tsr_bench_result r;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_ERROR(tsr_bench_call(comm, &subject, bad ? &rows[i].options : &usual, &r),
                    bad ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, rows[i].sentence);
    CHECK_ERROR(tsr_bench_call(comm, bad ? NULL : &subject, &usual, &r), bad ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "tsr_bench_call: the subject is NULL");
    CHECK_ERROR(tsr_bench_call(comm, &subject, &usual, bad ? NULL : &r), bad ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "tsr_bench_call: the result is NULL");
    CHECK_ERROR(tsr_bench_copy(comm, 8, &usual, bad ? NULL : &r), bad ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "tsr_bench_copy: out is NULL");
    CHECK_ERROR(tsr_bench_turns(comm, &subject, bad ? 0 : 1, &usual, &r), bad ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "tsr_bench_turns: count is 0; it must be from 1 to 32");
    subject.call = bad ? NULL : subject.call;
    CHECK_ERROR(tsr_bench_call(comm, &subject, &usual, &r), bad ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "has none of `call` and `measure`");
    subject.call = fail_in_silence;
    CHECK_ERROR(tsr_bench_call(comm, &subject, &usual, &r), tsr_comm_rank(comm) == 2 ? TSR_ERROR_IO : TSR_ERROR_PEER,
                "returned io without a sentence");
    CHECK(tsr_bench_call(NULL, &subject, &usual, &r) == TSR_ERROR_ARGUMENT);
    return tsr_comm_barrier(comm);
}

static void arguments_that_cannot_be_are_refused_on_all_ranks(void **state)
{
    (void)state;
    run_ranks(RANKS, refuse_arguments, NULL);
}

/* Rank 2 asks for something else than rank 0. */
static tsr_status differ(tsr_comm *comm, void *arg)
{
    (void)arg;
    counter c = {.alone = true};
    const bool other = tsr_comm_rank(comm) == 2;
    tsr_bench_options options = few_calls(NULL);
    tsr_bench_subject subject = subject_of(&c);
    tsr_bench_result r;
    options.iterations = other ? 6 : 5;
    CHECK_ERROR(tsr_bench_call(comm, &subject, &options, &r), other ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "options.iterations is 6 on rank 2, but 5 on rank 0; give all ranks the same");
    options.iterations = 5;
    options.no_copy = other;
    CHECK_ERROR(tsr_bench_call(comm, &subject, &options, &r), other ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "options.no_copy is 1 on rank 2");
    options.no_copy = 0;
    subject.check = other ? NULL : subject.check;
    CHECK_ERROR(tsr_bench_call(comm, &subject, &options, &r), other ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "subject 0 has another `check` or none on rank 2 than on rank 0");
    CHECK(c.calls == 0);
    return TSR_OK;
}

static void options_that_differ_are_named(void **state)
{
    (void)state;
    run_ranks(RANKS, differ, NULL);
}

static tsr_status copy_unevenly(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    tsr_bench_options options = few_calls(NULL);
    tsr_bench_result r;
    options.no_copy = 1;
    TSR_TRY(tsr_bench_copy(comm, (size_t)rank * 100001, &options, &r));
    CHECK(r.bytes == 100001 * (0 + 1 + 2) && r.iterations == ITERATIONS && r.calls == CALLS && r.wrong == -1);
    CHECK(r.peak_copy && r.bandwidth > 0 && r.peak_bandwidth == r.bandwidth && r.of_peak == 1);
    TSR_TRY(check_spread(&r.seconds));
    TSR_TRY(check_equal(comm, &r));
    TSR_TRY(tsr_bench_copy(comm, 0, &options, &r));
    CHECK(r.bytes == 0 && r.bandwidth == 0 && r.of_peak == 0);
    return TSR_OK;
}

static void copies_of_any_bytes_are_measured(void **state)
{
    (void)state;
    run_ranks(RANKS, copy_unevenly, NULL);
}

static void copies_copy(void **state)
{
    enum { BYTES = 1000 };
    unsigned char from[BYTES + 256], to[BYTES + 256];
    const char *name = NULL;
    tsr_bench_copier *copy;
    int copies = 0;
    (void)state;
    for (int i = 0; i < BYTES + 256; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    for (; (copy = tsr_bench_copier_get(copies, copies == 0 ? &name : NULL)) != NULL; copies++)
        for (size_t bytes = 0; bytes <= BYTES; bytes += 37) {
            const size_t at = bytes % 129;
            memset(to, 0xee, sizeof to);
            copy(to + at, from + 3, bytes);
            assert_memory_equal(to + at, from + 3, bytes);
            assert_true(to[at + bytes] == 0xee && (at == 0 || to[at - 1] == 0xee));
        }
    assert_true(copies >= 1);
    assert_string_equal(name, "memcpy");
    assert_null(tsr_bench_copier_get(-1, NULL));
    assert_true(tsr_bench_cores() >= 1);
}

/* Intervals as bench/report/noise.py computes them: from the k-th least to the k-th greatest. */
static void an_interval_contains_the_median(void **state)
{
    static const int known[][2] = {{1, 0}, {2, 0}, {3, 1}, {5, 1}, {7, 2}, {9, 3}, {11, 4}, {100, 44}, {3000, 1468}};
    static double seconds[3000];
    tsr_bench_spread s;
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const int count = known[i][0], k = known[i][1];
        for (int t = 0; t < count; t++)
            seconds[t] = 1 + (double)((int64_t)t * 7919 % count);
        assert_int_equal(tsr_bench_sum_up(seconds, count, &s), TSR_OK);
        assert_true(s.min == 1 && s.max == count && s.median == (count + 1) / 2.0);
        assert_true(k > 0 ? s.low == k && s.high == count + 1 - k : s.low == 0 && s.high == INFINITY);
    }
    assert_int_equal(tsr_bench_sum_up(seconds, 0, &s), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_bench_sum_up(NULL, 1, &s), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_bench_sum_up(seconds, 1, NULL), TSR_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted_and_results_are_those_of_all_ranks),
        cmocka_unit_test(checks_copies_and_iterations_can_be_left_out),
        cmocka_unit_test(subjects_take_turns_and_may_measure_by_themselves),
        cmocka_unit_test(a_call_that_fails_on_one_rank_ends_the_measurement_on_all),
        cmocka_unit_test(so_do_prepare_check_and_measure),
        cmocka_unit_test(arguments_that_cannot_be_are_refused_on_all_ranks),
        cmocka_unit_test(options_that_differ_are_named),
        cmocka_unit_test(copies_of_any_bytes_are_measured),
        cmocka_unit_test(copies_copy),
        cmocka_unit_test(an_interval_contains_the_median),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
