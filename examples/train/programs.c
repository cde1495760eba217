#include "programs.h"

#include "step.h"

#include <tessera/sys/status.h>

/* Windows of the last part, of which no other has fewer. */
static int64_t least_windows(const train_plan *plan)
{
    return plan->micro_batches > 1 ? plan->batch / plan->micro_batches : plan->batch;
}

int64_t train_plan_runs(const train_plan *plan, train_kind kind)
{
    const int64_t parts = plan->micro_batches > 1 ? plan->micro_batches : 1, more = plan->batch % parts;
    if (kind == TRAIN_LONGER_PART)
        return more;
    return kind == TRAIN_PART ? parts - 1 - more : kind == TRAIN_STEP;
}

int64_t train_plan_windows(const train_plan *plan, train_kind kind)
{
    const int64_t least = least_windows(plan);
    /* Batches of the validation are cut, too, where all parts are as long. */
    if (kind == TRAIN_VALIDATION)
        return plan->batch % least ? plan->batch : least;
    return kind == TRAIN_LONGER_PART ? least + 1 : least;
}

tsr_status train_plan_lay(const train_plan *plan, tsr_comm *comm, tsr_context *context, train_layouts *layouts)
{
    if (plan->micro_batches > plan->batch)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--micro-batches %lld: a step has %lld windows",
                              (long long)plan->micro_batches, (long long)plan->batch);
    TSR_TRY(train_layouts_init(layouts, plan->config, comm, context, plan->mesh));
    layouts->by_elements = plan->by_elements;
    return TSR_OK;
}

tsr_status train_plan_compile(const train_plan *plan, const train_layouts *layouts, train_shapes *shapes,
                              tsr_context *context, train_kind kind, const tsr_compile_options *options,
                              tsr_executable **out)
{
    tsr_program *p;
    const int64_t windows = train_plan_windows(plan, kind);
    const train_model model = {.config = plan->config,
                               .layouts = layouts,
                               .shapes = shapes,
                               .batch = windows,
                               .length = plan->length,
                               .dtype = plan->dtype,
                               .dropout = plan->dropout,
                               .whole = kind == TRAIN_VALIDATION ? windows : plan->batch};
    train_update update = {.optimizer = plan->optimizer,
                           .clip = plan->clip,
                           .keeps_gradients = plan->keeps_gradients,
                           .scales_loss = plan->loss_scale > 0};
    if (plan->shards_states && layouts->dims[TRAIN_DP] >= 0)
        update.optimizer.shard_over = 1U << layouts->dims[TRAIN_DP];
    TSR_TRY(tsr_program_create(context, &p));
    tsr_status status;
    if (kind == TRAIN_VALIDATION)
        status = train_state_validation(&model, p);
    else
        status = (kind == TRAIN_STEP ? train_state_step : train_state_part)(&model, &update, p);
    if (status == TSR_OK)
        status = tsr_compile(p, options, out);
    tsr_program_destroy(p);
    return status;
}
