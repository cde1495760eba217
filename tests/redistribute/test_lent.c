/* Communicators that are lent and may not be split: a call that needs a part of one is refused in a
 * sentence with the option that helps. */
#include "ranks.h"
#include "support.h"

#include <tessera/sys/device.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RANKS = 3 };

static tsr_status plan_over(tsr_comm *comm, const char *mesh, int no_split, tsr_plan **plan)
{
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.no_split = no_split;
    TSR_TRY(layout_over(comm, mesh, "4", "S(0)", TSR_I32, &src));
    TSR_TRY(layout_over(comm, mesh, "4", "R", TSR_I32, &dst));
    const tsr_status status = tsr_plan_create(src, dst, &options, plan);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    return status;
}

/* Ranks 1 and 2 gather; the others take part. */
static tsr_status gather_on_two(const tsr_plan *plan, tsr_comm *comm)
{
    const int rank = tsr_comm_rank(comm);
    const bool inside = rank == 1 || rank == 2;
    const int64_t half[] = {2}, whole[] = {4};
    const int32_t have[] = {2 * rank, 2 * rank + 1};
    int32_t want[4] = {0};
    _Alignas(64) unsigned char workspace[256];
    const tsr_tensor src = tsr_tensor_contiguous((void *)(uintptr_t)have, TSR_I32, 1, half);
    const tsr_tensor dst = tsr_tensor_contiguous(want, TSR_I32, 1, whole);
    CHECK(tsr_plan_workspace_bytes(plan) <= sizeof workspace);
    TSR_TRY(
        tsr_plan_execute(plan, comm, inside ? &src : NULL, inside ? &dst : NULL, workspace, sizeof workspace, NULL));
    for (int i = 0; i < 4; i++)
        CHECK(want[i] == (inside ? 2 + i : 0));
    return TSR_OK;
}

static tsr_status plan_on_a_part(tsr_comm *carrier, void *arg)
{
    (void)arg;
    tsr_comm *comm = NULL;
    tsr_plan *plan = NULL;
    TSR_TRY(lend(carrier, &comm));
    TSR_TRY(plan_over(comm, "2@1", 0, &plan));
    CHECK_ERROR(tsr_plan_prepare(plan, comm), TSR_ERROR_UNSUPPORTED, "tsr_plan_options.no_split");
    tsr_plan_destroy(plan);
    TSR_TRY(plan_over(comm, "2@1", 1, &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    TSR_TRY(gather_on_two(plan, comm));
    tsr_plan_destroy(plan);
    /* A plan of all ranks needs no part. */
    TSR_TRY(plan_over(comm, "3", 0, &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    tsr_plan_destroy(plan);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void a_plan_on_a_part_is_refused_on_all_ranks_and_works_without_splitting(void **state)
{
    (void)state;
    test_case("ranks 1 and 2 of a lent communicator of 3");
    run_ranks(RANKS, plan_on_a_part, NULL);
}

/* Of which all ranks are the plan's: in the one all but the last, in the other all. */
static tsr_status gather_in_both(tsr_comm *comm, tsr_comm *smaller)
{
    tsr_plan *plan = NULL;
    TSR_TRY(plan_over(comm, "2@1", 1, &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    TSR_TRY(gather_on_two(plan, comm));
    if (smaller) {
        TSR_TRY(tsr_plan_prepare(plan, smaller));
        TSR_TRY(gather_on_two(plan, smaller));
    }
    TSR_TRY(gather_on_two(plan, comm));
    if (smaller)
        TSR_TRY(gather_on_two(plan, smaller));
    tsr_plan_destroy(plan);
    return TSR_OK;
}

static tsr_status prepare_on_two(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_comm *smaller = NULL;
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(tsr_comm_split(comm, rank < RANKS ? 0 : -1, rank, &smaller));
    const tsr_status status = gather_in_both(comm, smaller);
    tsr_comm_destroy(smaller);
    return status;
}

static void a_plan_is_prepared_on_communicators_of_several_sizes(void **state)
{
    (void)state;
    test_case("ranks 1 and 2, of 3 and of 4, without splitting");
    run_ranks(RANKS + 1, prepare_on_two, NULL);
}

/* A rank that only takes part has no tensors by which to know the device. */
static tsr_status gather_on_a_device(tsr_comm *comm, void *arg)
{
    tsr_plan *plan = NULL;
    const int rank = tsr_comm_rank(comm);
    const int64_t half[] = {2}, whole[] = {4};
    int32_t have[] = {2 * rank, 2 * rank + 1}, want[4] = {0};
    tsr_tensor src = tsr_tensor_contiguous(have, TSR_I32, 1, half),
               dst = tsr_tensor_contiguous(want, TSR_I32, 1, whole);
    src.device.driver = dst.device.driver = arg;
    TSR_TRY(plan_over(comm, "2@1", 1, &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    for (int again = 0; again < 3; again++) {
        TSR_TRY(tsr_plan_execute(plan, comm, rank > 0 ? &src : NULL, rank > 0 ? &dst : NULL, NULL, 0, NULL));
        for (int i = 0; i < 4; i++)
            CHECK(want[i] == (rank > 0 ? 2 + i : 0));
        memset(want, 0, sizeof want);
    }
    tsr_plan_destroy(plan);
    return TSR_OK;
}

static void ranks_that_only_take_part_go_along_on_any_device(void **state)
{
    (void)state;
    void *self;
    tsr_device_driver *driver = NULL;
    const tsr_device_table *table = tsr_device_driver_table(NULL, &self);
    assert_int_equal(tsr_device_driver_create(table, self, &driver), TSR_OK);
    test_case("ranks 1 and 2 of 3 on a device of their own, without splitting");
    run_ranks(RANKS, gather_on_a_device, driver);
    test_case("ranks 1 and 2 of 3 on the host, without splitting");
    run_ranks(RANKS, gather_on_a_device, NULL);
    tsr_device_driver_destroy(driver);
}

/* All ranks make these calls anyway, so that dtensors need no option. */
static tsr_status move_dtensors_on_a_part(tsr_comm *carrier, void *arg)
{
    (void)arg;
    tsr_comm *comm = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL, *whole = NULL;
    TSR_TRY(lend(carrier, &comm));
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(layout_over(comm, "2@1", "4", "S(0)", TSR_I32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    int32_t *have = tsr_dtensor_to_local(x).data;
    for (int i = 0; rank > 0 && i < 2; i++)
        have[i] = 2 * rank + i;
    TSR_TRY(tsr_full_tensor(x, &whole));
    const int32_t *want = tsr_dtensor_to_local(whole).data;
    for (int i = 0; rank > 0 && i < 4; i++)
        CHECK(want[i] == 2 + i);
    tsr_dtensor_destroy(whole);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void dtensors_on_a_part_need_no_option(void **state)
{
    (void)state;
    test_case("dtensors on ranks 1 and 2 of a lent communicator of 3");
    run_ranks(RANKS, move_dtensors_on_a_part, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_on_a_part_is_refused_on_all_ranks_and_works_without_splitting),
        cmocka_unit_test(a_plan_is_prepared_on_communicators_of_several_sizes),
        cmocka_unit_test(ranks_that_only_take_part_go_along_on_any_device),
        cmocka_unit_test(dtensors_on_a_part_need_no_option),
    };
    test_watchdog(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
