/* Where devices meet: rounds of runs that overlap, of calls in another order, and of ranks that
 * fail. */
#include "teams.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 3 };

static void no_work(void *work)
{
    (void)work;
}

static void begin(tsr_xla_teams *teams, int64_t timeout_ms)
{
    tsr_context *context;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    assert_int_equal(tsr_xla_teams_begin(context, RANKS, timeout_ms, no_work, teams), TSR_OK);
}

static void end(tsr_xla_teams *teams)
{
    tsr_context *const context = teams->context;
    tsr_xla_teams_end(teams);
    tsr_context_destroy(context);
}

static tsr_xla_team *join(tsr_xla_teams *teams, int64_t run, int rank)
{
    tsr_xla_team *team = NULL;
    assert_int_equal(tsr_xla_teams_join(teams, run, rank, &team), TSR_OK);
    return team;
}

static void leave_all(tsr_xla_teams *teams, tsr_xla_team *team)
{
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(tsr_xla_teams_leave(teams, team, r, TSR_OK), TSR_OK);
}

static void runs_that_overlap_have_teams_of_their_own(void **state)
{
    tsr_xla_teams teams;
    (void)state;
    begin(&teams, 0);
    tsr_xla_team *const first = join(&teams, 1, 0), *const second = join(&teams, 2, 0);
    assert_ptr_not_equal(first, second);
    for (int r = 1; r < RANKS; r++) {
        assert_ptr_equal(join(&teams, 2, r), second);
        assert_ptr_equal(join(&teams, 1, r), first);
    }
    leave_all(&teams, first);
    leave_all(&teams, second);
    /* Free teams are used again. */
    tsr_xla_team *const third = join(&teams, 3, 1);
    assert_true(third == first || third == second);
    end(&teams);
}

static void turns_of_a_loop_do_not_mix(void **state)
{
    tsr_xla_teams teams;
    (void)state;
    begin(&teams, 0);
    tsr_xla_team *const turn = join(&teams, 1, 0);
    join(&teams, 1, 1);
    join(&teams, 1, 2);
    /* Rank 0 is done and in the next turn while the others are still in this one. */
    assert_int_equal(tsr_xla_teams_leave(&teams, turn, 0, TSR_OK), TSR_OK);
    tsr_xla_team *const next = join(&teams, 1, 0);
    assert_ptr_not_equal(next, turn);
    assert_int_equal(tsr_xla_teams_leave(&teams, turn, 1, TSR_OK), TSR_OK);
    assert_ptr_equal(join(&teams, 1, 1), next);
    assert_int_equal(tsr_xla_teams_leave(&teams, turn, 2, TSR_OK), TSR_OK);
    assert_ptr_equal(join(&teams, 1, 2), next);
    leave_all(&teams, next);
    end(&teams);
}

static void ranks_take_rounds_in_the_order_in_which_they_were_opened(void **state)
{
    tsr_xla_teams teams;
    tsr_xla_team *turns[3];
    (void)state;
    begin(&teams, 0);
    /* Teams that are free lie in the list in another order than rounds come. */
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < RANKS; r++)
            turns[i] = join(&teams, i, r);
    for (int i = 0; i < 3; i++)
        leave_all(&teams, turns[i]);
    /* Rank 0 waits for nobody, and is three turns ahead; rank 1 is one turn ahead of rank 2. */
    for (int i = 0; i < 3; i++) {
        turns[i] = join(&teams, 3, 0);
        assert_int_equal(tsr_xla_teams_leave(&teams, turns[i], 0, TSR_OK), TSR_OK);
    }
    for (int r = 1; r < RANKS; r++)
        for (int i = 0; i < 3; i++)
            assert_ptr_equal(join(&teams, 3, r), turns[i]);
    end(&teams);
}

static void a_rank_that_aborts_is_named_to_all(void **state)
{
    tsr_xla_teams teams;
    (void)state;
    begin(&teams, 0);
    tsr_xla_team *const team = join(&teams, 0, 1);
    tsr_status status = tsr_status_set(TSR_ERROR_MEMORY, "no memory for a cat");
    tsr_xla_team_abort(&teams, team, 1);
    assert_int_equal(tsr_xla_teams_leave(&teams, team, 1, status), TSR_ERROR_MEMORY);
    /* Those that come later find the round, and do not wait. */
    for (int r = 0; r < RANKS; r += 2) {
        assert_ptr_equal(join(&teams, 0, r), team);
        status = tsr_comm_barrier(tsr_xla_team_seat(team, r)->comm);
        assert_int_equal(status, TSR_ERROR_PEER);
        assert_int_equal(tsr_xla_teams_leave(&teams, team, r, status), TSR_ERROR_PEER);
        assert_string_equal(tsr_status_message(), "rank 1 failed: no memory for a cat");
    }
    assert_null(teams.first);
    end(&teams);
}

