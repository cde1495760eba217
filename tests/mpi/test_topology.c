/*
 * Nodes of any sizes, with ranks in any order: communicators say how ranks lie, and plans over them
 * take what a node lacks into it once.
 */
#include "comm_suite.h"
#include "launched.h"
#include "nodes.h"

#include <tessera/dtensor.h>

#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS = 7, MOST_NAME = 128 };

typedef struct partition {
    int ranks, first, turns; /* as nodes_pretend() and nodes_pretend_turns() take them */
} partition;

static int pretended_node(const partition *p, int rank)
{
    return p->turns > 0 ? rank % p->turns : rank >= p->first;
}

/* Fills a tensor with ascending numbers. */
static tsr_status count_up(const tsr_dtensor *x, int64_t columns)
{
    const tsr_tensor mine = tsr_dtensor_to_local(x);
    const tsr_layout *layout = tsr_dtensor_layout(x);
    int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(layout), coordinate, &inside));
    TSR_TRY(tsr_layout_local(layout, coordinate, shape, offset));
    for (int64_t i = 0; i < mine.shape[0]; i++)
        for (int64_t j = 0; j < columns; j++)
            ((int32_t *)mine.data)[i * mine.strides[0] + j] = (int32_t)((offset[0] + i) * columns + j);
    return TSR_OK;
}

