#include "files/programs/read_ops.h"

#include "files/programs/read_attributes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* An op as it is written. */
typedef struct written {
    char where[TSR_PROGRAM_WHERE];
    tsr_op_info row;
    tsr_value operands[TSR_OP_MOST_OPERANDS];
    const json_t *outputs; /* NULL: none */
    tsr_program_attributes attributes;
} written;

static size_t count_names(const char *const *names)
{
    size_t count = 0;
    while (names[count])
        count++;
    return count;
}

static tsr_status find_row(const tsr_program_reader *r, const json_t *object, written *op)
{
    const char *name;
    const tsr_op *row;
    TSR_TRY(tsr_program_read_text(r, op->where, object, "op", &name));
    const tsr_status found = tsr_op_find(tsr_mesh_context(r->mesh), name, &row);
    if (found != TSR_OK)
        return tsr_program_pass(r, op->where, found == TSR_ERROR_MEMORY ? found : TSR_ERROR_IO);
    tsr_op_describe(row, &op->row);
    char place[TSR_PROGRAM_WHERE];
    strcpy(place, op->where);
    snprintf(op->where, sizeof op->where, "%.40s, %.60s", place, op->row.name);
    return TSR_OK;
}

static tsr_status read_inputs(const tsr_program_reader *r, const json_t *object, written *op)
{
    const json_t *list;
    const size_t most = count_names(op->row.operands);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        op->operands[i] = TSR_NONE;
    TSR_TRY(tsr_program_read_list(r, op->where, object, "inputs", &list));
    if (json_array_size(list) > most)
        return tsr_program_refuse(r, op->where, "it has %zu inputs, but %s takes %zu", json_array_size(list),
                                  op->row.name, most);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const name = json_array_get(list, i);
        if (json_is_null(name))
            continue;
        if (!json_is_string(name))
            return tsr_program_refuse(r, op->where, "inputs[%zu] must be the name of a value, or null", i);
        TSR_TRY(tsr_program_find(r, op->where, json_string_value(name), &op->operands[i]));
    }
    return TSR_OK;
}

static tsr_status read_outputs(const tsr_program_reader *r, const json_t *object, written *op)
{
    const size_t most = count_names(op->row.results);
    TSR_TRY(tsr_program_read_list(r, op->where, object, "outputs", &op->outputs));
    if (json_array_size(op->outputs) == 0 || json_array_size(op->outputs) > most)
        return tsr_program_refuse(r, op->where, "it has %zu outputs, but %s gives %zu", json_array_size(op->outputs),
                                  op->row.name, most);
    for (size_t i = 0; i < json_array_size(op->outputs); i++) {
        const json_t *const name = json_array_get(op->outputs, i);
        if (!json_is_string(name) && !json_is_null(name))
            return tsr_program_refuse(r, op->where, "outputs[%zu] must be a name, or null", i);
    }
    return TSR_OK;
}

static tsr_status name_results(const tsr_program_reader *r, const written *op, const tsr_value *results)
{
    for (size_t i = 0; i < json_array_size(op->outputs); i++) {
        const json_t *const name = json_array_get(op->outputs, i);
        if (json_is_string(name))
            TSR_TRY(tsr_program_name(r, op->where, json_string_value(name), results[i]));
    }
    return TSR_OK;
}

static tsr_status record(const tsr_program_reader *r, const written *op)
{
    tsr_value results[TSR_OP_MOST_RESULTS];
    tsr_program_apply(r->program, op->row.name, op->attributes.count, op->attributes.all, op->operands, results);
    TSR_TRY(tsr_program_check(r, op->where));
    return name_results(r, op, results);
}

/* A store: the state, the value, and a position or null. */
static tsr_status read_store(const tsr_program_reader *r, const json_t *object, size_t index)
{
    const json_t *inputs, *outputs;
    tsr_value state, values[2] = {TSR_NONE, TSR_NONE};
    char where[TSR_PROGRAM_WHERE];
    snprintf(where, sizeof where, "ops[%zu], store", index);
    TSR_TRY(tsr_program_read_list(r, where, object, "inputs", &inputs));
    TSR_TRY(tsr_program_read_list(r, where, object, "outputs", &outputs));
    const char *const name = json_string_value(json_array_get(inputs, 0));
    const json_t *const attributes = json_object_get(object, "attributes");
    const bool has_none =
        !attributes || json_is_null(attributes) || (json_is_object(attributes) && json_object_size(attributes) == 0);
    if (!name || json_array_size(inputs) > 3 || json_array_size(outputs) > 0 || !has_none)
        return tsr_program_refuse(r, where,
                                  "its inputs are a state, a value, and a position or null; it has no "
                                  "outputs and attributes");
    TSR_TRY(tsr_program_find_state(r, where, name, &state));
    for (size_t i = 1; i < json_array_size(inputs); i++) {
        const json_t *const input = json_array_get(inputs, i);
        if (json_is_string(input))
            TSR_TRY(tsr_program_find(r, where, json_string_value(input), &values[i - 1]));
        else if (!json_is_null(input))
            return tsr_program_refuse(r, where, "inputs[%zu] must be the name of a value, or null", i);
    }
    tsr_op_store(r->program, state, values[0], values[1]);
    TSR_TRY(tsr_program_check(r, where));
    return tsr_program_renew_state(r, where, name);
}

static bool is_store(const json_t *object)
{
    const char *const name = json_string_value(json_object_get(object, "op"));
    return name && strcmp(name, "store") == 0;
}

static tsr_status read_op(const tsr_program_reader *r, json_t *object, size_t index)
{
    static const char *const keys[] = {"op", "inputs", "outputs", "attributes", NULL};
    written op = {.outputs = NULL};
    snprintf(op.where, sizeof op.where, "ops[%zu]", index);
    TSR_TRY(tsr_program_check_keys(r, op.where, object, keys));
    if (is_store(object))
        return read_store(r, object, index);
    TSR_TRY(find_row(r, object, &op));
    TSR_TRY(read_inputs(r, object, &op));
    TSR_TRY(read_outputs(r, object, &op));
    tsr_status status =
        tsr_program_read_attributes(r, op.where, &op.row, json_object_get(object, "attributes"), &op.attributes);
    if (status == TSR_OK)
        status = record(r, &op);
    tsr_program_free_attributes(&op.attributes);
    return status;
}

tsr_status tsr_program_read_ops(const tsr_program_reader *r, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        TSR_TRY(read_op(r, json_array_get(list, i), i));
    return TSR_OK;
}
