/* The NCCL engine when one of its calls, or an allocation, fails: the failure is named, and nothing
 * leaks. */
#include "counted_memory.h"
#include "nccl_world.h"
#include "standin_ranks.h"

#include <stdatomic.h>
#include <stdlib.h>

/* A bit of everything. */
static tsr_status do_everything(tsr_comm *comm)
{
    tsr_comm *part = NULL;
    TSR_TRY(suite_check_usable(comm));
    TSR_TRY(tsr_comm_split(comm, tsr_comm_rank(comm) % 2, 0, &part));
    tsr_status status = suite_check_usable(part);
    for (int k = 0; k < MOST_CALLS && status == TSR_OK; k++)
        status = wait_for_peers(comm, k);
    tsr_comm_destroy(part);
    return status;
}

/* A world in which the k-th call, or allocation, of the last rank fails. */
typedef struct sabotage {
    world world;
    int k;
    bool happened;
    _Atomic(tsr_comm *) first; /* rank 0's */
    atomic_bool returned;      /* rank 0 has, from all of its calls */
    atomic_bool done;
} sabotage;

/* Where a call returns a status, that names what has failed. When a handle goes nobody is told. */
static tsr_status check_told(tsr_status status, const char *failed)
{
    if (status == TSR_OK || !failed || strstr(tsr_status_message(), failed))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s has failed, but \"%s\" is what was said", failed,
                          tsr_status_message());
}

static tsr_status fail_alone(tsr_comm *seat, void *arg)
{
    sabotage *s = arg;
    tsr_comm *comm = NULL;
    (void)seat;
    standin_api.cuda_set_device(0);
    standin_fail_call(s->k);
    tsr_status status = tsr_nccl_create(&standin_api, 1, 0, &s->world.id, &s->world.options, &comm);
    if (status == TSR_OK)
        status = do_everything(comm);
    const char *failed = standin_failed_call();
    status = check_told(status, failed);
    tsr_comm_destroy(comm);
    standin_fail_call(0);
    const bool untold = standin_failed_call() != NULL;
    s->happened = failed || untold;
    return status;
}

/* Rank 0 waits for one that has failed, so it is released. */
static void release_first(sabotage *s, tsr_comm *comm)
{
    while (!atomic_load(&s->first))
        suite_sleep(1);
    tsr_comm_abort(atomic_load(&s->first));
    tsr_comm_abort(comm);
}

/* Rank 0 keeps its handle until nobody aborts it any more. It may not be told of a rank that
 * failed: after so long it is released. */
static void part(sabotage *s, tsr_comm *comm, bool failed, int patience_ms)
{
    if (tsr_comm_rank(comm) == 0) {
        atomic_store(&s->returned, true);
        while (!atomic_load(&s->done))
            suite_sleep(1);
        return;
    }
    for (int ms = 0; failed && ms < patience_ms && !atomic_load(&s->returned); ms++)
        suite_sleep(1);
    if (failed && (patience_ms == 0 || !atomic_load(&s->returned)))
        release_first(s, comm);
    atomic_store(&s->done, true);
}

static tsr_status fail_in_company(tsr_comm *seat, void *arg)
{
    sabotage *s = arg;
    const int rank = tsr_comm_rank(seat);
    tsr_comm *comm = NULL;
    standin_api.cuda_set_device(rank);
    TSR_TRY(tsr_nccl_create(&standin_api, 2, rank, &s->world.id, &s->world.options, &comm));
    if (rank == 0)
        atomic_store(&s->first, comm);
    else
        standin_fail_call(s->k);
    tsr_status status = do_everything(comm);
    standin_fail_call(0);
    const char *failed = standin_failed_call();
    if (rank > 0)
        s->happened = failed != NULL;
    status = check_told(status, failed);
    part(s, comm, failed != NULL, 0);
    tsr_comm_destroy(comm);
    return rank == 0 ? TSR_OK : status;
}

static void begin_sabotage(sabotage *s, int ranks)
{
    begin_world(&s->world, ranks);
    s->world.options.timeout_ms = LONG_MS;
    s->first = NULL;
    s->returned = s->done = false;
}

/* Tries a failure of every `step`-th call, until no call is left to fail. */
static void fail_calls(int ranks, tsr_rank_main *body, int step)
{
    sabotage s = {.happened = true, .k = 1 - step};
    while (s.happened) {
        s.k += step;
        begin_sabotage(&s, ranks);
        const tsr_status status = tsr_threads_run(ranks, body, &s, NULL);
        const char *misuse = standin_end();
        if (status != TSR_OK || misuse)
            fail_msg("call %d: %s", s.k, status != TSR_OK ? tsr_status_message() : misuse);
    }
    print_message("%d calls\n", s.k - 1);
    assert_in_range(s.k, 100, 2000);
}

static void a_call_that_fails_is_named_and_nothing_leaks(void **state)
{
    (void)state;
    fail_calls(1, fail_alone, 1);
    fail_calls(2, fail_in_company, getenv("TSR_TEST_THIN") ? 7 : 1);
}

/* From its creation on if it is alone; in company from then on, for peers wait long for one that is
 * not created. */
static tsr_status fail_at_allocation(tsr_comm *seat, void *arg)
{
    sabotage *s = arg;
    const int rank = tsr_comm_rank(seat), size = tsr_comm_size(seat);
    const size_t nth = rank == size - 1 ? (size_t)s->k : 0;
    tsr_comm *comm = NULL;
    standin_api.cuda_set_device(rank);
    if (size == 1)
        counted_fail_here(nth, true);
    tsr_status status = tsr_nccl_create(&standin_api, size, rank, &s->world.id, &s->world.options, &comm);
    if (size > 1 && comm) {
        counted_fail_here(nth, true);
        if (rank == 0)
            atomic_store(&s->first, comm);
    }
    if (status == TSR_OK)
        status = do_everything(comm);
    const bool failed = counted_fail_here(0, false) == 0;
    if (size > 1 && comm)
        part(s, comm, failed && status != TSR_OK, 1000);
    tsr_comm_destroy(comm);
    if (rank < size - 1)
        return status == TSR_ERROR_PEER ? TSR_OK : status;
    s->happened = failed && status != TSR_OK;
    return status == TSR_ERROR_MEMORY ? TSR_OK : status;
}

static void an_allocation_that_fails_is_memorys_and_nothing_leaks(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *const context = counted_context(&memory);
    for (int ranks = 1; ranks <= 2; ranks++) {
        sabotage s = {.happened = true};
        while (s.happened) {
            s.k++;
            begin_sabotage(&s, ranks);
            s.world.options.context = context;
            assert_ran(tsr_threads_run(ranks, fail_at_allocation, &s, NULL));
            end_world();
        }
        print_message("%d ranks: %d allocations\n", ranks, s.k - 1);
        assert_in_range(s.k, 4, 100);
    }
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_is_named_and_nothing_leaks),
        cmocka_unit_test(an_allocation_that_fails_is_memorys_and_nothing_leaks),
    };
    suite_start(count, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
