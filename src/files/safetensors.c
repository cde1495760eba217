#include "files/safetensors.h"

#include "files/beginning.h"
#include "files/json.h"
#include "files/safetensors_header.h"

#include <tessera/sys/status.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SINGLE_NAME "model.safetensors"
#define INDEX_NAME  "model.safetensors.index.json"
#define INDEX_END   ".index.json"

/* One of the files. */
typedef struct part {
    char *path;
    const char *file_name; /* the end of `path` */
    tsr_safetensors_header header;
} part;

struct tsr_safetensors {
    char *path; /* what was opened */
    part *parts;
    size_t part_count;
    tsr_safetensors_entry *entries; /* of all parts, sorted by name; texts are the parts' */
    size_t count;
};

static tsr_status lack(const char *path, const char *what)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory %s", path, what);
}

/* The path of `name` in the folder that is the first `length` characters of `folder`. */
static tsr_status join(const char *folder, size_t length, const char *name, char **out)
{
    char *path;
    if (asprintf(&path, "%.*s%s%s", (int)length, folder, length > 0 ? "/" : "", name) < 0)
        return lack(folder, "for a path in it");
    *out = path;
    return TSR_OK;
}

static part *find_part(const tsr_safetensors *file, const char *file_name)
{
    for (size_t i = 0; i < file->part_count; i++)
        if (strcmp(file->parts[i].file_name, file_name) == 0)
            return &file->parts[i];
    return NULL;
}

/* Adds a part without a header yet, which takes over `path`. */
static tsr_status add_part(tsr_safetensors *file, char *path, part **out)
{
    part *const grown = realloc(file->parts, (file->part_count + 1) * sizeof *grown);
    if (!grown) {
        free(path);
        return lack(file->path, "for one more file");
    }
    const char *const slash = strrchr(path, '/');
    file->parts = grown;
    *out = &grown[file->part_count++];
    **out = (part){.path = path, .file_name = slash ? slash + 1 : path};
    return TSR_OK;
}

static tsr_status read_part(tsr_safetensors *file, char *path)
{
    part *added;
    TSR_TRY(add_part(file, path, &added));
    return tsr_safetensors_header_read(added->path, &added->header);
}

/* Lists the entries of the only part. */
static tsr_status list_part(tsr_safetensors *file)
{
    const tsr_safetensors_header *const header = &file->parts[0].header;
    file->entries = malloc((header->count + 1) * sizeof *file->entries);
    if (!file->entries)
        return lack(file->path, "for the list of its tensors");
    memcpy(file->entries, header->entries, header->count * sizeof *file->entries);
    file->count = header->count;
    return TSR_OK;
}

static tsr_status open_single(tsr_safetensors *file, char *path)
{
    TSR_TRY(read_part(file, path));
    return list_part(file);
}

/* Refuses file names of the index that lead out of its folder. */
static tsr_status check_file_name(const char *path, const char *tensor, const json_t *value)
{
    const char *const name = json_is_string(value) ? json_string_value(value) : "";
    if (name[0] == '\0' || strchr(name, '/'))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: tensor %.200s must be mapped to the name of a file beside it, not to \"%.200s\"",
                              path, tensor, name);
    return TSR_OK;
}

/* Adds the entry of a tensor that the index at `path` says to be in `file_name`. */
static tsr_status add_tensor(tsr_safetensors *file, const char *path, const char *tensor, const char *file_name)
{
    const char *const slash = strrchr(path, '/');
    if (!find_part(file, file_name)) {
        char *part_path = NULL;
        TSR_TRY(join(path, slash ? (size_t)(slash - path) : 0, file_name, &part_path));
        TSR_TRY(read_part(file, part_path));
    }
    const part *const holder = find_part(file, file_name);
    const tsr_safetensors_entry *const entry =
        tsr_safetensors_among(holder->header.entries, holder->header.count, tensor);
    if (!entry)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %.200s should be in %s, but is not", path, tensor,
                              holder->path);
    file->entries[file->count++] = *entry;
    return TSR_OK;
}

static tsr_status open_parts(tsr_safetensors *file, const char *path, json_t *index)
{
    json_t *const map = json_object_get(index, "weight_map");
    if (!json_is_object(map))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: there is no object weight_map", path);
    file->entries = malloc((json_object_size(map) + 1) * sizeof *file->entries);
    if (!file->entries)
        return lack(path, "for the list of its tensors");
    const char *tensor;
    json_t *value;
    json_object_foreach(map, tensor, value)
    {
        TSR_TRY(check_file_name(path, tensor, value));
        TSR_TRY(add_tensor(file, path, tensor, json_string_value(value)));
    }
    if (file->count > 0)
        qsort(file->entries, file->count, sizeof *file->entries, tsr_safetensors_by_name);
    return TSR_OK;
}

static tsr_status open_index(tsr_safetensors *file, const char *path)
{
    tsr_beginning text;
    json_error_t error;
    TSR_TRY(tsr_beginning_read(path, TSR_SAFETENSORS_HEADER_BYTES, &text));
    const size_t size = text.size, bytes = text.bytes;
    json_t *const index = size == bytes ? tsr_json_load(text.data, bytes, &error) : NULL;
    tsr_beginning_free(&text);
    if (size != bytes)
        return tsr_status_set(TSR_ERROR_IO, "%s has %zu bytes, of which %zu can be read; at most %zu are allowed", path,
                              size, bytes, TSR_SAFETENSORS_HEADER_BYTES);
    if (!index)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: line %d: %s", path, error.line, error.text);
    const tsr_status status = open_parts(file, path, index);
    json_decref(index);
    return status;
}

