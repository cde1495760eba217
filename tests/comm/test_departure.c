/*
 * Ranks that fail, return, abort or are late: every peer gets an error that names them, no rank
 * hangs, and only broken communicators stay broken.
 */
#include "comm_suite.h"

#include <stdatomic.h>
#include <stdio.h>

enum { MOST_RANKS = 5, CALLS = 4, LATE_MS = 500 };

/* Makes the k-th call of a program that uses every kind of call. */
static tsr_status call_number(tsr_comm *comm, int k)
{
    int64_t in[MOST_RANKS] = {1}, out[MOST_RANKS] = {0};
    tsr_comm *part = NULL;
    tsr_status status;
    switch (k % CALLS) {
    case 0:
        return tsr_comm_all_reduce(comm, in, out, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL);
    case 1:
        return tsr_comm_barrier(comm);
    case 2:
        status = tsr_comm_split(comm, 0, 0, &part);
        tsr_comm_destroy(part);
        return status;
    default:
        return tsr_comm_all_to_all(comm, in, out, 1, NULL, NULL, TSR_I64, tsr_device_host(), NULL);
    }
}

typedef struct leaving {
    int rank, after; /* the rank that returns, and the number of calls after which it does */
    tsr_status status;
} leaving;

static tsr_status leave_early(tsr_comm *comm, void *arg)
{
    const leaving *l = arg;
    char words[64];
    snprintf(words, sizeof words, "rank %d has returned", l->rank);
    for (int k = 0; k < l->after; k++)
        TSR_TRY(call_number(comm, k));
    if (tsr_comm_rank(comm) == l->rank)
        return l->status == TSR_OK ? TSR_OK : tsr_status_set(l->status, "had enough");
    for (int k = 0; k < CALLS + 1; k++)
        CHECK_ERROR(call_number(comm, l->after + k), TSR_ERROR_PEER, words);
    return TSR_OK;
}

static void a_rank_that_returns_is_named_by_all_that_wait_for_it(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int n = 2; n <= MOST_RANKS; n++)
        for (int rank = 0; rank < n; rank++)
            for (int after = 0; after <= CALLS; after++) {
                leaving l = {rank, after, TSR_OK};
                suite_run(n, leave_early, &l);
            }
}

static void the_cause_is_what_a_run_returns(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int rank = 0; rank < 3; rank++) {
        leaving l = {rank, 2, TSR_ERROR_IO};
        char words[64];
        snprintf(words, sizeof words, "rank %d: had enough", rank);
        assert_int_equal(suite_engine->run(3, leave_early, &l, NULL), TSR_ERROR_IO);
        assert_non_null(strstr(tsr_status_message(), words));
    }
}

static tsr_status pass_on(tsr_comm *comm, void *arg)
{
    const leaving *l = arg;
    if (tsr_comm_rank(comm) == l->rank)
        return tsr_status_set(TSR_ERROR_STATE, "of my own");
    return tsr_comm_barrier(comm);
}

static void a_rank_that_failed_by_itself_tells_more_than_its_peers(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int rank = 0; rank < 3; rank++) {
        leaving l = {.rank = rank};
        assert_int_equal(suite_engine->run(3, pass_on, &l, NULL), TSR_ERROR_STATE);
        assert_non_null(strstr(tsr_status_message(), "of my own"));
    }
}

/* Ranks return right after the last call, which must be complete for all. */
static tsr_status return_at_once(tsr_comm *comm, void *arg)
{
    (void)arg;
    int64_t in = 1, out = 0;
    TSR_TRY(tsr_comm_all_reduce(comm, &in, &out, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    CHECK(out == tsr_comm_size(comm));
    return TSR_OK;
}

static void returning_right_after_a_call_breaks_nothing_in_it(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++)
        suite_run(2 + round % 4, return_at_once, NULL);
}

/* The last rank returns; the others go on in a group without it. */
static tsr_status go_on_without(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int last = tsr_comm_size(comm) - 1;
    tsr_comm *group, *all;
    TSR_TRY(tsr_comm_split(comm, tsr_comm_rank(comm) == last, 0, &group));
    TSR_TRY(tsr_comm_split(comm, 0, 0, &all));
    tsr_status status = TSR_OK;
    if (tsr_comm_rank(comm) != last) {
        status = suite_check_error(tsr_comm_barrier(all), TSR_ERROR_PEER, "has returned", __FILE__, __LINE__);
        for (int i = 0; i < 3 && status == TSR_OK; i++)
            status = suite_check_usable(group);
    }
    tsr_comm_destroy(group);
    tsr_comm_destroy(all);
    return status;
}

static void groups_without_the_rank_that_returned_go_on(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int n = 2; n <= MOST_RANKS; n++)
        suite_run(n, go_on_without, NULL);
}

