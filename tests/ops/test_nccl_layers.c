/* Layers over the NCCL engine, with tensors on the stand-in's GPUs, which run all work later, in
 * stream order. */
#include "device_layers.h"
#include "standin_ranks.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Rank r is on GPU r, and in plans on the default streams too. */
static device_layers here(const tsr_comm *comm)
{
    return (device_layers){.driver = standin_ranks_device().driver, .devices = tsr_comm_size(comm), .only_f32 = true};
}

static tsr_status check_list(tsr_comm *comm, void *arg)
{
    device_layers d = here(comm);
    (void)arg;
    return device_layers_list(comm, &d);
}

static tsr_status check_perceptron(tsr_comm *comm, void *arg)
{
    device_layers d = here(comm);
    (void)arg;
    return device_layers_perceptron(comm, &d);
}

static void run(tsr_rank_main *body)
{
    for (int ranks = 1; ranks <= DEVICE_LAYERS_RANKS; ranks++) {
        const tsr_status status = standin_run(ranks, body, NULL, NULL);
        if (status != TSR_OK)
            fail_msg("on %d ranks: %s: %s", ranks, tsr_status_name(status), tsr_status_message());
    }
}

static void layers_are_exact_over_nccl(void **state)
{
    (void)state;
    run(check_list);
}

static void training_steps_over_nccl_are_exact(void **state)
{
    (void)state;
    run(check_perceptron);
}

/* A row-parallel layer whose y is reduced, before any other execution: x (2, 4), w (3, 4). Rank 1
 * brings an x without data. */
static tsr_status execute_with_fault(tsr_comm *comm, const tsr_linear_plan *plan, layer_memory *memory)
{
    const bool faulty = tsr_comm_rank(comm) == 1;
    const tsr_device here = standin_ranks_device();
    tsr_tensor x = tsr_tensor_contiguous(faulty ? NULL : memory[0].data, TSR_F32, 2, (int64_t[]){2, 2}),
               w = tsr_tensor_contiguous(memory[1].data, TSR_F32, 2, (int64_t[]){3, 2}),
               y = tsr_tensor_contiguous(memory[2].data, TSR_F32, 2, (int64_t[]){2, 3});
    x.device = w.device = y.device = here;
    const size_t bytes = tsr_linear_plan_workspace_bytes(plan);
    tsr_status status = tsr_linear_plan_execute(plan, &x, &w, NULL, &y, memory[3].data, bytes, NULL);
    if (!faulty && status == TSR_OK)
        status = tsr_comm_wait(comm, NULL, 500);
    const tsr_status wanted = faulty ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    if (status == wanted && (!faulty || strstr(tsr_status_message(), "x has no data")))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "rank %d: %s: %.300s", tsr_comm_rank(comm), tsr_status_name(status),
                          tsr_status_message());
}

static tsr_status check_fault(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *x, *w, *y;
    tsr_linear_plan *plan;
    layer_memory memory[4];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(1)", 2, (int64_t[]){2, 4}, TSR_F32, &x));
    TSR_TRY(tsr_layout_parse(mesh, "S(1)", 2, (int64_t[]){3, 4}, TSR_F32, &w));
    TSR_TRY(tsr_layout_parse(mesh, "R", 2, (int64_t[]){2, 3}, TSR_F32, &y));
    TSR_TRY(tsr_linear_plan_create_on(x, w, NULL, y, standin_ranks_device(), &plan));
    const size_t bytes[] = {16, 24, 24, tsr_linear_plan_workspace_bytes(plan)};
    for (int i = 0; i < 4; i++)
        TSR_TRY(layer_memory_create(standin_ranks_device(), bytes[i], &memory[i]));
    const tsr_status status = execute_with_fault(comm, plan, memory);
    for (int i = 0; i < 4; i++)
        layer_memory_destroy(&memory[i]);
    tsr_linear_plan_destroy(plan);
    tsr_layout_destroy(y);
    tsr_layout_destroy(w);
    tsr_layout_destroy(x);
    tsr_mesh_destroy(mesh);
    return status;
}

static void a_rank_that_errs_breaks_the_communicator_and_its_peers_do_not_hang(void **state)
{
    (void)state;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.timeout_ms = 20000;
    const tsr_status status = standin_run(2, check_fault, NULL, &options);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_exact_over_nccl),
        cmocka_unit_test(training_steps_over_nccl_are_exact),
        cmocka_unit_test(a_rank_that_errs_breaks_the_communicator_and_its_peers_do_not_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