static tsr_status open_folder(tsr_safetensors *file)
{
    char *path = NULL;
    TSR_TRY(join(file->path, strlen(file->path), SINGLE_NAME, &path));
    if (access(path, F_OK) == 0)
        return open_single(file, path);
    free(path);
    char *index = NULL;
    TSR_TRY(join(file->path, strlen(file->path), INDEX_NAME, &index));
    const tsr_status status = open_index(file, index);
    free(index);
    if (status == TSR_ERROR_IO && file->part_count == 0)
        return tsr_status_set(status, "%s holds neither " SINGLE_NAME " nor a readable " INDEX_NAME, file->path);
    return status;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static tsr_status open_path(tsr_safetensors *file)
{
    struct stat facts;
    if (stat(file->path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return open_folder(file);
    if (ends_in(file->path, INDEX_END))
        return open_index(file, file->path);
    char *const path = strdup(file->path);
    return path ? open_single(file, path) : lack(file->path, "to open it");
}

static tsr_status create(const char *path, tsr_safetensors **out)
{
    tsr_safetensors *const file = calloc(1, sizeof *file);
    if (!file || !(file->path = strdup(path))) {
        free(file);
        return lack(path, "to open it");
    }
    *out = file;
    return TSR_OK;
}

tsr_status tsr_safetensors_open(const char *path, tsr_safetensors **out)
{
    tsr_safetensors *file = NULL;
    if (!path || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_safetensors_open: %s is NULL", !path ? "path" : "out");
    TSR_TRY(create(path, &file));
    const tsr_status status = open_path(file);
    if (status == TSR_OK)
        *out = file;
    else
        tsr_safetensors_destroy(file);
    return status;
}

static tsr_status parse(tsr_safetensors *file, const void *data, size_t bytes)
{
    part *added;
    char *const path = strdup(file->path);
    if (!path)
        return lack(file->path, "for its name");
    TSR_TRY(add_part(file, path, &added));
    TSR_TRY(tsr_safetensors_header_parse(added->path, data, bytes, bytes, &added->header));
    return list_part(file);
}

tsr_status tsr_safetensors_parse(const char *name, const void *data, size_t bytes, tsr_safetensors **out)
{
    tsr_safetensors *file = NULL;
    if (!name || !out || (!data && bytes > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_safetensors_parse: %s is NULL",
                              !name  ? "name"
                              : !out ? "out"
                                     : "data");
    TSR_TRY(create(name, &file));
    const tsr_status status = parse(file, data, bytes);
    if (status == TSR_OK)
        *out = file;
    else
        tsr_safetensors_destroy(file);
    return status;
}

void tsr_safetensors_destroy(tsr_safetensors *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < file->part_count; i++) {
        tsr_safetensors_header_free(&file->parts[i].header);
        free(file->parts[i].path);
    }
    free(file->parts);
    free(file->entries);
    free(file->path);
    free(file);
}

const char *tsr_safetensors_path(const tsr_safetensors *file)
{
    return file->path;
}

size_t tsr_safetensors_count(const tsr_safetensors *file)
{
    return file->count;
}

const tsr_safetensors_entry *tsr_safetensors_get(const tsr_safetensors *file, size_t index)
{
    return index < file->count ? &file->entries[index] : NULL;
}

const tsr_safetensors_entry *tsr_safetensors_find(const tsr_safetensors *file, const char *name)
{
    return name ? tsr_safetensors_among(file->entries, file->count, name) : NULL;
}

const char *tsr_safetensors_metadata(const tsr_safetensors *file, const char *key)
{
    const char *text = NULL;
    for (size_t i = 0; i < file->part_count && !text; i++)
        text = json_string_value(json_object_get(file->parts[i].header.metadata, key));
    return text;
}

static tsr_status check_shape(const tsr_safetensors_entry *entry, const tsr_layout *layout)
{
    const int ndim = tsr_layout_ndim(layout);
    const int64_t *const shape = tsr_layout_shape(layout);
    if (entry->ndim != ndim)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %.200s has %d dims, but the layout has %d", entry->path,
                              entry->name, entry->ndim, ndim);
    for (int i = 0; i < ndim; i++)
        if (entry->shape[i] != shape[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: tensor %.200s has size %lld along dim %d, but the layout has %lld", entry->path,
                                  entry->name, (long long)entry->shape[i], i, (long long)shape[i]);
    return TSR_OK;
}

tsr_status tsr_safetensors_distribute(const tsr_safetensors *file, const char *name, const tsr_layout *layout,
                                      int64_t *bytes_read, tsr_dtensor **out)
{
    if (!file || !name || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_safetensors_distribute: %s is NULL",
                              !file     ? "file"
                              : !name   ? "name"
                              : !layout ? "layout"
                                        : "out");
    const tsr_safetensors_entry *const entry = tsr_safetensors_find(file, name);
    if (!entry)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: there is no tensor %s", file->path, name);
    TSR_TRY(check_shape(entry, layout));
    return tsr_distribute_file(entry->path, entry->offset, entry->dtype, layout, bytes_read, out);
}
