/* Stalls: ranks that wait in different communicators, each for a rank that waits in another one;
 * and programs that only look like a stall. */
#include "comm_suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* ThreadSanitizer has a thread of its own, which may be anything. Without it a stall that waits out
 * so much runs into the watchdog. */
#ifdef __SANITIZE_THREAD__
enum { STALL_MS = 1000 };
#else
enum { STALL_MS = 3600 * 1000 };
#endif

static void run_watched(int nranks, tsr_rank_main *body, void *arg)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.stall_ms = STALL_MS;
    suite_run_with(nranks, body, arg, &options);
}

/* Rank 0 waits for the other ranks in one communicator, and they wait for it in another. */
static tsr_status cross(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *copy;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &copy));
    const bool first = tsr_comm_rank(comm) == 0;
    tsr_status status = suite_check_error(tsr_comm_barrier(first ? comm : copy), TSR_ERROR_PEER,
                                          "different communicators", __FILE__, __LINE__);
    if (status == TSR_OK)
        status = suite_check_error(tsr_comm_barrier(first ? copy : comm), TSR_ERROR_PEER, "different communicators",
                                   __FILE__, __LINE__);
    tsr_comm_destroy(copy);
    return status;
}

static void calls_that_cross_between_communicators_fail_on_all(void **state)
{
    (void)state;
    for (int n = 2; n <= 4; n += 2)
        run_watched(n, cross, NULL);
}

/* The same among the ranks that are left after the last rank has left. */
static tsr_status cross_without_last(tsr_comm *comm, void *arg)
{
    const bool last = tsr_comm_rank(comm) == tsr_comm_size(comm) - 1;
    tsr_comm *group;
    TSR_TRY(tsr_comm_split(comm, last, 0, &group));
    const tsr_status status = last ? TSR_OK : cross(group, arg);
    tsr_comm_destroy(group);
    return status;
}

static void ranks_that_have_returned_do_not_count_as_awake(void **state)
{
    (void)state;
    run_watched(3, cross_without_last, NULL);
}

/* A rank that computes for longer than the time after which a stall is reported is still waited
 * for. */
static tsr_status compute_long(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *group;
    TSR_TRY(tsr_comm_split(comm, tsr_comm_rank(comm) < 2, 0, &group));
    if (tsr_comm_rank(comm) == 0)
        suite_sleep(1500);
    tsr_status status = tsr_comm_rank(comm) < 2 ? suite_check_usable(group) : TSR_OK;
    tsr_comm_destroy(group);
    TSR_TRY(status);
    return suite_check_usable(comm);
}

static void a_rank_that_computes_for_long_is_waited_for(void **state)
{
    (void)state;
    suite_run(3, compute_long, NULL);
}

/* A second thread of rank 0, which waits for rank 0's peers in `comm` after `milliseconds`. */
typedef struct second {
    tsr_comm *comm;
    int milliseconds;
    tsr_status status;
    tsr_kept_sentence sentence;
    pthread_t thread;
} second;

static void *call_later(void *arg)
{
    second *mine = arg;
    suite_sleep(mine->milliseconds);
    mine->status = tsr_comm_barrier(mine->comm);
    tsr_status_keep(&mine->sentence);
    return NULL;
}

static tsr_status start_second(second *helper, tsr_comm *comm, int milliseconds)
{
    *helper = (second){.comm = comm, .milliseconds = milliseconds};
    CHECK(pthread_create(&helper->thread, NULL, call_later, helper) == 0);
    return TSR_OK;
}

static tsr_status join_second(second *helper)
{
    pthread_join(helper->thread, NULL);
    return helper->status == TSR_OK ? TSR_OK : tsr_status_restore(&helper->sentence, helper->status);
}

/* All ranks wait: rank 0 in the first communicator, its peers in the second, in which another
 * thread of rank 0 has yet to call. */
static tsr_status call_from_two_threads(tsr_comm *comm, void *arg)
{
    second helper;
    tsr_comm *copy;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &copy));
    tsr_status status;
    if (tsr_comm_rank(comm) == 0) {
        TSR_TRY(start_second(&helper, copy, *(const int *)arg));
        status = tsr_comm_barrier(comm);
        const tsr_status other = join_second(&helper);
        status = status != TSR_OK ? status : other;
    } else {
        status = tsr_comm_barrier(copy);
        if (status == TSR_OK)
            status = tsr_comm_barrier(comm);
    }
    tsr_comm_destroy(copy);
    return status;
}

