/* The fit of a profile's tables to times in bench calibrate. */
#include <bench/calibrate/tables.h>
#include <command.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

int complain(int status, const char *format, ...)
{
    (void)format;
    return status;
}

int complain_status(int status)
{
    return status;
}

#define RANKS 2
#define SIZES 5

static const char known[] =
    "inside=1e-6,1e9 between=5e-6,1e9 step=2e-7 piece=1e-8 meeting=2:1e-6,4:3e-6 "
    "keep@whole=4096:1e10,32768:3e10,262144:2e10,2097152:4e9 sum@64=4096:1e9,32768:2e9,262144:5e8 "
    "copy@64=4096:2e9,32768:4e9,262144:1e9 copy@whole=4096:5e9,32768:9e9,262144:3e9,16777216:2e9";

typedef struct sheet {
    tables tables;
    table_move moves[64];
} sheet;

static table_move *add(sheet *s, table_move like)
{
    table_move *const m = &s->moves[s->tables.count];
    *m = like;
    s->tables.count++;
    return m;
}

static double seconds_by(const tsr_profile *p, const table_move *m)
{
    double seconds = tsr_profile_step_seconds(p, m->pieces) + m->meetings * tsr_profile_meeting_seconds(p, m->ranks);
    if (m->topic == TABLE_WORK)
        seconds += tsr_profile_work_seconds(p, m->work, m->run, m->touched, m->worked);
    return seconds + tsr_profile_work_seconds(p, TSR_WORK_KEEP, m->run, m->touched, m->kept);
}

/* Adds the moves in the order of the tool: each row after the rows that its fit needs. */
static void add_all(sheet *s)
{
    static const struct {
        tsr_work work;
        int64_t run;
    } rows[] = {
        {TSR_WORK_KEEP, TSR_RUN_WHOLE}, {TSR_WORK_SUM, 64}, {TSR_WORK_COPY, 64}, {TSR_WORK_COPY, TSR_RUN_WHOLE}};
    *s = (sheet){.tables = {.moves = s->moves}};
    add(s, (table_move){.topic = TABLE_STEP, .ranks = RANKS});
    add(s, (table_move){.topic = TABLE_PIECE, .ranks = RANKS, .pieces = 96});
    for (int64_t ranks = 2; ranks <= 4; ranks *= 2)
        add(s, (table_move){.topic = TABLE_MEETING, .ranks = ranks, .pieces = ranks, .meetings = 1});
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int i = 0; i < SIZES; i++) {
            const double touched = ldexp(4096, 3 * i);
            const bool copies = rows[k].work == TSR_WORK_COPY;
            add(s, (table_move){.topic = TABLE_WORK,
                                .work = rows[k].work,
                                .run = rows[k].run,
                                .ranks = RANKS,
                                .touched = touched,
                                .worked = touched / 2,
                                .kept = copies ? touched / 4 : 0,
                                .pieces = copies ? 2 : 1,
                                .meetings = rows[k].work == TSR_WORK_KEEP ? 0 : 2});
        }
}

static void time_all(sheet *s)
{
    tsr_profile *profile;
    assert_int_equal(tsr_profile_parse(known, &profile), TSR_OK);
    for (size_t i = 0; i < s->tables.count; i++)
        s->moves[i].timed.seconds.median = seconds_by(profile, &s->moves[i]);
    tsr_profile_destroy(profile);
}

static tsr_profile *fit(const sheet *s)
{
    const tsr_cost_profile links = {{1e-6, 1e9}, {5e-6, 1e9}};
    tsr_profile *found = NULL;
    assert_int_equal(tables_fit(&s->tables, &links, &found), EXIT_DONE);
    return found;
}

static void assert_as_timed(const sheet *s, const tsr_profile *found)
{
    for (size_t i = 0; i < s->tables.count; i++) {
        const double seconds = seconds_by(found, &s->moves[i]);
        if (!(fabs(seconds / s->moves[i].timed.seconds.median - 1) < 0.01))
            fail_msg("move %zu: %g s instead of %g s", i, seconds, s->moves[i].timed.seconds.median);
    }
}

static void tables_that_are_so_are_found(void **state)
{
    (void)state;
    sheet s;
    add_all(&s);
    time_all(&s);
    tsr_profile *found = fit(&s);
    assert_true(tsr_profile_links(found).inside.bandwidth == 1e9);
    assert_as_timed(&s, found);
    tsr_profile_destroy(found);
}

static void a_time_that_is_off_by_itself_gives_way(void **state)
{
    (void)state;
    sheet s, disturbed;
    add_all(&s);
    time_all(&s);
    add_all(&disturbed);
    time_all(&disturbed);
    for (size_t i = 0; i < s.tables.count; i++)
        if (s.moves[i].work == TSR_WORK_SUM && s.moves[i].topic == TABLE_WORK && s.moves[i].touched == 4096 * 512)
            disturbed.moves[i].timed.seconds.median *= 100;
    tsr_profile *found = fit(&disturbed);
    for (size_t i = 0; i < s.tables.count; i++)
        assert_true(seconds_by(found, &s.moves[i]) < 3 * s.moves[i].timed.seconds.median);
    tsr_profile_destroy(found);
}

static void sizes_that_come_to_one_have_one_point(void **state)
{
    (void)state;
    sheet s;
    add_all(&s);
    time_all(&s);
    add(&s, s.moves[s.tables.count - 1]);
    tsr_profile *found = fit(&s);
    assert_as_timed(&s, found);
    tsr_profile_destroy(found);
}

static void a_time_that_all_else_would_take_leaves_a_tenth(void **state)
{
    (void)state;
    sheet s;
    add_all(&s);
    time_all(&s);
    const size_t copy = s.tables.count - 1;
    s.moves[copy].timed.seconds.median = 1e-9;
    tsr_profile *found = fit(&s);
    const table_move *const m = &s.moves[copy];
    const double seconds = tsr_profile_work_seconds(found, m->work, m->run, m->touched, m->worked);
    assert_true(fabs(seconds / 1e-10 - 1) < 0.01);
    tsr_profile_destroy(found);
}

static void without_moves_there_are_no_tables(void **state)
{
    (void)state;
    const sheet s = {.tables = {.count = 0}};
    tsr_profile *found = fit(&s);
    assert_false(tsr_profile_has_tables(found));
    tsr_profile_destroy(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_that_are_so_are_found),
        cmocka_unit_test(a_time_that_is_off_by_itself_gives_way),
        cmocka_unit_test(sizes_that_come_to_one_have_one_point),
        cmocka_unit_test(a_time_that_all_else_would_take_leaves_a_tenth),
        cmocka_unit_test(without_moves_there_are_no_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
