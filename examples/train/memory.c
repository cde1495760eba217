#include "memory.h"

#include "weights.h"

#include <tessera/sys/status.h>

/* Bytes of a rank's shard. */
static tsr_status count_shard(const tsr_layout *layout, int64_t rank, int64_t *out)
{
    size_t bytes = 0;
    int inside = 0;
    int64_t coordinate[TSR_MAX_DIMS];
    TSR_TRY(tsr_mesh_coordinate_of(tsr_layout_mesh(layout), rank, coordinate, &inside));
    if (inside)
        TSR_TRY(tsr_layout_local_bytes(layout, coordinate, &bytes));
    *out = (int64_t)bytes;
    return TSR_OK;
}

/* Divides what the rank keeps between runs. */
static tsr_status divide_kept(const tsr_executable *step, const tsr_executable_memory *m, int64_t rank,
                              train_memory *out)
{
    for (size_t i = 0; i < tsr_executable_binding_count(step); i++) {
        tsr_executable_binding of;
        int64_t bytes;
        TSR_TRY(tsr_executable_binding_at(step, i, &of));
        TSR_TRY(count_shard(of.layout, rank, &bytes));
        if (train_has_terms(of.name))
            out->gradients += bytes;
        else if (!train_is_weight(of.name))
            out->optimizer += bytes;
    }
    out->weights = (int64_t)(m->parameters + m->optimizer_states) - out->gradients - out->optimizer;
    return TSR_OK;
}

static size_t sum_workspace(const tsr_executable_memory *m)
{
    return m->gathered + m->activations + m->gradients + m->scratch + m->gaps;
}

tsr_status train_memory_find(tsr_executable *const programs[TRAIN_KINDS], int64_t rank, train_memory *out)
{
    train_memory all = {0};
    tsr_executable_memory largest = {0};
    for (int i = 0; i < TRAIN_KINDS; i++) {
        tsr_executable_memory m;
        if (!programs[i])
            continue;
        TSR_TRY(tsr_executable_memory_of(programs[i], &m));
        if (sum_workspace(&m) >= sum_workspace(&largest))
            largest = m;
        if (i == TRAIN_STEP)
            TSR_TRY(divide_kept(programs[i], &m, rank, &all));
        all.batch += (int64_t)(m.inputs + m.outputs);
        all.programs += (int64_t)m.kept;
    }
    all.gradients += (int64_t)largest.gradients;
    all.gathered = (int64_t)largest.gathered;
    all.activations = (int64_t)largest.activations;
    all.workspaces = (int64_t)(largest.scratch + largest.gaps);
    all.total = all.weights + all.optimizer + all.gradients + all.gathered + all.activations + all.workspaces +
                all.batch + all.programs;
    *out = all;
    return TSR_OK;
}
