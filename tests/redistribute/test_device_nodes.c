/* Reductions on a device, over an engine that knows nodes: sums of nodes are made in memory of the
 * device. */
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <tessera/sys/device.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RANKS = 4, LENGTH = 1000, MEMORY = 1 << 22 };

/* All memory of the device, which gives it out until none is left. */
static _Alignas(64) unsigned char memory[MEMORY];
static atomic_size_t used;

static tsr_status take(void *self, int index, size_t bytes, tsr_stream stream, void **out)
{
    (void)self;
    (void)index;
    (void)stream;
    const size_t at = atomic_fetch_add(&used, (bytes + 63) / 64 * 64);
    if (at + bytes > MEMORY)
        return tsr_status_set(TSR_ERROR_MEMORY, "the device has no %zu bytes left", bytes);
    *out = memory + at;
    return TSR_OK;
}

static void give_back(void *self, int index, void *given, size_t bytes, tsr_stream stream)
{
    (void)self;
    (void)index;
    (void)given;
    (void)bytes;
    (void)stream;
}

static bool is_inside(const void *p)
{
    return (uintptr_t)p >= (uintptr_t)memory && (uintptr_t)p < (uintptr_t)(memory + MEMORY);
}

static tsr_status reduce(void *self, int index, const tsr_box_reduce *what, tsr_stream stream)
{
    bool inside = true;
    for (int i = 0; i < what->src_count; i++)
        inside = inside && is_inside(what->src[i]);
    for (int i = 0; i < what->dst_count; i++)
        inside = inside && is_inside(what->dst[i]);
    if (!inside)
        return tsr_status_set(TSR_ERROR_DEVICE, "the device was given memory that is not its own");
    return tsr_device_driver_table(NULL, &self)->reduce(self, index, what, stream);
}

static int two_a_node(void *self, int rank)
{
    (void)self;
    return rank / 2;
}

static const tsr_comm_nodes pairs = {.size = sizeof pairs, .node_of = two_a_node};

static tsr_status make_engine(tsr_comm *carrier, tsr_comm **out)
{
    tsr_comm *copy = NULL;
    void *self = NULL;
    tsr_comm_table table = message_engine_table;
    table.nodes = &pairs;
    TSR_TRY(tsr_comm_split(carrier, 0, tsr_comm_rank(carrier), &copy));
    TSR_TRY(message_engine_self(copy, &self));
    return tsr_comm_create_from_table(tsr_comm_context(carrier), &table, self, out);
}

static tsr_status sum_up(const tsr_plan *plan, tsr_comm *comm, tsr_device device)
{
    void *self, *terms, *sums, *workspace;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    const int64_t shape[] = {LENGTH};
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    TSR_TRY(table->alloc(self, 0, LENGTH * sizeof(int32_t), NULL, &terms));
    TSR_TRY(table->alloc(self, 0, LENGTH * sizeof(int32_t), NULL, &sums));
    TSR_TRY(table->alloc(self, 0, bytes, NULL, &workspace));
    tsr_tensor src = tsr_tensor_contiguous(terms, TSR_I32, 1, shape),
               dst = tsr_tensor_contiguous(sums, TSR_I32, 1, shape);
    src.device = dst.device = device;
    for (int i = 0; i < LENGTH; i++)
        ((int32_t *)terms)[i] = i + tsr_comm_rank(comm);
    const tsr_status status = tsr_plan_execute(plan, comm, &src, &dst, workspace, bytes, NULL);
    for (int i = 0; i < LENGTH && status == TSR_OK; i++)
        CHECK(((const int32_t *)sums)[i] == RANKS * i + RANKS * (RANKS - 1) / 2);
    table->free(self, 0, workspace, bytes, NULL);
    table->free(self, 0, sums, LENGTH * sizeof(int32_t), NULL);
    table->free(self, 0, terms, LENGTH * sizeof(int32_t), NULL);
    return status;
}

static tsr_status sum_over_nodes(tsr_comm *carrier, void *arg)
{
    tsr_comm *comm = NULL;
    tsr_layout *from = NULL, *to = NULL;
    tsr_plan *plan = NULL;
    TSR_TRY(make_engine(carrier, &comm));
    TSR_TRY(layout_over(comm, "4", "1000", "P", TSR_I32, &from));
    TSR_TRY(layout_over(comm, "4", "1000", "R", TSR_I32, &to));
    TSR_TRY(tsr_plan_create(from, to, NULL, &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    const tsr_status status = sum_up(plan, comm, (tsr_device){arg, 0});
    tsr_plan_destroy(plan);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    tsr_comm_destroy(comm);
    return status;
}

static void a_device_reduces_its_own_memory_over_nodes_too(void **state)
{
    (void)state;
    void *self;
    tsr_device_driver *driver = NULL;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    table.name = "apart";
    table.alloc = take;
    table.free = give_back;
    table.reduce = reduce;
    assert_int_equal(tsr_device_driver_create(&table, self, &driver), TSR_OK);
    test_case("four ranks on two nodes, on a device of their own");
    run_ranks(RANKS, sum_over_nodes, driver);
    test_case("four ranks on two nodes, on the host");
    run_ranks(RANKS, sum_over_nodes, NULL);
    tsr_device_driver_destroy(driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_reduces_its_own_memory_over_nodes_too),
    };
    test_watchdog(30);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
