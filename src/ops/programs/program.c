#include "ops/programs/program.h"

#include <tessera/sys/memory.h>

#include <string.h>

tsr_status tsr_program_create(tsr_context *context, tsr_program **out)
{
    void *room;
    if (!context || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_program_create: %s is NULL", context ? "out" : "context");
    TSR_TRY(tsr_allocate(context, sizeof(tsr_program), &room));
    tsr_program *const program = memset(room, 0, sizeof *program);
    program->context = tsr_context_retain(context);
    *out = program;
    return TSR_OK;
}

void tsr_program_destroy(tsr_program *program)
{
    if (!program)
        return;
    tsr_context *const context = program->context;
    for (size_t i = 0; i < program->value_count; i++) {
        tsr_release(context, program->values[i].name);
        tsr_release(context, program->values[i].label);
        tsr_layout_destroy(program->values[i].layout);
    }
    for (size_t i = 0; i < program->node_count; i++)
        tsr_release(context, program->nodes[i].texts);
    for (size_t i = 0; i < program->output_count; i++)
        tsr_release(context, program->outputs[i].name);
    for (size_t i = 0; i < program->length_count; i++)
        tsr_release(context, program->lengths[i].name);
    for (size_t i = 0; i < program->key_count; i++)
        tsr_release(context, program->keys[i].name);
    tsr_release(context, program->values);
    tsr_release(context, program->nodes);
    tsr_release(context, program->outputs);
    tsr_release(context, program->table);
    tsr_release(context, program);
    tsr_context_destroy(context);
}

tsr_value tsr_program_fail(tsr_program *program, tsr_status status)
{
    if (program->status == TSR_OK) {
        program->status = status;
        tsr_status_keep(&program->sentence);
    }
    return TSR_NONE;
}

bool tsr_program_records(const tsr_program *program)
{
    return program && program->status == TSR_OK;
}

tsr_status tsr_program_status(const tsr_program *program, const char **sentence)
{
    if (!program)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_program_status: program is NULL");
    if (sentence)
        *sentence = program->status == TSR_OK ? NULL : program->sentence.text;
    return program->status;
}

tsr_status tsr_program_grow(tsr_context *context, size_t bytes, size_t count, size_t *room, void **items)
{
    void *larger;
    const size_t wanted = *room ? 2 * *room : 16;
    if (count < *room)
        return TSR_OK;
    TSR_TRY(tsr_allocate(context, wanted * bytes, &larger));
    memset((char *)larger + count * bytes, 0, (wanted - count) * bytes);
    if (count)
        memcpy(larger, *items, count * bytes);
    tsr_release(context, *items);
    *items = larger;
    *room = wanted;
    return TSR_OK;
}

tsr_status tsr_program_array(tsr_context *context, size_t count, size_t bytes, void **out)
{
    *out = NULL;
    if (!count)
        return TSR_OK;
    TSR_TRY(tsr_allocate(context, count * bytes, out));
    memset(*out, 0, count * bytes);
    return TSR_OK;
}

tsr_status tsr_program_copy_text(tsr_context *context, const char *text, char **out)
{
    void *room;
    TSR_TRY(tsr_allocate(context, strlen(text) + 1, &room));
    *out = strcpy(room, text);
    return TSR_OK;
}

tsr_status tsr_program_add_value(tsr_program *program, tsr_value_kind kind, tsr_layout *layout, tsr_value *out)
{
    void *items = program->values;
    if (program->value_count == INT32_MAX)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "a program has at most %d values", INT32_MAX);
    TSR_TRY(tsr_program_grow(program->context, sizeof *program->values, program->value_count, &program->value_room,
                             &items));
    program->values = items;
    program->values[program->value_count] = (tsr_program_value){.kind = kind,
                                                                .layout = tsr_layout_retain(layout),
                                                                .node = -1,
                                                                .like = TSR_NONE,
                                                                .first = TSR_NONE,
                                                                .now = TSR_NONE};
    *out = (tsr_value)program->value_count++;
    return TSR_OK;
}

tsr_program_value *tsr_program_value_at(const tsr_program *program, tsr_value value)
{
    return program && value >= 0 && (size_t)value < program->value_count ? &program->values[value] : NULL;
}

const tsr_layout *tsr_value_layout(const tsr_program *program, tsr_value value)
{
    const tsr_program_value *const v = tsr_program_value_at(program, value);
    return v ? v->layout : NULL;
}

unsigned tsr_value_varying(const tsr_program *program, tsr_value value)
{
    const tsr_program_value *const v = tsr_program_value_at(program, value);
    return v ? v->varying : 0;
}

const char *tsr_value_name(const tsr_program *program, tsr_value value)
{
    const tsr_program_value *const v = tsr_program_value_at(program, value);
    return v ? v->name : NULL;
}

void tsr_value_set_label(tsr_program *program, tsr_value value, const char *label)
{
    tsr_program_value *const v = tsr_program_value_at(program, value);
    if (!tsr_program_records(program) || !label)
        return;
    tsr_status status = TSR_OK;
    if (!v)
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_value_set_label: value %d is not one of the program's", value);
    else if (!v->label)
        status = tsr_program_copy_text(program->context, label, &v->label);
    if (status != TSR_OK)
        (void)tsr_program_fail(program, status);
}

const char *tsr_value_label(const tsr_program *program, tsr_value value)
{
    const tsr_program_value *const v = tsr_program_value_at(program, value);
    return v && v->label ? v->label : tsr_value_name(program, value);
}
