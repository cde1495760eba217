#include "files/json.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of all strings, and the digits of all integers, of a text or of values. */
typedef struct amounts {
    size_t characters, digits;
} amounts;

static unsigned long hex_at(const char *at)
{
    char digits[5];
    memcpy(digits, at, 4);
    digits[4] = '\0';
    return strtoul(digits, NULL, 16);
}

/* Counts one escape, at the backslash `at` of valid JSON, and returns where it ends. */
static const char *count_escape(const char *at, amounts *sum)
{
    if (at[1] != 'u') {
        sum->characters++;
        return at + 2;
    }
    const unsigned long code = hex_at(at + 2);
    const bool pair = code >= 0xd800 && code < 0xdc00;
    sum->characters += pair ? 4 : code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
    return at + (pair ? 12 : 6);
}

/* Counts a string of valid JSON, from behind its first quote; returns where it ends. */
static const char *count_string(const char *at, amounts *sum)
{
    while (*at != '"') {
        if (*at == '\\') {
            at = count_escape(at, sum);
            continue;
        }
        sum->characters++;
        at++;
    }
    return at + 1;
}

/* Counts a number of valid JSON, unless it is a real; returns where it ends. */
static const char *count_number(const char *at, const char *end, amounts *sum)
{
    size_t digits = 0;
    bool real = false;
    for (; at < end && *at != '\0' && strchr("0123456789+-.eE", *at); at++) {
        digits += *at >= '0' && *at <= '9';
        real = real || *at == '.' || *at == 'e' || *at == 'E';
    }
    sum->digits += real ? 0 : digits;
    return at;
}

static amounts of_text(const char *at, const char *end)
{
    amounts sum = {0, 0};
    while (at < end) {
        if (*at == '"')
            at = count_string(at + 1, &sum);
        else if (*at == '-' || (*at >= '0' && *at <= '9'))
            at = count_number(at, end, &sum);
        else
            at++;
    }
    return sum;
}

static size_t digits_of(json_int_t value)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%lld", (long long)value);
    return (size_t)length - (value < 0);
}

static void count_value(json_t *value, amounts *sum);

static void count_members(json_t *object, amounts *sum)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        sum->characters += strlen(key);
        count_value(value, sum);
    }
}

/* Jansson refuses texts that are nested more deeply than 2048, so this ends. */
static void count_value(json_t *value, amounts *sum)
{
    if (json_is_string(value))
        sum->characters += json_string_length(value);
    else if (json_is_integer(value))
        sum->digits += digits_of(json_integer_value(value));
    else if (json_is_object(value))
        count_members(value, sum);
    for (size_t i = 0; i < json_array_size(value); i++)
        count_value(json_array_get(value, i), sum);
}

json_t *tsr_json_load(const char *text, size_t bytes, json_error_t *error)
{
    json_t *const json = json_loadb(text ? text : "", bytes, JSON_REJECT_DUPLICATES, error);
    if (!json)
        return NULL;
    amounts had = {0, 0};
    count_value(json, &had);
    const amounts given = of_text(text, text + bytes);
    if (had.characters == given.characters && had.digits == given.digits)
        return json;
    json_decref(json);
    error->position = 0;
    error->line = 1;
    snprintf(error->text, sizeof error->text, "there is no memory for it");
    return NULL;
}
