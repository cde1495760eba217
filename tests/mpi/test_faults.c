/* Exchanges that fail or are given up, communicators for which a rank has no memory, and which
 * ranks hear of it. */
#include "comm_suite.h"
#include "launched.h"

#include <stdlib.h>
#include <sys/resource.h>

static const tsr_mpi_options defaults = TSR_MPI_OPTIONS_INIT;

/* The timeout of tests in which a rank waits in vain. It also bounds how long making a communicator
 * takes, which is longer where there are more ranks than cores. */
enum { SHORT_MS = 1000 };
#define SHORT_WORDS "1000 ms"

/* Rank 1 does not come. Every rank that waits for it names it, and waits for the timeout once at
 * most. */
static tsr_status wait_in_vain(tsr_comm *comm)
{
    int64_t in = 1, out;
    const tsr_message send = {1, &in, 8}, receive = {1, &out, 8};
    for (int again = 0; again < 2; again++)
        CHECK_ERROR(tsr_comm_exchange(comm, &send, 1, &receive, 1, tsr_device_host(), NULL), TSR_ERROR_PEER,
                    "rank 1 did not come within " SHORT_WORDS);
    CHECK_ERROR(tsr_comm_barrier(comm), TSR_ERROR_PEER, "rank 1 did not come within " SHORT_WORDS);
    return TSR_OK;
}

static tsr_status stay_away(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_status status = suite_check_usable(comm);
    if (tsr_comm_rank(comm) == 1) {
        launched_await(0);
        return status;
    }
    if (status == TSR_OK)
        status = wait_in_vain(comm);
    launched_wake(1);
    return status;
}

static void a_rank_that_stays_away_is_named_after_the_timeout(void **state)
{
    (void)state;
    for (int sharing = 0; sharing < 2; sharing++) {
        tsr_mpi_options options = defaults;
        options.no_sharing = !sharing;
        options.timeout_ms = SHORT_MS;
        launched_run_all(2, stay_away, NULL, &options);
    }
}

/* Rank 0 gives up an exchange that it has started, and its memory, before rank 1 comes to it. */
typedef struct giving_up {
    bool receives; /* rank 0 receives; else it sends */
    int later_ms;  /* when rank 1 comes; it comes first where rank 0 waits for it */
    size_t bytes;
} giving_up;

static tsr_status give_up_first(tsr_comm *group, const giving_up *g)
{
    char *const memory = malloc(g->bytes);
    CHECK(memory);
    memset(memory, 1, g->bytes);
    const tsr_message message = {1, memory, g->bytes};
    const tsr_status status =
        tsr_comm_exchange_start(group, &message, !g->receives, &message, g->receives, tsr_device_host(), NULL);
    if (g->later_ms == 0)
        suite_sleep(100);
    tsr_comm_destroy(group);
    memset(memory, 2, g->bytes);
    free(memory);
    return status;
}

/* The message arrives whole, or not at all. */
static tsr_status come_second(tsr_comm *group, const giving_up *g)
{
    char *const memory = malloc(g->bytes);
    CHECK(memory);
    memset(memory, 3, g->bytes);
    const tsr_message message = {0, memory, g->bytes};
    suite_sleep(g->later_ms);
    const tsr_status status =
        tsr_comm_exchange(group, &message, g->receives, &message, !g->receives, tsr_device_host(), NULL);
    tsr_comm_destroy(group);
    const char wanted = g->receives || status != TSR_OK ? 3 : 1;
    const bool right = memory[0] == wanted && memory[g->bytes - 1] == wanted;
    free(memory);
    CHECK(status == TSR_ERROR_PEER || (status == TSR_OK && g->later_ms == 0) || (status == TSR_OK && g->bytes <= 8192));
    CHECK(right);
    return TSR_OK;
}

/* Rank 0 lets MPI work until rank 1 is done. A message that comes late is written then, if MPI
 * still knows where. */
static void part(int rank)
{
    if (rank == 1)
        launched_wake(0);
    else
        launched_await(1);
}

static tsr_status give_up(tsr_comm *comm, void *arg)
{
    const giving_up *g = arg;
    tsr_comm *group;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &group));
    const tsr_status status = tsr_comm_rank(comm) == 0 ? give_up_first(group, g) : come_second(group, g);
    part(tsr_comm_rank(comm));
    TSR_TRY(status);
    return suite_check_usable(comm);
}

static void who_gives_up_an_exchange_has_its_memory_back(void **state)
{
    (void)state;
    static giving_up all[] = {
        {true, 200, 1 << 20}, {false, 200, 1 << 20}, {false, 200, 100}, {true, 0, 1 << 20}, {false, 0, 1 << 20}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tsr_mpi_options options = defaults;
        options.no_sharing = 1;
        options.timeout_ms = 800;
        launched_run_all(2, give_up, &all[i], &options);
    }
}

/* Errors of a group name ranks of the whole communicator too: rank 1 of the group is rank 0
 * there. */
