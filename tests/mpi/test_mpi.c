/* What only MPI's engine has: the communicator that it is given, its nodes, messages in pieces,
 * shared memory, and ranks that do not come. */
#include "comm_suite.h"
#include "delivery.h"
#include "included_before.h"
#include "launched.h"

#include <tessera/dtensor.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MOST_RANKS = 4 };

static const tsr_mpi_options defaults = TSR_MPI_OPTIONS_INIT;

static void faults_in_what_it_is_given_are_worded(void **state)
{
    (void)state;
    tsr_comm *comm = NULL;
    tsr_mpi_options options = defaults;
    launched_ranks();
    launched_assert_refused(tsr_comm_from_mpi(MPI_COMM_NULL, NULL, &comm), TSR_ERROR_ARGUMENT, "comm is MPI_COMM_NULL");
    launched_assert_refused(tsr_comm_from_mpi(MPI_COMM_SELF, NULL, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    options.timeout_ms = -1;
    launched_assert_refused(tsr_comm_from_mpi(MPI_COMM_SELF, &options, &comm), TSR_ERROR_ARGUMENT,
                            "options.timeout_ms is -1");
    options = defaults;
    options.chunk_bytes = ((int64_t)1 << 30) + 1;
    launched_assert_refused(tsr_comm_from_mpi(MPI_COMM_SELF, &options, &comm), TSR_ERROR_ARGUMENT,
                            "options.chunk_bytes is 1073741825");
    options = defaults;
    options.size = 0;
    launched_assert_refused(tsr_comm_from_mpi(MPI_COMM_SELF, &options, &comm), TSR_ERROR_ARGUMENT, "size");
    assert_null(comm);
}

/* A program may include <mpi.h> after <tessera/mpi.h>. */
static void headers_may_come_in_any_order(void **state)
{
    (void)state;
    tsr_comm *comm = NULL;
    tsr_mpi_options options = defaults;
    assert_int_equal(included_before_borrow(NULL, &comm), TSR_OK);
    assert_int_equal(tsr_comm_size(comm), 1);
    tsr_comm_destroy(comm);
    options.timeout_ms = -1;
    launched_assert_refused(included_before_borrow(&options, &comm), TSR_ERROR_ARGUMENT,
                            "tsr_comm_from_mpi: options.timeout_ms is -1");
#ifdef HAS_CXX
    assert_int_equal(included_before_borrow_cxx(NULL, &comm), TSR_OK);
    assert_int_equal(tsr_comm_size(comm), 1);
    tsr_comm_destroy(comm);
    launched_assert_refused(included_before_borrow_cxx(&options, &comm), TSR_ERROR_ARGUMENT,
                            "tsr_comm_from_mpi: options.timeout_ms is -1");
#endif
}

/* As a program does that was compiled for another MPI, or a binding. */
static void handles_of_another_size_are_refused(void **state)
{
    (void)state;
    tsr_comm *comm = NULL;
    const MPI_Comm self = MPI_COMM_SELF;
    launched_assert_refused(tsr_comm_from_mpi_handle(&self, sizeof self + 1, NULL, &comm), TSR_ERROR_ARGUMENT,
                            "comm has ");
    launched_assert_refused(tsr_comm_from_mpi_handle(NULL, sizeof self, NULL, &comm), TSR_ERROR_ARGUMENT,
                            "comm is NULL");
    assert_null(comm);
    assert_int_equal(tsr_comm_from_mpi_handle(&self, sizeof self, NULL, &comm), TSR_OK);
    assert_int_equal(tsr_comm_size(comm), 1);
    tsr_comm_destroy(comm);
}

static void inter_communicators_are_refused(void **state)
{
    (void)state;
    if (launched_ranks() < 2)
        suite_skip("one rank has no other side");
    const int side = launched_rank() % 2;
    MPI_Comm half, both;
    tsr_comm *comm = NULL;
    MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, 1, &both);
    launched_assert_refused(tsr_comm_from_mpi(both, NULL, &comm), TSR_ERROR_ARGUMENT, "inter-communicator");
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* The caller's communicator keeps its own error handler. */
static void the_callers_communicator_is_left_alone(void **state)
{
    (void)state;
    MPI_Errhandler before, after;
    tsr_comm *comm;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    assert_int_equal(tsr_comm_from_mpi(MPI_COMM_SELF, NULL, &comm), TSR_OK);
    assert_string_equal(tsr_comm_engine(comm), "mpi");
    assert_int_equal(tsr_comm_size(comm), 1);
    tsr_comm_destroy(comm);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &after);
    assert_true(before == after);
    MPI_Errhandler_free(&before);
    MPI_Errhandler_free(&after);
}

static void long_messages_travel_in_pieces(void **state)
{
    (void)state;
    static const int64_t chunks[] = {7, 1000, 5000, 10000, 10001, 20000};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        tsr_mpi_options options = defaults;
        options.chunk_bytes = chunks[i];
        delivery d = {10000, 3};
        launched_run_all(2, deliver, &d, &options);
        options.no_sharing = 1;
        launched_run_all(launched_ranks(), deliver, &d, &options);
    }
}

