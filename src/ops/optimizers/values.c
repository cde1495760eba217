#include "ops/optimizers/values.h"

#include "ops/programs/program.h"

#include <tessera/program_ops.h>

#include <string.h>

tsr_dtype tsr_update_dtype(tsr_dtype dtype)
{
    switch (dtype) {
    case TSR_F64:
        return TSR_F64;
    case TSR_F32:
    case TSR_BF16:
    case TSR_F16:
        return TSR_F32;
    default:
        return TSR_DTYPE_NONE;
    }
}

tsr_status tsr_scalar_layout(const tsr_mesh *mesh, tsr_dtype dtype, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        placements[k] = tsr_replicate();
    return tsr_layout_create(mesh, placements, 0, NULL, dtype, out);
}

tsr_value tsr_scalar_constant(tsr_program *program, double number, const tsr_layout *like, tsr_dtype dtype)
{
    tsr_layout *layout;
    if (!tsr_program_records(program))
        return TSR_NONE;
    const tsr_dtype own = dtype == TSR_DTYPE_NONE ? tsr_layout_dtype(like) : dtype;
    const tsr_status status = tsr_scalar_layout(tsr_layout_mesh(like), own, &layout);
    if (status != TSR_OK)
        return tsr_program_fail(program, status);
    const tsr_value value = tsr_constant(program, number, layout);
    tsr_layout_destroy(layout);
    return value;
}

tsr_value tsr_value_cast(tsr_program *program, tsr_value value, tsr_dtype dtype)
{
    const tsr_layout *const layout = tsr_value_layout(program, value);
    return layout && tsr_layout_dtype(layout) == dtype ? value : tsr_op_cast(program, value, dtype);
}

tsr_value tsr_scalar_on(tsr_program *program, tsr_value value, const tsr_layout *like)
{
    tsr_layout *moved;
    const tsr_layout *const own = tsr_value_layout(program, value);
    if (!tsr_program_records(program) || tsr_mesh_congruent(tsr_layout_mesh(own), tsr_layout_mesh(like)))
        return value;
    const tsr_status status = tsr_scalar_layout(tsr_layout_mesh(like), tsr_layout_dtype(own), &moved);
    if (status != TSR_OK)
        return tsr_program_fail(program, status);
    value = tsr_op_to_mesh(program, value, moved);
    tsr_layout_destroy(moved);
    return value;
}

tsr_value tsr_value_place(tsr_program *program, tsr_value value, const tsr_placement *placements)
{
    tsr_layout *layout;
    if (!tsr_program_records(program))
        return TSR_NONE;
    const tsr_layout *const own = tsr_value_layout(program, value);
    const tsr_status status = tsr_layout_with(own, placements, &layout);
    if (status != TSR_OK)
        return tsr_program_fail(program, status);
    if (!tsr_layout_equal(own, layout))
        value = tsr_op_to_mesh(program, value, layout);
    tsr_layout_destroy(layout);
    return value;
}

tsr_value tsr_value_whole(tsr_program *program, tsr_value value)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const tsr_layout *const own = tsr_value_layout(program, value);
    if (!tsr_program_records(program))
        return TSR_NONE;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(own)); k++) {
        placements[k] = tsr_layout_placements(own)[k];
        if (placements[k].kind == TSR_PARTIAL)
            placements[k] = tsr_replicate();
    }
    return tsr_value_place(program, value, placements);
}

int tsr_program_open_round(tsr_program *program)
{
    const int before = program->round;
    for (size_t i = 0; i < program->node_count; i++)
        if (program->nodes[i].round >= program->round)
            program->round = program->nodes[i].round + 1;
    return before;
}

tsr_value tsr_value_again(tsr_program *program, tsr_value value)
{
    const tsr_program_value *const v = tsr_program_value_at(program, value);
    if (!tsr_program_records(program) || v->kind != TSR_VALUE_RESULT || !program->nodes[v->node].op)
        return value;
    const char *const op = program->nodes[v->node].op->name;
    const tsr_value from = program->nodes[v->node].operands[0], by = program->nodes[v->node].operands[1];
    const tsr_dtype dtype = tsr_layout_dtype(v->layout);
    if (strcmp(op, "cast") == 0)
        return tsr_op_cast(program, tsr_value_again(program, from), dtype);
    if (strcmp(op, "mul") == 0 && tsr_layout_ndim(tsr_value_layout(program, by)) == 0)
        return tsr_op_mul(program, tsr_value_again(program, from), by);
    return value;
}

/* The operand of a value that the op `name` made; TSR_NONE: another op did. */
static tsr_value find_operand(const tsr_program *program, tsr_value value, const char *name, int operand)
{
    const tsr_program_value *const v = tsr_program_value_at(program, value);
    const bool is_made = v->kind == TSR_VALUE_RESULT && program->nodes[v->node].op &&
                         strcmp(program->nodes[v->node].op->name, name) == 0;
    return is_made ? program->nodes[v->node].operands[operand] : TSR_NONE;
}

tsr_value tsr_value_source(const tsr_program *program, tsr_value value, tsr_value *scale)
{
    if (!tsr_program_records(program))
        return value;
    const tsr_dtype computed = tsr_layout_dtype(tsr_value_layout(program, value));
    const tsr_value by = scale ? find_operand(program, value, "mul", 1) : TSR_NONE;
    if (by != TSR_NONE && tsr_layout_ndim(tsr_value_layout(program, by)) == 0) {
        value = find_operand(program, value, "mul", 0);
        *scale = by;
    }
    const tsr_value narrow = find_operand(program, value, "cast", 0);
    const bool widens =
        narrow != TSR_NONE && tsr_update_dtype(tsr_layout_dtype(tsr_value_layout(program, narrow))) == computed;
    return widens ? narrow : value;
}

bool tsr_value_is_scalar(const tsr_program *program, tsr_value value, bool integers)
{
    const tsr_layout *const layout = tsr_value_layout(program, value);
    if (!layout || tsr_layout_ndim(layout) != 0)
        return false;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++)
        if (tsr_layout_placements(layout)[k].kind != TSR_REPLICATE)
            return false;
    const tsr_dtype_class kind = tsr_dtype_get(tsr_layout_dtype(layout))->kind;
    return kind == TSR_CLASS_FLOAT || (integers && (kind == TSR_CLASS_SIGNED || kind == TSR_CLASS_UNSIGNED));
}

bool tsr_values_hold(tsr_program *program, const char *call, const char *what, size_t count, const tsr_value *values)
{
    if (!tsr_program_records(program))
        return false;
    if (count && !values)
        return tsr_program_fail(program, tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, what)) != TSR_NONE;
    for (size_t i = 0; i < count; i++) {
        const tsr_layout *const layout = tsr_value_layout(program, values[i]);
        tsr_status status = TSR_OK;
        if (!layout)
            status = tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s[%zu] is %d, which is not a value of the program", call,
                                    what, i, values[i]);
        else if (tsr_update_dtype(tsr_layout_dtype(layout)) == TSR_DTYPE_NONE)
            status = tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s[%zu] is %s, but must be f64, f32, bf16 or f16", call,
                                    what, i, tsr_dtype_get(tsr_layout_dtype(layout))->name);
        if (status != TSR_OK)
            return tsr_program_fail(program, status) != TSR_NONE;
    }
    return true;
}
