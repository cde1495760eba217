/* The update of parameters, from what a caller gives to what a rule takes. */
#include "ops/optimizers/adafactor.h"
#include "ops/optimizers/check.h"
#include "ops/optimizers/layouts.h"
#include "ops/optimizers/muon.h"
#include "ops/optimizers/pointwise.h"
#include "ops/optimizers/values.h"

#include <tessera/program_ops.h>
#include <tessera/sys/memory.h>

#include <string.h>

void tsr_optimizer_reduce(tsr_program *program, size_t count, const tsr_value *parameters, tsr_value *gradients,
                          const tsr_optimizer_options *options)
{
    tsr_optimizer_options o;
    if (!tsr_optimizer_check(program, "tsr_optimizer_reduce", count, parameters, gradients, options, &o))
        return;
    for (size_t i = 0; i < count && tsr_program_records(program); i++) {
        tsr_layout *layout, *flat;
        const tsr_status status = tsr_optimizer_place(&o, i, tsr_value_layout(program, parameters[i]), &layout, &flat);
        if (status != TSR_OK) {
            (void)tsr_program_fail(program, status);
            return;
        }
        gradients[i] = tsr_value_place(program, gradients[i], tsr_layout_placements(flat ? flat : layout));
        tsr_layout_destroy(flat);
        tsr_layout_destroy(layout);
    }
}

/* Prepares the update of a parameter but for its gradient. */
static tsr_status open_update(tsr_update *u, const tsr_update_inputs *in, size_t index, tsr_value parameter)
{
    const tsr_layout *const own = tsr_value_layout(in->program, parameter);
    *u = (tsr_update){.in = in,
                      .program = in->program,
                      .parameter = parameter,
                      .master = TSR_NONE,
                      .name = tsr_value_name(in->program, parameter),
                      .moved = TSR_NONE};
    if (in->options->views)
        u->tensor = in->options->views[index];
    if (u->tensor.ndim == 0) {
        u->tensor.ndim = tsr_layout_ndim(own);
        memcpy(u->tensor.shape, tsr_layout_shape(own), (size_t)u->tensor.ndim * sizeof(int64_t));
    }
    return tsr_optimizer_place(in->options, index, own, &u->layout, &u->flat);
}

/* Brings the gradient and the weight, or its master, to the states' layout. */
static void take_operands(tsr_update *u, tsr_value gradient)
{
    tsr_program *const p = u->program;
    const tsr_dtype own = tsr_layout_dtype(tsr_value_layout(p, u->parameter));
    u->gradient = tsr_update_take(u, gradient);
    if (u->in->options->masters && own != tsr_layout_dtype(u->layout))
        u->old = u->master = tsr_update_state(u, "master", u->layout);
    else
        u->old = tsr_update_take(u, u->parameter);
}

/* Records all updates: what must move moves together, before and behind the formulas. */
static tsr_status record_updates(tsr_update *updates, size_t count, const tsr_value *gradients)
{
    static tsr_update_rule *const rules[] = {
        [TSR_SGD] = tsr_update_sgd,   [TSR_ADAMW] = tsr_update_adamw,
        [TSR_LION] = tsr_update_lion, [TSR_ADAFACTOR] = tsr_update_adafactor,
        [TSR_MUON] = tsr_update_muon,
    };
    tsr_program *const p = updates[0].program;
    for (size_t i = 0; i < count; i++)
        take_operands(&updates[i], gradients[i]);
    if (tsr_program_records(p))
        TSR_TRY(rules[updates[0].in->options->kind](updates, count));
    for (size_t i = 0; i < count && tsr_program_records(p); i++)
        if (updates[i].moved != TSR_NONE)
            updates[i].moved =
                tsr_value_place(p, updates[i].moved, tsr_layout_placements(tsr_value_layout(p, updates[i].parameter)));
    for (size_t i = 0; i < count && tsr_program_records(p); i++)
        if (updates[i].moved != TSR_NONE)
            tsr_op_store(p, updates[i].parameter, updates[i].moved, TSR_NONE);
    return TSR_OK;
}

static tsr_status update_all(const tsr_update_inputs *in, size_t count, const tsr_value *parameters,
                             const tsr_value *gradients)
{
    void *room;
    tsr_status status = tsr_program_array(in->program->context, count, sizeof(tsr_update), &room);
    tsr_update *const updates = room;
    for (size_t i = 0; i < count && status == TSR_OK; i++)
        status = open_update(&updates[i], in, i, parameters[i]);
    if (status == TSR_OK)
        status = record_updates(updates, count, gradients);
    for (size_t i = 0; updates && i < count; i++) {
        tsr_layout_destroy(updates[i].layout);
        tsr_layout_destroy(updates[i].flat);
    }
    tsr_release(in->program->context, room);
    return status;
}

void tsr_optimizer_update(tsr_program *program, size_t count, const tsr_value *parameters, const tsr_value *gradients,
                          tsr_value learning_rate, tsr_value step, tsr_value finite,
                          const tsr_optimizer_options *options)
{
    static const char call[] = "tsr_optimizer_update";
    tsr_optimizer_options o;
    if (!tsr_optimizer_check(program, call, count, parameters, gradients, options, &o) ||
        !tsr_optimizer_check_inputs(program, call, &o, learning_rate, step, finite) || !count)
        return;
    const int round = tsr_program_open_round(program);
    const tsr_update_inputs in = {program, &o, tsr_value_cast(program, learning_rate, TSR_F64),
                                  step == TSR_NONE ? TSR_NONE
                                                   : tsr_scalar_on(program, tsr_value_cast(program, step, TSR_F64),
                                                                   tsr_value_layout(program, learning_rate)),
                                  finite};
    const tsr_status status = update_all(&in, count, parameters, gradients);
    program->round = round;
    if (status != TSR_OK)
        (void)tsr_program_fail(program, status);
}
