/* Ranks whose threads end without returning from main: peers get an error, the run names the ranks,
 * and nothing else leaks than the tests say. */
#include "comm_suite.h"
#include "counted_memory.h"
#include "ended_frames.h"

#include <tessera/sys/device.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { RANKS = 4, ODD = 1 };

typedef struct ended {
    void (*end)(tsr_comm *comm);
    pthread_t threads[RANKS];
    tsr_device_driver *driver;
    atomic_int finished, unwound; /* number of peers that got the error; its value when the odd rank left its frame */
} ended;

static void exit_thread(tsr_comm *comm)
{
    (void)comm;
    pthread_exit(NULL);
}

static void cancel_thread(tsr_comm *comm)
{
    (void)comm;
    pthread_cancel(pthread_self());
    pthread_testcancel();
}

static void cancel_in_meeting(tsr_comm *comm)
{
    pthread_cancel(pthread_self());
    tsr_comm_barrier(comm);
    pthread_testcancel(); /* for the last rank to come, which does not wait */
}

static void exit_after_split(tsr_comm *comm)
{
    tsr_comm *group;
    if (tsr_comm_split(comm, tsr_comm_rank(comm) == ODD ? -1 : 0, 0, &group) == TSR_OK)
        exit_thread(comm);
}

static void exit_with_started_call(tsr_comm *comm)
{
    tsr_comm_exchange_start(comm, NULL, 0, NULL, 0, tsr_device_host(), NULL);
    pthread_exit(NULL);
}

static tsr_status end_odd(tsr_comm *comm, void *arg)
{
    ended *all = arg;
    if (tsr_comm_rank(comm) == ODD)
        all->end(comm);
    if (all->end == exit_after_split) {
        tsr_comm *group = NULL;
        TSR_TRY(tsr_comm_split(comm, 0, 0, &group));
        tsr_comm_destroy(group);
    }
    tsr_status status = TSR_OK;
    while (status == TSR_OK)
        status = tsr_comm_barrier(comm);
    CHECK(status == TSR_ERROR_PEER);
    CHECK(strstr(tsr_status_message(), "rank 1 has ended its thread (pthread_exit or cancellation)") ||
          strstr(tsr_status_message(), "rank 1 was cancelled while it waited"));
    atomic_fetch_add(&all->finished, 1);
    return status;
}

static void assert_odd_is_named(tsr_status status)
{
    if (status != TSR_ERROR_STATE)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    assert_non_null(strstr(tsr_status_message(), "rank 1: main did not return, for its thread was ended"));
}

/* Skips under AddressSanitizer, which reports false errors for frames that a thread leaves by
 * ending. */
static void skip_where_frames_must_return(void)
{
#ifdef __SANITIZE_ADDRESS__
    suite_skip("AddressSanitizer does not see that frames go with their thread");
#endif
}

static void run_ended(ended *all, tsr_rank_main *body, int64_t spin)
{
    skip_where_frames_must_return();
    counted_memory memory = {0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = counted_context(&memory);
    options.spin = spin;
    assert_odd_is_named(tsr_threads_run(RANKS, body, all, &options));
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
}

static void peers_hear_of_a_thread_that_ends(void **state)
{
    (void)state;
    static void (*const ways[])(tsr_comm * comm) = {exit_thread, cancel_thread, cancel_in_meeting, exit_after_split,
                                                    exit_with_started_call};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ended all = {.end = ways[i]};
        run_ended(&all, end_odd, 0);
        assert_int_equal(all.finished, RANKS - 1);
    }
}

static tsr_status end_without_a_handle(tsr_comm *comm, void *arg)
{
    (void)arg;
    const bool odd = tsr_comm_rank(comm) == ODD;
    tsr_comm_destroy(comm);
    if (odd)
        pthread_exit(NULL);
    return TSR_OK;
}

static void a_thread_may_end_after_its_handle(void **state)
{
    (void)state;
    run_ended(NULL, end_without_a_handle, -1);
}

/* Rank 0 cancels the odd rank, which sleeps in a call or will. The mutex of the call must be free
 * afterwards, so that peers end. */