static tsr_status stay_away_from_group(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *group;
    char in = 0, out[2] = "a";
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(tsr_comm_split(comm, 0, -rank, &group));
    const tsr_message send = {0, out, 2}, receive = {1, &in, 1};
    tsr_status status = tsr_comm_exchange(group, &send, rank == 0, &receive, rank == 1, tsr_device_host(), NULL);
    if (rank == 1)
        CHECK_ERROR(status, TSR_ERROR_ARGUMENT,
                    "rank 1 (rank 0 of all) sends 2 bytes to rank 0 (rank 1 of all), which expects 1");
    status = rank == 1 ? tsr_comm_exchange(group, NULL, 0, &receive, 1, tsr_device_host(), NULL) : TSR_OK;
    part(rank);
    tsr_comm_destroy(group);
    if (rank == 1)
        CHECK_ERROR(status, TSR_ERROR_PEER, "rank 1 (rank 0 of all) did not come within " SHORT_WORDS);
    return TSR_OK;
}

static void ranks_of_groups_have_both_names(void **state)
{
    (void)state;
    tsr_mpi_options options = defaults;
    options.no_sharing = 1;
    options.timeout_ms = SHORT_MS;
    launched_run_all(2, stay_away_from_group, NULL, &options);
}

/* The first rank calls with the whole communicator, and the others with a group of as many ranks,
 * in which they wait for the first. */
static tsr_status call_in_other_orders(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *group;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &group));
    tsr_comm *const first = tsr_comm_rank(comm) == 0 ? comm : group;
    CHECK_ERROR(tsr_comm_barrier(first), TSR_ERROR_PEER,
                "ranks wait in different communicators, so that none can go on (rank ");
    tsr_comm_destroy(group);
    return TSR_OK;
}

static void calls_in_different_orders_are_found(void **state)
{
    (void)state;
    tsr_mpi_options options = defaults;
    options.timeout_ms = 60000;
    for (int ranks = 2; ranks <= 3 && ranks <= launched_ranks(); ranks++)
        launched_run_all(ranks, call_in_other_orders, NULL, &options);
}

static void count_waits(void *user, tsr_log_level level, const char *line)
{
    *(int *)user += level == TSR_LOG_ERROR && strstr(line, "has waited 5 s in tsr_comm_");
}

/* Rank 0 waits for rank 1 at the gate of its node, rank 2 for a message. */
static tsr_status come_late(tsr_comm *gated, void *arg)
{
    const tsr_mpi_options *given = arg;
    tsr_mpi_options options = *given;
    const int rank = tsr_comm_rank(gated);
    char byte = 1;
    const tsr_message send = {2, &byte, 1}, receive = {1, &byte, 1};
    tsr_comm *by_messages;
    options.no_sharing = 1;
    TSR_TRY(tsr_comm_from_mpi(MPI_COMM_WORLD, &options, &by_messages));
    if (rank == 1)
        suite_sleep(6000);
    tsr_status status = tsr_comm_exchange(by_messages, &send, rank == 1, &receive, rank == 2, tsr_device_host(), NULL);
    if (status == TSR_OK)
        status = tsr_comm_barrier(gated);
    tsr_comm_destroy(by_messages);
    return status;
}

static void who_waits_for_seconds_tells_the_log_for_whom(void **state)
{
    (void)state;
    int waits = 0;
    tsr_context_options wanted = TSR_CONTEXT_OPTIONS_INIT;
    tsr_mpi_options options = defaults;
    if (launched_ranks() < 3)
        suite_skip("fewer than 3 ranks were launched");
    wanted.log = count_waits;
    wanted.log_user = &waits;
    wanted.log_level = TSR_LOG_ERROR;
    assert_int_equal(tsr_context_create(&wanted, &options.context), TSR_OK);
    launched_run_all(launched_ranks(), come_late, &options, &options);
    tsr_context_destroy(options.context);
    if (launched_rank() == 0 || launched_rank() == 2)
        assert_int_equal(waits, 1);
}

/* An allocator of which allocation number `left` from now fails, and all after it. */
typedef struct larder {
    int64_t left, held;
} larder;

static void *take(void *user, size_t bytes, size_t alignment)
{
    larder *l = user;
    void *memory;
    if (l->left-- <= 0 || posix_memalign(&memory, alignment, bytes) != 0)
        return NULL;
    l->held++;
    return memory;
}

static void give_back(void *user, void *memory, size_t bytes)
{
    larder *l = user;
    (void)bytes;
    free(memory);
    l->held--;
}

enum { MOST_ALLOCATIONS = 200 };

static tsr_context *make_context(larder *l)
{
    tsr_context *context;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){take, give_back, l};
    l->left = INT64_MAX;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    return context;
}

/* The last rank's n-th allocation fails, for all n. This rank says so, the others hear of it, and
 * no rank waits for it. */
