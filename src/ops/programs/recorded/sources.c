/* Values that no op makes: inputs, parameters and constants; and outputs. */
#include "ops/programs/lengths.h"
#include "ops/programs/program.h"
#include "ops/programs/recorded/record.h"

#include <tessera/sys/memory.h>

#include <ctype.h>
#include <string.h>

#define NAME_LENGTH 255

static tsr_status refuse_name(const char *caller, const char *name)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: name is \"%.64s\", but must be 1 to %d letters, digits, '_', '.' and '-'", caller, name,
                          NAME_LENGTH);
}

static tsr_status check_name(const char *caller, const char *name)
{
    if (!name)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: name is NULL", caller);
    size_t length = 0;
    for (; name[length]; length++) {
        if (length == NAME_LENGTH || (!isalnum((unsigned char)name[length]) && !strchr("_.-", name[length])))
            return refuse_name(caller, name);
    }
    return length ? TSR_OK : refuse_name(caller, name);
}

/* Names the last value. */
static tsr_status name_value(tsr_program *program, const char *caller, const char *name, tsr_value value)
{
    TSR_TRY(check_name(caller, name));
    for (size_t i = 0; i < program->value_count; i++) {
        if (program->values[i].name && strcmp(program->values[i].name, name) == 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the program has a value \"%s\" already", caller, name);
    }
    return tsr_program_copy_text(program->context, name, &program->values[value].name);
}

static tsr_value add_named(tsr_program *program, const char *caller, tsr_value_kind kind, const char *name,
                           const tsr_layout *layout)
{
    tsr_value value;
    tsr_status status = tsr_program_add_value(program, kind, (tsr_layout *)layout, &value);
    if (status == TSR_OK)
        status = name_value(program, caller, name, value);
    return status == TSR_OK ? value : tsr_program_fail(program, status);
}

/* A layout from placements as text; NULL: Replicate. */
static tsr_status parse_layout(const tsr_mesh *mesh, const char *placements, tsr_dtype dtype, int ndim,
                               const int64_t *shape, tsr_layout **out)
{
    tsr_placement whole[TSR_MAX_DIMS];
    if (placements)
        return tsr_layout_parse(mesh, placements, ndim, shape, dtype, out);
    for (int k = 0; k < TSR_MAX_DIMS; k++)
        whole[k] = tsr_replicate();
    return tsr_layout_create(mesh, whole, ndim, shape, dtype, out);
}

tsr_value tsr_input(tsr_program *program, const char *name, const tsr_mesh *mesh, tsr_dtype dtype, int ndim,
                    const int64_t *shape, const char *placements)
{
    tsr_layout *layout;
    int64_t sizes[TSR_MAX_DIMS] = {0};
    if (!tsr_program_records(program))
        return TSR_NONE;
    if (!mesh || (ndim > 0 && !shape))
        return tsr_program_fail(program,
                                tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_input: %s is NULL", mesh ? "shape" : "mesh"));
    for (int dim = 0; dim < ndim && dim < TSR_MAX_DIMS; dim++) {
        const int length = tsr_program_length_of(program, shape[dim]);
        sizes[dim] = length < 0 ? shape[dim] : program->lengths[length].maximum;
    }
    const tsr_status status = parse_layout(mesh, placements, dtype, ndim, sizes, &layout);
    if (status != TSR_OK)
        return tsr_program_fail(
            program, tsr_status_set(status, "tsr_input: %.200s: %s", name ? name : "NULL", tsr_status_message()));
    const tsr_value value = add_named(program, "tsr_input", TSR_VALUE_INPUT, name, layout);
    if (value != TSR_NONE && ndim > 0)
        memcpy(program->values[value].shape, shape, (size_t)ndim * sizeof *shape);
    tsr_layout_destroy(layout);
    return value;
}

static tsr_status check_constant(const tsr_layout *layout)
{
    if (!layout)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_constant: layout is NULL");
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++)
        if (tsr_layout_placements(layout)[k].kind == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_constant: layout is Partial on mesh dim %d; a constant is Replicate or Shard",
                                  k);
    return TSR_OK;
}

tsr_value tsr_parameter(tsr_program *program, const char *name, const tsr_layout *layout)
{
    if (!tsr_program_records(program))
        return TSR_NONE;
    if (!layout)
        return tsr_program_fail(program, tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_parameter: layout is NULL"));
    return add_named(program, "tsr_parameter", TSR_VALUE_PARAMETER, name, layout);
}

tsr_value tsr_state(tsr_program *program, const char *name, const tsr_layout *layout)
{
    if (!tsr_program_records(program))
        return TSR_NONE;
    if (!layout)
        return tsr_program_fail(program, tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_state: layout is NULL"));
    const tsr_value value = add_named(program, "tsr_state", TSR_VALUE_STATE, name, layout);
    if (value != TSR_NONE)
        program->values[value].first = value;
    return value;
}

tsr_value tsr_constant(tsr_program *program, double value, const tsr_layout *layout)
{
    tsr_value made;
    if (!tsr_program_records(program))
        return TSR_NONE;
    tsr_status status = check_constant(layout);
    if (status == TSR_OK)
        status = tsr_program_add_value(program, TSR_VALUE_CONSTANT, (tsr_layout *)layout, &made);
    if (status != TSR_OK)
        return tsr_program_fail(program, status);
    program->values[made].constant = value;
    return made;
}

static tsr_status add_output(tsr_program *program, const char *name, tsr_value value)
{
    void *items = program->outputs;
    TSR_TRY(check_name("tsr_output", name));
    for (size_t i = 0; i < program->output_count; i++) {
        if (strcmp(program->outputs[i].name, name) == 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_output: the program has an output \"%s\" already", name);
    }
    TSR_TRY(tsr_program_grow(program->context, sizeof *program->outputs, program->output_count, &program->output_room,
                             &items));
    program->outputs = items;
    tsr_program_output *const made = &program->outputs[program->output_count];
    TSR_TRY(tsr_program_copy_text(program->context, name, &made->name));
    made->value = value;
    program->output_count++;
    return TSR_OK;
}

/* Brings an output to its placements, as the policy allows. */
static tsr_status place_output(tsr_program *program, const char *name, tsr_value *value, const char *placements)
{
    tsr_layout *layout;
    const tsr_layout *const own = program->values[*value].layout;
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(own), placements, tsr_layout_ndim(own), tsr_layout_shape(own),
                             tsr_layout_dtype(own), &layout));
    const tsr_status status = tsr_program_bring(program, name, *value, layout, value);
    tsr_layout_destroy(layout);
    return status;
}

void tsr_output(tsr_program *program, const char *name, tsr_value value, const char *placements)
{
    if (!tsr_program_records(program))
        return;
    tsr_status status = TSR_OK;
    if (!tsr_program_value_at(program, value))
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_output: value %d is not one of the program's", value);
    value = tsr_program_now(program, value);
    /* A state's value may be overwritten before outputs are: "vary" then copies it. */
    if (status == TSR_OK && program->values[value].kind == TSR_VALUE_STATE)
        value = tsr_program_apply(program, "vary", 0, NULL, &value, NULL);
    if (program->status != TSR_OK)
        return;
    if (status == TSR_OK && placements)
        status = place_output(program, name ? name : "NULL", &value, placements);
    if (status == TSR_OK)
        status = add_output(program, name, value);
    if (status != TSR_OK)
        (void)tsr_program_fail(program, status);
}