static tsr_status cancel_sleeper(tsr_comm *comm, void *arg)
{
    ended *all = arg;
    const int rank = tsr_comm_rank(comm);
    all->threads[rank] = pthread_self();
    TSR_TRY(tsr_comm_barrier(comm));
    if (rank == 0) {
        suite_sleep(100);
        pthread_cancel(all->threads[ODD]);
        suite_sleep(100);
    }
    int32_t mine = rank, sum;
    const tsr_status status = tsr_comm_all_reduce(comm, &mine, &sum, 1, TSR_I32, TSR_SUM, tsr_device_host(), NULL);
    CHECK(status == TSR_ERROR_PEER);
    CHECK(strstr(tsr_status_message(), "rank 1 was cancelled while it waited"));
    atomic_fetch_add(&all->finished, 1);
    return status;
}

static void a_rank_that_is_cancelled_in_its_sleep_lets_peers_go(void **state)
{
    (void)state;
    ended all = {0};
    run_ended(&all, cancel_sleeper, 0);
    assert_int_equal(all.finished, RANKS - 1);
}

/* A device in whose reductions rank 0 first cancels the odd rank, which has done its part and waits
 * for the end of the call. */
static _Thread_local ended *cancels;

static tsr_status reduce_late(void *self, int index, const tsr_box_reduce *what, tsr_stream stream)
{
    if (!cancels)
        return tsr_device_driver_table(NULL, &self)->reduce(self, index, what, stream);
    suite_sleep(100);
    pthread_cancel(cancels->threads[ODD]);
    suite_sleep(200);
    const tsr_status status = tsr_device_driver_table(NULL, &self)->reduce(self, index, what, stream);
    atomic_store(&cancels->finished, 1);
    return status;
}

static void look_at_peers(void *arg)
{
    ended *all = arg;
    atomic_store(&all->unwound, atomic_load(&all->finished) ? 1 : -1);
}

static tsr_status lend(tsr_comm *comm, tsr_device_driver *driver)
{
    int32_t lent[64] = {1}, sum[64];
    TSR_TRY(tsr_comm_all_reduce(comm, lent, sum, 64, TSR_I32, TSR_SUM, (tsr_device){driver, 0}, NULL));
    return tsr_comm_barrier(comm);
}

static tsr_status lend_and_end(tsr_comm *comm, void *arg)
{
    ended *all = arg;
    tsr_status status;
    all->threads[tsr_comm_rank(comm)] = pthread_self();
    TSR_TRY(tsr_comm_barrier(comm));
    cancels = tsr_comm_rank(comm) == 0 ? all : NULL;
    pthread_cleanup_push(look_at_peers, all);
    status = lend(comm, all->driver);
    pthread_cleanup_pop(0);
    return status;
}

/* Memory lent to a call lies in a frame, which must stay until peers have read it, even if the
 * thread is cancelled. */
static void a_cancelled_rank_waits_for_those_who_read_its_memory(void **state)
{
    (void)state;
    skip_where_frames_must_return();
    ended all = {0};
    void *self;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    table.name = "late";
    table.reduce = reduce_late;
    assert_int_equal(tsr_device_driver_create(&table, self, &all.driver), TSR_OK);
    run_ended(&all, lend_and_end, 0);
    assert_int_equal(all.unwound, 1);
    tsr_device_driver_destroy(all.driver);
}

/* The odd rank's thread ends within a call in which it reads peers' memory. */
static tsr_status reduce_and_exit(void *self, int index, const tsr_box_reduce *what, tsr_stream stream)
{
    if (cancels)
        pthread_exit(NULL);
    return tsr_device_driver_table(NULL, &self)->reduce(self, index, what, stream);
}

static tsr_status end_in_call(tsr_comm *comm, void *arg)
{
    ended *all = arg;
    const tsr_device device = {all->driver, 0};
    static int32_t lent[RANKS][64], sum[RANKS][64];
    const int rank = tsr_comm_rank(comm);
    cancels = rank == ODD ? all : NULL;
    return tsr_comm_all_reduce(comm, lent[rank], sum[rank], 64, TSR_I32, TSR_SUM, device, NULL);
}

static void a_thread_that_ends_in_the_middle_of_a_call_leaves_nobody_waiting(void **state)
{
    (void)state;
    skip_where_frames_must_return();
    ended all = {0};
    void *self;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    table.name = "leaving";
    table.reduce = reduce_and_exit;
    assert_int_equal(tsr_device_driver_create(&table, self, &all.driver), TSR_OK);
    run_ended(&all, end_in_call, 0);
    tsr_device_driver_destroy(all.driver);
}