static void who_has_no_memory_for_a_communicator_holds_up_nobody(void **state)
{
    (void)state;
    larder l = {0};
    const int last = launched_ranks() - 1;
    tsr_context *const context = make_context(&l);
    for (int sharing = 0; sharing < 2; sharing++) {
        tsr_status status = TSR_ERROR_MEMORY;
        for (int n = 0; status != TSR_OK; n++) {
            tsr_mpi_options options = defaults;
            tsr_comm *comm = NULL;
            options.context = context;
            options.timeout_ms = 20000;
            options.no_sharing = !sharing;
            l.left = launched_rank() == last ? n : INT64_MAX;
            status = tsr_comm_from_mpi(MPI_COMM_WORLD, &options, &comm);
            l.left = INT64_MAX;
            if (status != TSR_OK && (comm || strstr(tsr_status_message(), "within")))
                fail_msg("allocation %d: %s: %s", n, tsr_status_name(status), tsr_status_message());
            assert_true(n < MOST_ALLOCATIONS);
            tsr_comm_destroy(comm);
        }
    }
    tsr_context_destroy(context);
    assert_int_equal(l.held, 0);
}

/* The last rank's n-th allocation of a split fails, for all n. Afterwards the communicator is
 * usable as before. */
static tsr_status split_without_memory(tsr_comm *comm, void *arg)
{
    larder *l = arg;
    const bool poor = tsr_comm_rank(comm) == tsr_comm_size(comm) - 1;
    for (int n = 0; n < MOST_ALLOCATIONS; n++) {
        tsr_comm *group = NULL;
        l->left = poor ? n : INT64_MAX;
        const tsr_status status = tsr_comm_split(comm, 0, 0, &group);
        l->left = INT64_MAX;
        TSR_TRY(suite_check_usable(comm));
        if (status == TSR_OK) {
            TSR_TRY(suite_check_usable(group));
            tsr_comm_destroy(group);
            return TSR_OK;
        }
        CHECK_ERROR(status, poor ? TSR_ERROR_MEMORY : TSR_ERROR_PEER, poor ? "memory" : "failed");
    }
    return tsr_status_set(TSR_ERROR_INTERNAL, "no number of allocations was enough");
}

static void who_has_no_memory_for_a_group_leaves_all_usable(void **state)
{
    (void)state;
    for (int sharing = 0; sharing < 2; sharing++) {
        larder l = {0};
        tsr_mpi_options options = defaults;
        options.context = make_context(&l);
        options.timeout_ms = 20000;
        options.no_sharing = !sharing;
        launched_run_all(3, split_without_memory, &l, &options);
        tsr_context_destroy(options.context);
        assert_int_equal(l.held, 0);
    }
}

static void options_that_ranks_differ_in_are_named(void **state)
{
    (void)state;
    if (launched_ranks() < 2)
        suite_skip("one rank does not differ");
    for (int which = 0; which < 2; which++) {
        tsr_comm *comm = NULL;
        tsr_mpi_options options = defaults;
        *(which ? &options.unchecked : &options.no_split) = launched_rank() == 1;
        launched_assert_refused(tsr_comm_from_mpi(MPI_COMM_WORLD, &options, &comm), TSR_ERROR_ARGUMENT,
                                which ? "options.unchecked is" : "options.no_split is");
        assert_null(comm);
    }
}

/* A process whose files may not grow uses messages instead of shared memory, and gets no signal. */
static void a_limit_of_files_takes_shared_memory_away(void **state)
{
    (void)state;
    struct rlimit before, small = {1 << 20, 1 << 20};
    tsr_comm *comm;
    launched_ranks();
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(tsr_comm_from_mpi(MPI_COMM_WORLD, NULL, &comm), TSR_OK);
    const tsr_status status = suite_check_usable(comm);
    tsr_comm_destroy(comm);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, TSR_OK);
}

/* More than fit side by side at the largest size. */
static void many_worlds_share_memory_at_the_same_time(void **state)
{
    (void)state;
    enum { WORLDS = 20 };
    const size_t bytes = (size_t)1 << 31;
    tsr_comm *comms[WORLDS];
    void *memory[WORLDS];
    launched_ranks();
    for (int i = 0; i < WORLDS; i++) {
        assert_int_equal(tsr_comm_from_mpi(MPI_COMM_WORLD, NULL, &comms[i]), TSR_OK);
        assert_int_equal(tsr_comm_alloc(comms[i], bytes, &memory[i]), TSR_OK);
        memset(memory[i], i, 4096);
    }
    for (int i = 0; i < WORLDS; i++) {
        assert_int_equal(((const char *)memory[i])[4095], i);
        tsr_comm_free(comms[i], memory[i], bytes);
        tsr_comm_destroy(comms[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_stays_away_is_named_after_the_timeout),
        cmocka_unit_test(who_gives_up_an_exchange_has_its_memory_back),
        cmocka_unit_test(ranks_of_groups_have_both_names),
        cmocka_unit_test(calls_in_different_orders_are_found),
        cmocka_unit_test(who_waits_for_seconds_tells_the_log_for_whom),
        cmocka_unit_test(who_has_no_memory_for_a_communicator_holds_up_nobody),
        cmocka_unit_test(who_has_no_memory_for_a_group_leaves_all_usable),
        cmocka_unit_test(options_that_ranks_differ_in_are_named),
        cmocka_unit_test(a_limit_of_files_takes_shared_memory_away),
        cmocka_unit_test(many_worlds_share_memory_at_the_same_time),
    };
    char *const node[] = {"", "node", NULL};
    suite_start(2, (char **)node);
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
