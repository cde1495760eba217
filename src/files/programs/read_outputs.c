#include "files/programs/read_outputs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for "d." and a name. */
#define NAME_BYTES 264

/* Where sentences of gradients point. */
static const char gradients_where[] = "gradients";

/* Finds the values of the names in "to". */
static tsr_status find_values(const tsr_program_reader *r, const json_t *to, tsr_value *values)
{
    for (size_t i = 0; i < json_array_size(to); i++) {
        const json_t *const name = json_array_get(to, i);
        if (!json_is_string(name))
            return tsr_program_refuse(r, gradients_where, "to[%zu] must be the name of a value", i);
        TSR_TRY(tsr_program_find(r, gradients_where, json_string_value(name), &values[i]));
    }
    return TSR_OK;
}

/* The name of the gradient by a value. */
static void print_name(const json_t *to, size_t i, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "d.%.255s", json_string_value(json_array_get(to, i)));
}

static tsr_status record_gradients(const tsr_program_reader *r, tsr_value loss, const json_t *to, tsr_value *values,
                                   tsr_value *out)
{
    char name[NAME_BYTES];
    const size_t count = json_array_size(to);
    TSR_TRY(find_values(r, to, values));
    tsr_gradients(r->program, loss, count, values, out);
    TSR_TRY(tsr_program_check(r, gradients_where));
    for (size_t i = 0; i < count; i++) {
        print_name(to, i, name);
        TSR_TRY(tsr_program_name(r, gradients_where, name, out[i]));
    }
    return TSR_OK;
}

tsr_status tsr_program_read_gradients(const tsr_program_reader *r, json_t *object)
{
    static const char *const keys[] = {"of", "to", NULL};
    const char *of;
    const json_t *to;
    tsr_value loss;
    if (!object || json_is_null(object))
        return TSR_OK;
    TSR_TRY(tsr_program_check_keys(r, gradients_where, object, keys));
    TSR_TRY(tsr_program_read_text(r, gradients_where, object, "of", &of));
    TSR_TRY(tsr_program_read_list(r, gradients_where, object, "to", &to));
    TSR_TRY(tsr_program_find(r, gradients_where, of, &loss));
    if (json_array_size(to) == 0)
        return tsr_program_refuse(r, gradients_where, "to must be a list of names of values");
    tsr_value *const values = calloc(2 * json_array_size(to), sizeof *values);
    if (!values)
        return tsr_status_set(TSR_ERROR_MEMORY, "%.200s: there is no memory for the gradients", r->name);
    const tsr_status status = record_gradients(r, loss, to, values, values + json_array_size(to));
    free(values);
    return status;
}

static tsr_status read_output(const tsr_program_reader *r, json_t *object, size_t index, json_t *made)
{
    static const char *const keys[] = {"name", "placements", NULL};
    const char *name;
    const json_t *list;
    char where[TSR_PROGRAM_WHERE], *placements;
    tsr_value value;
    snprintf(where, sizeof where, "outputs[%zu]", index);
    TSR_TRY(tsr_program_check_keys(r, where, object, keys));
    TSR_TRY(tsr_program_read_text(r, where, object, "name", &name));
    snprintf(where, sizeof where, "outputs[%zu], \"%.64s\"", index, name);
    TSR_TRY(tsr_program_read_list(r, where, object, "placements", &list));
    TSR_TRY(tsr_program_find(r, where, name, &value));
    TSR_TRY(tsr_program_join(r, where, "placements", list, &placements));
    tsr_output(r->program, name, value, placements);
    free(placements);
    TSR_TRY(tsr_program_check(r, where));
    if (json_object_set_new(made, name, json_true()) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "%.200s: there is no memory for the outputs", r->name);
    return TSR_OK;
}

/* Adds the gradients that no output names. */
static tsr_status add_gradients(const tsr_program_reader *r, const json_t *to, const json_t *made)
{
    char name[NAME_BYTES];
    tsr_value value;
    for (size_t i = 0; i < json_array_size(to); i++) {
        print_name(to, i, name);
        if (json_object_get(made, name))
            continue;
        TSR_TRY(tsr_program_find(r, gradients_where, name, &value));
        tsr_output(r->program, name, value, NULL);
        TSR_TRY(tsr_program_check(r, gradients_where));
    }
    return TSR_OK;
}

tsr_status tsr_program_read_outputs(const tsr_program_reader *r, const json_t *list, const json_t *gradients)
{
    json_t *const made = json_object();
    tsr_status status =
        made ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "%.200s: there is no memory for the outputs", r->name);
    for (size_t i = 0; i < json_array_size(list) && status == TSR_OK; i++)
        status = read_output(r, json_array_get(list, i), i, made);
    if (status == TSR_OK)
        status = add_gradients(r, json_object_get(gradients, "to"), made);
    json_decref(made);
    return status;
}