/* An allocator with a cancellation point, which with `cancels_release` cancels its caller when
 * slots are released. */
static _Thread_local bool cancels_release;

static void *allocate_plainly(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release_or_end(void *user, void *memory, size_t bytes)
{
    (void)user;
    free(memory);
    if (cancels_release && bytes > RANKS * TSR_COMM_SLOT_BYTES)
        pthread_cancel(pthread_self());
    pthread_testcancel();
}

/* The odd rank is the last to leave the group, whose memory is then freed under the lock of all
 * ranks. */
static tsr_status leave_last(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *group;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &group));
    if (tsr_comm_rank(comm) != ODD)
        tsr_comm_destroy(group);
    TSR_TRY(tsr_comm_barrier(comm));
    cancels_release = tsr_comm_rank(comm) == ODD;
    if (tsr_comm_rank(comm) == ODD)
        tsr_comm_destroy(group);
    return tsr_comm_barrier(comm);
}

static void a_thread_is_not_cancelled_with_the_lock_of_all(void **state)
{
    (void)state;
    skip_where_frames_must_return();
    tsr_context_options choices = TSR_CONTEXT_OPTIONS_INIT;
    choices.allocator = (tsr_allocator){allocate_plainly, release_or_end, NULL};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    assert_int_equal(tsr_context_create(&choices, &options.context), TSR_OK);
    assert_odd_is_named(tsr_threads_run(RANKS, leave_last, NULL, &options));
    tsr_context_destroy(options.context);
}

typedef struct caller {
    atomic_int running, ended;
} caller;

static tsr_status run_for_long(tsr_comm *comm, void *arg)
{
    caller *all = arg;
    atomic_fetch_add(&all->running, 1);
    suite_sleep(200);
    TSR_TRY(tsr_comm_barrier(comm));
    atomic_fetch_add(&all->ended, 1);
    return TSR_OK;
}

static void *run_and_wait(void *arg)
{
    tsr_threads_run(RANKS, run_for_long, arg, NULL);
    pthread_testcancel();
    return arg;
}

static void a_caller_that_is_cancelled_sees_its_ranks_to_their_end(void **state)
{
    (void)state;
    caller all = {0};
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, run_and_wait, &all), 0);
    while (atomic_load(&all.running) < RANKS)
        suite_sleep(1);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(all.ended, RANKS);
}

/* Two threads of the odd rank: the main thread ends while the other is in a call, or holds the
 * handle as a layer does. */
typedef struct pair {
    tsr_comm *comm;
    bool holds, ends;
    tsr_status first, last;
    tsr_kept_sentence words, last_words;
    atomic_int inside;
    pthread_t thread;
} pair;

static tsr_status meet_until_broken(tsr_comm *comm)
{
    tsr_status status;
    do
        status = tsr_comm_barrier(comm);
    while (status == TSR_OK ||
           (status == TSR_ERROR_STATE && strstr(tsr_status_message(), "is in tsr_comm_wait() already")));
    return status;
}

/* A layer with a pause between its calls. */
static tsr_status meet_as_layer(tsr_comm *comm, atomic_int *inside)
{
    TSR_TRY(tsr_comm_hold(comm, "layer"));
    atomic_store(inside, 1);
    tsr_status status = meet_until_broken(comm);
    suite_sleep(100);
    status = tsr_comm_barrier(comm);
    return tsr_comm_let_go(comm, status);
}

static void *meet_beside_main(void *arg)
{
    pair *mine = arg;
    mine->first = mine->holds ? meet_as_layer(mine->comm, &mine->inside) : meet_until_broken(mine->comm);
    tsr_status_keep(&mine->words);
    do
        mine->last = tsr_comm_barrier(mine->comm);
    while (mine->last == TSR_ERROR_PEER);
    tsr_status_keep(&mine->last_words);
    tsr_comm_release(mine->comm);
    return NULL;
}

static tsr_status end_beside_a_call(tsr_comm *comm, void *arg)
{
    pair *mine = arg;
    if (tsr_comm_rank(comm) != ODD) {
        /* waits until the other thread is in its call, which then lasts */
        while (!atomic_load(&mine->inside))
            suite_sleep(1);
        suite_sleep(100);
        return meet_until_broken(comm);
    }
    mine->comm = tsr_comm_retain(comm);
    CHECK(pthread_create(&mine->thread, NULL, meet_beside_main, mine) == 0);
    while (mine->holds ? !atomic_load(&mine->inside) : tsr_comm_wait(comm, NULL, 1) != TSR_ERROR_STATE)
        suite_sleep(1);
    atomic_store(&mine->inside, 1);
    if (mine->ends)
        pthread_exit(NULL);
    return TSR_OK;
}