/* Destroying a split handle leaves that communicator only. */
static tsr_status leave_a_group(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *copy;
    TSR_TRY(tsr_comm_split(comm, 0, -tsr_comm_rank(comm), &copy));
    tsr_status status = TSR_OK;
    if (tsr_comm_rank(comm) > 0)
        status = suite_check_error(tsr_comm_barrier(copy), TSR_ERROR_PEER, "has returned", __FILE__, __LINE__);
    tsr_comm_destroy(copy);
    TSR_TRY(status);
    return suite_check_usable(comm);
}

static void a_destroyed_group_handle_breaks_that_group_only(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int n = 2; n <= MOST_RANKS; n++)
        suite_run(n, leave_a_group, NULL);
}

static tsr_status fail_locally(tsr_comm *comm, void *arg)
{
    const int victim = *(const int *)arg, rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    int64_t in[MOST_RANKS] = {1}, out[MOST_RANKS];
    char words[64];
    snprintf(words, sizeof words, "rank %d failed: tsr_comm_", victim);
    const tsr_status wanted = rank == victim ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    void *const receive = rank == victim ? NULL : out;
    CHECK_ERROR(tsr_comm_all_reduce(comm, in, receive, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL), wanted,
                rank == victim ? "tsr_comm_all_reduce: receive is NULL" : words);
    CHECK_ERROR(tsr_comm_all_gather(comm, in, receive, 1, NULL, TSR_I64, tsr_device_host(), NULL), wanted,
                rank == victim ? "tsr_comm_all_gather: receive is NULL" : words);
    CHECK_ERROR(tsr_comm_reduce_scatter(comm, in, rank == victim ? in : out, 1, NULL, TSR_I64, TSR_SUM,
                                        tsr_device_host(), NULL),
                wanted, rank == victim ? "overlap" : words);
    const tsr_message send = {rank == victim ? rank : victim, in, 8};
    if (suite_engine->direct)
        CHECK_ERROR(tsr_comm_exchange(comm, &send, rank == victim, NULL, 0, tsr_device_host(), NULL), wanted,
                    rank == victim ? "sends[0].peer is" : words);
    CHECK(size > 1);
    return suite_check_usable(comm);
}

static void a_local_failure_is_named_by_the_others_and_passes(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n++)
        for (int victim = 0; victim < n; victim++)
            suite_run(n, fail_locally, &victim);
}