/* The bytes that a move with a kept plan sends from node to node, over all ranks. */
static tsr_status count_crossing(tsr_comm *comm, const tsr_dtensor *x, tsr_dtensor *y, uint64_t *all)
{
    size_t inside, between;
    TSR_TRY(tsr_redistribute_into(x, y, NULL));
    TSR_TRY(tsr_comm_barrier(comm));
    nodes_count(&inside, &between);
    TSR_TRY(tsr_redistribute_into(x, y, NULL));
    nodes_count(&inside, &between);
    const uint64_t mine = between;
    return tsr_comm_all_reduce(comm, &mine, all, 1, TSR_U64, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status check_gathered(const tsr_dtensor *y, int64_t rows, int64_t columns)
{
    const tsr_tensor got = tsr_dtensor_to_local(y);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            CHECK(((const int32_t *)got.data)[i * got.strides[0] + j] == (int32_t)(i * columns + j));
    return TSR_OK;
}

/* Each node lacks what the others have, and takes it once: over two nodes the bytes of the tensor,
 * however many ranks they have, and the few with which ranks compare what they call. */
static tsr_status gather_once(tsr_comm *comm, void *arg)
{
    enum { ROWS = 840, COLUMNS = 256, BYTES = ROWS * COLUMNS * 4, COMPARED = 200 };
    const partition *p = arg;
    const int64_t mesh_shape[] = {p->ranks}, shape[] = {ROWS, COLUMNS};
    const tsr_placement rows[] = {tsr_shard(0)}, whole[] = {tsr_replicate()};
    tsr_mesh *mesh;
    tsr_layout *from, *to;
    tsr_dtensor *x, *y;
    uint64_t crossing;
    TSR_TRY(tsr_mesh_create(comm, 1, mesh_shape, NULL, NULL, &mesh));
    TSR_TRY(tsr_layout_create(mesh, rows, 2, shape, TSR_I32, &from));
    TSR_TRY(tsr_layout_create(mesh, whole, 2, shape, TSR_I32, &to));
    TSR_TRY(tsr_dtensor_create(from, tsr_device_host(), &x));
    TSR_TRY(tsr_dtensor_create(to, tsr_device_host(), &y));
    TSR_TRY(count_up(x, COLUMNS));
    tsr_status status = count_crossing(comm, x, y, &crossing);
    if (status == TSR_OK && (crossing < BYTES || crossing > (uint64_t)(BYTES + COMPARED * p->ranks * p->ranks)))
        status = tsr_status_set(TSR_ERROR_INTERNAL, "%llu bytes cross nodes, not about %d",
                                (unsigned long long)crossing, BYTES);
    if (status == TSR_OK)
        status = check_gathered(y, ROWS, COLUMNS);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Two ranks share a node in a communicator and in those split off it, whatever its ranks are called
 * there, exactly if they share one. */
static tsr_status compare_nodes(tsr_comm *comm, const partition *p, bool reversed)
{
    for (int a = 0; a < p->ranks; a++) {
        for (int b = 0; b < p->ranks; b++) {
            const int x = reversed ? p->ranks - 1 - a : a, y = reversed ? p->ranks - 1 - b : b;
            CHECK((tsr_comm_node_of(comm, a) == tsr_comm_node_of(comm, b)) ==
                  (pretended_node(p, x) == pretended_node(p, y)));
        }
    }
    return TSR_OK;
}

static tsr_status look_at_nodes(tsr_comm *comm, void *arg)
{
    const partition *p = arg;
    tsr_comm *group;
    TSR_TRY(compare_nodes(comm, p, false));
    TSR_TRY(tsr_comm_split(comm, 0, -tsr_comm_rank(comm), &group));
    const tsr_status status = compare_nodes(group, p, true);
    tsr_comm_destroy(group);
    return status;
}

static void run_partition(tsr_rank_main *body, partition *p)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.unchecked = 1;
    if (launched_ranks() < p->ranks)
        suite_skip("fewer ranks were launched");
    if (p->turns > 0)
        nodes_pretend_turns(p->turns);
    else
        nodes_pretend(p->first);
    const tsr_status status = launched_run_with(p->ranks, body, p, &options);
    nodes_pretend(0);
    if (status != TSR_OK)
        fail_msg("%d ranks, %d on the first node, in %d turns: %s: %s", p->ranks, p->first, p->turns,
                 tsr_status_name(status), tsr_status_message());
}

static void communicators_know_nodes_of_any_size_and_order(void **state)
{
    run_partition(look_at_nodes, *state);
}

static void unequal_nodes_take_what_they_lack_once(void **state)
{
    run_partition(gather_once, *state);
}

/* An allocator with `*user` allocations left. */
static void *take(void *user, size_t bytes, size_t alignment)
{
    int *const left = user;
    void *memory;
    return (*left)-- > 0 && posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void give_back(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

/* All ranks of a communicator free it together, or MPI keeps it. */
static void compare_frees(int allocation)
{
    const int freed = nodes_count_freed();
    int least, most;
    MPI_Allreduce(&freed, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&freed, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (least != most)
        fail_msg("allocation %d: some ranks freed more communicators than others", allocation);
}

/* The last rank's n-th allocation fails, for all n. */
static void a_communicator_that_fails_is_freed_by_all_or_none(void **state)
{
    enum { MOST_ALLOCATIONS = 200, PLENTY = 1 << 30 };
    (void)state;
    int left = PLENTY;
    const bool poor = launched_rank() == launched_ranks() - 1;
    tsr_context_options given = TSR_CONTEXT_OPTIONS_INIT;
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    tsr_status status = TSR_ERROR_MEMORY;
    given.allocator = (tsr_allocator){take, give_back, &left};
    assert_int_equal(tsr_context_create(&given, &options.context), TSR_OK);
    for (int n = 0; status != TSR_OK; n++) {
        tsr_comm *comm = NULL;
        assert_true(n < MOST_ALLOCATIONS);
        nodes_count_freed();
        left = poor ? n : PLENTY;
        status = tsr_comm_from_mpi(MPI_COMM_WORLD, &options, &comm);
        left = PLENTY;
        compare_frees(n);
        tsr_comm_destroy(comm);
    }
    tsr_context_destroy(options.context);
}

/* There is a test for each fact and partition, so that cases which need more ranks are reported as
 * skipped. */
static void list_partitions(struct CMUnitTest *tests, const char *fact, CMUnitTestFunction body)
{
    static partition partitions[PARTITIONS] = {{5, 2, 0}, {4, 3, 0},  {3, 1, 0}, {3, 0, 2},
                                               {5, 0, 2}, {15, 7, 0}, {8, 0, 2}};
    for (int i = 0; i < PARTITIONS; i++) {
        const partition *p = &partitions[i];
        char *const name = malloc(MOST_NAME);
        if (name && p->turns > 0)
            snprintf(name, MOST_NAME, "%s: %d on %d in turn", fact, p->ranks, p->turns);
        else if (name)
            snprintf(name, MOST_NAME, "%s: %d and %d", fact, p->first, p->ranks - p->first);
        tests[i] = (struct CMUnitTest){name ? name : fact, body, NULL, NULL, &partitions[i]};
    }
}

int main(void)
{
    char *const node[] = {"", "node", NULL};
    struct CMUnitTest tests[2 * PARTITIONS + 1] = {
        [2 * PARTITIONS] = cmocka_unit_test(a_communicator_that_fails_is_freed_by_all_or_none)};
    list_partitions(tests, "communicators_know_nodes_of_any_size_and_order",
                    communicators_know_nodes_of_any_size_and_order);
    list_partitions(tests + PARTITIONS, "unequal_nodes_take_what_they_lack_once",
                    unequal_nodes_take_what_they_lack_once);
    suite_start(2, (char **)node);
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
