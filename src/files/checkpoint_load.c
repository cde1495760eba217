#include "files/checkpoint_boxes.h"

#include <tessera/checkpoint.h>
#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CALL "tsr_checkpoint_load"

/* Where one target lies. */
typedef struct place {
    size_t count;
    tsr_file_box *boxes;
} place;

typedef struct loading {
    tsr_comm *comm;
    size_t count;
    const tsr_safetensors_target *targets;
    tsr_checkpoint_load_options options;
    tsr_catalog catalog;
    place *places;
    int64_t *values; /* of the numbers */
} loading;

static tsr_status check_targets(const loading *l)
{
    for (size_t i = 0; i < l->count; i++) {
        const tsr_safetensors_target *const t = &l->targets[i];
        if (!t->name || !t->x)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": targets[%zu].%s is NULL", i, t->name ? "x" : "name");
        const tsr_tensor local = tsr_dtensor_to_local(t->x);
        if (tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(t->x))) != l->comm)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": the dtensor for %.200s is over another communicator",
                                  t->name);
        if (tsr_tensor_overlaps(&local))
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": elements of the dtensor for %.200s share memory",
                                  t->name);
    }
    return TSR_OK;
}

/* Checks that each map is of a target. */
static tsr_status check_maps(const loading *l)
{
    for (size_t i = 0; i < l->options.map_count; i++) {
        const char *const name = l->options.map[i].name;
        bool found = false;
        for (size_t j = 0; j < l->count && name; j++)
            found = found || strcmp(l->targets[j].name, name) == 0;
        if (!found)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": options.map[%zu].name is %.200s, which is not a target's",
                                  i, name ? name : "NULL");
    }
    return TSR_OK;
}

static const tsr_checkpoint_map *map_of(const loading *l, const char *name)
{
    for (size_t i = 0; i < l->options.map_count; i++)
        if (strcmp(l->options.map[i].name, name) == 0)
            return &l->options.map[i];
    return NULL;
}

static tsr_status read_number(const loading *l, size_t index, int64_t *out)
{
    const char *const key = l->options.numbers[index].key;
    if (!key)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": options.numbers[%zu].key is NULL", index);
    const char *const text = tsr_catalog_metadata(&l->catalog, key);
    if (!text)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s: the metadata has no number %.200s", l->catalog.folder,
                              key);
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": %s: %.200s is \"%.100s\" in the metadata, which is not a number",
                              l->catalog.folder, key, text);
    *out = value;
    return TSR_OK;
}

static const char *name_target(const void *user, size_t index)
{
    const loading *const l = user;
    return l->targets[index].name;
}

static tsr_status find_places(loading *l)
{
    const tsr_checkpoint_load_options *const o = &l->options;
    TSR_TRY(tsr_checkpoint_check_views(CALL, o->view_count, o->views, l->count, name_target, l));
    for (size_t i = 0; i < l->count; i++) {
        const tsr_safetensors_target *const t = &l->targets[i];
        tsr_stored_shape shape;
        TSR_TRY(tsr_checkpoint_shape(CALL, o->view_count, o->views, t->name, tsr_dtensor_layout(t->x), &shape));
        TSR_TRY(tsr_catalog_find(&l->catalog, t, &shape, map_of(l, t->name), &l->places[i].count, &l->places[i].boxes));
    }
    return TSR_OK;
}

/* All that can be known before an element is read. */
static tsr_status prepare(loading *l, const char *folder, const tsr_checkpoint_load_options *given)
{
    TSR_TRY(tsr_options_read(CALL, given, &l->options, sizeof l->options));
    if (!l->targets && l->count > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": targets is NULL");
    if ((l->options.map_count > 0 && !l->options.map) || (l->options.number_count > 0 && !l->options.numbers))
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": options.%s is NULL",
                              l->options.map_count > 0 && !l->options.map ? "map" : "numbers");
    TSR_TRY(check_targets(l));
    TSR_TRY(check_maps(l));
    TSR_TRY(tsr_catalog_open(CALL, folder, &l->catalog));
    l->places = calloc(l->count + 1, sizeof *l->places);
    l->values = calloc(l->options.number_count + 1, sizeof *l->values);
    if (!l->places || !l->values)
        return tsr_status_set(TSR_ERROR_MEMORY, CALL ": there is no memory for the places of %zu tensors", l->count);
    TSR_TRY(find_places(l));
    for (size_t i = 0; i < l->options.number_count; i++)
        TSR_TRY(read_number(l, i, &l->values[i]));
    return TSR_OK;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *const data = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Collective: refuses, on every rank, files that differ, as of a save that took place between. */
static tsr_status compare(const loading *l)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < l->catalog.count; i++) {
        const tsr_stored_box *const box = &l->catalog.boxes[i];
        const char *const slash = strrchr(box->entry->path, '/'), *const name = slash ? slash : box->entry->path;
        hash = mix(hash, name, strlen(name));
        hash = mix(hash, box->entry->name, strlen(box->entry->name));
        hash = mix(hash, &box->entry->offset, sizeof box->entry->offset);
        hash = mix(hash, box->begin, sizeof box->begin);
    }
    int64_t least[2] = {(int64_t)hash, (int64_t)~hash};
    TSR_TRY(tsr_comm_all_reduce(l->comm, least, least, 2, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    if (least[0] == ~least[1])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          CALL ": ranks see different files in %s; all must see the same checkpoint",
                          l->catalog.folder);
}

static tsr_status read_all(const loading *l, int64_t *bytes)
{
    for (size_t i = 0; i < l->count; i++) {
        int64_t some = 0;
        TSR_TRY(tsr_distribute_file_boxes_into(l->places[i].count, l->places[i].boxes, &some, l->targets[i].x));
        *bytes += some;
    }
    return TSR_OK;
}

static tsr_status load(loading *l, const char *folder, const tsr_checkpoint_load_options *given)
{
    int64_t bytes = 0;
    TSR_TRY(tsr_comm_share_status(l->comm, CALL, prepare(l, folder, given)));
    TSR_TRY(compare(l));
    TSR_TRY(tsr_comm_share_status(l->comm, CALL, read_all(l, &bytes)));
    for (size_t i = 0; i < l->options.number_count; i++)
        l->options.numbers[i].value = l->values[i];
    if (l->options.bytes_read)
        *l->options.bytes_read = bytes;
    return TSR_OK;
}

tsr_status tsr_checkpoint_load(tsr_comm *comm, const char *folder, size_t count, const tsr_safetensors_target *targets,
                               const tsr_checkpoint_load_options *options)
{
    loading l = {.comm = comm, .count = count, .targets = targets, .options = TSR_CHECKPOINT_LOAD_OPTIONS_INIT};
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": comm is NULL");
    const tsr_status status = load(&l, folder, options);
    for (size_t i = 0; l.places && i < count; i++)
        free(l.places[i].boxes);
    free(l.places);
    free(l.values);
    tsr_catalog_close(&l.catalog);
    return status;
}
