/* A harness outside the tree, built with what was installed: times a move on two rank threads. */
#include <tessera/bench.h>

#include <stdio.h>

static tsr_status measure(tsr_comm *comm, void *arg)
{
    const int64_t ranks = tsr_comm_size(comm), shape[2] = {64, 64};
    tsr_bench_options options = TSR_BENCH_OPTIONS_INIT;
    tsr_mesh *mesh = NULL;
    tsr_layout *rows = NULL, *columns = NULL;
    tsr_plan *plan = NULL;
    tsr_bench_result result;
    (void)arg;
    options.iterations = 3;
    tsr_status status = tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &mesh);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &rows);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, "S(1)", 2, shape, TSR_F32, &columns);
    if (status == TSR_OK)
        status = tsr_plan_create(rows, columns, NULL, &plan);
    if (status == TSR_OK)
        status = tsr_bench_plan(plan, comm, NULL, NULL, &options, &result);
    if (status == TSR_OK && tsr_comm_rank(comm) == 0)
        printf("%d wrong in %d iterations\n", (int)result.wrong, (int)result.iterations);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(columns);
    tsr_layout_destroy(rows);
    tsr_mesh_destroy(mesh);
    return status;
}

int main(void)
{
    const tsr_status status = tsr_threads_run(2, measure, NULL, NULL);
    if (status != TSR_OK) {
        fprintf(stderr, "%s: %s\n", tsr_status_name(status), tsr_status_message());
        return 1;
    }
    return 0;
}
