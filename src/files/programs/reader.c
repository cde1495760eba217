#include "files/programs/reader.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest name of a value. */
#define NAME_LENGTH 255

tsr_status tsr_program_refuse(const tsr_program_reader *r, const char *where, const char *format, ...)
{
    char text[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return tsr_status_set(TSR_ERROR_IO, "%.200s: %s: %s", r->name, where, text);
}

static tsr_status lack(const tsr_program_reader *r)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "%.200s: there is no memory for the program", r->name);
}

tsr_status tsr_program_pass(const tsr_program_reader *r, const char *where, tsr_status status)
{
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    return tsr_status_set(status, "%.200s: %s: %s", r->name, where, kept.text);
}

tsr_status tsr_program_check(const tsr_program_reader *r, const char *where)
{
    const char *sentence;
    const tsr_status status = tsr_program_status(r->program, &sentence);
    return status == TSR_OK ? TSR_OK : tsr_status_set(status, "%.200s: %s: %s", r->name, where, sentence);
}

/* "name, kind, shape". */
static void list_keys(const char *const *keys, char *text, size_t room)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; keys[i] && length < room; i++)
        length += (size_t)snprintf(text + length, room - length, "%s%s", i ? ", " : "", keys[i]);
}

static bool is_among(const char *const *keys, const char *key)
{
    int i = 0;
    while (keys[i] && strcmp(keys[i], key) != 0)
        i++;
    return keys[i] != NULL;
}

tsr_status tsr_program_check_keys(const tsr_program_reader *r, const char *where, json_t *object,
                                  const char *const *keys)
{
    const char *key;
    json_t *value;
    char known[160];
    list_keys(keys, known, sizeof known);
    if (!json_is_object(object))
        return tsr_program_refuse(r, where, "it must be an object with %s", known);
    json_object_foreach(object, key, value)
    {
        if (!is_among(keys, key))
            return tsr_program_refuse(r, where, "\"%.40s\" is not one of its fields, which are %s", key, known);
    }
    return TSR_OK;
}

tsr_status tsr_program_read_text(const tsr_program_reader *r, const char *where, const json_t *object, const char *key,
                                 const char **out)
{
    const json_t *const value = json_object_get(object, key);
    if (!json_is_string(value))
        return tsr_program_refuse(r, where, "%s %s", key, value ? "must be a text" : "is missing; it is a text");
    *out = json_string_value(value);
    return TSR_OK;
}

tsr_status tsr_program_read_list(const tsr_program_reader *r, const char *where, const json_t *object, const char *key,
                                 const json_t **out)
{
    const json_t *const value = json_object_get(object, key);
    *out = NULL;
    if (!value || json_is_null(value))
        return TSR_OK;
    if (!json_is_array(value))
        return tsr_program_refuse(r, where, "%s must be a list", key);
    *out = value;
    return TSR_OK;
}

tsr_status tsr_program_read_numbers(const tsr_program_reader *r, const char *where, const char *what,
                                    const json_t *list, int64_t *out, int *count)
{
    if (!json_is_array(list) || json_array_size(list) > TSR_MAX_DIMS)
        return tsr_program_refuse(r, where, "%s must be a list of at most %d whole numbers", what, TSR_MAX_DIMS);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const number = json_array_get(list, i);
        if (!json_is_integer(number))
            return tsr_program_refuse(r, where, "%s[%zu] must be a whole number", what, i);
        out[i] = json_integer_value(number);
    }
    *count = (int)json_array_size(list);
    return TSR_OK;
}

tsr_status tsr_program_join(const tsr_program_reader *r, const char *where, const char *what, const json_t *list,
                            char **out)
{
    size_t bytes = 1;
    *out = NULL;
    if (!list)
        return TSR_OK;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const text = json_array_get(list, i);
        if (!json_is_string(text))
            return tsr_program_refuse(r, where, "%s[%zu] must be a text, as \"S(0)\" or \"R\"", what, i);
        bytes += json_string_length(text) + 1;
    }
    char *const joined = malloc(bytes), *at = joined;
    if (!joined)
        return lack(r);
    *at = '\0';
    for (size_t i = 0; i < json_array_size(list); i++)
        at += sprintf(at, "%s%s", i ? "," : "", json_string_value(json_array_get(list, i)));
    *out = joined;
    return TSR_OK;
}

static bool is_name(const char *name)
{
    size_t length = 0;
    while (length <= NAME_LENGTH && name[length] &&
           (isalnum((unsigned char)name[length]) || strchr("_.-", name[length])))
        length++;
    return length > 0 && length <= NAME_LENGTH && !name[length];
}

tsr_status tsr_program_name(const tsr_program_reader *r, const char *where, const char *name, tsr_value value)
{
    if (!is_name(name))
        return tsr_program_refuse(
            r, where, "\"%.64s\" is not a name, which is 1 to %d letters, digits, '_', '.' and '-'", name, NAME_LENGTH);
    if (json_object_get(r->names, name))
        return tsr_program_refuse(r, where, "there is a value \"%s\" already", name);
    if (json_object_set_new(r->names, name, json_integer(value)) != 0)
        return lack(r);
    tsr_value_set_label(r->program, value, name);
    return tsr_program_check(r, where);
}

tsr_status tsr_program_find(const tsr_program_reader *r, const char *where, const char *name, tsr_value *out)
{
    const json_t *const value = json_object_get(r->names, name);
    if (!value)
        return tsr_program_refuse(r, where, "no value before it is called \"%.64s\"", name);
    *out = (tsr_value)json_integer_value(value);
    return TSR_OK;
}

tsr_value tsr_program_vary(const tsr_program_reader *r, tsr_value value)
{
    const tsr_value operands[TSR_OP_MOST_OPERANDS] = {value};
    return tsr_program_apply(r->program, "vary", 0, NULL, operands, NULL);
}

tsr_status tsr_program_name_state(const tsr_program_reader *r, const char *where, const char *name, tsr_value state,
                                  tsr_value value)
{
    TSR_TRY(tsr_program_name(r, where, name, value));
    return json_object_set_new(r->states, name, json_integer(state)) == 0 ? TSR_OK : lack(r);
}

tsr_status tsr_program_find_state(const tsr_program_reader *r, const char *where, const char *name, tsr_value *out)
{
    const json_t *const state = json_object_get(r->states, name);
    if (!state)
        return tsr_program_refuse(r, where, "\"%.64s\" is not the name of a state", name);
    *out = (tsr_value)json_integer_value(state);
    return TSR_OK;
}

tsr_status tsr_program_renew_state(const tsr_program_reader *r, const char *where, const char *name)
{
    const json_t *const state = json_object_get(r->states, name), *const value = json_object_get(r->names, name);
    if (json_equal(state, value))
        return TSR_OK;
    const tsr_value stored = tsr_program_vary(r, (tsr_value)json_integer_value(state));
    TSR_TRY(tsr_program_check(r, where));
    tsr_value_set_label(r->program, stored, name);
    return json_object_set_new(r->names, name, json_integer(stored)) == 0 ? TSR_OK : lack(r);
}
