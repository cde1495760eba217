/*
 * Nodes of any sizes, with ranks in any order: communicators say how ranks lie, and plans over them take what a node lacks into it once.
 */
#include "comm_suite.h"

#include "launched.h"
#include "nodes.h"
#include <tessera/dtensor.h>

typedef struct partition {
    int ranks, first, turns; /* as nodes_pretend() and nodes_pretend_turns() take them */
} partition;

static int pretended_node(const partition *p, int rank)
{
    return p->turns > 0 ? rank % p->turns : rank >= p->first;
}

/* Elements count up. */
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

/* The bytes that one move sends from node to node, over all ranks, when its plan is there already. */
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

/* Each node lacks what the others have, and takes it once: over two nodes the bytes of the tensor, however many ranks they have, and the
 * few with which ranks compare what they call. */
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
        status = tsr_status_set(TSR_ERROR_INTERNAL, "%llu bytes cross nodes, not about %d", (unsigned long long)crossing, BYTES);
    if (status == TSR_OK)
        status = check_gathered(y, ROWS, COLUMNS);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Two ranks share a node in a communicator and in those split off it, whatever its ranks are called there, exactly if they share one. */
static tsr_status compare_nodes(tsr_comm *comm, const partition *p, bool reversed)
{
    for (int a = 0; a < p->ranks; a++) {
        for (int b = 0; b < p->ranks; b++) {
            const int x = reversed ? p->ranks - 1 - a : a, y = reversed ? p->ranks - 1 - b : b;
            CHECK((tsr_comm_node_of(comm, a) == tsr_comm_node_of(comm, b)) == (pretended_node(p, x) == pretended_node(p, y)));
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

/* Partitions of more ranks than were launched are left out. */
static void run_partitions(tsr_rank_main *body)
{
    static partition partitions[] = {{5, 2, 0}, {4, 3, 0}, {3, 1, 0}, {3, 0, 2}, {5, 0, 2}, {15, 7, 0}, {8, 0, 2}};
    for (size_t i = 0; i < sizeof partitions / sizeof *partitions; i++) {
        partition *p = &partitions[i];
        tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
        options.unchecked = 1;
        if (p->turns > 0)
            nodes_pretend_turns(p->turns);
        else
            nodes_pretend(p->first);
        const tsr_status status = launched_run_with(p->ranks, body, p, &options);
        nodes_pretend(0);
        if (status != TSR_OK)
            fail_msg("%d ranks, %d on the first node, in %d turns: %s: %s", p->ranks, p->first, p->turns, tsr_status_name(status),
                     tsr_status_message());
    }
}

static void communicators_know_nodes_of_any_size_and_order(void **state)
{
    (void)state;
    run_partitions(look_at_nodes);
}

static void unequal_nodes_take_what_they_lack_once(void **state)
{
    (void)state;
    run_partitions(gather_once);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicators_know_nodes_of_any_size_and_order),
        cmocka_unit_test(unequal_nodes_take_what_they_lack_once),
    };
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
