/* Tests of rank threads alone: handles used by a host's own threads, options, more ranks than
 * cores, failing allocations. */
#include "comm_suite.h"
#include "counted_memory.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANDLES = 3, CROWD = 16 };

typedef struct host_thread {
    tsr_comm *comm;
    tsr_status status;
    pthread_t thread;
} host_thread;

static void *use_handle(void *arg)
{
    host_thread *mine = arg;
    mine->status = suite_check_usable(mine->comm);
    return NULL;
}

/* Uses each handle in a new thread, which did not create it. */
static void use_all(tsr_comm *const *handles)
{
    host_thread threads[HANDLES];
    for (int r = 0; r < HANDLES; r++) {
        threads[r] = (host_thread){.comm = handles[r]};
        assert_int_equal(pthread_create(&threads[r].thread, NULL, use_handle, &threads[r]), 0);
    }
    for (int r = 0; r < HANDLES; r++)
        pthread_join(threads[r].thread, NULL);
    for (int r = 0; r < HANDLES; r++)
        assert_int_equal(threads[r].status, TSR_OK);
}

static void any_thread_may_call_for_a_rank(void **state)
{
    (void)state;
    tsr_comm *handles[HANDLES];
    assert_int_equal(tsr_comm_create_threads(HANDLES, NULL, handles), TSR_OK);
    for (int r = 0; r < HANDLES; r++) {
        assert_int_equal(tsr_comm_rank(handles[r]), r);
        assert_int_equal(tsr_comm_size(handles[r]), HANDLES);
        assert_string_equal(tsr_comm_engine(handles[r]), "threads");
        assert_ptr_equal(tsr_comm_context(handles[r]), tsr_comm_context(handles[0]));
    }
    use_all(handles);
    use_all(handles);
    tsr_comm_destroy(handles[1]);
    assert_int_equal(tsr_comm_barrier(handles[2]), TSR_ERROR_PEER);
    assert_non_null(strstr(tsr_status_message(), "rank 1 has returned"));
    tsr_comm_destroy(handles[0]);
    tsr_comm_destroy(handles[2]);
    tsr_comm_destroy(NULL);
}

static void *abort_soon(void *comm)
{
    suite_sleep(20);
    tsr_comm_abort(comm);
    return NULL;
}

static void a_thread_without_a_rank_may_abort(void **state)
{
    (void)state;
    tsr_comm *handles[HANDLES];
    pthread_t thread;
    assert_int_equal(tsr_comm_create_threads(HANDLES, NULL, handles), TSR_OK);
    assert_int_equal(pthread_create(&thread, NULL, abort_soon, handles[2]), 0);
    assert_int_equal(tsr_comm_barrier(handles[0]), TSR_ERROR_PEER);
    assert_non_null(strstr(tsr_status_message(), "rank 2 of all has aborted"));
    pthread_join(thread, NULL);
    tsr_comm_abort(NULL);
    for (int r = 0; r < HANDLES; r++)
        tsr_comm_destroy(handles[r]);
}

static void a_world_of_one_needs_no_other_thread(void **state)
{
    (void)state;
    tsr_comm *comm;
    assert_int_equal(tsr_comm_create_threads(1, NULL, &comm), TSR_OK);
    assert_int_equal(suite_check_usable(comm), TSR_OK);
    tsr_comm_destroy(comm);
}

static tsr_status do_nothing(tsr_comm *comm, void *arg)
{
    (void)comm;
    (void)arg;
    return TSR_OK;
}

static void assert_refused(tsr_status status, const char *part)
{
    assert_int_equal(status, TSR_ERROR_ARGUMENT);
    if (!strstr(tsr_status_message(), part))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), part);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    tsr_comm *untouched = NULL;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    assert_refused(tsr_threads_run(0, do_nothing, NULL, NULL), "nranks is 0");
    assert_refused(tsr_threads_run(-4, do_nothing, NULL, NULL), "nranks is -4");
    assert_refused(tsr_threads_run(2, NULL, NULL, NULL), "main is NULL");
    assert_refused(tsr_comm_create_threads(1, NULL, NULL), "out is NULL");
    assert_refused(tsr_comm_create_threads(0, NULL, &untouched), "nranks is 0");
    options.timeout_ms = -1;
    assert_refused(tsr_comm_create_threads(1, &options, &untouched), "timeout_ms is -1");
    options = (tsr_threads_options)TSR_THREADS_OPTIONS_INIT;
    options.spin = -2;
    assert_refused(tsr_comm_create_threads(1, &options, &untouched), "spin is -2");
    options = (tsr_threads_options)TSR_THREADS_OPTIONS_INIT;
    options.stall_ms = -1;
    assert_refused(tsr_comm_create_threads(1, &options, &untouched), "stall_ms is -1");
    options = (tsr_threads_options)TSR_THREADS_OPTIONS_INIT;
    options.size = 0;
    assert_refused(tsr_comm_create_threads(1, &options, &untouched), "size");
    assert_null(untouched);
}

static const char *impatient(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "TSR_TIMEOUT_MS") == 0 ? "30" : NULL;
}

static void the_environment_overrides_the_timeout(void **state)
{
    (void)state;
    tsr_context_options context_options = TSR_CONTEXT_OPTIONS_INIT;
    context_options.environment = impatient;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    assert_int_equal(tsr_context_create(&context_options, &options.context), TSR_OK);
    tsr_comm *handles[2];
    assert_int_equal(tsr_comm_create_threads(2, &options, handles), TSR_OK);
    tsr_context_destroy(options.context);
    assert_int_equal(tsr_comm_barrier(handles[0]), TSR_ERROR_PEER);
    assert_non_null(strstr(tsr_status_message(), "rank 1 did not come within 30 ms"));
    assert_int_equal(tsr_comm_barrier(handles[1]), TSR_ERROR_PEER);
    tsr_comm_destroy(handles[0]);
    tsr_comm_destroy(handles[1]);
}

