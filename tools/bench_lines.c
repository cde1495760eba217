#include "bench_lines.h"

#include "file.h"

#include <stdlib.h>
#include <string.h>

#define NO_MEMORY "there is no memory for the names of the lines"

/** What was measured, or follows from it, though it is no number with a point and no table. */
static const char *const measured[] = {
    "seconds",  "gemm_seconds",    "bandwidth",         "peak_bandwidth", "of_peak",         "of_gemm",         "peak_copy",
    "wrong",    "calls",           "limit_bandwidth",   "of_limit",       "ratio",           "algbw",           "busbw",
    "messages", "bytes_allocated", "messages_received", "messages_sent",  "workspace_bytes", "enqueue_seconds", "gemm_calls"};

/** Numbers with a point, spreads and tables are never part of what is asked for; nor are links, where the line was validated on them. */
static bool is_measured(const json_t *line, const char *name, const json_t *value)
{
    if (strcmp(name, "links") == 0)
        return json_object_get(line, "measured_seconds") != NULL;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        if (strcmp(measured[i], name) == 0)
            return true;
    if (json_is_array(value))
        return json_array_size(value) > 0 && json_is_object(json_array_get(value, 0));
    return json_is_real(value) || json_is_object(value);
}

/** The fields that are not measured. NULL if there is no memory. */
static json_t *identify(const json_t *line)
{
    json_t *const identity = json_object();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)line, name, value)
    {
        if (!is_measured(line, name, value) && json_object_set(identity, name, value) != 0) {
            json_decref(identity);
            return NULL;
        }
    }
    return identity;
}

static void write_field(FILE *to, const char *name, const json_t *value)
{
    if (json_is_string(value)) {
        fprintf(to, " %s=%s", name, json_string_value(value));
        return;
    }
    fprintf(to, " %s=", name);
    json_dumpf(value, to, JSON_ENCODE_ANY | JSON_COMPACT);
}

/** "bench=plan dtype=f32 ..": the kind first, then the other fields as they stand in the line. On the heap. */
static char *describe(const json_t *identity)
{
    char *text = NULL;
    size_t bytes;
    FILE *const to = open_memstream(&text, &bytes);
    if (to == NULL)
        return NULL;
    const json_t *const kind = json_object_get(identity, "bench");
    fprintf(to, "bench=%s", json_is_string(kind) ? json_string_value(kind) : "");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)identity, name, value)
    {
        if (strcmp(name, "bench") != 0)
            write_field(to, name, value);
    }
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/** Seconds are a spread, or one number. False if they are neither, or not in order. */
static bool read_seconds(const json_t *value, spread *out)
{
    if (!json_is_number(value) && !json_is_object(value))
        return false;
    if (json_is_number(value))
        *out = (spread){json_number_value(value), json_number_value(value), json_number_value(value)};
    else
        *out = (spread){json_number_value(json_object_get(value, "median")), json_number_value(json_object_get(value, "min")),
                        json_number_value(json_object_get(value, "max"))};
    return out->min >= 0 && out->min <= out->median && out->median <= out->max;
}

static int add_line(bench_lines *lines, const json_t *object, spread seconds)
{
    if (lines->count == lines->capacity) {
        const size_t capacity = 2 * lines->capacity + 16;
        bench_line *const at = realloc(lines->at, capacity * sizeof *at);
        if (at == NULL)
            return complain(EXIT_REFUSED, "there is no memory for %zu lines", capacity);
        lines->at = at;
        lines->capacity = capacity;
    }
    bench_line *const line = &lines->at[lines->count++];
    *line = (bench_line){.fields = identify(object), .seconds = seconds, .wrong = json_number_value(json_object_get(object, "wrong")) > 0};
    if (line->fields != NULL)
        line->key = describe(line->fields);
    return line->key != NULL ? EXIT_DONE : complain(EXIT_REFUSED, NO_MEMORY);
}

/** Whether some line of the kind has the field. */
static bool has_field(const bench_lines *lines, const json_t *kind, const char *name)
{
    for (size_t i = 0; i < lines->count; i++) {
        const json_t *const fields = lines->at[i].fields;
        if (json_equal(json_object_get(fields, "bench"), kind) && json_object_get(fields, name) != NULL)
            return true;
    }
    return false;
}

static int identify_lines(bench_lines *lines, const bench_lines *others)
{
    for (size_t i = 0; i < lines->count; i++) {
        bench_line *const line = &lines->at[i];
        const char *name;
        json_t *value;
        void *next;
        json_object_foreach_safe(line->fields, next, name, value)
        {
            if (strcmp(name, "bench") != 0 && !has_field(others, json_object_get(line->fields, "bench"), name))
                json_object_del(line->fields, name);
        }
        line->identity = json_dumps(line->fields, JSON_SORT_KEYS | JSON_COMPACT);
        if (line->identity == NULL)
            return complain(EXIT_REFUSED, NO_MEMORY);
    }
    return EXIT_DONE;
}

int bench_lines_identify(bench_lines *a, bench_lines *b)
{
    const int status = identify_lines(a, b);
    return status == EXIT_DONE ? identify_lines(b, a) : status;
}

static int read_line(const char *path, size_t number, const char *text, bench_lines *lines)
{
    json_error_t error;
    json_t *const object = json_loads(text, 0, &error);
    if (object == NULL)
        return complain(EXIT_USAGE, "%s, line %zu, character %d: %s", path, number, error.column, error.text);
    const json_t *const seconds = json_object_get(object, "seconds");
    spread times;
    int status = EXIT_DONE;
    if (!json_is_object(object))
        status = complain(EXIT_USAGE, "%s, line %zu: this is no object, but benchmarks print one a line", path, number);
    else if (seconds != NULL && !read_seconds(seconds, &times))
        status =
            complain(EXIT_USAGE, "%s, line %zu: \"seconds\" are a number from 0 up, or {\"median\": .., \"min\": .., \"max\": ..} of such",
                     path, number);
    else if (seconds != NULL)
        status = add_line(lines, object, times);
    else
        lines->untimed++;
    json_decref(object);
    return status;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r")] == '\0';
}

int bench_lines_read(const char *path, bench_lines *out)
{
    char *text;
    int status = file_read_text("file", path, &text);
    if (status != EXIT_DONE)
        return status;
    size_t number = 1;
    for (char *line = text, *next; line != NULL && status == EXIT_DONE; line = next, number++) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (!is_blank(line))
            status = read_line(path, number, line, out);
    }
    free(text);
    return status;
}

void bench_lines_finish(bench_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        json_decref(lines->at[i].fields);
        free(lines->at[i].identity);
        free(lines->at[i].key);
    }
    free(lines->at);
}

bench_line *bench_lines_take(bench_lines *lines, const char *identity)
{
    for (size_t i = 0; i < lines->count; i++) {
        bench_line *const line = &lines->at[i];
        if (line->taken || strcmp(line->identity, identity) != 0)
            continue;
        line->taken = true;
        return line;
    }
    return NULL;
}