static tsr_status refuse_same_faults(tsr_comm *comm, void *arg)
{
    (void)arg;
    int64_t in[MOST_RANKS] = {1}, out[MOST_RANKS];
    const int64_t negative[MOST_RANKS] = {1, -1, 1, 1, 1}, huge[MOST_RANKS] = {INT64_MAX, INT64_MAX},
                  ones[MOST_RANKS] = {1, 1};
    const tsr_device host = tsr_device_host();
    CHECK_ERROR(tsr_comm_all_reduce(comm, in, out, -3, TSR_I64, TSR_SUM, host, NULL), TSR_ERROR_ARGUMENT,
                "count is -3");
    CHECK_ERROR(tsr_comm_all_reduce(comm, in, out, 1, TSR_DTYPE_NONE, TSR_SUM, host, NULL), TSR_ERROR_ARGUMENT,
                "dtype is 0");
    CHECK_ERROR(tsr_comm_all_reduce(comm, in, out, 1, TSR_I64, TSR_AVG, host, NULL), TSR_ERROR_ARGUMENT, "avg");
    CHECK_ERROR(tsr_comm_all_reduce(comm, in, out, 1, TSR_C64, TSR_MAX, host, NULL), TSR_ERROR_ARGUMENT, "c64");
    CHECK_ERROR(tsr_comm_all_reduce(comm, in, out, 1, TSR_I64, (tsr_reduce_op)9, host, NULL), TSR_ERROR_ARGUMENT,
                "(9)");
    CHECK_ERROR(tsr_comm_all_reduce(comm, in, out, INT64_MAX / 4, TSR_I64, TSR_SUM, host, NULL), TSR_ERROR_ARGUMENT,
                "2^63 - 1 bytes");
    CHECK_ERROR(tsr_comm_all_gather(comm, in, out, INT64_MAX / 2 + 1, NULL, TSR_I8, host, NULL), TSR_ERROR_ARGUMENT,
                "2^63 - 1 elements");
    CHECK_ERROR(tsr_comm_all_gather(comm, in, out, 0, negative, TSR_I8, host, NULL), TSR_ERROR_ARGUMENT,
                "counts[1] is -1");
    CHECK_ERROR(tsr_comm_scatter(comm, in, out, 0, huge, TSR_I8, 0, host, NULL), TSR_ERROR_ARGUMENT,
                "2^63 - 1 elements");
    CHECK_ERROR(tsr_comm_all_to_all(comm, in, out, 1, ones, NULL, TSR_I8, host, NULL), TSR_ERROR_ARGUMENT,
                "receive_counts is NULL");
    CHECK_ERROR(tsr_comm_all_to_all(comm, in, out, 1, NULL, ones, TSR_I8, host, NULL), TSR_ERROR_ARGUMENT,
                "send_counts is NULL");
    CHECK_ERROR(tsr_comm_broadcast(comm, in, 1, TSR_I8, -1, host, NULL), TSR_ERROR_ARGUMENT, "root is -1");
    CHECK_ERROR(tsr_comm_gather(comm, in, out, 1, NULL, TSR_I8, tsr_comm_size(comm), host, NULL), TSR_ERROR_ARGUMENT,
                "root is 2");
    CHECK_ERROR(tsr_comm_all_gather(NULL, in, out, 1, NULL, TSR_I8, host, NULL), TSR_ERROR_ARGUMENT, "comm is NULL");
    CHECK_ERROR(tsr_comm_split(comm, 0, 0, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    CHECK_ERROR(tsr_comm_wait(comm, NULL, -1), TSR_ERROR_ARGUMENT, "timeout_ms is -1");
    CHECK(tsr_comm_wait(comm, NULL, 5) == TSR_OK);
    return suite_check_usable(comm);
}

static void a_fault_of_all_ranks_is_told_to_each_in_its_own_words(void **state)
{
    (void)state;
    suite_run(2, refuse_same_faults, NULL);
}

/* Rank 1 aborts while the others wait, or before they come; some may still be in the split. */
static tsr_status abort_one(tsr_comm *comm, void *arg)
{
    const int delay = *(const int *)arg;
    tsr_comm *group;
    const tsr_status split = tsr_comm_split(comm, tsr_comm_rank(comm) == 0, 0, &group);
    if (split != TSR_OK)
        return suite_check_error(split, TSR_ERROR_PEER, "has aborted", __FILE__, __LINE__);
    if (tsr_comm_rank(comm) == 1) {
        suite_sleep(delay);
        tsr_comm_abort(group);
    } else {
        suite_sleep(delay ? 0 : 20);
    }
    tsr_status status = TSR_OK;
    for (int i = 0; i < 2 && status == TSR_OK; i++)
        status = suite_check_error(tsr_comm_barrier(comm), TSR_ERROR_PEER, "has aborted", __FILE__, __LINE__);
    if (status == TSR_OK)
        status = suite_check_error(tsr_comm_barrier(group), TSR_ERROR_PEER, "has aborted", __FILE__, __LINE__);
    tsr_comm_destroy(group);
    return status;
}

static void an_abort_releases_who_waits_now_and_later(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int n = 2; n <= MOST_RANKS; n++)
        for (int delay = 0; delay <= 20; delay += 20)
            suite_run(n, abort_one, &delay);
}

/* Rank 1 comes after all others have given it up. */
static tsr_status come_late(tsr_comm *comm, void *arg)
{
    atomic_int *waited = arg;
    if (tsr_comm_rank(comm) == 1)
        suite_await(waited, tsr_comm_size(comm) - 1, 4 * LATE_MS);
    const tsr_status status = tsr_comm_barrier(comm);
    atomic_fetch_add(waited, 1);
    CHECK_ERROR(status, TSR_ERROR_PEER, "rank 1 did not come within 500 ms");
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, "rank 1 did not come within 500 ms");
    return TSR_OK;
}

static void a_rank_that_is_late_is_named_and_the_communicator_broken(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.timeout_ms = LATE_MS;
    for (int n = 2; n <= 4; n++) {
        atomic_int waited = 0;
        suite_run_with(n, come_late, &waited, &options);
    }
}

static tsr_status be_in_time(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        suite_sleep(tsr_comm_rank(comm) * 5);
        TSR_TRY(suite_check_usable(comm));
    }
    return TSR_OK;
}

static void a_timeout_that_does_not_pass_changes_nothing(void **state)
{
    (void)state;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.timeout_ms = 60000;
    options.spin = 0;
    suite_run_with(3, be_in_time, NULL, &options);
    options.timeout_ms = INT64_MAX;
    suite_run_with(3, be_in_time, NULL, &options);
}

int suite_departure(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_returns_is_named_by_all_that_wait_for_it),
        cmocka_unit_test(the_cause_is_what_a_run_returns),
        cmocka_unit_test(a_rank_that_failed_by_itself_tells_more_than_its_peers),
        cmocka_unit_test(returning_right_after_a_call_breaks_nothing_in_it),
        cmocka_unit_test(groups_without_the_rank_that_returned_go_on),
        cmocka_unit_test(a_destroyed_group_handle_breaks_that_group_only),
        cmocka_unit_test(a_local_failure_is_named_by_the_others_and_passes),
        cmocka_unit_test(a_fault_of_all_ranks_is_told_to_each_in_its_own_words),
        cmocka_unit_test(an_abort_releases_who_waits_now_and_later),
        cmocka_unit_test(a_rank_that_is_late_is_named_and_the_communicator_broken),
        cmocka_unit_test(a_timeout_that_does_not_pass_changes_nothing),
    };
    return cmocka_run_group_tests_name("departure", tests, NULL, NULL);
}
