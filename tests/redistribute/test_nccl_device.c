/**
 * Redistributions of device memory over NCCL's engine: tensors, workspace and stream are a GPU's of the stand-in, where everything is done
 * later and in stream order. Two moves are enqueued one behind the other, the second into what the first has read, and waited for once.
 */
#include "ranks.h"
#include "standin_ranks.h"
#include "support.h"
#include "sweep.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <tessera/sys/device.h>

#include <cmocka.h>

enum { ROUNDS = 2 };

typedef struct trial {
    oracle_layout src, dst;
    oracle_numbers numbers;
    oracle_move move;
    uint64_t seed;
} trial;

/* One rank's memory: on the host what it gives and is to get in each round, and what it got. */
typedef struct actor {
    tsr_comm *comm;
    const trial *trial;
    tsr_device device;
    const tsr_device_table *gpu;
    tsr_stream stream;
    tsr_plan *plan;
    tsr_tensor src, dst;
    size_t src_bytes, dst_bytes, workspace_bytes;
    void *workspace;
    unsigned char *given[ROUNDS], *wanted[ROUNDS], *got[ROUNDS];
} actor;

static tsr_status make_plan(actor *a)
{
    const oracle_layout *from = &a->trial->src, *to = &a->trial->dst;
    tsr_mesh *src_mesh = NULL, *dst_mesh = NULL;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_status status = tsr_mesh_create(a->comm, from->mesh.ndim, from->mesh.shape, NULL, from->mesh.ranks, &src_mesh);
    if (status == TSR_OK)
        status = tsr_mesh_create(a->comm, to->mesh.ndim, to->mesh.shape, NULL, to->mesh.ranks, &dst_mesh);
    if (status == TSR_OK)
        status = tsr_layout_create(src_mesh, from->placements, from->ndim, from->shape, from->dtype, &src);
    if (status == TSR_OK)
        status = tsr_layout_create(dst_mesh, to->placements, to->ndim, to->shape, to->dtype, &dst);
    if (status == TSR_OK)
        status = tsr_plan_create(src, dst, NULL, &a->plan);
    if (status == TSR_OK)
        status = tsr_plan_prepare(a->plan, a->comm);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    tsr_mesh_destroy(dst_mesh);
    tsr_mesh_destroy(src_mesh);
    return status;
}

static tsr_status make_tensor(actor *a, const oracle_layout *layout, tsr_tensor *tensor, size_t *bytes)
{
    oracle_shard shard;
    oracle_shard_create(layout, tsr_comm_rank(a->comm), &shard);
    *tensor = tsr_tensor_contiguous(NULL, layout->dtype, shard.ndim, shard.shape);
    tensor->device = a->device;
    *bytes = (size_t)shard.count * oracle_bytes(layout->dtype);
    oracle_shard_destroy(&shard);
    return a->gpu->alloc(NULL, a->device.index, *bytes, a->stream, &tensor->data);
}

static tsr_status make_memory(actor *a)
{
    const oracle_move *move = &a->trial->move;
    TSR_TRY(a->gpu->stream_create(NULL, a->device.index, &a->stream));
    TSR_TRY(make_tensor(a, &a->trial->src, &a->src, &a->src_bytes));
    TSR_TRY(make_tensor(a, &a->trial->dst, &a->dst, &a->dst_bytes));
    a->workspace_bytes = tsr_plan_workspace_bytes(a->plan);
    TSR_TRY(a->gpu->alloc(NULL, a->device.index, a->workspace_bytes, a->stream, &a->workspace));
    for (int i = 0; i < ROUNDS; i++) {
        a->given[i] = calloc(1, a->src_bytes + 16);
        a->wanted[i] = calloc(1, a->dst_bytes + 16);
        a->got[i] = calloc(1, a->dst_bytes + 16);
        oracle_fill(move, a->trial->seed + (uint64_t)i, false, tsr_comm_rank(a->comm), a->given[i]);
        oracle_fill(move, a->trial->seed + (uint64_t)i, true, tsr_comm_rank(a->comm), a->wanted[i]);
    }
    return TSR_OK;
}

static void free_memory(actor *a)
{
    if (a->stream)
        a->gpu->stream_synchronize(NULL, a->device.index, a->stream);
    if (a->src.data)
        a->gpu->free(NULL, a->device.index, a->src.data, a->src_bytes, NULL);
    if (a->dst.data)
        a->gpu->free(NULL, a->device.index, a->dst.data, a->dst_bytes, NULL);
    if (a->workspace)
        a->gpu->free(NULL, a->device.index, a->workspace, a->workspace_bytes, NULL);
    if (a->stream)
        a->gpu->stream_destroy(NULL, a->device.index, a->stream);
    for (int i = 0; i < ROUNDS; i++) {
        free(a->given[i]);
        free(a->wanted[i]);
        free(a->got[i]);
    }
}