/* Errors of a stall alone: a wait of seconds, as on a busy machine, is told as an error too. */
static void count_stalls(void *user, tsr_log_level level, const char *line)
{
    atomic_fetch_add((atomic_int *)user, level == TSR_LOG_ERROR && strstr(line, "different communicators"));
}

/* What turns out to be right was never called an error. */
static void a_thread_that_is_still_to_call_is_waited_for(void **state)
{
    (void)state;
    int milliseconds = 2600;
    atomic_int stalls = 0;
    tsr_context_options choices = TSR_CONTEXT_OPTIONS_INIT;
    choices.log = count_stalls;
    choices.log_user = &stalls;
    choices.log_level = TSR_LOG_DEBUG;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    assert_int_equal(tsr_context_create(&choices, &options.context), TSR_OK);
    suite_run_with(3, call_from_two_threads, &milliseconds, &options);
    tsr_context_destroy(options.context);
    assert_int_equal(stalls, 0);
}

/* Rank 0 waits in the first communicator with one thread and in the second with another, its peer
 * in a third. */
static tsr_status cross_with_two_threads(tsr_comm *comm, void *arg)
{
    (void)arg;
    second helper;
    tsr_comm *copy, *third;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &copy));
    TSR_TRY(tsr_comm_split(comm, 0, 0, &third));
    const bool first = tsr_comm_rank(comm) == 0;
    tsr_status status = first ? start_second(&helper, copy, 0) : TSR_OK;
    if (status == TSR_OK)
        status = suite_check_error(tsr_comm_barrier(first ? comm : third), TSR_ERROR_PEER, "different communicators",
                                   __FILE__, __LINE__);
    if (status == TSR_OK && first)
        status = suite_check_error(join_second(&helper), TSR_ERROR_PEER, "different communicators", __FILE__, __LINE__);
    tsr_comm_destroy(third);
    tsr_comm_destroy(copy);
    return status;
}

static void all_threads_of_a_rank_are_seen(void **state)
{
    (void)state;
    run_watched(2, cross_with_two_threads, NULL);
}

typedef struct told {
    atomic_int lines, errors; /* of doubt, at level warn; of the end, at level error */
    char line[512];
} told;

static void note(void *user, tsr_log_level level, const char *line)
{
    told *all = user;
    atomic_fetch_add(&all->errors, level == TSR_LOG_ERROR && strstr(line, "different communicators"));
    if (level == TSR_LOG_WARN && strstr(line, "different communicators") && strstr(line, "given up after 100 ms") &&
        atomic_fetch_add(&all->lines, 1) == 0)
        snprintf(all->line, sizeof all->line, "%s", line);
}

/* With 100 milliseconds of patience the other thread comes too late, and the log was told, once. */
static void patience_with_other_threads_has_a_bound_and_is_told(void **state)
{
    (void)state;
    told all = {0};
    int milliseconds = 3200;
    tsr_context_options choices = TSR_CONTEXT_OPTIONS_INIT;
    choices.log = note;
    choices.log_user = &all;
    choices.log_level = TSR_LOG_WARN;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.stall_ms = 100;
    assert_int_equal(tsr_context_create(&choices, &options.context), TSR_OK);
    assert_int_equal(tsr_threads_run(3, call_from_two_threads, &milliseconds, &options), TSR_ERROR_PEER);
    assert_non_null(strstr(tsr_status_message(), "different communicators"));
    assert_non_null(strstr(tsr_status_message(), "set stall_ms in tsr_threads_options to 0"));
    tsr_context_destroy(options.context);
    assert_int_equal(all.lines, 1);
    assert_true(all.errors > 0);
    assert_non_null(strstr(all.line, "rank 0 in one of 3 ranks"));
}

static void a_watch_that_is_off_never_breaks_anything(void **state)
{
    (void)state;
    int milliseconds = 2200;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.stall_ms = 0;
    suite_run_with(3, call_from_two_threads, &milliseconds, &options);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_cross_between_communicators_fail_on_all),
        cmocka_unit_test(ranks_that_have_returned_do_not_count_as_awake),
        cmocka_unit_test(a_rank_that_computes_for_long_is_waited_for),
        cmocka_unit_test(a_thread_that_is_still_to_call_is_waited_for),
        cmocka_unit_test(all_threads_of_a_rank_are_seen),
        cmocka_unit_test(patience_with_other_threads_has_a_bound_and_is_told),
        cmocka_unit_test(a_watch_that_is_off_never_breaks_anything),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