enum { STRIDE = 4093, NEEDED_MIB = 5 << 10 };

/* The sender marks few bytes, because pages that no rank writes to take no memory. */
static tsr_status deliver_huge(tsr_comm *comm, void *arg)
{
    const size_t bytes = ((size_t)1 << 31) + 5;
    (void)arg;
    unsigned char *const memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    const int rank = tsr_comm_rank(comm);
    const tsr_message message = {!rank, memory, bytes};
    for (size_t i = 0; i < bytes && rank == 0; i += (size_t)STRIDE * STRIDE)
        memory[i] = (unsigned char)(1 + i % 251);
    memory[bytes - 1] = rank == 0;
    tsr_status status = tsr_comm_exchange(comm, &message, rank == 0, &message, rank == 1, tsr_device_host(), NULL);
    for (size_t i = 0; i < bytes && status == TSR_OK; i += STRIDE)
        if (memory[i] != (i % ((size_t)STRIDE * STRIDE) ? 0 : 1 + i % 251))
            status = tsr_status_set(TSR_ERROR_INTERNAL, "byte %zu came wrong", i);
    if (status == TSR_OK && memory[bytes - 1] != 1)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "the last byte did not come");
    munmap(memory, bytes);
    return status;
}

/* On all ranks alike. */
static bool has_memory(void)
{
    long long kib = 0;
    char line[128];
    FILE *const info = fopen("/proc/meminfo", "r");
    while (info && fgets(line, sizeof line, info) && sscanf(line, "MemAvailable: %lld", &kib) != 1)
        ;
    if (info)
        fclose(info);
    int mine = kib / 1024 >= NEEDED_MIB, all;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static void a_message_of_more_than_2_gib_arrives(void **state)
{
    (void)state;
    tsr_mpi_options options = defaults;
    options.no_sharing = 1;
    launched_ranks();
    if (!has_memory())
        suite_skip("5 GiB of memory are not there");
    launched_run_all(2, deliver_huge, NULL, &options);
}

/* Each rank writes into its own memory and reads its neighbour's, at the address it was told. */
static tsr_status read_neighbour(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    int *mine, *all[MOST_RANKS];
    TSR_TRY(tsr_comm_alloc(comm, 100 * sizeof *mine, (void **)&mine));
    for (int i = 0; i < 100; i++)
        mine[i] = 1000 * rank + i;
    tsr_status status = tsr_comm_all_gather(comm, &mine, all, sizeof mine, NULL, TSR_U8, tsr_device_host(), NULL);
    const int *const theirs = all[(rank + 1) % size];
    for (int i = 0; i < 100 && status == TSR_OK; i++)
        if (theirs[i] != 1000 * ((rank + 1) % size) + i)
            status = tsr_status_set(TSR_ERROR_INTERNAL, "element %d is %d", i, theirs[i]);
    if (status == TSR_OK)
        status = tsr_comm_barrier(comm);
    tsr_comm_free(comm, mine, 100 * sizeof *mine);
    return status;
}

static void memory_lies_at_one_address_in_all_processes(void **state)
{
    (void)state;
    for (int n = 1; n <= launched_ranks() && n <= MOST_RANKS; n++)
        launched_run_all(n, read_neighbour, NULL, NULL);
}

/* The second element of a tensor of the library's own is its rank, for who reads it in place. */
static tsr_status read_neighbours_tensor(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    const int64_t mesh_shape[] = {size}, shape[] = {2 * size};
    const tsr_placement shards[] = {tsr_shard(0)};
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x;
    TSR_TRY(tsr_mesh_create(comm, 1, mesh_shape, NULL, NULL, &mesh));
    TSR_TRY(tsr_layout_create(mesh, shards, 1, shape, TSR_I32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    int32_t *const mine = tsr_dtensor_to_local(x).data, *all[MOST_RANKS];
    mine[1] = rank;
    TSR_TRY(tsr_comm_all_gather(comm, &mine, all, sizeof mine, NULL, TSR_U8, tsr_device_host(), NULL));
    CHECK(all[(rank + 1) % size][1] == (rank + 1) % size);
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void dtensors_lie_where_peers_reach_them(void **state)
{
    (void)state;
    launched_run_all(2, read_neighbours_tensor, NULL, NULL);
}

/* Memory that the ranks of a node share stays as long as anything lies in it, whichever ranks have
 * left. */
static tsr_status outlive(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t mesh_shape[] = {tsr_comm_size(comm)}, shape[] = {1000};
    const tsr_placement replicate = tsr_replicate();
    tsr_comm *own = NULL;
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    void *memory = NULL;
    TSR_TRY(tsr_comm_split(comm, 0, tsr_comm_rank(comm), &own));
    TSR_TRY(tsr_mesh_create(own, 1, mesh_shape, NULL, NULL, &mesh));
    TSR_TRY(tsr_layout_create(mesh, &replicate, 1, shape, TSR_I32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    TSR_TRY(tsr_comm_alloc(own, 4000, &memory));
    int32_t *const mine = tsr_dtensor_to_local(x).data, *const given = memory;
    for (int i = 0; i < 1000; i++)
        mine[i] = given[i] = i;
    TSR_TRY(tsr_redistribute(x, &replicate, &y));
    tsr_comm_destroy(own);
    TSR_TRY(suite_check_usable(comm));
    for (int i = 0; i < 1000; i++)
        CHECK(mine[i] == i && given[i] == i && ((const int32_t *)tsr_dtensor_to_local(y).data)[i] == i);
    CHECK_ERROR(tsr_redistribute_into(x, y, NULL), TSR_ERROR_STATE, "was destroyed");
    tsr_mesh_destroy(mesh);
    tsr_comm_free(own, memory, 4000);
    tsr_dtensor_destroy(y);
    tsr_layout_destroy(layout);
    tsr_dtensor_destroy(x);
    return suite_check_usable(comm);
}

static void shared_memory_outlives_its_communicator(void **state)
{
    (void)state;
    for (int n = 1; n <= launched_ranks() && n <= MOST_RANKS; n++)
        launched_run_all(n, outlive, NULL, NULL);
}

/* Memory that was given back is used again, whatever the order. */
static tsr_status use_again(tsr_comm *comm, void *arg)
{
    enum { BLOCKS = 6, ROUNDS = 40 };
    void *blocks[BLOCKS] = {NULL}, *lowest = NULL, *highest = NULL;
    (void)arg;
    for (int i = 0; i < ROUNDS * BLOCKS; i++) {
        void **block = &blocks[i * 5 % BLOCKS];
        const size_t bytes = (size_t)(i % 7 + 1) * 300000;
        tsr_comm_free(comm, *block, 0);
        TSR_TRY(tsr_comm_alloc(comm, bytes, block));
        memset(*block, i, bytes);
        lowest = !lowest || *block < lowest ? *block : lowest;
        highest = *block > highest ? *block : highest;
    }
    for (int i = 0; i < BLOCKS; i++)
        tsr_comm_free(comm, blocks[i], 0);
    CHECK((char *)highest - (char *)lowest < (ptrdiff_t)20 * BLOCKS * 300000);
    return TSR_OK;
}

static void memory_that_is_freed_serves_again(void **state)
{
    (void)state;
    launched_run_all(2, use_again, NULL, NULL);
}

static long count_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : -1;
}

/* Allocates `bytes`, writes all of them and frees them; `*faults` is the number of page faults. */
static tsr_status use_once(tsr_comm *comm, size_t bytes, void **where, long *faults)
{
    const long before = count_faults();
    TSR_TRY(tsr_comm_alloc(comm, bytes, where));
    memset(*where, 1, bytes);
    *faults = count_faults() - before;
    tsr_comm_free(comm, *where, bytes);
    return TSR_OK;
}

/* On small pages, of which MPI's own calls may bring some in, 2,048 make 8 MiB. */
static tsr_status keep_large_memory(tsr_comm *comm, void *arg)
{
    enum { BYTES = 8 << 20, FEW = 200 };
    tsr_context *const context = tsr_comm_context(comm);
    const int keeps = *(const int *)arg;
    void *first, *where;
    long faults;
    TSR_TRY(use_once(comm, BYTES, &first, &faults));
    const tsr_kept_statistics kept = tsr_context_kept_statistics(context);
    CHECK(kept.bytes >= (keeps ? BYTES : 0) && kept.bytes <= kept.most_bytes);
    for (int again = 0; again < 3 && keeps; again++) {
        TSR_TRY(use_once(comm, BYTES - 4096 * again, &where, &faults));
        CHECK(where == first && faults < FEW);
    }
    CHECK(!keeps || tsr_context_kept_statistics(context).hits == kept.hits + 3);
    CHECK(tsr_context_trim(context) >= (keeps ? BYTES : 0));
    CHECK(tsr_context_kept_statistics(context).bytes == 0);
    TSR_TRY(tsr_comm_alloc(comm, BYTES, &where));
    CHECK(((const char *)where)[0] == 0 && ((const char *)where)[BYTES - 1] == 0);
    tsr_comm_free(comm, where, BYTES);
    /* Blocks that came back while a smaller bound was full. */
    for (size_t bytes = BYTES; bytes < 5 * (size_t)BYTES; bytes += BYTES) {
        TSR_TRY(use_once(comm, bytes, &where, &faults));
        CHECK(tsr_context_kept_statistics(context).bytes <= kept.most_bytes);
    }
    return TSR_OK;
}

static void large_memory_that_is_freed_keeps_its_pages(void **state)
{
    (void)state;
    static const size_t bounds[] = {0, 20 << 20, TSR_KEEP_NONE};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        tsr_mpi_options mpi = defaults;
        tsr_context *context = NULL;
        int keeps = bounds[i] != TSR_KEEP_NONE;
        options.kept_bytes = bounds[i];
        assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
        mpi.context = context;
        launched_run_all(2, keep_large_memory, &keeps, &mpi);
        assert_int_equal(tsr_context_kept_statistics(context).bytes, 0);
        tsr_context_destroy(context);
    }
}

/* Ranks go on to their next group while others are still in the last. */
static tsr_status come_and_go(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (int round = 0; round < 60; round++) {
        tsr_comm *group;
        TSR_TRY(tsr_comm_split(comm, (tsr_comm_rank(comm) + round) % 2, 0, &group));
        const tsr_status status = suite_check_usable(group);
        tsr_comm_destroy(group);
        TSR_TRY(status);
    }
    return suite_check_usable(comm);
}

static void groups_come_and_go(void **state)
{
    (void)state;
    for (int sharing = 0; sharing < 2; sharing++) {
        tsr_mpi_options options = defaults;
        options.no_sharing = !sharing;
        launched_run_all(launched_ranks(), come_and_go, NULL, &options);
    }
}

/* A sender takes the pieces that the receiver has room for. */
static tsr_status make_with_own_pieces(MPI_Comm inside, tsr_comm **out)
{
    tsr_mpi_options options = defaults;
    options.no_sharing = 1;
    options.timeout_ms = 5000;
    options.chunk_bytes = launched_rank() == 0 ? 3000 : 5000;
    return tsr_comm_from_mpi(inside, &options, out);
}

static void ranks_may_differ_in_the_length_of_pieces(void **state)
{
    (void)state;
    tsr_comm *comm;
    delivery d = {20000, 2};
    launched_ranks();
    assert_int_equal(make_with_own_pieces(MPI_COMM_WORLD, &comm), TSR_OK);
    const tsr_status status = deliver(comm, &d);
    tsr_comm_destroy(comm);
    assert_int_equal(status, TSR_OK);
}

/* Many messages between two ranks: any number has room. */
static tsr_status send_many(tsr_comm *comm, void *arg)
{
    enum { MANY = 3000 };
    (void)arg;
    const int rank = tsr_comm_rank(comm);
    int32_t *const out = calloc(2 * MANY, sizeof *out), *const in = out + MANY;
    tsr_message *const sends = calloc(2 * MANY, sizeof *sends), *const receives = sends + MANY;
    CHECK(out && sends);
    for (int i = 0; i < MANY; i++) {
        out[i] = rank * MANY + i;
        sends[i] = (tsr_message){!rank, &out[i], sizeof *out};
        receives[i] = (tsr_message){!rank, &in[i], sizeof *in};
    }
    tsr_status status = tsr_comm_exchange(comm, sends, MANY, receives, MANY, tsr_device_host(), NULL);
    for (int i = 0; i < MANY && status == TSR_OK; i++)
        if (in[i] != !rank * MANY + i)
            status = tsr_status_set(TSR_ERROR_INTERNAL, "message %d says %d", i, in[i]);
    free(out);
    free(sends);
    return status;
}

static void many_messages_between_two_ranks_arrive_in_order(void **state)
{
    (void)state;
    for (int sharing = 0; sharing < 2; sharing++) {
        tsr_mpi_options options = defaults;
        options.no_sharing = !sharing;
        launched_run_all(2, send_many, NULL, &options);
    }
}

/* All ranks of these tests are on one node, so plans have no nodes. */
static tsr_status look_at_nodes(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t shape[] = {tsr_comm_size(comm)};
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_create(comm, 1, shape, NULL, NULL, &mesh));
    const tsr_nodes known = tsr_mesh_nodes(mesh);
    tsr_mesh_destroy(mesh);
    CHECK(known.ranks_per_node == 0 && known.count == 0);
    return TSR_OK;
}

static void one_node_is_no_topology(void **state)
{
    (void)state;
    launched_run_all(launched_ranks(), look_at_nodes, NULL, NULL);
}

static tsr_status fail_on_one(tsr_comm *comm, void *arg)
{
    const int victim = *(const int *)arg;
    if (tsr_comm_rank(comm) == victim)
        return tsr_status_set(TSR_ERROR_IO, "had enough");
    return tsr_comm_barrier(comm) == TSR_ERROR_PEER ? tsr_status_set(TSR_ERROR_PEER, "a peer") : TSR_ERROR_INTERNAL;
}

static void a_job_tells_every_rank_why_it_failed(void **state)
{
    (void)state;
    tsr_mpi_job *job;
    char version[256];
    assert_true(tsr_mpi_version_print(version, sizeof version) > 0);
    assert_non_null(strstr(version, "MPI"));
    assert_int_equal(tsr_mpi_job_create(&job), TSR_OK);
    assert_int_equal(tsr_mpi_job_rank(job), launched_rank());
    assert_int_equal(tsr_mpi_job_size(job), launched_ranks());
    for (int victim = 0; victim < launched_ranks(); victim++) {
        char words[64];
        snprintf(words, sizeof words, "rank %d: had enough", victim);
        launched_assert_refused(tsr_mpi_job_run(job, fail_on_one, &victim, NULL), TSR_ERROR_IO, words);
    }
    tsr_mpi_job_destroy(job);
}

/* Lines that say that this rank shares no memory because it is not to. */
static void count_unshared(void *user, tsr_log_level level, const char *line)
{
    (void)level;
    *(int *)user += strstr(line, "options.no_sharing") != NULL;
}

static tsr_status do_nothing(tsr_comm *comm, void *arg)
{
    (void)comm;
    (void)arg;
    return TSR_OK;
}

/* The run has a communicator of its own beside the program's, and both log where the caller's
 * context says. */
static void a_job_heeds_options_of_older_headers(void **state)
{
    (void)state;
    int unshared = 0;
    tsr_context_options wanted = TSR_CONTEXT_OPTIONS_INIT;
    tsr_mpi_options options = defaults;
    tsr_mpi_job *job;
    wanted.log = count_unshared;
    wanted.log_user = &unshared;
    wanted.log_level = TSR_LOG_INFO;
    assert_int_equal(tsr_context_create(&wanted, &options.context), TSR_OK);
    options.size = offsetof(tsr_mpi_options, chunk_bytes);
    options.no_sharing = 1;
    assert_int_equal(tsr_mpi_job_create(&job), TSR_OK);
    assert_int_equal(tsr_mpi_job_run(job, do_nothing, NULL, &options), TSR_OK);
    assert_int_equal(unshared, 2);
    tsr_mpi_job_destroy(job);
    tsr_context_destroy(options.context);
}

/* This must be the last test, because it finalizes MPI. */
static void an_abort_after_the_end_of_mpi_says_nothing(void **state)
{
    (void)state;
    tsr_mpi_options options = defaults;
    tsr_comm *comm;
    options.no_sharing = 1;
    assert_int_equal(tsr_comm_from_mpi(MPI_COMM_WORLD, &options, &comm), TSR_OK);
    MPI_Finalize();
    tsr_comm_abort(comm);
    tsr_comm_destroy(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_in_what_it_is_given_are_worded),
        cmocka_unit_test(headers_may_come_in_any_order),
        cmocka_unit_test(handles_of_another_size_are_refused),
        cmocka_unit_test(inter_communicators_are_refused),
        cmocka_unit_test(the_callers_communicator_is_left_alone),
        cmocka_unit_test(long_messages_travel_in_pieces),
        cmocka_unit_test(a_message_of_more_than_2_gib_arrives),
        cmocka_unit_test(memory_lies_at_one_address_in_all_processes),
        cmocka_unit_test(dtensors_lie_where_peers_reach_them),
        cmocka_unit_test(shared_memory_outlives_its_communicator),
        cmocka_unit_test(memory_that_is_freed_serves_again),
        cmocka_unit_test(large_memory_that_is_freed_keeps_its_pages),
        cmocka_unit_test(groups_come_and_go),
        cmocka_unit_test(ranks_may_differ_in_the_length_of_pieces),
        cmocka_unit_test(many_messages_between_two_ranks_arrive_in_order),
        cmocka_unit_test(one_node_is_no_topology),
        cmocka_unit_test(a_job_tells_every_rank_why_it_failed),
        cmocka_unit_test(a_job_heeds_options_of_older_headers),
        cmocka_unit_test(an_abort_after_the_end_of_mpi_says_nothing),
    };
    char *const node[] = {"", "node", NULL};
    suite_start(2, (char **)node);
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
