/* The NCCL engine when peers or the network fail: no rank hangs, and messages name the cause. */
#include "comm/engines/nccl/engine.h"
#include "comm_suite.h"
#include "nccl_world.h"
#include "standin.h"
#include "standin_ranks.h"

#include <pthread.h>
#include <stdlib.h>

#define AS_TEXT(x)  #x
#define IN_WORDS(x) AS_TEXT(x)
#define HAS_WAITED  "has waited " IN_WORDS(SHORT_MS) " ms for its peers"

static const tsr_threads_options in_time = {sizeof in_time, NULL, SHORT_MS, -1};

/* The last rank does not make the call in which the others wait. */
static tsr_status be_left_alone(tsr_comm *comm, void *arg)
{
    const int k = *(const int *)arg;
    TSR_TRY(suite_check_usable(comm));
    if (tsr_comm_rank(comm) == tsr_comm_size(comm) - 1) {
        suite_sleep(2 * SHORT_MS);
        return tsr_status_set(TSR_ERROR_IO, "had something else to do");
    }
    CHECK_ERROR(wait_for_peers(comm, k), TSR_ERROR_PEER, HAS_WAITED);
    for (int again = 0; again < MOST_CALLS; again++)
        CHECK_ERROR(wait_for_peers(comm, again), TSR_ERROR_PEER, "an earlier call has broken this communicator: rank");
    return tsr_status_set(TSR_ERROR_PEER, "as it should be");
}

static void a_lost_peer_is_an_error_when_the_time_is_over(void **state)
{
    (void)state;
    for (int k = 0; k < MOST_CALLS; k++) {
        assert_int_equal(suite_engine->run(2, be_left_alone, &k, &in_time), TSR_ERROR_IO);
        if (!strstr(tsr_status_message(), "had something else to do"))
            fail_msg("call %d: %s", k, tsr_status_message());
    }
}

/* The last rank does not call in a group, which breaks the group but not the whole communicator. */
static tsr_status break_a_group(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *part;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &part));
    tsr_status status = TSR_OK;
    if (tsr_comm_rank(comm) < tsr_comm_size(comm) - 1)
        status = suite_check_error(tsr_comm_barrier(part), TSR_ERROR_PEER, HAS_WAITED, __FILE__, __LINE__);
    else
        suite_sleep(SHORT_MS);
    if (status == TSR_OK)
        status = suite_check_usable(comm);
    tsr_comm_destroy(part);
    TSR_TRY(status);
    return suite_check_usable(comm);
}

static void a_broken_group_breaks_nothing_else(void **state)
{
    (void)state;
    suite_run_with(2, break_a_group, NULL, &in_time);
}

typedef struct aborter {
    tsr_comm *comm;
    pthread_t thread;
} aborter;

static void *abort_soon(void *arg)
{
    const aborter *mine = arg;
    suite_sleep(20);
    tsr_comm_abort(mine->comm);
    tsr_comm_abort(mine->comm);
    return NULL;
}

/* Another thread aborts a group while this rank waits in the whole, or in the group. */
static tsr_status be_aborted(tsr_comm *comm, void *arg)
{
    const bool in_group = *(const bool *)arg;
    tsr_comm *part;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &part));
    if (tsr_comm_rank(comm) > 0) {
        tsr_comm_destroy(part);
        return tsr_status_set(TSR_ERROR_IO, "gone");
    }
    aborter other = {.comm = in_group ? comm : part};
    pthread_create(&other.thread, NULL, abort_soon, &other);
    tsr_status status =
        suite_check_error(tsr_comm_barrier(in_group ? part : comm), TSR_ERROR_PEER, "has aborted", __FILE__, __LINE__);
    pthread_join(other.thread, NULL);
    for (int k = 0; k < MOST_CALLS && status == TSR_OK; k++)
        status = suite_check_error(wait_for_peers(k % 2 ? comm : part, k), TSR_ERROR_PEER, "has aborted", __FILE__,
                                   __LINE__);
    tsr_comm_destroy(part);
    TSR_TRY(status);
    return tsr_status_set(TSR_ERROR_PEER, "as it should be");
}

