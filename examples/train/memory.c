#include "memory.h"

#include <tessera/sys/status.h>

tsr_status train_memory_find(const tsr_executable *step, const tsr_executable *validation, train_memory *out)
{
    tsr_executable_memory m, other = {0};
    TSR_TRY(tsr_executable_memory_of(step, &m));
    if (validation)
        TSR_TRY(tsr_executable_memory_of(validation, &other));
    const size_t more = other.inputs + other.outputs + other.gathered + other.activations + other.gradients +
                        other.scratch + other.gaps;
    *out = (train_memory){
        .weights = (int64_t)m.parameters,
        .optimizer = (int64_t)m.optimizer_states,
        .gradients = (int64_t)m.gradients,
        .gathered = (int64_t)m.gathered,
        .activations = (int64_t)m.activations,
        .workspaces = (int64_t)(m.scratch + m.gaps),
        .batch = (int64_t)(m.inputs + m.outputs),
        .validation = (int64_t)more,
        .programs = (int64_t)(m.kept + other.kept),
    };
    out->total = out->weights + out->optimizer + out->gradients + out->gathered + out->activations + out->workspaces +
                 out->batch + out->validation + out->programs;
    return TSR_OK;
}
