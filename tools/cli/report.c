#include "cli/report.h"

#include "command.h"

#include <stdlib.h>
#include <string.h>

static void *allocate(size_t bytes)
{
    void *const memory = malloc(bytes);
    if (!memory)
        say_memory_is_short();
    return memory;
}

void json_begin(void)
{
    json_set_alloc_funcs(allocate, free);
}

/* Returns `whole` if `failed` is 0; else drops it and returns NULL. */
static json_t *keep_whole(json_t *whole, int failed)
{
    if (!failed)
        return whole;
    json_decref(whole);
    return NULL;
}

json_t *json_with_item(json_t *array, json_t *item)
{
    return keep_whole(array, json_array_append_new(array, item));
}

json_t *json_with_field(json_t *object, const char *name, json_t *value)
{
    return keep_whole(object, json_object_set_new(object, name, value));
}

json_t *json_with_fields(json_t *object, json_t *more)
{
    json_t *const whole = keep_whole(object, json_object_update(object, more));
    json_decref(more);
    return whole;
}

json_t *sizes_to_json(const int64_t *sizes, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        array = json_with_item(array, json_integer(sizes[i]));
    return array;
}

static json_t *names_to_json(const tsr_mesh *mesh)
{
    if (!tsr_mesh_name(mesh, 0))
        return json_null();
    json_t *array = json_array();
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++)
        array = json_with_item(array, json_string(tsr_mesh_name(mesh, d)));
    return array;
}

/* `*usual`: the ranks are 0, 1, 2, .. in mesh order. The library compares meshes without visiting
 * each rank. False if there is no memory. */
static bool compare_ranks(const tsr_mesh *mesh, const int64_t *shape, bool *usual)
{
    tsr_mesh *other;
    if (tsr_mesh_create_abstract(NULL, tsr_mesh_ndim(mesh), shape, NULL, NULL, &other) != TSR_OK)
        return false;
    *usual = tsr_mesh_equal(mesh, other);
    tsr_mesh_destroy(other);
    return true;
}

json_t *ranks_to_json(const tsr_mesh *mesh)
{
    json_t *array = json_array();
    int64_t coordinate[TSR_MAX_DIMS] = {0}, rank;
    do {
        array = json_with_item(array, tsr_mesh_rank_at(mesh, coordinate, &rank) == TSR_OK ? json_integer(rank) : NULL);
    } while (array && next_coordinate(mesh, coordinate));
    return array;
}

json_t *mesh_to_json(const tsr_mesh *mesh)
{
    int64_t shape[TSR_MAX_DIMS];
    bool usual;
    const int ndim = tsr_mesh_ndim(mesh);
    for (int d = 0; d < ndim; d++)
        shape[d] = tsr_mesh_size(mesh, d);
    if (!compare_ranks(mesh, shape, &usual))
        return NULL;
    json_t *const json = json_pack("{so so}", "shape", sizes_to_json(shape, ndim), "names", names_to_json(mesh));
    return usual ? json : json_with_field(json, "ranks", ranks_to_json(mesh));
}

typedef size_t printer(const void *object, char *text, size_t capacity);

static char *print_object(const void *object, printer *print)
{
    const size_t length = print(object, NULL, 0);
    char *const text = malloc(length + 1);
    if (text)
        print(object, text, length + 1);
    return text;
}

static size_t print_layout(const void *layout, char *text, size_t capacity)
{
    return tsr_layout_print(layout, text, capacity);
}

static size_t print_mesh(const void *mesh, char *text, size_t capacity)
{
    return tsr_mesh_print(mesh, text, capacity);
}

char *layout_text(const tsr_layout *layout)
{
    return print_object(layout, print_layout);
}

char *mesh_text(const tsr_mesh *mesh)
{
    return print_object(mesh, print_mesh);
}

json_t *placements_to_json(const tsr_layout *layout)
{
    char *const text = layout_text(layout);
    if (!text)
        return NULL;
    json_t *array = json_array();
    /* A comma within parentheses, of sizes= or blocks=, does not separate placements. */
    int depth = 0;
    const char *begin = text;
    for (const char *at = text;; at++) {
        depth += (*at == '(') - (*at == ')');
        if (*at != '\0' && !(*at == ',' && depth == 0))
            continue;
        array = json_with_item(array, json_stringn(begin, (size_t)(at - begin)));
        begin = at + 1;
        if (*at == '\0')
            break;
    }
    free(text);
    return array;
}

void print_shape(int ndim, const int64_t *size, char text[SHAPE_TEXT_BYTES])
{
    if (ndim == 0)
        strcpy(text, "scalar");
    size_t used = 0;
    for (int d = 0; d < ndim; d++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT_BYTES - used, "%s%lld", d > 0 ? "x" : "", (long long)size[d]);
}

/* Significant digits of numbers in JSON: a double keeps any decimal of 15 digits, so that 0.1
 * prints as 0.1. Other values do not read back bit for bit. */
#define REAL_DIGITS 15

char *json_take_text(json_t *json)
{
    char *const text = json ? json_dumps(json, JSON_ENCODE_ANY | JSON_REAL_PRECISION(REAL_DIGITS)) : NULL;
    json_decref(json);
    return text;
}

int write_open_json(json_t *json, text_buffer *to)
{
    char *const text = json_take_text(json);
    if (!text)
        return complain(EXIT_REFUSED, "there is no memory for the answer");
    text_buffer_add_bytes(to, text, strlen(text) - 1);
    free(text);
    return EXIT_DONE;
}

int write_json(json_t *json, text_buffer *to)
{
    const int status = write_open_json(json, to);
    if (status == EXIT_DONE)
        text_buffer_add(to, "}\n");
    return status;
}

int print_json(json_t *json)
{
    char *const text = json_take_text(json);
    if (!text)
        return complain(EXIT_REFUSED, "there is no memory for the answer");
    say("%s\n", text);
    free(text);
    return EXIT_DONE;
}