/* Nothing of it is waited for: each step follows the one before in the stream. */
static tsr_status enqueue(actor *a)
{
    const bool gives = oracle_mesh_position(&a->trial->src.mesh, tsr_comm_rank(a->comm)) >= 0;
    const bool gets = oracle_mesh_position(&a->trial->dst.mesh, tsr_comm_rank(a->comm)) >= 0;
    for (int i = 0; i < ROUNDS; i++) {
        TSR_TRY(a->gpu->copy(NULL, a->device.index, a->src.data, a->given[i], a->src_bytes, TSR_COPY_FROM_HOST, a->stream));
        TSR_TRY(tsr_plan_execute(a->plan, a->comm, gives ? &a->src : NULL, gets ? &a->dst : NULL,
                                 a->workspace_bytes > 0 ? a->workspace : NULL, a->workspace_bytes, a->stream));
        TSR_TRY(a->gpu->copy(NULL, a->device.index, a->got[i], a->dst.data, a->dst_bytes, TSR_COPY_TO_HOST, a->stream));
    }
    return tsr_comm_wait(a->comm, a->stream, 0);
}

static tsr_status compare(const actor *a)
{
    for (int i = 0; i < ROUNDS; i++)
        for (size_t b = 0; b < a->dst_bytes; b++)
            if (a->got[i][b] != a->wanted[i][b])
                return tsr_status_set(TSR_ERROR_INTERNAL, "move %d, byte %zu of %zu is %02x, not %02x", i, b, a->dst_bytes, a->got[i][b],
                                      a->wanted[i][b]);
    return TSR_OK;
}

static tsr_status move_on_gpus(tsr_comm *comm, void *arg)
{
    actor a = {.comm = comm, .trial = arg, .device = standin_ranks_device()};
    a.gpu = tsr_device_driver_table(a.device.driver, NULL);
    tsr_status status = make_plan(&a);
    if (status == TSR_OK)
        status = make_memory(&a);
    if (status == TSR_OK)
        status = enqueue(&a);
    if (status == TSR_OK)
        status = compare(&a);
    free_memory(&a);
    tsr_plan_destroy(a.plan);
    return status;
}

/* On one mesh or two; half of the moves are between few placements, where NCCL's collectives come up. */
static void draw(oracle_random *random, int world, trial *t)
{
    *t = (trial){.seed = random->state};
    t->src.dtype = oracle_random_dtype(random);
    oracle_random_shape(random, 3, 400, &t->src);
    t->src.mesh = oracle_random_mesh(random, 2, world, world);
    t->dst = t->src;
    if (oracle_random_below(random, 3) == 0)
        t->dst.mesh = oracle_random_mesh(random, 2, world, world);
    oracle_random_placements(random, &t->src, &t->numbers);
    oracle_random_placements(random, &t->dst, &t->numbers);
    for (int m = 0; m < t->dst.mesh.ndim && t->seed % 2; m++)
        t->dst.placements[m] = tsr_replicate();
    oracle_move_make(&t->src, &t->dst, &t->move);
}

static void name_trial(const trial *t)
{
    char mesh[300], other[300], shape[100], from[400], to[400];
    test_case("mesh %s to %s, %s %s, %s -> %s", oracle_print_mesh(&t->src.mesh, mesh, sizeof(mesh)),
              oracle_print_mesh(&t->dst.mesh, other, sizeof(other)), oracle_print_shape(t->src.ndim, t->src.shape, shape, sizeof(shape)),
              oracle_dtype_name(t->src.dtype), oracle_print_placements(t->src.placements, t->src.mesh.ndim, from, sizeof(from)),
              oracle_print_placements(t->dst.placements, t->dst.mesh.ndim, to, sizeof(to)));
}

static void run_many(int world, int count, bool lent)
{
    oracle_random random = {.state = test_seed() * 31 + (uint64_t)world};
    trial *t = malloc(sizeof *t);
    for (int i = 0; i < count; i++) {
        draw(&random, world, t);
        name_trial(t);
        const tsr_status status = (lent ? standin_run_lent : standin_run)(world, move_on_gpus, t, NULL);
        if (status != TSR_OK)
            fail_msg("%s: %s\ncase: %s", tsr_status_name(status), tsr_status_message(), test_case_text());
    }
    free(t);
}

static void tensors_of_gpus_move_in_stream_order(void **state)
{
    (void)state;
    for (int world = 1; world <= 6; world++)
        run_many(world, 60, false);
}

static void tensors_of_gpus_move_over_lent_communicators(void **state)
{
    (void)state;
    run_many(4, 60, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_of_gpus_move_in_stream_order),
        cmocka_unit_test(tensors_of_gpus_move_over_lent_communicators),
    };
    test_watchdog(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
