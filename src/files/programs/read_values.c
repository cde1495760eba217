#include "files/programs/read_values.h"

#include <tessera/layout.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value as it is written. */
typedef struct written {
    char where[TSR_PROGRAM_WHERE];
    const char *name, *kind;
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    tsr_dtype dtype;
    char *placements; /* on the heap; NULL: Replicate */
    bool varies;
    bool has_constant;
    double constant;
} written;

static bool is_kind(const written *v, const char *kind)
{
    return strcmp(v->kind, kind) == 0;
}

static tsr_status read_kind(const tsr_program_reader *r, const json_t *object, written *v)
{
    static const char *const kinds[] = {"input", "parameter", "state", "constant"};
    TSR_TRY(tsr_program_read_text(r, v->where, object, "kind", &v->kind));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (is_kind(v, kinds[i]))
            return TSR_OK;
    return tsr_program_refuse(r, v->where, "kind is \"%.40s\", but must be input, parameter, state or constant",
                              v->kind);
}

static tsr_status read_dtype(const tsr_program_reader *r, const json_t *object, written *v)
{
    const char *name;
    TSR_TRY(tsr_program_read_text(r, v->where, object, "dtype", &name));
    if (tsr_dtype_parse(name, &v->dtype) != TSR_OK)
        return tsr_program_refuse(r, v->where, "dtype is \"%.40s\", which is none of f64, f32, f16, bf16, i64, i32, ..",
                                  name);
    return TSR_OK;
}

static tsr_status read_gradient(const tsr_program_reader *r, const json_t *object, written *v)
{
    const json_t *const gradient = json_object_get(object, "gradient");
    const char *const text = json_is_string(gradient) ? json_string_value(gradient) : "";
    v->varies = strcmp(text, "P") == 0;
    if (gradient && !json_is_null(gradient) && !v->varies && strcmp(text, "R") != 0)
        return tsr_program_refuse(r, v->where, "gradient must be \"R\" or \"P\"");
    return TSR_OK;
}

static tsr_status read_constant(const tsr_program_reader *r, const json_t *object, written *v)
{
    const json_t *const value = json_object_get(object, "value");
    const bool is_constant = is_kind(v, "constant");
    if (is_constant && !json_is_number(value))
        return tsr_program_refuse(r, v->where, "value %s", value ? "must be a number" : "is missing; it is a number");
    if (!is_constant && value && !json_is_null(value))
        return tsr_program_refuse(r, v->where, "value is for constants, but kind is \"%s\"", v->kind);
    v->constant = is_constant ? json_number_value(value) : 0;
    return TSR_OK;
}

/* Reads all but the placements. */
static tsr_status read_fields(const tsr_program_reader *r, json_t *object, written *v)
{
    static const char *const keys[] = {"name", "kind", "shape", "dtype", "placements", "gradient", "value", NULL};
    char place[TSR_PROGRAM_WHERE];
    TSR_TRY(tsr_program_check_keys(r, v->where, object, keys));
    TSR_TRY(tsr_program_read_text(r, v->where, object, "name", &v->name));
    strcpy(place, v->where);
    snprintf(v->where, sizeof v->where, "%.40s, \"%.64s\"", place, v->name);
    TSR_TRY(read_kind(r, object, v));
    TSR_TRY(read_dtype(r, object, v));
    TSR_TRY(tsr_program_read_numbers(r, v->where, "shape", json_object_get(object, "shape"), v->shape, &v->ndim));
    TSR_TRY(read_gradient(r, object, v));
    return read_constant(r, object, v);
}

/* Records a value that has a layout of its own. */
static tsr_status record_laid_out(const tsr_program_reader *r, const written *v, tsr_value *out)
{
    tsr_layout *layout;
    tsr_placement whole[TSR_MAX_DIMS];
    for (int k = 0; k < TSR_MAX_DIMS; k++)
        whole[k] = tsr_replicate();
    const tsr_status status = v->placements
                                  ? tsr_layout_parse(r->mesh, v->placements, v->ndim, v->shape, v->dtype, &layout)
                                  : tsr_layout_create(r->mesh, whole, v->ndim, v->shape, v->dtype, &layout);
    if (status != TSR_OK)
        return tsr_program_pass(r, v->where, status);
    if (is_kind(v, "parameter"))
        *out = tsr_parameter(r->program, v->name, layout);
    else if (is_kind(v, "state"))
        *out = tsr_state(r->program, v->name, layout);
    else
        *out = tsr_constant(r->program, v->constant, layout);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static tsr_status record(const tsr_program_reader *r, const written *v)
{
    tsr_value made = TSR_NONE;
    if (is_kind(v, "input"))
        made = tsr_input(r->program, v->name, r->mesh, v->dtype, v->ndim, v->shape, v->placements);
    else
        TSR_TRY(record_laid_out(r, v, &made));
    const tsr_value value = v->varies ? tsr_program_vary(r, made) : made;
    TSR_TRY(tsr_program_check(r, v->where));
    return is_kind(v, "state") ? tsr_program_name_state(r, v->where, v->name, made, value)
                               : tsr_program_name(r, v->where, v->name, value);
}

static tsr_status read_value(const tsr_program_reader *r, json_t *object, size_t index)
{
    const json_t *placements;
    written v = {.name = NULL};
    snprintf(v.where, sizeof v.where, "values[%zu]", index);
    TSR_TRY(read_fields(r, object, &v));
    TSR_TRY(tsr_program_read_list(r, v.where, object, "placements", &placements));
    TSR_TRY(tsr_program_join(r, v.where, "placements", placements, &v.placements));
    const tsr_status status = record(r, &v);
    free(v.placements);
    return status;
}

tsr_status tsr_program_read_values(const tsr_program_reader *r, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        TSR_TRY(read_value(r, json_array_get(list, i), i));
    return TSR_OK;
}
