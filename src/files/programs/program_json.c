/* Programs written as JSON. */
#include "files/json.h"
#include "files/programs/read_ops.h"
#include "files/programs/read_optimizer.h"
#include "files/programs/read_outputs.h"
#include "files/programs/read_values.h"

#include <stdbool.h>
#include <string.h>

static tsr_status read_members(const tsr_program_reader *r, json_t *object)
{
    static const char *const keys[] = {"values", "ops", "outputs", "gradients", "optimizer", NULL};
    const json_t *values, *ops, *outputs;
    static const char where[] = "the program";
    TSR_TRY(tsr_program_check_keys(r, where, object, keys));
    TSR_TRY(tsr_program_read_list(r, where, object, "values", &values));
    TSR_TRY(tsr_program_read_list(r, where, object, "ops", &ops));
    TSR_TRY(tsr_program_read_list(r, where, object, "outputs", &outputs));
    json_t *const gradients = json_object_get(object, "gradients");
    TSR_TRY(tsr_program_read_values(r, values));
    TSR_TRY(tsr_program_read_ops(r, ops));
    TSR_TRY(tsr_program_read_gradients(r, gradients));
    /* What an optimizer takes is an output only if it is among them; a state is what it leaves. */
    json_t *const optimizer = json_object_get(object, "optimizer");
    const bool trains = optimizer && !json_is_null(optimizer);
    TSR_TRY(tsr_program_read_optimizer(r, optimizer, gradients));
    return tsr_program_read_outputs(r, outputs, trains ? NULL : gradients);
}

static tsr_status load(const char *name, const void *text, size_t bytes, json_t **out)
{
    json_error_t error;
    *out = tsr_json_load(text, bytes, &error);
    if (*out)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_IO, "%.200s: line %d, column %d: %s", name, error.line, error.column, error.text);
}

static tsr_status read_program(const char *name, const tsr_mesh *mesh, json_t *object, tsr_program **out)
{
    tsr_program_reader r = {.name = name, .mesh = mesh, .names = json_object(), .states = json_object()};
    tsr_status status = r.names && r.states
                            ? tsr_program_create(tsr_mesh_context(mesh), &r.program)
                            : tsr_status_set(TSR_ERROR_MEMORY, "%.200s: there is no memory for names", name);
    if (status == TSR_OK)
        status = read_members(&r, object);
    json_decref(r.names);
    json_decref(r.states);
    if (status == TSR_OK) {
        *out = r.program;
        return TSR_OK;
    }
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    tsr_program_destroy(r.program);
    return tsr_status_restore(&kept, status);
}

tsr_status tsr_program_parse(const char *name, const void *text, size_t bytes, const tsr_mesh *mesh, tsr_program **out)
{
    json_t *object;
    if (!name || (!text && bytes) || !mesh || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_program_parse: %s is NULL",
                              !name            ? "name"
                              : !text && bytes ? "text"
                              : mesh           ? "out"
                                               : "mesh");
    TSR_TRY(load(name, text, bytes, &object));
    const tsr_status status = read_program(name, mesh, object, out);
    json_decref(object);
    return status;
}
