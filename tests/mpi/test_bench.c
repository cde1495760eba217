/* libtessera-bench with ranks that are processes: plans and a collective of MPI's own are measured
 * and checked, and a rank that fails is named on all. */
#include "comm_suite.h"
#include "launched.h"

#include <tessera/bench.h>
#include <tessera/plan.h>

enum { RANKS = 3, COUNT = 1000 };

static tsr_bench_options few_calls(void)
{
    tsr_bench_options o = TSR_BENCH_OPTIONS_INIT;
    o.iterations = 3;
    o.warm_ups = 1;
    o.calls = 2;
    return o;
}

/* True if all ranks have the figures of rank 0. */
static tsr_status check_equal(tsr_comm *comm, const tsr_bench_result *r)
{
    const double own[] = {r->seconds.median, r->seconds.min,   r->seconds.max,       r->enqueue.median,
                          (double)r->wrong,  (double)r->bytes, (double)r->calls,     r->bandwidth,
                          r->peak_bandwidth, r->of_peak,       (double)r->iterations};
    double first[sizeof own / sizeof *own];
    memcpy(first, own, sizeof own);
    TSR_TRY(tsr_comm_broadcast(comm, first, sizeof own / sizeof *own, TSR_F64, 0, tsr_device_host(), NULL));
    CHECK(memcmp(first, own, sizeof own) == 0);
    CHECK(r->peak_copy && r->peak_bandwidth > 0 && r->seconds.median > 0 && r->iterations == 3 && r->calls == 2);
    return TSR_OK;
}

static tsr_status measure_plan(tsr_comm *comm, void *arg)
{
    static const char *const moves[][2] = {{"S(0)", "S(1)"}, {"P", "R"}, {"R", "P"}};
    const int64_t ranks = RANKS, shape[] = {40, 50};
    const tsr_bench_options options = few_calls();
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &mesh));
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        tsr_layout *from, *to;
        tsr_plan *plan;
        tsr_bench_result r;
        TSR_TRY(tsr_layout_parse(mesh, moves[i][0], 2, shape, TSR_F32, &from));
        TSR_TRY(tsr_layout_parse(mesh, moves[i][1], 2, shape, TSR_F32, &to));
        TSR_TRY(tsr_plan_create(from, to, NULL, &plan));
        tsr_layout_destroy(from);
        tsr_layout_destroy(to);
        const tsr_status status = tsr_bench_plan(plan, comm, NULL, NULL, &options, &r);
        tsr_plan_destroy(plan);
        TSR_TRY(status);
        CHECK(r.wrong == 0);
        TSR_TRY(check_equal(comm, &r));
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

/* An all-reduce of MPI's own. */
typedef struct sums {
    MPI_Comm comm;
    int own[COUNT], all[COUNT];
} sums;

static tsr_status add_by_mpi(tsr_comm *comm, void *arg)
{
    sums *const s = arg;
    (void)comm;
    return MPI_Allreduce(s->own, s->all, COUNT, MPI_INT, MPI_SUM, s->comm) == MPI_SUCCESS
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_IO, "MPI_Allreduce failed");
}

static tsr_status count_wrong(tsr_comm *comm, void *arg, int64_t *wrong)
{
    const sums *const s = arg;
    (void)comm;
    for (int i = 0; i < COUNT; i++)
        *wrong += s->all[i] != RANKS * i;
    return TSR_OK;
}

static tsr_status measure_mpi(tsr_comm *comm, void *arg)
{
    static sums s;
    const tsr_bench_options options = few_calls();
    const tsr_bench_subject subject = {
        .call = add_by_mpi, .check = count_wrong, .arg = &s, .bytes = sizeof s.all, .result = s.all};
    tsr_bench_result r;
    (void)arg;
    for (int i = 0; i < COUNT; i++)
        s.own[i] = i;
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, tsr_comm_rank(comm), &s.comm) == MPI_SUCCESS);
    const tsr_status status = tsr_bench_call(comm, &subject, &options, &r);
    MPI_Comm_free(&s.comm);
    TSR_TRY(status);
    CHECK(r.wrong == 0 && r.bytes == (int64_t)(RANKS * sizeof s.all));
    return check_equal(comm, &r);
}

/* The others wait for rank 1. */
static tsr_status fail_third(tsr_comm *comm, void *arg)
{
    if (tsr_comm_rank(comm) == 1 && ++*(int *)arg == 3)
        return tsr_status_set(TSR_ERROR_IO, "the printer is out of paper");
    return tsr_comm_barrier(comm);
}

static tsr_status measure_failure(tsr_comm *comm, void *arg)
{
    int calls = 0;
    const bool first = tsr_comm_rank(comm) == 1;
    const tsr_bench_options options = few_calls();
    const tsr_bench_subject subject = {.call = fail_third, .arg = &calls};
    tsr_bench_result r;
    (void)arg;
    CHECK_ERROR(tsr_bench_call(comm, &subject, &options, &r), first ? TSR_ERROR_IO : TSR_ERROR_PEER,
                first ? "the printer is out of paper" : "rank 1 failed: the printer is out of paper");
    return suite_check_usable(comm);
}

static void plans_of_processes_are_measured_and_checked(void **state)
{
    (void)state;
    suite_run(RANKS, measure_plan, NULL);
}

/* All processes take part, since MPI_COMM_WORLD is split. */
static void a_collective_of_mpi_is_measured_and_checked(void **state)
{
    (void)state;
    if (launched_ranks() != RANKS)
        suite_skip("this is for three processes");
    suite_run(RANKS, measure_mpi, NULL);
}

static void a_process_that_fails_is_named_on_all(void **state)
{
    (void)state;
    suite_run(RANKS, measure_failure, NULL);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_processes_are_measured_and_checked),
        cmocka_unit_test(a_collective_of_mpi_is_measured_and_checked),
        cmocka_unit_test(a_process_that_fails_is_named_on_all),
    };
    suite_start(count, arguments);
    launched_ranks();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
