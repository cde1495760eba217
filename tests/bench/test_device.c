/* Measurements on devices with streams: the clock and the checks wait for the stream, and nothing
 * touches memory out of order, which the machine finds. */
#include "fixture.h"
#include "support.h"

#include <tessera/bench.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RANKS = 3, SIDE = 10 };

static tsr_bench_options on_device(const fixture *f, int rank)
{
    tsr_bench_options o = TSR_BENCH_OPTIONS_INIT;
    o.iterations = 2;
    o.warm_ups = 1;
    o.calls = 2;
    o.device = fixture_device(f, rank);
    o.stream = f->device.streams[rank];
    return o;
}

static tsr_status make_plan(tsr_comm *comm, const char *from, const char *to, tsr_plan **out)
{
    tsr_layout *a = NULL, *b = NULL;
    tsr_status status = layout_over(comm, "3", "10x10", from, TSR_F32, &a);
    if (status == TSR_OK)
        status = layout_over(comm, "3", "10x10", to, TSR_F32, &b);
    if (status == TSR_OK)
        status = tsr_plan_create(a, b, NULL, out);
    tsr_layout_destroy(a);
    tsr_layout_destroy(b);
    return status;
}

static tsr_status check_result(const tsr_bench_result *r)
{
    CHECK(r->wrong == 0 && r->iterations == 2 && r->calls == 2);
    CHECK(r->seconds.median > 0 && r->enqueue.median > 0 && r->enqueue.max <= r->seconds.max);
    CHECK(strcmp(r->peak_copy, "device to device") == 0 && r->peak_bandwidth > 0);
    return TSR_OK;
}

static tsr_status measure_moves(tsr_comm *comm, void *arg)
{
    static const char *const moves[][2] = {{"S(0)", "S(1)"}, {"P", "S(0)"}, {"P", "R"}, {"S(1)", "P"}};
    const fixture *const f = arg;
    const tsr_bench_options options = on_device(f, tsr_comm_rank(comm));
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        tsr_plan *plan = NULL;
        tsr_bench_result r;
        TSR_TRY(make_plan(comm, moves[i][0], moves[i][1], &plan));
        const tsr_status status = tsr_bench_plan(plan, comm, NULL, NULL, &options, &r);
        tsr_plan_destroy(plan);
        TSR_TRY(status);
        TSR_TRY(check_result(&r));
    }
    return TSR_OK;
}

/* Memory of the caller, with gaps between rows. */
static tsr_status measure_given(tsr_comm *comm, void *arg)
{
    enum { STRIDE = SIDE + 3, BYTES = SIDE * STRIDE * 4 };
    const fixture *const f = arg;
    const int rank = tsr_comm_rank(comm);
    tsr_bench_options options = on_device(f, rank);
    tsr_plan *plan = NULL;
    tsr_tensor x, y;
    void *memory[2];
    tsr_bench_result r;
    TSR_TRY(make_plan(comm, "S(0)", "R", &plan));
    for (int i = 0; i < 2; i++)
        TSR_TRY(fixture_alloc(f, rank, BYTES, &memory[i]));
    TSR_TRY(shard_over(tsr_plan_source(plan), memory[0], &x));
    TSR_TRY(shard_over(tsr_plan_destination(plan), memory[1], &y));
    x.device = y.device = options.device;
    x.strides[0] = y.strides[0] = STRIDE;
    tsr_status status = tsr_bench_plan(plan, comm, &x, &y, &options, &r);
    if (status == TSR_OK)
        status = check_result(&r);
    /* Rank 2 says that its tensors are on another device than they are, or on the host. */
    options.device.index += rank == 2;
    if (status == TSR_OK)
        status = check_error(tsr_bench_plan(plan, comm, &x, &y, &options, &r),
                             rank == 2 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, "is not on options.device", __FILE__,
                             __LINE__, "another device");
    options.device = rank == 2 ? tsr_device_host() : fixture_device(f, rank);
    options.stream = rank == 2 ? NULL : options.stream;
    if (status == TSR_OK)
        status = check_error(tsr_bench_plan(plan, comm, NULL, NULL, &options, &r),
                             rank == 2 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                             "options.device, 0 for the host and 1 for others, is 0 on rank 2, but 1 on rank 0",
                             __FILE__, __LINE__, "the host");
    for (int i = 0; i < 2; i++)
        fixture_free(f, rank, memory[i], BYTES);
    tsr_plan_destroy(plan);
    return status;
}

static tsr_status measure_copies(tsr_comm *comm, void *arg)
{
    const fixture *const f = arg;
    const tsr_bench_options options = on_device(f, tsr_comm_rank(comm));
    tsr_bench_result r;
    TSR_TRY(tsr_bench_copy(comm, 1000 * (size_t)tsr_comm_rank(comm), &options, &r));
    CHECK(r.bytes == 3000 && r.of_peak == 1 && strcmp(r.peak_copy, "device to device") == 0);
    return TSR_OK;
}

/* On a device for each rank, and on one that all share; in any order of the streams. */
static void run_on_devices(tsr_rank_main *body, const char *name)
{
    for (int devices = 1; devices <= RANKS; devices += RANKS - 1)
        for (uint64_t seed = 0; seed < 4; seed++) {
            test_case("%s, %d devices, seed %d", name, devices, (int)seed);
            fixture_run(RANKS, (async_options){.devices = devices, .seed = seed, .lazy = seed % 2 == 1}, body, NULL);
        }
}

static void moves_on_devices_are_waited_for_and_checked(void **state)
{
    (void)state;
    run_on_devices(measure_moves, "moves");
}

static void tensors_of_the_caller_may_be_on_devices(void **state)
{
    (void)state;
    run_on_devices(measure_given, "given tensors");
}

static void the_copy_of_a_device_is_its_own(void **state)
{
    (void)state;
    run_on_devices(measure_copies, "copies");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_on_devices_are_waited_for_and_checked),
        cmocka_unit_test(tensors_of_the_caller_may_be_on_devices),
        cmocka_unit_test(the_copy_of_a_device_is_its_own),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
