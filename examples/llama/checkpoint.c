#include "checkpoint.h"

#include "file.h"
#include "json.h"

#include <tessera/sys/status.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SINGLE_NAME "model.safetensors"
#define INDEX_NAME  "model.safetensors.index.json"

typedef struct part {
    char *path;
    const char *file_name; /* the end of `path` */
    safetensors *file;
} part;

struct llama_checkpoint {
    char *directory;
    json_t *index; /* NULL for a single file */
    part *parts;
    size_t part_count;
};

static tsr_status join(const char *directory, const char *name, char **out)
{
    char *path;
    if (asprintf(&path, "%s/%s", directory, name) < 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for a path in it", directory);
    *out = path;
    return TSR_OK;
}

static const part *find_part(const llama_checkpoint *checkpoint, const char *file_name)
{
    for (size_t i = 0; i < checkpoint->part_count; i++)
        if (strcmp(checkpoint->parts[i].file_name, file_name) == 0)
            return &checkpoint->parts[i];
    return NULL;
}

static tsr_status add_part(llama_checkpoint *checkpoint, const char *file_name)
{
    part *const grown = realloc(checkpoint->parts, (checkpoint->part_count + 1) * sizeof(part));
    if (!grown)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for file %.200s", checkpoint->directory, file_name);
    checkpoint->parts = grown;
    part *const added = &grown[checkpoint->part_count];
    *added = (part){0};
    TSR_TRY(join(checkpoint->directory, file_name, &added->path));
    added->file_name = added->path + strlen(checkpoint->directory) + 1;
    checkpoint->part_count++;
    return safetensors_open(added->path, &added->file);
}

/* Refuses file names of the index that lead out of the directory. */
static tsr_status check_file_name(const char *path, const char *tensor, const json_t *value)
{
    const char *const name = json_is_string(value) ? json_string_value(value) : "";
    if (name[0] == '\0' || strchr(name, '/'))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: tensor %.200s must be mapped to the name of a file beside it, not to \"%.200s\"",
                              path, tensor, name);
    return TSR_OK;
}

static tsr_status check_tensor(const char *path, const char *tensor, const part *holder)
{
    if (!safetensors_find(holder->file, tensor))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %.200s should be in %s, but is not", path, tensor,
                              holder->path);
    return TSR_OK;
}

static tsr_status open_parts(const char *path, llama_checkpoint *checkpoint)
{
    json_t *const map = json_object_get(checkpoint->index, "weight_map");
    if (!json_is_object(map))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: there is no object weight_map", path);
    const char *tensor;
    json_t *value;
    json_object_foreach(map, tensor, value)
    {
        TSR_TRY(check_file_name(path, tensor, value));
        const char *const file_name = json_string_value(value);
        if (!find_part(checkpoint, file_name))
            TSR_TRY(add_part(checkpoint, file_name));
        TSR_TRY(check_tensor(path, tensor, find_part(checkpoint, file_name)));
    }
    return TSR_OK;
}

static tsr_status load_index(const char *path, llama_checkpoint *checkpoint)
{
    llama_file file;
    TSR_TRY(llama_file_read_description(path, &file));
    json_error_t error;
    checkpoint->index = llama_json_load(file.data, file.bytes, &error);
    llama_file_finish(&file);
    if (!checkpoint->index)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: line %d: %s", path, error.line, error.text);
    return open_parts(path, checkpoint);
}

static tsr_status open_indexed(llama_checkpoint *checkpoint)
{
    char *path = NULL;
    TSR_TRY(join(checkpoint->directory, INDEX_NAME, &path));
    const tsr_status status = load_index(path, checkpoint);
    free(path);
    return status;
}

static tsr_status open_directory(llama_checkpoint *checkpoint)
{
    char *single = NULL;
    TSR_TRY(join(checkpoint->directory, SINGLE_NAME, &single));
    const bool has_single = access(single, F_OK) == 0;
    free(single);
    if (has_single)
        return add_part(checkpoint, SINGLE_NAME);
    const tsr_status status = open_indexed(checkpoint);
    if (status == TSR_ERROR_IO && checkpoint->part_count == 0)
        return tsr_status_set(status, "%s holds neither " SINGLE_NAME " nor a readable " INDEX_NAME,
                              checkpoint->directory);
    return status;
}

tsr_status llama_checkpoint_open(const char *directory, llama_checkpoint **out)
{
    llama_checkpoint *const checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint || !(checkpoint->directory = strdup(directory))) {
        free(checkpoint);
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory to open it", directory);
    }
    const tsr_status status = open_directory(checkpoint);
    if (status == TSR_OK)
        *out = checkpoint;
    else
        llama_checkpoint_close(checkpoint);
    return status;
}

void llama_checkpoint_close(llama_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (size_t i = 0; i < checkpoint->part_count; i++) {
        safetensors_close(checkpoint->parts[i].file);
        free(checkpoint->parts[i].path);
    }
    free(checkpoint->parts);
    json_decref(checkpoint->index);
    free(checkpoint->directory);
    free(checkpoint);
}

tsr_status llama_checkpoint_find(const llama_checkpoint *checkpoint, const char *name, const char **path,
                                 const safetensors_entry **entry)
{
    const part *holder = NULL;
    if (!checkpoint->index)
        holder = &checkpoint->parts[0];
    else if (json_object_get(json_object_get(checkpoint->index, "weight_map"), name))
        holder = find_part(checkpoint,
                           json_string_value(json_object_get(json_object_get(checkpoint->index, "weight_map"), name)));
    const safetensors_entry *const found = holder ? safetensors_find(holder->file, name) : NULL;
    if (!found)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: there is no tensor %s", checkpoint->directory, name);
    *path = holder->path;
    *entry = found;
    return TSR_OK;
}
