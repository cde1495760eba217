#include "files/programs/read_attributes.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is read: one attribute. */
typedef struct reading {
    const tsr_program_reader *r;
    const char *where;
    const char *name;
    const json_t *value;
} reading;

static tsr_status refuse(const reading *a, const char *wanted)
{
    return tsr_program_refuse(a->r, a->where, "attribute %s must be %s", a->name, wanted);
}

static tsr_status read_dtype(const reading *a, tsr_attribute *out)
{
    tsr_dtype dtype;
    const char *const text = json_string_value(a->value);
    if (!text || tsr_dtype_parse(text, &dtype) != TSR_OK)
        return refuse(a, "the name of a dtype, as \"f32\"");
    *out = tsr_attribute_dtype(a->name, dtype);
    return TSR_OK;
}

/* A text, or a list of texts, which are placements. */
static tsr_status read_text(const reading *a, tsr_attribute *out, char **joined)
{
    if (json_is_array(a->value)) {
        TSR_TRY(tsr_program_join(a->r, a->where, a->name, a->value, joined));
        *out = tsr_attribute_text(a->name, *joined);
        return TSR_OK;
    }
    if (!json_string_value(a->value))
        return refuse(a, "a text");
    *out = tsr_attribute_text(a->name, json_string_value(a->value));
    return TSR_OK;
}

static tsr_status read_ints(const reading *a, tsr_attribute *out)
{
    int count;
    int64_t numbers[TSR_MAX_DIMS];
    char what[64];
    snprintf(what, sizeof what, "attribute %s", a->name);
    TSR_TRY(tsr_program_read_numbers(a->r, a->where, what, a->value, numbers, &count));
    *out = tsr_attribute_ints(a->name, count, numbers);
    return TSR_OK;
}

static tsr_status read_attribute(const reading *a, tsr_attribute_kind kind, tsr_attribute *out, char **joined)
{
    switch (kind) {
    case TSR_ATTRIBUTE_INT:
        if (!json_is_integer(a->value) && !json_is_boolean(a->value))
            return refuse(a, "a whole number");
        *out = tsr_attribute_int(a->name,
                                 json_is_boolean(a->value) ? json_is_true(a->value) : json_integer_value(a->value));
        return TSR_OK;
    case TSR_ATTRIBUTE_FLOAT:
        if (!json_is_number(a->value))
            return refuse(a, "a number");
        *out = tsr_attribute_float(a->name, json_number_value(a->value));
        return TSR_OK;
    case TSR_ATTRIBUTE_DTYPE:
        return read_dtype(a, out);
    case TSR_ATTRIBUTE_INTS:
        return read_ints(a, out);
    case TSR_ATTRIBUTE_WORD:
        if (!json_string_value(a->value))
            return refuse(a, "a word");
        *out = tsr_attribute_word(a->name, json_string_value(a->value));
        return TSR_OK;
    default:
        return read_text(a, out, joined);
    }
}

/* The attribute of the row with this name; NULL: there is none. */
static const tsr_attribute *find_attribute(const tsr_op_info *op, const char *name)
{
    const tsr_attribute *a = op->attributes;
    while (a->name && strcmp(a->name, name) != 0)
        a++;
    return a->name ? a : NULL;
}

tsr_status tsr_program_read_attributes(const tsr_program_reader *r, const char *where, const tsr_op_info *op,
                                       json_t *object, tsr_program_attributes *out)
{
    const char *name;
    json_t *value;
    *out = (tsr_program_attributes){.count = 0};
    if (!object || json_is_null(object))
        return TSR_OK;
    if (!json_is_object(object))
        return tsr_program_refuse(r, where, "attributes must be an object");
    json_object_foreach(object, name, value)
    {
        const tsr_attribute *const row = find_attribute(op, name);
        if (!row)
            return tsr_program_refuse(r, where, "%s has no attribute \"%.40s\"; 'tessera ops %s' lists them", op->name,
                                      name, op->name);
        if (json_is_null(value))
            continue;
        const reading a = {r, where, row->name, value};
        TSR_TRY(read_attribute(&a, row->kind, &out->all[out->count], &out->joined[out->count]));
        out->count++;
    }
    return TSR_OK;
}

void tsr_program_free_attributes(tsr_program_attributes *attributes)
{
    for (int i = 0; i < TSR_OP_MOST_ATTRIBUTES; i++)
        free(attributes->joined[i]);
}
