/*
 * Exchanges in two halves: the first half does not wait for peers, other calls between the halves
 * are refused, and failures in between are reported by the second half, on all ranks.
 */
#include "comm_suite.h"

#include <stdatomic.h>
#include <stdio.h>

enum { MOST_RANKS = 5, WORDS = 24, ROUNDS = 40, LATE_MS = 500 };

/* The buffers of all ranks, which stay as long as any rank may read them. */
typedef struct stage {
    int32_t out[MOST_RANKS][MOST_RANKS][WORDS], in[MOST_RANKS][MOST_RANKS][WORDS];
    tsr_message sends[MOST_RANKS][MOST_RANKS], receives[MOST_RANKS][MOST_RANKS];
    atomic_int started, waited;
    int victim;
} stage;

/* Word `index` of the message of round `round` from rank `from` to rank `to`. */
static int32_t word_of(int round, int from, int to, int index)
{
    return ((round * MOST_RANKS + from) * MOST_RANKS + to) * WORDS + index;
}

static tsr_status start(tsr_comm *comm, stage *s, int round)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    size_t count = 0;
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < WORDS; i++)
            s->out[rank][r][i] = word_of(round, rank, r, i);
        if (r == rank)
            continue;
        s->sends[rank][count] = (tsr_message){r, s->out[rank][r], sizeof s->out[rank][r]};
        s->receives[rank][count++] = (tsr_message){r, s->in[rank][r], sizeof s->in[rank][r]};
    }
    return tsr_comm_exchange_start(comm, s->sends[rank], count, s->receives[rank], count, tsr_device_host(), NULL);
}

/* After finish, successful or not, buffers belong to this rank again: it overwrites what it sent,
 * and no peer may see that. */
static tsr_status take_back(tsr_comm *comm, stage *s, tsr_status finished)
{
    const int rank = tsr_comm_rank(comm);
    memset(s->out[rank], 0xff, sizeof s->out[rank]);
    for (int r = 0; r < tsr_comm_size(comm); r++)
        for (int i = 0; i < WORDS; i++)
            CHECK(s->in[rank][r][i] != -1);
    return finished;
}

static tsr_status check_received(tsr_comm *comm, const stage *s, int round)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < WORDS && r != rank; i++)
            CHECK(s->in[rank][r][i] == word_of(round, r, rank, i));
    return TSR_OK;
}

static tsr_status repeat(tsr_comm *comm, void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        TSR_TRY(start(comm, arg, round));
        if (round % 10 == tsr_comm_rank(comm))
            suite_sleep(1);
        TSR_TRY(take_back(comm, arg, tsr_comm_exchange_finish(comm)));
        TSR_TRY(check_received(comm, arg, round));
        if (round % 3 == 0)
            TSR_TRY(suite_check_usable(comm));
    }
    return TSR_OK;
}

static void buffers_belong_to_this_rank_again_when_finish_returns(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++) {
        stage s = {.victim = -1};
        suite_run(n, repeat, &s);
    }
}

/* Rank 0 starts after all peers have started, so no start can have waited for it. */
static tsr_status start_last(tsr_comm *comm, void *arg)
{
    stage *s = arg;
    if (tsr_comm_rank(comm) == 0)
        while (atomic_load(&s->started) < tsr_comm_size(comm) - 1)
            suite_sleep(1);
    TSR_TRY(start(comm, s, 0));
    atomic_fetch_add(&s->started, 1);
    TSR_TRY(tsr_comm_exchange_finish(comm));
    return check_received(comm, s, 0);
}

static void start_waits_for_nobody(void **state)
{
    (void)state;
    NEEDS_ONE_PROCESS();
    for (int n = 2; n <= MOST_RANKS; n++) {
        stage s = {.victim = -1};
        suite_run(n, start_last, &s);
    }
}

