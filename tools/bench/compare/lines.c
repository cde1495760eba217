#include "bench/compare/lines.h"

#include "cli/report.h"
#include "files/file.h"

#include <stdlib.h>
#include <string.h>

/* Upper bound of the bytes of a file: tens of thousands of lines. */
#define MOST_BYTES ((size_t)64 << 20)

#define NO_MEMORY "there is no memory for the names of the lines"

/* Fields that are measured, or follow from measurements or from the code, in addition to those
 * that is_measured() tells by their type. */
static const char *const measured[] = {
    "chosen",          "as_good",         "seconds",    "gemm_seconds",     "kernel_seconds",    "of_kernels",
    "compile_seconds", "bytes_received",  "bandwidth",  "peak_bandwidth",   "of_peak",           "of_gemm",
    "peak_copy",       "wrong",           "calls",      "limit_bandwidth",  "of_limit",          "ratio",
    "algbw",           "busbw",           "messages",   "bytes_allocated",  "messages_received", "messages_sent",
    "workspace_bytes", "enqueue_seconds", "gemm_calls", "planned",          "estimated",         "read_seconds",
    "read_bandwidth",  "of_read",         "read_calls", "weight_bandwidth", "predicted_seconds", "predicted_peak_bytes",
    "peak_bytes",      "steps",           "of_copy",    "rows_per_second",  "bytes_read"};

/* True for fields that are results, not settings: those named in `measured`, real numbers, objects
 * and lists of objects; and links, if the line was validated on them. */
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

/* An object of the fields that are not measured. NULL if there is no memory. */
static json_t *identify(const json_t *line)
{
    json_t *identity = json_object();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)line, name, value)
    {
        if (!is_measured(line, name, value))
            identity = json_with_field(identity, name, json_incref(value));
    }
    return identity;
}

static void write_field(text_buffer *to, const char *name, json_t *value)
{
    char *const text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    text_buffer_print(to, " %s=", name);
    text_buffer_add(to, json_is_string(value) ? json_string_value(value) : text);
    free(text);
}

/* The fields as "bench=plan dtype=f32 ..", "bench" first, the others in their order in the line.
 * On the heap; NULL if there is no memory. */
static char *describe(const json_t *identity)
{
    text_buffer text = {0};
    const json_t *const kind = json_object_get(identity, "bench");
    text_buffer_print(&text, "bench=%s", json_is_string(kind) ? json_string_value(kind) : "");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)identity, name, value)
    {
        if (strcmp(name, "bench") != 0)
            write_field(&text, name, value);
    }
    return text_buffer_take(&text, NULL);
}

static bool read_number(const json_t *value, double *out)
{
    *out = json_number_value(value);
    return json_is_number(value);
}

/* Reads seconds: a spread, or one number. False if they are neither, or min, median and max are
 * not in order. */
static bool read_seconds(const json_t *value, spread *out)
{
    bool whole;
    if (json_is_object(value))
        whole = read_number(json_object_get(value, "median"), &out->median) &&
                read_number(json_object_get(value, "min"), &out->min) &&
                read_number(json_object_get(value, "max"), &out->max);
    else {
        whole = read_number(value, &out->median);
        out->min = out->max = out->median;
    }
    return whole && out->min >= 0 && out->min <= out->median && out->median <= out->max;
}

static int add_line(bench_lines *lines, const json_t *object, spread seconds)
{
    if (lines->count == lines->capacity) {
        const size_t capacity = 2 * lines->capacity + 16;
        bench_line *const at = realloc(lines->at, capacity * sizeof *at);
        if (!at)
            return complain(EXIT_REFUSED, "there is no memory for %zu lines", capacity);
        lines->at = at;
        lines->capacity = capacity;
    }
    bench_line *const line = &lines->at[lines->count++];
    *line = (bench_line){.fields = identify(object),
                         .seconds = seconds,
                         .wrong = json_number_value(json_object_get(object, "wrong")) > 0};
    if (line->fields)
        line->key = describe(line->fields);
    return line->key ? EXIT_DONE : complain(EXIT_REFUSED, NO_MEMORY);
}

/* By "bench", an object with every field of any of its lines. NULL if there is no memory. */
static json_t *list_fields(const bench_lines *lines)
{
    json_t *const kinds = json_object();
    for (size_t i = 0; i < lines->count; i++) {
        json_t *const fields = lines->at[i].fields;
        const char *const kind = json_string_value(json_object_get(fields, "bench"));
        json_t *const known = json_object_get(kinds, kind);
        /* not json_copy(), which does not report a lack of memory */
        if (known ? json_object_update_missing(known, fields) != 0
                  : json_object_set_new(kinds, kind, json_with_fields(json_object(), json_incref(fields))) != 0) {
            json_decref(kinds);
            return NULL;
        }
    }
    return kinds;
}