static void ranks_that_fail_by_themselves_keep_their_sentences(void **state)
{
    tsr_xla_teams teams;
    (void)state;
    /* Until when a failed round is kept is bounded, too. */
    begin(&teams, INT64_MAX);
    tsr_xla_team *const team = join(&teams, 0, 0);
    for (int r = 1; r < RANKS; r++)
        join(&teams, 0, r);
    for (int r = 0; r < RANKS; r++) {
        const tsr_status status = tsr_status_set(TSR_ERROR_ARGUMENT, "no %d cats", r);
        tsr_xla_team_abort(&teams, team, r);
        assert_int_equal(tsr_xla_teams_leave(&teams, team, r, status), TSR_ERROR_ARGUMENT);
        assert_int_equal(tsr_status_message()[3], '0' + r);
    }
    assert_null(teams.first);
    end(&teams);
}

static void an_aborted_round_ends_when_a_rank_comes_again(void **state)
{
    tsr_xla_teams teams;
    (void)state;
    begin(&teams, 0);
    tsr_xla_team *const team = join(&teams, 0, 1);
    const tsr_status status = tsr_status_set(TSR_ERROR_MEMORY, "no memory for a cat");
    tsr_xla_team_abort(&teams, team, 1);
    tsr_xla_teams_leave(&teams, team, 1, status);
    /* The others were never called; the next launch has the same run id. */
    tsr_xla_team *const next = join(&teams, 0, 1);
    assert_ptr_equal(join(&teams, 0, 0), next);
    assert_ptr_equal(join(&teams, 0, 2), next);
    leave_all(&teams, next);
    assert_ptr_equal(teams.first, next);
    end(&teams);
}

static void an_aborted_round_is_forgotten_after_the_timeout(void **state)
{
    tsr_xla_teams teams;
    (void)state;
    begin(&teams, 1);
    tsr_xla_team *const team = join(&teams, 0, 1);
    const tsr_status status = tsr_status_set(TSR_ERROR_MEMORY, "no memory for a cat");
    tsr_xla_team_abort(&teams, team, 1);
    tsr_xla_teams_leave(&teams, team, 1, status);
    usleep(5000);
    tsr_xla_team *const next = join(&teams, 0, 0);
    assert_ptr_equal(join(&teams, 0, 1), next);
    assert_ptr_equal(join(&teams, 0, 2), next);
    leave_all(&teams, next);
    end(&teams);
}

/* A rank with two calls, of which odd ranks make the second one first. */
typedef struct caller {
    tsr_xla_teams *calls;
    int rank;
    tsr_status status;
} caller;

static void *call_both(void *arg)
{
    caller *const c = arg;
    for (int64_t run = 0; run < 200 && c->status == TSR_OK; run++) {
        tsr_xla_team *teams[2];
        for (int i = 0; i < 2 && c->status == TSR_OK; i++) {
            const int which = (i + c->rank) % 2;
            c->status = tsr_xla_teams_join(&c->calls[which], run / 2, c->rank, &teams[which]);
        }
        /* Devices of XLA may be in both calls at once; here it counts which ranks meet. */
        for (int i = 0; i < 2 && c->status == TSR_OK; i++) {
            int64_t sum = c->rank + 10 * i + 100 * run, total = 0;
            const tsr_device host = tsr_device_host();
            c->status = tsr_comm_all_reduce(tsr_xla_team_seat(teams[i], c->rank)->comm, &sum, &total, 1, TSR_I64,
                                            TSR_SUM, host, NULL);
            if (c->status == TSR_OK && total != 3 + RANKS * (10 * i + 100 * run))
                c->status = TSR_ERROR_INTERNAL;
            c->status = tsr_xla_teams_leave(&c->calls[i], teams[i], c->rank, c->status);
        }
    }
    return NULL;
}

static void calls_that_start_in_another_order_on_each_rank_meet(void **state)
{
    tsr_xla_teams calls[2];
    pthread_t threads[RANKS];
    caller callers[RANKS];
    (void)state;
    begin(&calls[0], 10000);
    begin(&calls[1], 10000);
    for (int r = 0; r < RANKS; r++) {
        callers[r] = (caller){calls, r, TSR_OK};
        assert_int_equal(pthread_create(&threads[r], NULL, call_both, &callers[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(threads[r], NULL);
        assert_int_equal(callers[r].status, TSR_OK);
    }
    end(&calls[0]);
    end(&calls[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_overlap_have_teams_of_their_own),
        cmocka_unit_test(turns_of_a_loop_do_not_mix),
        cmocka_unit_test(ranks_take_rounds_in_the_order_in_which_they_were_opened),
        cmocka_unit_test(a_rank_that_aborts_is_named_to_all),
        cmocka_unit_test(ranks_that_fail_by_themselves_keep_their_sentences),
        cmocka_unit_test(an_aborted_round_ends_when_a_rank_comes_again),
        cmocka_unit_test(an_aborted_round_is_forgotten_after_the_timeout),
        cmocka_unit_test(calls_that_start_in_another_order_on_each_rank_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