static void an_abort_releases_the_rank_and_its_groups(void **state)
{
    (void)state;
    for (int in_group = 0; in_group < 2; in_group++) {
        const bool arg = in_group;
        tsr_threads_options options = in_time;
        options.timeout_ms = 2000; /* what the rank that goes waits for the others at most */
        assert_int_equal(suite_engine->run(2, be_aborted, (void *)&arg, &options), TSR_ERROR_IO);
    }
}

/* A handle on a communicator of this rank's own, w->comms[rank]. */
static tsr_status borrow(tsr_comm *seat, world *w, tsr_comm **comm)
{
    const int rank = tsr_comm_rank(seat);
    ncclUniqueId id;
    memcpy(&id, &w->id, sizeof id);
    standin_api.cuda_set_device(rank);
    CHECK(standin_api.comm_init_rank_config(&w->comms[rank], tsr_comm_size(seat), id, rank, NULL) == ncclSuccess);
    return tsr_nccl_borrow(&standin_api, w->comms[rank], &w->options, comm);
}

/* A communicator that the engine borrows is aborted by nobody but its owner. */
static tsr_status borrow_and_lose(tsr_comm *seat, void *arg)
{
    world *w = arg;
    const int rank = tsr_comm_rank(seat);
    tsr_comm *comm;
    TSR_TRY(borrow(seat, w, &comm));
    if (rank == 0)
        CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, "has waited");
    TSR_TRY(tsr_comm_barrier(seat));
    tsr_comm_abort(comm);
    CHECK(standin_aborted() == 0);
    TSR_TRY(tsr_comm_barrier(seat));
    standin_api.comm_abort(w->comms[rank]);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void what_is_borrowed_is_aborted_by_its_owner(void **state)
{
    (void)state;
    world w = {0};
    begin_world(&w, 2);
    assert_ran(tsr_threads_run(2, borrow_and_lose, &w, NULL));
    end_world();
}

/* Before it is aborted its kernels hang, and to free what they may write to would hang as well. */
static tsr_status destroy_too_early(tsr_comm *seat, void *arg)
{
    world *w = arg;
    tsr_comm *comm;
    TSR_TRY(borrow(seat, w, &comm));
    if (tsr_comm_rank(seat) == 0)
        CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, "has waited");
    tsr_comm_destroy(comm);
    TSR_TRY(tsr_comm_barrier(seat));
    standin_api.comm_abort(w->comms[tsr_comm_rank(seat)]);
    return TSR_OK;
}

static void what_a_lent_communicator_may_still_write_to_is_left_alone(void **state)
{
    (void)state;
    world w = {0};
    begin_world(&w, 2);
    assert_ran(tsr_threads_run(2, destroy_too_early, &w, NULL));
    const char *left = standin_end();
    assert_non_null(left);
    assert_non_null(strstr(left, "bytes of device -1 were not freed"));
}

/* Of the sentence: what a call says of its own failure has nothing before it. */
static tsr_status check_beginning(const char *words)
{
    if (strncmp(tsr_status_message(), words, strlen(words)) == 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "\"%s\" does not begin with \"%s\"", tsr_status_message(), words);
}

static tsr_status fail_to_create(tsr_comm *seat, void *arg)
{
    world *w = arg;
    tsr_comm *comm = NULL;
    standin_api.cuda_set_device(0);
    CHECK_ERROR(tsr_nccl_create(&standin_api, tsr_comm_size(seat), tsr_comm_rank(seat), &w->id, &w->options, &comm),
                w->failure, w->words);
    TSR_TRY(check_beginning("NCCL: invalid usage"));
    CHECK(!comm);
    return TSR_OK;
}

static void ranks_on_one_gpu_are_told_of_rank_threads(void **state)
{
    (void)state;
    world w = {.failure = TSR_ERROR_UNSUPPORTED,
               .words = "NCCL takes one rank a GPU; ranks that share a GPU are threads of one process"};
    begin_world(&w, 1);
    assert_ran(tsr_threads_run(2, fail_to_create, &w, NULL));
    end_world();
}

