#include "bench/run/csv.h"

#include "cli/report.h"

#include <string.h>

int row_format_read(const tool_arguments *given, row_format *out)
{
    const bool json = given->value[OPT_JSON] != NULL, csv = given->value[OPT_CSV] != NULL;
    *out = csv ? ROWS_CSV : json ? ROWS_JSON : ROWS_TEXT;
    return json && csv ? complain(EXIT_USAGE, "--json and --csv are two formats; give one of them") : EXIT_DONE;
}

/* Prints a text, quoted if it has a comma, a quote or a line break. */
static void print_text(const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        say_text(text);
        return;
    }
    say_text("\"");
    for (; *text != '\0'; text++)
        say("%s%c", *text == '"' ? "\"" : "", *text);
    say_text("\"");
}

/* Prints a shape as options take it. */
static void print_sizes(const json_t *list)
{
    if (json_array_size(list) == 0)
        say_text("scalar");
    for (size_t i = 0; i < json_array_size(list); i++)
        say("%s%lld", i > 0 ? "x" : "", (long long)json_integer_value(json_array_get(list, i)));
}

static void print_scalar(json_t *value)
{
    char *const text = json_take_text(json_incref(value));
    say_text(text);
    free(text);
}

static void print_value(json_t *value)
{
    if (json_is_string(value))
        print_text(json_string_value(value));
    else if (json_is_array(value))
        print_sizes(value);
    else if (!json_is_null(value))
        print_scalar(value);
}

/* A field, and the fields of the row that it lies in. */
typedef struct path {
    const struct path *outer; /* NULL for a field of the row itself */
    const char *name;
} path;

static void print_name(const path *field)
{
    if (field->outer) {
        print_name(field->outer);
        say_text(".");
    }
    say_text(field->name);
}

/* Prints the names or the values of an object, in one line. `outer` is the field that the object
 * is the value of; NULL for the row. */
static void print_fields(const json_t *row, const path *outer, bool names, bool *begun)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)row, name, value)
    {
        const path field = {outer, name};
        if (json_is_object(value)) {
            print_fields(value, &field, names, begun);
            continue;
        }
        if (*begun)
            say_text(",");
        *begun = true;
        if (names)
            print_name(&field);
        else
            print_value(value);
    }
}

static void print_line(const json_t *row, bool names)
{
    bool begun = false;
    print_fields(row, NULL, names, &begun);
    say_text("\n");
}

int print_row(row_format format, json_t *row, bool first)
{
    if (format == ROWS_JSON || !row)
        return print_json(row);
    if (first)
        print_line(row, true);
    print_line(row, false);
    json_decref(row);
    return EXIT_DONE;
}