/* A caller that was built before the last option existed. */
static void shorter_options_leave_the_rest_as_it_is(void **state)
{
    (void)state;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.size = offsetof(tsr_threads_options, stall_ms);
    options.stall_ms = -1;
    suite_run_with(2, do_nothing, NULL, &options);
}

static tsr_status crowd(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (int i = 0; i < 50; i++)
        TSR_TRY(suite_check_usable(comm));
    return TSR_OK;
}

static void more_ranks_than_cores_progress_however_they_wait(void **state)
{
    (void)state;
    static const int64_t spins[] = {-1, 0, 1, 100};
    for (size_t i = 0; i < sizeof spins / sizeof *spins; i++) {
        tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
        options.spin = spins[i];
        suite_run_with(CROWD, crowd, NULL, &options);
    }
}

static tsr_status check_rank_failed(tsr_status status)
{
    CHECK(status == TSR_ERROR_MEMORY || status == TSR_ERROR_PEER);
    return TSR_OK;
}

/* The failure that came first, if it is one that may come. */
static void note(tsr_status *first, tsr_status status)
{
    if (*first == TSR_OK)
        *first = status == TSR_OK || check_rank_failed(status) == TSR_OK ? status : TSR_ERROR_INTERNAL;
}

/* Whatever fails, fails on all ranks of what was called, and the communicator goes on. The first
 * reduction on each makes arrays. */
static tsr_status make_everything(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *group = NULL;
    void *memory = NULL;
    tsr_status status = TSR_OK;
    note(&status, tsr_comm_split(comm, tsr_comm_rank(comm) % 2, 0, &group));
    note(&status, suite_check_usable(comm));
    note(&status, tsr_comm_alloc(comm, 100, &memory));
    tsr_comm_free(comm, memory, 100);
    if (group)
        note(&status, suite_check_usable(group));
    tsr_comm_destroy(group);
    TSR_TRY(suite_check_usable(comm));
    return status == TSR_OK ? TSR_OK : tsr_status_set(status, "out of memory, as it should be");
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    tsr_status status = TSR_ERROR_MEMORY;
    size_t n = 1;
    for (; status != TSR_OK; n++) {
        counted_memory memory = {0};
        tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
        options.context = counted_context(&memory);
        memory.fail_at = memory.allocations + n;
        status = tsr_threads_run(3, make_everything, NULL, &options);
        tsr_context_destroy(options.context);
        if (status != TSR_OK && status != TSR_ERROR_MEMORY)
            fail_msg("allocation %zu: %s: %s", n, tsr_status_name(status), tsr_status_message());
        assert_nothing_leaked(&memory);
    }
    assert_true(n > 20);
}

static void more_ranks_than_there_can_be_threads_are_refused_at_once(void **state)
{
    (void)state;
    assert_int_equal(tsr_threads_run(INT32_MAX, do_nothing, NULL, NULL), TSR_ERROR_MEMORY);
    assert_non_null(strstr(tsr_status_message(),
                           "2147483647 ranks take a thread each, but the system gives all processes no more than "));
}

enum { MANY = 256 };

/* What `nranks` handles take before they are used. */
static size_t bytes_of_world(int nranks)
{
    counted_memory memory = {0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = counted_context(&memory);
    tsr_comm *handles[MANY];
    assert_int_equal(tsr_comm_create_threads(nranks, &options, handles), TSR_OK);
    const size_t bytes = memory.live_bytes;
    for (int r = 0; r < nranks; r++)
        tsr_comm_destroy(handles[r]);
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
    return bytes;
}

/* The memory grows at most linearly with the number of ranks. */
static void what_a_handle_takes_does_not_grow_with_the_ranks(void **state)
{
    (void)state;
    const size_t half = bytes_of_world(MANY / 2), whole = bytes_of_world(MANY);
    if (whole > 2 * half)
        fail_msg("%d ranks take %zu bytes, but %d ranks %zu", MANY / 2, half, MANY, whole);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void threads_that_cannot_be_had_are_an_error(void **state)
{
    (void)state;
    print_message("skipped: sanitizers need more address space than this test leaves\n");
    skip();
}
#else
/* Runs in a separate process, whose address space has room for only a few stacks. */
static int run_without_stacks(void)
{
    const struct rlimit limit = {(rlim_t)200 << 20, (rlim_t)200 << 20};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    if (tsr_threads_run(1000, do_nothing, NULL, NULL) != TSR_ERROR_MEMORY)
        return 2;
    if (!strstr(tsr_status_message(), "1000 ranks take a thread each, but the system gave no more than "))
        return 4;
    return tsr_threads_run(2, do_nothing, NULL, NULL) == TSR_OK ? 0 : 3;
}

static void threads_that_cannot_be_had_are_an_error(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(run_without_stacks());
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}
#endif

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_cannot_be_had_are_an_error),
        cmocka_unit_test(any_thread_may_call_for_a_rank),
        cmocka_unit_test(a_thread_without_a_rank_may_abort),
        cmocka_unit_test(a_world_of_one_needs_no_other_thread),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(the_environment_overrides_the_timeout),
        cmocka_unit_test(shorter_options_leave_the_rest_as_it_is),
        cmocka_unit_test(more_ranks_than_cores_progress_however_they_wait),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(more_ranks_than_there_can_be_threads_are_refused_at_once),
        cmocka_unit_test(what_a_handle_takes_does_not_grow_with_the_ranks),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
