/* Handles that are in a call, held, shared by mistake, waited for, or destroyed: the errors of
 * callers, and the log. */
#include "comm_suite.h"

#include <tessera/mesh_comm.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* A handle that two threads use by mistake. */
typedef struct shared_handle {
    tsr_comm *comm;
    tsr_status status;
    char sentence[256];
    pthread_t thread;
} shared_handle;

static void *meet_once(void *arg)
{
    shared_handle *mine = arg;
    mine->status = tsr_comm_barrier(mine->comm);
    snprintf(mine->sentence, sizeof mine->sentence, "%s", mine->status == TSR_OK ? "" : tsr_status_message());
    return NULL;
}

/* The second of two threads gets an error, and the first goes on waiting for rank 1. */
static void a_handle_that_is_in_a_call_refuses_a_second_caller(void **state)
{
    (void)state;
    tsr_comm *handles[2];
    shared_handle both[2];
    assert_int_equal(tsr_comm_create_threads(2, NULL, handles), TSR_OK);
    for (int i = 0; i < 2; i++) {
        both[i] = (shared_handle){.comm = handles[0]};
        assert_int_equal(pthread_create(&both[i].thread, NULL, meet_once, &both[i]), 0);
    }
    int refused = -1;
    while (refused < 0) {
        usleep(1000);
        for (int i = 0; i < 2 && refused < 0; i++)
            if (pthread_tryjoin_np(both[i].thread, NULL) == 0)
                refused = i;
    }
    assert_int_equal(both[refused].status, TSR_ERROR_STATE);
    assert_string_equal(both[refused].sentence, "tsr_comm_barrier: rank 0 of 2 is in tsr_comm_barrier() already, which "
                                                "another thread called with this handle: a "
                                                "handle is one rank's, and takes one call at a time");
    assert_int_equal(tsr_comm_barrier(handles[1]), TSR_OK);
    pthread_join(both[!refused].thread, NULL);
    assert_int_equal(both[!refused].status, TSR_OK);
    tsr_comm_destroy(handles[0]);
    tsr_comm_destroy(handles[1]);
}

static void *call_from_outside(void *arg)
{
    shared_handle *mine = arg;
    mine->status = tsr_comm_wait(mine->comm, NULL, 1);
    snprintf(mine->sentence, sizeof mine->sentence, "%s", mine->status == TSR_OK ? "" : tsr_status_message());
    return NULL;
}

static void call_by_another_thread(shared_handle *other)
{
    assert_int_equal(pthread_create(&other->thread, NULL, call_from_outside, other), 0);
    pthread_join(other->thread, NULL);
}

/* A held handle counts as in the outermost call that holds it, also between the calls of its
 * steps. */
static void a_handle_that_is_held_is_in_that_call_for_all_but_its_thread(void **state)
{
    (void)state;
    tsr_comm *comm;
    assert_int_equal(tsr_comm_create_threads(1, NULL, &comm), TSR_OK);
    shared_handle other = {.comm = comm};
    assert_int_equal(tsr_comm_hold(comm, "layer"), TSR_OK);
    assert_int_equal(tsr_comm_barrier(comm), TSR_OK);
    assert_int_equal(tsr_comm_hold(comm, "part"), TSR_OK);
    for (int holds = 2; holds > 0; holds--) {
        assert_int_equal(tsr_comm_barrier(comm), TSR_OK);
        call_by_another_thread(&other);
        assert_int_equal(other.status, TSR_ERROR_STATE);
        assert_non_null(
            strstr(other.sentence, "tsr_comm_wait: rank 0 of 1 is in layer() already, which another thread called"));
        assert_int_equal(tsr_comm_let_go(comm, TSR_ERROR_IO), TSR_ERROR_IO);
    }
    call_by_another_thread(&other);
    assert_int_equal(other.status, TSR_OK);
    tsr_comm_retain(comm);
    assert_int_equal(tsr_comm_check_open(comm, "look"), TSR_OK);
    tsr_comm_destroy(comm);
    assert_int_equal(tsr_comm_check_open(comm, "look"), TSR_ERROR_STATE);
    assert_int_equal(tsr_comm_hold(comm, "layer"), TSR_ERROR_STATE);
    assert_non_null(strstr(tsr_status_message(), "layer: the communicator (rank 0 of 1"));
    tsr_comm_release(comm);
}

static void *let_go_from_outside(void *arg)
{
    shared_handle *mine = arg;
    mine->status = tsr_comm_let_go(mine->comm, TSR_OK);
    snprintf(mine->sentence, sizeof mine->sentence, "%s", mine->status == TSR_OK ? "" : tsr_status_message());
    return NULL;
}

