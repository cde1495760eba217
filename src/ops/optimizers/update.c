#include "ops/optimizers/update.h"

#include "ops/optimizers/values.h"
#include "ops/programs/forms.h"

#include <tessera/program_ops.h>
#include <tessera/sys/memory.h>

#include <stdio.h>
#include <string.h>

void tsr_update_begin(tsr_update *u)
{
    const tsr_dtype dtype = tsr_layout_dtype(u->layout);
    u->gradient = tsr_value_cast(u->program, tsr_value_again(u->program, u->gradient), dtype);
    if (u->in->options->maximize)
        u->gradient = tsr_op_neg(u->program, u->gradient);
    u->old = tsr_value_cast(u->program, u->old, dtype);
}

tsr_value tsr_update_state(const tsr_update *u, const char *suffix, tsr_layout *layout)
{
    void *name;
    if (!tsr_program_records(u->program))
        return TSR_NONE;
    const size_t size = strlen(u->name) + strlen(suffix) + 2;
    const tsr_status status = tsr_allocate(u->program->context, size, &name);
    if (status != TSR_OK)
        return tsr_program_fail(u->program, status);
    snprintf(name, size, "%s.%s", u->name, suffix);
    const tsr_value state = tsr_state(u->program, name, layout);
    tsr_release(u->program->context, name);
    return state;
}

tsr_value tsr_update_take(const tsr_update *u, tsr_value value)
{
    tsr_program *const p = u->program;
    value = tsr_value_place(p, value, tsr_layout_placements(u->flat ? u->flat : u->layout));
    if (!u->flat || !tsr_program_records(p))
        return value;
    value = tsr_op_reshape(p, value, u->tensor.ndim, u->tensor.shape);
    return tsr_value_place(p, value, tsr_layout_placements(u->layout));
}

/* The inverse of tsr_update_take(), but for the layout. */
static tsr_value give_back(const tsr_update *u, tsr_value value)
{
    tsr_program *const p = u->program;
    return u->flat && tsr_program_records(p) ? tsr_op_reshape(p, value, 1, tsr_layout_shape(u->flat)) : value;
}

/* `value` if the step is done, `old` if it is skipped. */
static tsr_value unless_skipped(const tsr_update *u, tsr_value value, tsr_value old)
{
    if (u->in->finite == TSR_NONE)
        return value;
    return tsr_op_where(u->program, tsr_scalar_on(u->program, u->in->finite, u->layout), value, old);
}

void tsr_update_store(const tsr_update *u, tsr_value state, tsr_value value)
{
    tsr_op_store(u->program, state, unless_skipped(u, value, state), TSR_NONE);
}

void tsr_update_write(tsr_update *u, tsr_value value)
{
    tsr_program *const p = u->program;
    if (!tsr_program_records(p))
        return;
    const tsr_layout *const own = tsr_value_layout(p, u->parameter);
    const tsr_value narrow = give_back(u, tsr_value_cast(p, value, tsr_layout_dtype(own)));
    if (u->master != TSR_NONE)
        tsr_op_store(p, u->master, value, TSR_NONE);
    if (!tsr_program_records(p))
        return;
    bool stays;
    const tsr_status status = tsr_program_compare(tsr_value_layout(p, narrow), own, &stays);
    if (status != TSR_OK)
        (void)tsr_program_fail(p, status);
    else if (stays)
        tsr_op_store(p, u->parameter, narrow, TSR_NONE);
    else
        u->moved = narrow;
}

void tsr_update_finish(tsr_update *u, tsr_value value)
{
    if (tsr_program_records(u->program))
        tsr_update_write(u, unless_skipped(u, value, u->old));
}

tsr_value tsr_update_number(const tsr_update *u, tsr_value number)
{
    return tsr_value_cast(u->program, tsr_scalar_on(u->program, number, u->layout), tsr_layout_dtype(u->layout));
}

tsr_value tsr_update_constant(const tsr_update *u, double number)
{
    return tsr_scalar_constant(u->program, number, u->layout, TSR_DTYPE_NONE);
}

tsr_value tsr_update_wide_constant(const tsr_update *u, double number)
{
    return tsr_scalar_constant(u->program, number, tsr_value_layout(u->program, u->in->rate), TSR_F64);
}

tsr_value tsr_update_lerp(const tsr_update *u, tsr_value x, tsr_value y, double factor)
{
    tsr_program *const p = u->program;
    const tsr_value way = tsr_op_sub(p, y, x);
    return factor < 0.5 ? tsr_op_add(p, x, tsr_op_scale(p, way, factor))
                        : tsr_op_sub(p, y, tsr_op_scale(p, way, 1 - factor));
}

tsr_value tsr_update_kept(const tsr_update *u)
{
    tsr_program *const p = u->program;
    return tsr_op_sub(p, tsr_update_wide_constant(u, 1), tsr_op_scale(p, u->in->rate, u->in->options->weight_decay));
}

tsr_value tsr_update_decayed(const tsr_update *u)
{
    if (u->in->options->weight_decay == 0)
        return u->old;
    return tsr_op_mul(u->program, u->old, tsr_update_number(u, tsr_update_kept(u)));
}
