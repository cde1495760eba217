/* Each allocation of one rank fails in turn: all ranks hear of it, nothing is left, and the
 * communicator stays usable. */
#include "counted_memory.h"
#include "ranks.h"
#include "support.h"

#include <tessera/bench.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { RANKS = 3, SIDE = 9, STRIDE = 2 * SIDE, MOST_FAILURES = 1000 };

typedef struct fixture {
    tsr_plan *plan;
    tsr_tensor x, y;
    float memory[2][SIDE * STRIDE];
    tsr_bench_options options;
} fixture;

static tsr_status make_fixture(tsr_comm *comm, const char *from, const char *to, fixture *f)
{
    tsr_layout *a = NULL, *b = NULL;
    const tsr_bench_options usual = TSR_BENCH_OPTIONS_INIT;
    f->options = usual;
    f->options.iterations = f->options.calls = 1;
    f->options.warm_ups = 0;
    tsr_status status = layout_over(comm, "3", "9x9", from, TSR_F32, &a);
    if (status == TSR_OK)
        status = layout_over(comm, "3", "9x9", to, TSR_F32, &b);
    if (status == TSR_OK)
        status = tsr_plan_create(a, b, NULL, &f->plan);
    if (status == TSR_OK)
        status = shard_over(a, f->memory[0], &f->x);
    if (status == TSR_OK)
        status = shard_over(b, f->memory[1], &f->y);
    f->x.strides[0] = f->y.strides[0] = STRIDE;
    tsr_layout_destroy(a);
    tsr_layout_destroy(b);
    return status;
}

static tsr_status measure(tsr_comm *comm, const fixture *f, bool given, tsr_bench_result *r)
{
    return tsr_bench_plan(f->plan, comm, given ? &f->x : NULL, given ? &f->y : NULL, &f->options, r);
}

/* Measures with rank 1's next allocations failing, one in each measurement, until none does. */
static tsr_status fail_each(tsr_comm *comm, const fixture *f, bool given, int *failures)
{
    const bool odd = tsr_comm_rank(comm) == 1;
    for (*failures = 0; *failures < MOST_FAILURES; ++*failures) {
        tsr_bench_result r = {.wrong = -2};
        if (odd)
            counted_fail_here((size_t)*failures + 1, false);
        const tsr_status status = measure(comm, f, given, &r);
        uint8_t unfailed = odd && counted_fail_here(0, false) > 0;
        CHECK(status == TSR_OK ? r.wrong == 0 : r.wrong == -2);
        if (status != TSR_OK)
            CHECK_ERROR(status, odd ? TSR_ERROR_MEMORY : TSR_ERROR_PEER, odd ? "" : "rank 1");
        TSR_TRY(tsr_comm_broadcast(comm, &unfailed, 1, TSR_U8, 1, tsr_device_host(), NULL));
        if (unfailed)
            return TSR_OK;
    }
    return tsr_status_set(TSR_ERROR_INTERNAL, "%d allocations failed", *failures);
}

static tsr_status fail_in_moves(tsr_comm *comm, void *arg)
{
    static const char *const moves[][2] = {{"S(0)", "S(1)"}, {"R", "P"}};
    (void)arg;
    for (int i = 0; i < 4; i++) {
        fixture f = {.plan = NULL};
        int failures = 0;
        tsr_status status = make_fixture(comm, moves[i / 2][0], moves[i / 2][1], &f);
        if (status == TSR_OK)
            status = fail_each(comm, &f, i % 2 == 1, &failures);
        tsr_plan_destroy(f.plan);
        TSR_TRY(status);
        CHECK(failures >= 5);
    }
    return TSR_OK;
}

static void a_lack_of_memory_is_told_to_all(void **state)
{
    counted_memory memory = {.fail_at = 0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    (void)state;
    test_case("lack of memory");
    options.context = counted_context(&memory);
    const tsr_status status = tsr_threads_run(RANKS, fail_in_moves, NULL, &options);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lack_of_memory_is_told_to_all)};
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