static void ranks_that_do_not_come_are_not_waited_for_for_ever(void **state)
{
    (void)state;
    world w = {0};
    tsr_comm *comm = NULL;
    begin_world(&w, 1);
    standin_api.cuda_set_device(0);
    assert_int_equal(tsr_nccl_create(&standin_api, 2, 1, &w.id, &w.options, &comm), TSR_ERROR_PEER);
    assert_ran(check_beginning("rank 1 of 2 " HAS_WAITED));
    assert_null(comm);
    end_world();
}

static void assert_refused(int ranks, int rank, const tsr_nccl_id *id, const tsr_nccl_options *options, tsr_comm **out,
                           tsr_status wanted, const char *words)
{
    const tsr_status status = tsr_nccl_create(&standin_api, ranks, rank, id, options, out);
    if (status != wanted || !strstr(tsr_status_message(), words))
        fail_msg("%s: \"%s\" does not say \"%s\"", tsr_status_name(status), tsr_status_message(), words);
}

static void faults_of_arguments_are_named(void **state)
{
    (void)state;
    world w = {0};
    tsr_comm *comm = NULL;
    begin_world(&w, 1);
    tsr_nccl_options options = w.options;
    assert_refused(0, 0, &w.id, NULL, &comm, TSR_ERROR_ARGUMENT, "nranks is 0");
    assert_refused(2, 2, &w.id, NULL, &comm, TSR_ERROR_ARGUMENT, "rank is 2; the ranks are 0 to 1");
    assert_refused(2, -1, &w.id, NULL, &comm, TSR_ERROR_ARGUMENT, "rank is -1");
    assert_refused(1, 0, NULL, NULL, &comm, TSR_ERROR_ARGUMENT, "id is NULL");
    assert_refused(1, 0, &w.id, NULL, NULL, TSR_ERROR_ARGUMENT, "out is NULL");
    options.timeout_ms = -1;
    assert_refused(1, 0, &w.id, &options, &comm, TSR_ERROR_ARGUMENT, "options.timeout_ms is -1");
    options.size = 0;
    assert_refused(1, 0, &w.id, &options, &comm, TSR_ERROR_ARGUMENT, "options.size is 0");
    assert_int_equal(tsr_nccl_borrow(&standin_api, NULL, NULL, &comm), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "tsr_comm_from_nccl: comm is NULL"));
    assert_int_equal(tsr_nccl_make_id(&standin_api, NULL), TSR_ERROR_ARGUMENT);
    assert_null(comm);
    end_world();
}

static void what_is_missing_is_said(void **state)
{
    (void)state;
    world w = {0};
    tsr_comm *comm = NULL;
    begin_world(&w, 0);
    assert_refused(1, 0, &w.id, NULL, &comm, TSR_ERROR_UNAVAILABLE,
                   "there is no CUDA device: cudaGetDeviceCount: 0 devices");
    standin_fail_call(2);
    assert_refused(1, 0, &w.id, NULL, &comm, TSR_ERROR_UNAVAILABLE,
                   "there is no CUDA device: cudaGetDeviceCount: no driver");
    assert_string_equal(standin_failed_call(), "cudaGetDeviceCount");
    standin_set_version(21703);
    assert_refused(1, 0, &w.id, NULL, &comm, TSR_ERROR_UNSUPPORTED, "NCCL 2.17.3 is loaded; it takes 2.18 or newer");
    standin_set_version(2708);
    assert_refused(1, 0, &w.id, NULL, &comm, TSR_ERROR_UNSUPPORTED, "NCCL 2.7.8 is loaded");
    assert_int_equal(tsr_nccl_make_id(&standin_api, &w.id), TSR_ERROR_UNSUPPORTED);
    standin_set_version(21800);
    assert_int_equal(tsr_nccl_make_id(&standin_api, &w.id), TSR_OK);
    end_world();
}