static void another_threads_call_is_not_forgotten_with_mains_thread(void **state)
{
    (void)state;
    skip_where_frames_must_return();
    for (int i = 0; i < 4; i++) {
        pair all = {.holds = i % 2 == 0, .ends = i < 2};
        const tsr_status status = tsr_threads_run(RANKS, end_beside_a_call, &all, NULL);
        if (all.ends)
            assert_odd_is_named(status);
        else
            assert_int_equal(status, TSR_ERROR_PEER);
        pthread_join(all.thread, NULL);
        if (all.first != TSR_ERROR_PEER || all.last != TSR_ERROR_STATE || !strstr(all.last_words.text, "was destroyed"))
            fail_msg("%d: %s: %s, then %s: %s", i, tsr_status_name(all.first), all.words.text,
                     tsr_status_name(all.last), all.last_words.text);
    }
}

static tsr_status end_with_a_hold(tsr_comm *comm, void *arg)
{
    const bool odd = tsr_comm_rank(comm) == ODD;
    if (odd)
        TSR_TRY(tsr_comm_hold(comm, "layer"));
    if (odd && arg)
        pthread_exit(NULL);
    return TSR_OK;
}

/* A hold must end with its thread: no other thread could end it, or destroy the handle. */
static void a_hold_ends_with_its_thread(void **state)
{
    (void)state;
    skip_where_frames_must_return();
    for (int i = 0; i < 2; i++) {
        counted_memory memory = {0};
        tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
        options.context = counted_context(&memory);
        const tsr_status status = tsr_threads_run(RANKS, end_with_a_hold, i ? &options : NULL, &options);
        assert_int_equal(status, i ? TSR_ERROR_STATE : TSR_OK);
        tsr_context_destroy(options.context);
        assert_nothing_leaked(&memory);
    }
}

#ifdef HAS_CXX
/* The odd rank's group is destroyed by the object that holds it, so nothing leaks. */
static void objects_of_frames_go_with_the_thread(void **state)
{
    (void)state;
    skip_where_frames_must_return();
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        counted_memory memory = {0};
        tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
        options.context = counted_context(&memory);
        const int before = ended_frames_gone();
        assert_odd_is_named(tsr_threads_run(RANKS, ended_frames_main, &cancelled, &options));
        assert_int_equal(ended_frames_gone() - before, RANKS);
        tsr_context_destroy(options.context);
        assert_nothing_leaked(&memory);
    }
}
#else
static void objects_of_frames_go_with_the_thread(void **state)
{
    (void)state;
    suite_skip("there is no C++ compiler");
}
#endif

static tsr_status return_bare(tsr_comm *comm, void *arg)
{
    if (arg)
        tsr_status_set(TSR_ERROR_DEVICE, "an earlier failure");
    return tsr_comm_rank(comm) == ODD ? TSR_ERROR_IO : tsr_comm_barrier(comm);
}

static void a_bare_status_is_told_as_one(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tsr_threads_run(RANKS, return_bare, i ? "stale" : NULL, NULL), TSR_ERROR_IO);
        assert_string_equal(tsr_status_message(), "rank 1: returned io without a sentence");
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_hear_of_a_thread_that_ends),
        cmocka_unit_test(a_thread_may_end_after_its_handle),
        cmocka_unit_test(a_rank_that_is_cancelled_in_its_sleep_lets_peers_go),
        cmocka_unit_test(a_cancelled_rank_waits_for_those_who_read_its_memory),
        cmocka_unit_test(a_thread_that_ends_in_the_middle_of_a_call_leaves_nobody_waiting),
        cmocka_unit_test(a_thread_is_not_cancelled_with_the_lock_of_all),
        cmocka_unit_test(a_caller_that_is_cancelled_sees_its_ranks_to_their_end),
        cmocka_unit_test(another_threads_call_is_not_forgotten_with_mains_thread),
        cmocka_unit_test(a_hold_ends_with_its_thread),
        cmocka_unit_test(objects_of_frames_go_with_the_thread),
        cmocka_unit_test(a_bare_status_is_told_as_one),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