/* Drops the fields that `kinds` lacks, and sets the identity. False if there is no memory. */
static bool identify_line(bench_line *line, const json_t *kinds)
{
    const json_t *const known = json_object_get(kinds, json_string_value(json_object_get(line->fields, "bench")));
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(line->fields, next, name, value)
    {
        if (strcmp(name, "bench") != 0 && !json_object_get(known, name))
            json_object_del(line->fields, name);
    }
    line->identity = json_dumps(line->fields, JSON_SORT_KEYS | JSON_COMPACT);
    return line->identity != NULL;
}

/* Links lines of one identity, from the last to the first, so that the first is found first. False
 * if there is no memory. */
static bool index_lines(bench_lines *lines)
{
    lines->first = json_object();
    for (size_t i = lines->count; i-- > 0;) {
        bench_line *const line = &lines->at[i];
        const json_t *const later = json_object_get(lines->first, line->identity);
        line->next = later ? (size_t)json_integer_value(later) : lines->count;
        lines->first = json_with_field(lines->first, line->identity, json_integer((json_int_t)i));
    }
    return lines->first != NULL;
}

static int identify_lines(bench_lines *lines, const bench_lines *others)
{
    json_t *const kinds = list_fields(others);
    bool done = kinds != NULL;
    for (size_t i = 0; i < lines->count && done; i++)
        done = identify_line(&lines->at[i], kinds);
    json_decref(kinds);
    return done && index_lines(lines) ? EXIT_DONE : complain(EXIT_REFUSED, NO_MEMORY);
}

int bench_lines_identify(bench_lines *a, bench_lines *b)
{
    const int status = identify_lines(a, b);
    return status == EXIT_DONE ? identify_lines(b, a) : status;
}

/* The reason why an object cannot be compared, for an error; NULL if it can. Sets `seconds` if the
 * object has them. */
static const char *find_fault(const json_t *object, spread *seconds)
{
    const json_t *const times = json_object_get(object, "seconds"), *const wrong = json_object_get(object, "wrong");
    if (!json_is_object(object))
        return "this is not an object; benchmarks print an object on each line";
    if (!json_is_string(json_object_get(object, "bench")))
        return "there is no text \"bench\", which names the benchmark, as in {\"bench\": \"plan\", ..}";
    if (times && !read_seconds(times, seconds))
        return "\"seconds\" are a number from 0 up, or {\"median\": .., \"min\": .., \"max\": ..} of three such, in "
               "order";
    if (wrong && !json_is_number(wrong) && !json_is_null(wrong))
        return "\"wrong\" is a number of elements, or null where none was checked";
    return NULL;
}

static int read_line(const char *path, size_t number, const char *text, bench_lines *lines)
{
    json_error_t error;
    spread seconds = {0};
    json_t *const object = json_loads(text, 0, &error);
    if (memory_was_short()) {
        json_decref(object);
        return complain(EXIT_REFUSED, "there is no memory for line %zu of %s", number, path);
    }
    if (!object)
        return complain(EXIT_USAGE, "%s, line %zu, character %d: %s", path, number, error.column, error.text);
    int status = EXIT_DONE;
    const char *const fault = find_fault(object, &seconds);
    if (fault)
        status = complain(EXIT_USAGE, "%s, line %zu: %s", path, number, fault);
    else if (json_object_get(object, "seconds"))
        status = add_line(lines, object, seconds);
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
    int status = file_read_text("file", path, MOST_BYTES, &text);
    if (status != EXIT_DONE)
        return status;
    size_t number = 1;
    for (char *line = text, *next; line && status == EXIT_DONE; line = next, number++) {
        next = strchr(line, '\n');
        if (next)
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
    json_decref(lines->first);
}

bench_line *bench_lines_take(bench_lines *lines, const char *identity)
{
    json_t *const first = json_object_get(lines->first, identity);
    const size_t found = first ? (size_t)json_integer_value(first) : lines->count;
    if (found == lines->count)
        return NULL;
    bench_line *const line = &lines->at[found];
    line->taken = true;
    json_integer_set(first, (json_int_t)line->next);
    return line;
}
