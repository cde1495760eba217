/* Ranks of two nodes that abort, leave, or never come: all other ranks hear of it, wherever they
 * wait. */
#include "comm_suite.h"
#include "halves.h"
#include "launched.h"

#include <pthread.h>
#include <stdio.h>

enum { PATIENT_MS = 60000, DEAF_MS = 10000 };

/* Makes the half communicator of this rank's node. The last rank goes on when all others have
 * theirs, because it is about to abort. */
static tsr_status halve(tsr_comm *comm, tsr_comm **group)
{
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    TSR_TRY(tsr_comm_split(comm, rank / halves_size(comm), 0, group));
    if (rank != last)
        launched_wake(last);
    for (int other = 0; other < last && rank == last; other++)
        launched_await(other);
    return TSR_OK;
}

/* The last rank aborts. The others wait for it, except for the first, which waits without a message
 * for another rank of its node. */
static tsr_status abort_far_away(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    char byte = 0, aborted[64];
    tsr_comm *group;
    TSR_TRY(halve(comm, &group));
    snprintf(aborted, sizeof aborted, "rank %d of all has aborted", last);
    const tsr_message receive = {last, &byte, 1};
    if (rank == last) {
        suite_sleep(100);
        tsr_comm_abort(comm);
    } else if (rank == 0) {
        CHECK_ERROR(tsr_comm_barrier(group), TSR_ERROR_PEER, aborted);
    } else {
        CHECK_ERROR(tsr_comm_exchange(comm, NULL, 0, &receive, 1, tsr_device_host(), NULL), TSR_ERROR_PEER, aborted);
    }
    CHECK_ERROR(tsr_comm_barrier(group), TSR_ERROR_PEER, aborted);
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, aborted);
    tsr_comm_destroy(group);
    return TSR_OK;
}

static void an_abort_releases_ranks_of_all_nodes(void **state)
{
    (void)state;
    halves_run(abort_far_away, NULL, PATIENT_MS);
    halves_run_by_messages(abort_far_away, PATIENT_MS);
}

static void *abort_it(void *comm)
{
    tsr_comm_abort(comm);
    return NULL;
}

/* The last rank aborts, and rank 0 waits at its node's gate for mates that are elsewhere until it
 * has heard. */
static tsr_status abort_past_a_stuck_mate(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    char aborted[64];
    tsr_comm *group;
    TSR_TRY(halve(comm, &group));
    snprintf(aborted, sizeof aborted, "rank %d of all has aborted", last);
    if (rank == last) {
        suite_sleep(100);
        tsr_comm_abort(comm);
    } else if (rank == 0) {
        const tsr_status status = tsr_comm_barrier(group);
        for (int mate = 1; mate < halves_size(comm); mate++)
            launched_wake(mate);
        CHECK_ERROR(status, TSR_ERROR_PEER, aborted);
    } else if (rank < halves_size(comm)) {
        launched_await(0);
    }
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, aborted);
    tsr_comm_destroy(group);
    return TSR_OK;
}

static void an_abort_releases_who_waits_for_a_mate_elsewhere(void **state)
{
    (void)state;
    halves_run(abort_past_a_stuck_mate, NULL, DEAF_MS);
}

/* The last rank aborts in a thread that may not call MPI; its next call is one at its node's gate,
 * and tells rank 0, for which all wait. */
static tsr_status abort_in_a_thread(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    char byte, aborted[64];
    const tsr_message receive = {last, &byte, 1};
    pthread_t thread;
    tsr_comm *group;
    tsr_status status = TSR_OK;
    TSR_TRY(halve(comm, &group));
    snprintf(aborted, sizeof aborted, "rank %d of all has aborted", last);
    if (rank == last) {
        CHECK(pthread_create(&thread, NULL, abort_it, comm) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_ERROR(tsr_comm_barrier(group), TSR_ERROR_PEER, aborted);
    }
    if (rank == 0)
        status = tsr_comm_exchange(comm, NULL, 0, &receive, 1, tsr_device_host(), NULL);
    for (int other = 1; other <= last && rank == 0; other++)
        launched_wake(other);
    if (rank > 0)
        launched_await(0);
    else
        CHECK_ERROR(status, TSR_ERROR_PEER, aborted);
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, aborted);
    tsr_comm_destroy(group);
    return TSR_OK;
}

static void an_abort_in_a_thread_is_told_by_the_next_call(void **state)
{
    (void)state;
    halves_run(abort_in_a_thread, NULL, DEAF_MS);
}

/* The last rank sends its message, and leaves. */
static tsr_status leave_early(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), last = tsr_comm_size(comm) - 1;
    char byte = 7, returned[64];
    const tsr_message send = {0, &byte, 1}, receive = {last, &byte, 1};
    snprintf(returned, sizeof returned, "rank %d has returned", last);
    if (rank == last)
        return tsr_comm_exchange(comm, &send, 1, NULL, 0, tsr_device_host(), NULL);
    if (rank == 0) {
        byte = 0;
        suite_sleep(300);
        TSR_TRY(tsr_comm_exchange(comm, NULL, 0, &receive, 1, tsr_device_host(), NULL));
        CHECK(byte == 7);
    }
    CHECK_ERROR(tsr_comm_exchange(comm, NULL, 0, &receive, 1, tsr_device_host(), NULL), TSR_ERROR_PEER, returned);
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, returned);
    return TSR_OK;
}

static void who_leaves_is_named_on_all_nodes(void **state)
{
    (void)state;
    halves_run(leave_early, NULL, PATIENT_MS);
    halves_run_by_messages(leave_early, PATIENT_MS);
}

/* The first rank comes when the others have given up, and does not find them. */
static void who_makes_a_communicator_alone_is_told_so(void **state)
{
    (void)state;
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    tsr_comm *comm = NULL;
    MPI_Comm apart;
    options.timeout_ms = 300;
    const bool late = launched_rank() == 0;
    assert_int_equal(MPI_Comm_dup(MPI_COMM_WORLD, &apart), MPI_SUCCESS);
    if (late)
        suite_sleep(900);
    const tsr_status status = tsr_comm_from_mpi(apart, &options, &comm);
    if (status != TSR_ERROR_PEER ||
        !strstr(tsr_status_message(), "tsr_comm_from_mpi: not all ranks came within 300 ms"))
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    assert_null(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_abort_releases_ranks_of_all_nodes),
        cmocka_unit_test(an_abort_releases_who_waits_for_a_mate_elsewhere),
        cmocka_unit_test(an_abort_in_a_thread_is_told_by_the_next_call),
        cmocka_unit_test(who_leaves_is_named_on_all_nodes),
        cmocka_unit_test(who_makes_a_communicator_alone_is_told_so),
    };
    char *const node[] = {"", "node", NULL};
    suite_start(2, (char **)node);
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