/* In each round other ranks exchange in one call instead of halves. */
static tsr_status mix(tsr_comm *comm, void *arg)
{
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm), next = (rank + 1) % size,
              previous = (rank + size - 1) % size;
    (void)arg;
    for (int round = 0; round < ROUNDS; round++) {
        int32_t out = word_of(round, rank, next, 0), in = -1;
        const tsr_message send = {next, &out, sizeof out}, receive = {previous, &in, sizeof in};
        TSR_TRY(suite_exchanges[(round >> rank) % EXCHANGES](comm, &send, size > 1, &receive, size > 1));
        CHECK(size == 1 || in == word_of(round, previous, rank, 0));
    }
    return TSR_OK;
}

static void some_ranks_may_exchange_at_once(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        suite_run(n, mix, NULL);
}

#define REFUSED(call) CHECK_ERROR((call), TSR_ERROR_STATE, "has started a call on this communicator")

/* Checks that every communicating call is refused during an exchange in flight. */
static tsr_status check_refused(tsr_comm *comm)
{
    const tsr_device host = tsr_device_host();
    int64_t in[MOST_RANKS] = {3, 3, 3, 3, 3}, out[MOST_RANKS] = {4, 4, 4, 4, 4};
    tsr_comm *part = NULL;
    void *memory = NULL;
    REFUSED(tsr_comm_exchange_start(comm, NULL, 0, NULL, 0, host, NULL));
    REFUSED(tsr_comm_exchange(comm, NULL, 0, NULL, 0, host, NULL));
    REFUSED(tsr_comm_barrier(comm));
    REFUSED(tsr_comm_split(comm, 0, 0, &part));
    REFUSED(tsr_comm_alloc(comm, 64, &memory));
    REFUSED(tsr_comm_all_gather(comm, in, out, 1, NULL, TSR_I64, host, NULL));
    REFUSED(tsr_comm_reduce_scatter(comm, in, out, 1, NULL, TSR_I64, TSR_SUM, host, NULL));
    REFUSED(tsr_comm_all_reduce(comm, in, out, 1, TSR_I64, TSR_SUM, host, NULL));
    REFUSED(tsr_comm_all_to_all(comm, in, out, 1, NULL, NULL, TSR_I64, host, NULL));
    REFUSED(tsr_comm_broadcast(comm, out, 1, TSR_I64, 0, host, NULL));
    REFUSED(tsr_comm_scatter(comm, in, out, 1, NULL, TSR_I64, 0, host, NULL));
    REFUSED(tsr_comm_gather(comm, in, out, 1, NULL, TSR_I64, 0, host, NULL));
    CHECK(!part && !memory && out[0] == 4);
    return tsr_comm_wait(comm, NULL, 0);
}

#define NOT_STARTED(comm) CHECK_ERROR(tsr_comm_exchange_finish(comm), TSR_ERROR_STATE, "tsr_comm_exchange_finish: rank")

static tsr_status call_in_between(tsr_comm *comm, void *arg)
{
    NOT_STARTED(comm);
    for (int round = 0; round < 2; round++) {
        TSR_TRY(start(comm, arg, round));
        TSR_TRY(check_refused(comm));
        TSR_TRY(tsr_comm_exchange_finish(comm));
        TSR_TRY(check_received(comm, arg, round));
        NOT_STARTED(comm);
    }
    return suite_check_usable(comm);
}

static void nothing_else_goes_between_the_halves(void **state)
{
    (void)state;
    assert_int_equal(tsr_comm_exchange_start(NULL, NULL, 0, NULL, 0, tsr_device_host(), NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_comm_exchange_finish(NULL), TSR_ERROR_ARGUMENT);
    for (int n = 1; n <= MOST_RANKS; n++) {
        stage s = {.victim = -1};
        suite_run(n, call_in_between, &s);
    }
}

/* Another communicator can be used during an exchange in flight. */
static tsr_status use_another(tsr_comm *comm, void *arg)
{
    tsr_comm *copy;
    TSR_TRY(tsr_comm_split(comm, 0, -tsr_comm_rank(comm), &copy));
    tsr_status status = start(comm, arg, 7);
    if (status == TSR_OK)
        status = suite_check_usable(copy);
    if (status == TSR_OK)
        status = tsr_comm_exchange_finish(comm);
    tsr_comm_destroy(copy);
    TSR_TRY(status);
    return check_received(comm, arg, 7);
}

static void other_communicators_are_free_meanwhile(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++) {
        stage s = {.victim = -1};
        suite_run(n, use_another, &s);
    }
}