static void a_hold_is_ended_only_by_the_thread_that_holds(void **state)
{
    (void)state;
    tsr_comm *comm;
    assert_int_equal(tsr_comm_create_threads(1, NULL, &comm), TSR_OK);
    shared_handle other = {.comm = comm};
    assert_int_equal(tsr_comm_let_go(comm, TSR_OK), TSR_ERROR_STATE);
    assert_int_equal(tsr_comm_hold(comm, "layer"), TSR_OK);
    assert_int_equal(pthread_create(&other.thread, NULL, let_go_from_outside, &other), 0);
    pthread_join(other.thread, NULL);
    assert_int_equal(other.status, TSR_ERROR_STATE);
    assert_non_null(strstr(other.sentence, "tsr_comm_let_go: this thread does not hold the communicator (rank 0 of 1"));
    call_by_another_thread(&other);
    assert_int_equal(other.status, TSR_ERROR_STATE);
    assert_int_equal(tsr_comm_let_go(comm, TSR_ERROR_IO), TSR_ERROR_IO);
    call_by_another_thread(&other);
    assert_int_equal(other.status, TSR_OK);
    tsr_comm_destroy(comm);
}

static void a_hold_of_no_handle_is_refused(void **state)
{
    (void)state;
    assert_int_equal(tsr_comm_hold(NULL, "layer"), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "layer: comm is NULL");
    assert_int_equal(tsr_comm_let_go(NULL, TSR_OK), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "tsr_comm_let_go: comm is NULL");
    assert_int_equal(tsr_comm_check_open(NULL, "look"), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "look: comm is NULL");
}

/* A run whose log is kept. */
typedef struct logged_run {
    tsr_rank_main *body;
    tsr_status status;
    char log[4096];
    pthread_mutex_t lock;
    pthread_t thread;
} logged_run;

static void keep_line(void *user, tsr_log_level level, const char *line)
{
    logged_run *run = user;
    pthread_mutex_lock(&run->lock);
    const size_t used = strlen(run->log);
    snprintf(run->log + used, sizeof run->log - used, "%d: %s\n", (int)level, line);
    pthread_mutex_unlock(&run->lock);
}

static void *run_logged(void *arg)
{
    logged_run *run = arg;
    tsr_context_options choices = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    choices.log = keep_line;
    choices.log_user = run;
    choices.log_level = TSR_LOG_ERROR;
    run->status = tsr_context_create(&choices, &options.context);
    if (run->status == TSR_OK)
        run->status = tsr_threads_run(3, run->body, NULL, &options);
    tsr_context_destroy(options.context);
    return NULL;
}

enum { LATE_MS = 1000 * TSR_COMM_LATE_SECONDS + 1500 };

/* Rank 1 is late for an all-reduce of a group that rank 2 is not in. */
static tsr_status reduce_late(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *pair;
    const int rank = tsr_comm_rank(comm);
    float value = 1;
    TSR_TRY(tsr_comm_split(comm, rank < 2 ? 0 : -1, rank, &pair));
    if (rank == 1)
        suite_sleep(LATE_MS);
    const tsr_status status =
        pair ? tsr_comm_all_reduce(pair, &value, &value, 1, TSR_F32, TSR_SUM, tsr_device_host(), NULL) : TSR_OK;
    tsr_comm_destroy(pair);
    return status;
}

/* Rank 1 fails, and rank 0, which makes no call, gets no error. */
static tsr_status fail_unheard(tsr_comm *comm, void *arg)
{
    (void)arg;
    if (tsr_comm_rank(comm) == 0)
        suite_sleep(LATE_MS);
    return tsr_comm_rank(comm) == 1 ? TSR_ERROR_IO : TSR_OK;
}

/* Rank 1 is late for one step of a call of several steps. */
static tsr_status step_late(tsr_comm *comm, void *arg)
{
    (void)arg;
    if (tsr_comm_rank(comm) == 1)
        suite_sleep(LATE_MS);
    TSR_TRY(tsr_comm_hold(comm, "layer"));
    return tsr_comm_let_go(comm, tsr_comm_barrier(comm));
}

/* Destroying a held handle is refused, and the handle stays usable. */
static tsr_status destroy_in_hold(tsr_comm *comm, void *arg)
{
    (void)arg;
    TSR_TRY(tsr_comm_hold(comm, "layer"));
    if (tsr_comm_rank(comm) == 1)
        tsr_comm_destroy(comm);
    TSR_TRY(tsr_comm_let_go(comm, tsr_comm_barrier(comm)));
    return tsr_comm_barrier(comm);
}