static void a_borrowed_communicator_is_to_be_ready(void **state)
{
    (void)state;
    world w = {0};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t lent;
    ncclUniqueId id;
    tsr_comm *comm = NULL;
    begin_world(&w, 1);
    memcpy(&id, &w.id, sizeof id);
    config.blocking = 0;
    assert_int_equal(standin_api.comm_init_rank_config(&lent, 2, id, 0, &config), ncclInProgress);
    assert_int_equal(tsr_nccl_borrow(&standin_api, lent, NULL, &comm), TSR_ERROR_STATE);
    assert_non_null(strstr(tsr_status_message(), "the communicator is not ready"));
    standin_break_network(lent, ncclRemoteError);
    assert_int_equal(tsr_nccl_borrow(&standin_api, lent, NULL, &comm), TSR_ERROR_PEER);
    assert_non_null(strstr(tsr_status_message(), "network error"));
    standin_api.comm_abort(lent);
    end_world();
}

/* Alone, so that nobody else is needed. */
static void lent_ones_may_be_kept_from_splitting(void **state)
{
    (void)state;
    world w = {0};
    tsr_comm *comm = NULL, *part = NULL;
    begin_world(&w, 1);
    standin_api.cuda_set_device(0);
    w.options.no_split = 1;
    assert_int_equal(tsr_nccl_create(&standin_api, 1, 0, &w.id, &w.options, &comm), TSR_OK);
    assert_int_equal(tsr_comm_split(comm, 0, 0, &part), TSR_ERROR_UNSUPPORTED);
    assert_string_equal(tsr_comm_engine(comm), "nccl");
    tsr_comm_destroy(comm);
    end_world();
}

static tsr_status lose_the_network(tsr_comm *seat, void *arg)
{
    world *w = arg;
    const int rank = tsr_comm_rank(seat);
    tsr_comm *comm;
    TSR_TRY(borrow(seat, w, &comm));
    TSR_TRY(tsr_comm_barrier(seat));
    if (rank == 0)
        standin_break_network(w->comms[rank], ncclRemoteError);
    TSR_TRY(tsr_comm_barrier(seat));
    CHECK_ERROR(tsr_comm_wait(comm, NULL, 0), TSR_ERROR_PEER,
                "NCCL: remote process exited or there was a network error");
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER,
                "an earlier call has broken this communicator: NCCL: remote process");
    standin_api.comm_abort(w->comms[rank]);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void asynchronous_errors_are_told_by_wait(void **state)
{
    (void)state;
    world w = {0};
    begin_world(&w, 3);
    assert_ran(tsr_threads_run(3, lose_the_network, &w, NULL));
    end_world();
}

int main(int count, char **arguments)
{
    const struct CMUnitTest of_each_engine[] = {
        cmocka_unit_test(a_lost_peer_is_an_error_when_the_time_is_over),
        cmocka_unit_test(a_broken_group_breaks_nothing_else),
        cmocka_unit_test(an_abort_releases_the_rank_and_its_groups),
    };
    /* These tests create their own communicators, so they are the same with every engine. */
    const struct CMUnitTest of_the_first[] = {
        cmocka_unit_test(what_is_borrowed_is_aborted_by_its_owner),
        cmocka_unit_test(what_a_lent_communicator_may_still_write_to_is_left_alone),
        cmocka_unit_test(ranks_on_one_gpu_are_told_of_rank_threads),
        cmocka_unit_test(ranks_that_do_not_come_are_not_waited_for_for_ever),
        cmocka_unit_test(faults_of_arguments_are_named),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(a_borrowed_communicator_is_to_be_ready),
        cmocka_unit_test(lent_ones_may_be_kept_from_splitting),
        cmocka_unit_test(asynchronous_errors_are_told_by_wait),
    };
    suite_start(count, arguments);
    const int failed = cmocka_run_group_tests(of_each_engine, NULL, NULL);
    return suite_engine == suite_engines ? failed + cmocka_run_group_tests(of_the_first, NULL, NULL) : failed;
}