/* If the engine compares ranks, finish reports the victim's fault, to the victim in its own words,
 * whatever errors came in between. */
static tsr_status start_wrongly(tsr_comm *comm, void *arg)
{
    stage *s = arg;
    const int rank = tsr_comm_rank(comm);
    const tsr_message nowhere = {rank, s->out[rank][rank], 4};
    char words[80];
    snprintf(words, sizeof words, "rank %d failed: tsr_comm_exchange_start: sends[0].peer is %d", s->victim, s->victim);
    if (rank == s->victim)
        TSR_TRY(tsr_comm_exchange_start(comm, &nowhere, 1, NULL, 0, tsr_device_host(), NULL));
    else
        TSR_TRY(start(comm, s, 0));
    TSR_TRY(check_refused(comm));
    CHECK_ERROR(tsr_comm_exchange_finish(comm), rank == s->victim ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                rank == s->victim ? "tsr_comm_exchange_start: sends[0].peer is" : words);
    NOT_STARTED(comm);
    return suite_check_usable(comm);
}

/* If the engine does not compare ranks, a rank that is refused has not started. */
static tsr_status be_refused(tsr_comm *comm, void *arg)
{
    (void)arg;
    const tsr_message nowhere = {tsr_comm_size(comm), NULL, 0};
    CHECK_ERROR(tsr_comm_exchange_start(comm, NULL, 0, &nowhere, 1, tsr_device_host(), NULL), TSR_ERROR_ARGUMENT,
                "receives[0].peer is");
    NOT_STARTED(comm);
    return suite_check_usable(comm);
}

static void faulty_lists_are_told_once(void **state)
{
    (void)state;
    for (int n = 1; n <= 4; n++)
        for (int victim = 0; victim < n; victim++) {
            stage s = {.victim = victim};
            suite_run(n, suite_engine->direct ? start_wrongly : be_refused, &s);
        }
}

/* The victim returns with its exchange in flight. Peers get an error from this exchange or, if its
 * messages arrive, from the next. */
static tsr_status leave_in_between(tsr_comm *comm, void *arg)
{
    stage *s = arg;
    char words[64];
    snprintf(words, sizeof words, "rank %d has returned", s->victim);
    TSR_TRY(start(comm, s, 0));
    if (tsr_comm_rank(comm) == s->victim)
        return TSR_OK;
    const tsr_status finished = take_back(comm, s, tsr_comm_exchange_finish(comm));
    if (suite_engine->direct || finished != TSR_OK)
        CHECK_ERROR(finished, TSR_ERROR_PEER, words);
    else
        TSR_TRY(check_received(comm, s, 0));
    NOT_STARTED(comm);
    for (int k = 0; k < 2; k++) {
        CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, words);
        const tsr_status started = start(comm, s, k);
        CHECK_ERROR(started == TSR_OK ? tsr_comm_exchange_finish(comm) : started, TSR_ERROR_PEER, words);
    }
    return TSR_OK;
}

static void a_rank_that_leaves_in_between_is_named_by_the_others(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int n = 2; n <= MOST_RANKS; n++)
        for (int victim = 0; victim < n; victim++) {
            stage s = {.victim = victim};
            suite_run(n, leave_in_between, &s);
        }
}

/* The victim destroys the handle of a group with an exchange in flight: then its buffers are its
 * own again, and later ranks find that it has left. */