static void the_holder_does_not_destroy_its_handle_and_is_told_at_once(void **state)
{
    (void)state;
    logged_run run = {.body = destroy_in_hold};
    assert_int_equal(pthread_mutex_init(&run.lock, NULL), 0);
    run_logged(&run);
    pthread_mutex_destroy(&run.lock);
    assert_int_equal(run.status, TSR_OK);
    assert_non_null(strstr(
        run.log, "tsr_comm_destroy: rank 1 of 3 is in layer(), which this very thread called, and has to end first"));
}

static void who_waits_for_seconds_tells_the_log_for_whom_and_in_what(void **state)
{
    (void)state;
    logged_run runs[] = {{.body = reduce_late}, {.body = fail_unheard}, {.body = step_late}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_mutex_init(&runs[i].lock, NULL), 0);
        assert_int_equal(pthread_create(&runs[i].thread, NULL, run_logged, &runs[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(runs[i].thread, NULL);
        pthread_mutex_destroy(&runs[i].lock);
    }
    assert_int_equal(runs[0].status, TSR_OK);
    assert_non_null(strstr(
        runs[0].log,
        "1: rank 0 of 2 has waited 5 s in tsr_comm_all_reduce() (all_reduce of 1 f32, op sum, on host) for rank 1\n"));
    assert_int_equal(runs[1].status, TSR_ERROR_IO);
    assert_non_null(strstr(
        runs[1].log,
        "1: tsr_threads_run: rank 1 has failed (returned io without a sentence), and 5 s later these ranks have not "
        "returned: 0\n"));
    assert_int_equal(runs[2].status, TSR_OK);
    assert_non_null(strstr(runs[2].log, "1: rank 0 of 3 has waited 5 s in layer() (barrier) for rank 1\n"));
}

/* A handle that a rank shows its peer, by mistake. */
typedef struct shown {
    atomic_int taken;
    tsr_comm *comm;
} shown;

/* Rank 1 calls with the handle of rank 0, so that one of the two calls is refused, and returns at
 * once. */
static tsr_status share_a_handle(tsr_comm *comm, void *arg)
{
    shown *s = arg;
    if (tsr_comm_rank(comm) == 0) {
        s->comm = comm;
        atomic_store(&s->taken, 1);
        while (atomic_load(&s->taken) < 2)
            suite_sleep(1);
        suite_sleep(20);
        return tsr_comm_barrier(comm);
    }
    while (atomic_load(&s->taken) < 1)
        suite_sleep(1);
    atomic_store(&s->taken, 2);
    return tsr_comm_barrier(s->comm);
}

static void a_handle_in_a_call_outlives_its_owner(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        shown s = {0};
        assert_int_equal(tsr_threads_run(2, share_a_handle, &s, NULL), TSR_ERROR_STATE);
        assert_non_null(strstr(tsr_status_message(), "which another thread called with this handle"));
    }
}

/* Destroys the handle that main was given, as a C++ object that owns it would. */
static tsr_status destroy_what_was_given(tsr_comm *comm, void *arg)
{
    (void)arg;
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_comm_destroy(comm);
    tsr_comm_destroy(comm);
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_STATE, "was destroyed");
    return TSR_OK;
}

static void main_may_destroy_its_handle(void **state)
{
    (void)state;
    assert_int_equal(tsr_threads_run(3, destroy_what_was_given, NULL, NULL), TSR_OK);
}

static tsr_status leave_behind(tsr_comm *comm, void *arg)
{
    tsr_mesh **kept = arg, *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2x2", &mesh));
    const tsr_status status = tsr_mesh_split(mesh, "1", &kept[tsr_comm_rank(comm)]);
    tsr_mesh_destroy(mesh);
    return status;
}

static void a_split_mesh_may_outlive_its_ranks(void **state)
{
    (void)state;
    tsr_mesh *kept[4] = {NULL};
    suite_run(4, leave_behind, kept);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(tsr_mesh_count(kept[r]), 2);
        tsr_mesh_destroy(kept[r]);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handle_that_is_in_a_call_refuses_a_second_caller),
        cmocka_unit_test(a_handle_that_is_held_is_in_that_call_for_all_but_its_thread),
        cmocka_unit_test(a_hold_is_ended_only_by_the_thread_that_holds),
        cmocka_unit_test(a_hold_of_no_handle_is_refused),
        cmocka_unit_test(who_waits_for_seconds_tells_the_log_for_whom_and_in_what),
        cmocka_unit_test(the_holder_does_not_destroy_its_handle_and_is_told_at_once),
        cmocka_unit_test(a_handle_in_a_call_outlives_its_owner),
        cmocka_unit_test(main_may_destroy_its_handle),
        cmocka_unit_test(a_split_mesh_may_outlive_its_ranks),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