static tsr_status destroy_in_between(tsr_comm *comm, void *arg)
{
    stage *s = arg;
    tsr_comm *copy;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &copy));
    tsr_status status = start(copy, s, 0);
    if (tsr_comm_rank(comm) == s->victim) {
        tsr_comm_destroy(copy);
        return status == TSR_OK ? take_back(comm, s, status) : status;
    }
    if (status == TSR_OK && tsr_comm_rank(comm) % 2 == 0)
        suite_sleep(5);
    if (status == TSR_OK) {
        const tsr_status finished = take_back(comm, s, tsr_comm_exchange_finish(copy));
        if (suite_engine->direct || finished != TSR_OK)
            status = suite_check_error(finished, TSR_ERROR_PEER, "has returned", __FILE__, __LINE__);
    }
    tsr_comm_destroy(copy);
    return status;
}

static void a_destroyed_handle_leaves_nothing_in_flight(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++)
        for (int victim = 0; victim < n; victim++) {
            stage s = {.victim = victim};
            suite_run(n, destroy_in_between, &s);
        }
}

/* All ranks leave at once, with exchanges in flight. */
static tsr_status leave_together(tsr_comm *comm, void *arg)
{
    return start(comm, arg, 0);
}

static void all_ranks_may_leave_in_between(void **state)
{
    (void)state;
    for (int n = 1; n <= MOST_RANKS; n++) {
        stage s = {.victim = -1};
        suite_run(n, leave_together, &s);
    }
}

static tsr_status abort_in_between(tsr_comm *comm, void *arg)
{
    stage *s = arg;
    TSR_TRY(start(comm, s, 0));
    if (tsr_comm_rank(comm) == s->victim)
        tsr_comm_abort(comm);
    CHECK_ERROR(take_back(comm, s, tsr_comm_exchange_finish(comm)), TSR_ERROR_PEER, "has aborted");
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, "has aborted");
    return TSR_OK;
}

static void an_abort_in_between_reaches_all(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    for (int n = 2; n <= MOST_RANKS; n++) {
        stage s = {.victim = n - 1};
        suite_run(n, abort_in_between, &s);
    }
}

/* The victim starts in time, and finishes after all others have given it up. */
static tsr_status finish_late(tsr_comm *comm, void *arg)
{
    stage *s = arg;
    char words[64];
    snprintf(words, sizeof words, "rank %d did not come within %d ms", s->victim, LATE_MS);
    TSR_TRY(start(comm, s, 0));
    if (tsr_comm_rank(comm) == s->victim)
        suite_await(&s->waited, tsr_comm_size(comm) - 1, 4 * LATE_MS);
    const tsr_status finished = tsr_comm_exchange_finish(comm);
    atomic_fetch_add(&s->waited, 1);
    CHECK_ERROR(take_back(comm, s, finished), TSR_ERROR_PEER, words);
    return TSR_OK;
}

static void a_rank_that_is_late_to_finish_is_named(void **state)
{
    (void)state;
    NEEDS_WATCHING();
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.timeout_ms = LATE_MS;
    for (int n = 2; n <= 3; n++) {
        stage s = {.victim = 1};
        suite_run_with(n, finish_late, &s, &options);
    }
}

int suite_halves(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_belong_to_this_rank_again_when_finish_returns),
        cmocka_unit_test(start_waits_for_nobody),
        cmocka_unit_test(some_ranks_may_exchange_at_once),
        cmocka_unit_test(nothing_else_goes_between_the_halves),
        cmocka_unit_test(other_communicators_are_free_meanwhile),
        cmocka_unit_test(faulty_lists_are_told_once),
        cmocka_unit_test(a_rank_that_leaves_in_between_is_named_by_the_others),
        cmocka_unit_test(a_destroyed_handle_leaves_nothing_in_flight),
        cmocka_unit_test(all_ranks_may_leave_in_between),
        cmocka_unit_test(an_abort_in_between_reaches_all),
        cmocka_unit_test(a_rank_that_is_late_to_finish_is_named),
    };
    return cmocka_run_group_tests_name("halves", tests, NULL, NULL);
}
