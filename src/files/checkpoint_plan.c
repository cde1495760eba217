#include "files/checkpoint_plan.h"

#include "files/checkpoint_runs.h"

#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_BYTES INT64_C(5000000000)

static tsr_status lack(const tsr_checkpoint_saving *s, const char *what)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for %s", s->call, what);
}

static bool gives(size_t count, const tsr_safetensors_text *metadata, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (metadata[i].key && strcmp(metadata[i].key, key) == 0)
            return true;
    return false;
}

/* Makes one list of texts and numbers. */
static tsr_status take_texts(tsr_checkpoint_saving *s, const tsr_checkpoint_save_options *o)
{
    if ((o->metadata_count > 0 && !o->metadata) || (o->number_count > 0 && !o->numbers))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.%s is NULL", s->call,
                              o->metadata_count > 0 && !o->metadata ? "metadata" : "numbers");
    s->texts = calloc(o->metadata_count + o->number_count + 3, sizeof *s->texts);
    s->digits = calloc(o->number_count + 1, sizeof *s->digits);
    if (!s->texts || !s->digits)
        return lack(s, "the metadata");
    if (o->metadata_count > 0)
        memcpy(s->texts, o->metadata, o->metadata_count * sizeof *s->texts);
    s->text_count = o->metadata_count;
    for (size_t i = 0; i < o->number_count; i++) {
        if (!o->numbers[i].key)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.numbers[%zu].key is NULL", s->call, i);
        snprintf(s->digits[i], sizeof s->digits[i], "%lld", (long long)o->numbers[i].value);
        s->texts[s->text_count++] = (tsr_safetensors_text){o->numbers[i].key, s->digits[i]};
    }
    if (!gives(s->text_count, s->texts, "format"))
        s->texts[s->text_count++] = (tsr_safetensors_text){"format", "pt"};
    return TSR_OK;
}

static const char *name_item(const void *user, size_t index)
{
    const tsr_checkpoint_saving *const s = user;
    return s->items[index].tensor.name;
}

/* Finds under which shapes items are stored. */
static tsr_status take_shapes(tsr_checkpoint_saving *s, const tsr_checkpoint_save_options *o)
{
    TSR_TRY(tsr_checkpoint_check_views(s->call, o->view_count, o->views, s->item_count, name_item, s));
    if (s->dcp && o->view_count > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: options.dcp: a part of the view of %.200s is no box, and PyTorch's files have "
                              "boxes: save without dcp",
                              s->call, o->views[0].name);
    for (size_t i = 0; i < s->item_count; i++) {
        const tsr_safetensors_tensor *const t = &s->items[i].tensor;
        TSR_TRY(tsr_checkpoint_shape(s->call, o->view_count, o->views, t->name, tsr_dtensor_layout(t->x),
                                     &s->items[i].shape));
    }
    return TSR_OK;
}

static int by_order(const void *a, const void *b)
{
    const tsr_checkpoint_item *const x = a, *const y = b;
    return tsr_header_order(&x->tensor, &y->tensor);
}

tsr_status tsr_checkpoint_take(tsr_checkpoint_saving *s, size_t count, const tsr_safetensors_tensor *tensors,
                               const tsr_checkpoint_save_options *given)
{
    tsr_checkpoint_save_options options = TSR_CHECKPOINT_SAVE_OPTIONS_INIT;
    TSR_TRY(tsr_options_read(s->call, given, &options, sizeof options));
    if (!s->folder)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: folder is NULL", s->call);
    if (!tensors || count == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: there is no tensor: %s", s->call,
                              tensors ? "count is 0" : "tensors is NULL");
    if (options.shard_bytes < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.shard_bytes is %lld; 0 or more would do", s->call,
                              (long long)options.shard_bytes);
    s->shard_bytes = options.shard_bytes > 0 ? options.shard_bytes : SHARD_BYTES;
    s->dcp = options.dcp != 0;
    TSR_TRY(take_texts(s, &options));
    s->items = calloc(count, sizeof *s->items);
    if (!s->items)
        return lack(s, "the list of tensors");
    s->item_count = count;
    for (size_t i = 0; i < count; i++) {
        s->items[i].tensor = tensors[i];
        TSR_TRY(tsr_header_check(s->call, s->comm, i, &s->items[i].tensor));
    }
    TSR_TRY(take_shapes(s, &options));
    qsort(s->items, count, sizeof *s->items, by_order);
    return TSR_OK;
}

/* The header of `count` items from `first` on, whole tensors, and the tensors' places. */
static tsr_status print_whole(tsr_checkpoint_saving *s, size_t first, size_t count, tsr_header_text *out)
{
    tsr_header_tensor *const places = calloc(count, sizeof *places);
    if (!places)
        return lack(s, "a header");
    for (size_t i = 0; i < count; i++) {
        const tsr_safetensors_tensor *const t = &s->items[first + i].tensor;
        const tsr_stored_shape *const shape = &s->items[first + i].shape;
        places[i] = (tsr_header_tensor){t->name, t->dtype, shape->ndim, shape->sizes, 0};
    }
    const tsr_status status = tsr_header_print(s->call, count, places, s->text_count, s->texts, out);
    for (size_t i = 0; i < count && status == TSR_OK; i++)
        s->items[first + i].place = (int64_t)out->bytes + places[i].offset;
    free(places);
    return status;
}

static uint64_t mix(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Collective: refuses calls that differ. `local` is this rank's status so far. */
static tsr_status compare(tsr_checkpoint_saving *s)
{
    tsr_header_text all = {NULL, 0, 0};
    TSR_TRY(tsr_comm_share_status(s->comm, s->call, print_whole(s, 0, s->item_count, &all)));
    uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), all.text, all.bytes);
    hash = mix(hash, s->folder, strlen(s->folder));
    hash = mix(hash, (const char *)&s->shard_bytes, sizeof s->shard_bytes);
    const int64_t word = (int64_t)(s->dcp ? ~hash : hash);
    int64_t least[2] = {word, ~word};
    free(all.text);
    TSR_TRY(tsr_comm_all_reduce(s->comm, least, least, 2, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    if (least[0] == ~least[1])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: ranks give different folders, names, shapes, dtypes, metadata or options; all must "
                          "give the same",
                          s->call);
}

/* Collective: moves an item as a whole; a failure of one rank is told to all. */
static tsr_status move_item(const tsr_checkpoint_saving *s, tsr_checkpoint_item *item)
{
    return tsr_comm_share_status(s->comm, s->call, tsr_checkpoint_move(item, NULL, &item->moved));
}

tsr_status tsr_checkpoint_agree(tsr_checkpoint_saving *s)
{
    tsr_status status = TSR_OK;
    TSR_TRY(compare(s));
    for (size_t i = 0; i < s->item_count && status == TSR_OK; i++)
        status = tsr_checkpoint_choose_layout(s, &s->items[i]);
    TSR_TRY(tsr_comm_share_status(s->comm, s->call, status));
    /* What a thread writes must not change; boxes are what a rank has. */
    for (size_t i = 0; i < s->item_count; i++)
        if (s->items[i].moves && (s->apart || s->dcp))
            TSR_TRY(move_item(s, &s->items[i]));
    return TSR_OK;
}

static int64_t bytes_of(const tsr_safetensors_tensor *tensor)
{
    const tsr_layout *const layout = tsr_dtensor_layout(tensor->x);
    int64_t bytes = (int64_t)tsr_dtype_bytes(tensor->dtype);
    for (int i = 0; i < tsr_layout_ndim(layout); i++)
        bytes *= tsr_layout_shape(layout)[i];
    return bytes;
}

static tsr_status plan_files(tsr_checkpoint_saving *s)
{
    s->files = calloc(s->item_count, sizeof *s->files);
    if (!s->files)
        return lack(s, "the list of files");
    for (size_t first = 0; first < s->item_count;) {
        tsr_checkpoint_file *const file = &s->files[s->file_count];
        int64_t bytes = bytes_of(&s->items[first].tensor);
        file->first = first;
        file->count = 1;
        while (first + file->count < s->item_count) {
            const int64_t more = bytes_of(&s->items[first + file->count].tensor);
            if (bytes > s->shard_bytes - more)
                break;
            bytes += more;
            file->count++;
        }
        s->file_count++;
        TSR_TRY(print_whole(s, file->first, file->count, &file->header));
        first += file->count;
    }
    return TSR_OK;
}

/* Checks that this rank's shard is one box, and adds the box's begin to `info`. */
static tsr_status add_box(const tsr_checkpoint_saving *s, const tsr_checkpoint_item *item, int64_t *shape, json_t *info)
{
    const tsr_layout *const layout = tsr_dtensor_layout(tsr_checkpoint_source_of(item));
    int64_t begin[TSR_MAX_DIMS];
    json_t *const list = json_array();
    bool made = list != NULL;
    tsr_status status = tsr_layout_local(layout, NULL, shape, begin);
    for (int i = 0; i < tsr_layout_ndim(layout) && status == TSR_OK; i++) {
        tsr_interval piece;
        size_t pieces = 0;
        status = tsr_layout_intervals(layout, NULL, i, &piece, 1, &pieces);
        if (status == TSR_OK && pieces > 1)
            status = tsr_status_set(TSR_ERROR_ARGUMENT,
                                    "%s: options.dcp: tensor %.200s has %zu pieces along dim %d on this rank; "
                                    "PyTorch's files have one, as of S(%d): redistribute it or save without dcp",
                                    s->call, item->tensor.name, pieces, i, i);
        made = made && json_array_append_new(list, json_integer(begin[i])) == 0;
    }
    if (status == TSR_OK &&
        (!made || json_object_set_new(info, item->tensor.name, json_pack("{sO}", "saved_offsets", list)) != 0))
        status = lack(s, "the boxes");
    json_decref(list);
    return status;
}

/* The header of this rank's boxes, whose list is `info`. */
static tsr_status print_boxes(tsr_checkpoint_saving *s, tsr_checkpoint_file *file, json_t *info)
{
    tsr_header_tensor *const places = calloc(file->count, sizeof *places);
    int64_t(*const shapes)[TSR_MAX_DIMS] = calloc(file->count, sizeof *shapes);
    tsr_status status = places && shapes && info ? TSR_OK : lack(s, "a header");
    for (size_t i = 0; i < file->count && status == TSR_OK; i++) {
        const tsr_safetensors_tensor *const t = &s->items[i].tensor;
        status = add_box(s, &s->items[i], shapes[i], info);
        places[i] = (tsr_header_tensor){t->name, t->dtype, tsr_layout_ndim(tsr_dtensor_layout(t->x)), shapes[i], 0};
    }
    const size_t length = status == TSR_OK ? json_dumpb(info, NULL, 0, JSON_COMPACT) : 0;
    char *const text = length > 0 ? calloc(1, length + 1) : NULL;
    if (status == TSR_OK && (!text || json_dumpb(info, text, length, JSON_COMPACT) != length))
        status = lack(s, "the boxes");
    if (status == TSR_OK) {
        s->texts[s->text_count++] = (tsr_safetensors_text){"DCP_SHARDING_INFO", text};
        s->texts[s->text_count++] = (tsr_safetensors_text){"DCP_VERSION", "1.0"};
        status = tsr_header_print(s->call, file->count, places, s->text_count, s->texts, &file->header);
        s->text_count -= 2;
    }
    for (size_t i = 0; i < file->count && status == TSR_OK; i++)
        s->items[i].place = (int64_t)file->header.bytes + places[i].offset;
    free(text);
    free(shapes);
    free(places);
    return status;
}

/* Keeps the items of which this rank writes bytes. */
static tsr_status drop_items(tsr_checkpoint_saving *s)
{
    size_t kept = 0;
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < s->item_count; i++) {
        tsr_checkpoint_item *const item = &s->items[i];
        int64_t bytes = 0;
        if (status == TSR_OK)
            status = tsr_dtensor_visit_bytes(tsr_checkpoint_source_of(item), item->tensor.dtype, 1, NULL, NULL, &bytes);
        if (bytes > 0)
            s->items[kept++] = *item;
        else
            tsr_dtensor_destroy(item->moved);
    }
    s->item_count = kept;
    return status;
}

/* One file with the items that this rank writes; none if it writes nothing. */
static tsr_status plan_boxes(tsr_checkpoint_saving *s)
{
    TSR_TRY(drop_items(s));
    const size_t kept = s->item_count;
    if (kept == 0)
        return TSR_OK;
    s->files = calloc(1, sizeof *s->files);
    json_t *const info = json_object();
    tsr_status status = s->files ? TSR_OK : lack(s, "the file");
    if (status == TSR_OK) {
        s->file_count = 1;
        s->files[0].count = kept;
        status = print_boxes(s, &s->files[0], info);
    }
    json_decref(info);
    return status;
}

tsr_status tsr_checkpoint_plan(tsr_checkpoint_saving *s)
{
    return s->dcp ? plan_boxes(s) : plan_files(s);
}

/* The part of a path behind the last slash. */
static const char *name_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool fill_index(const tsr_checkpoint_saving *s, json_t *metadata, json_t *map)
{
    int64_t total = 0;
    bool made = metadata && map;
    for (size_t i = 0; i < s->text_count && made; i++)
        made = json_object_set_new(metadata, s->texts[i].key, json_string(s->texts[i].value)) == 0;
    for (size_t f = 0; f < s->file_count && made; f++) {
        const tsr_checkpoint_file *const file = &s->files[f];
        for (size_t i = 0; i < file->count && made; i++)
            made =
                json_object_set_new(map, s->items[file->first + i].tensor.name, json_string(name_of(file->path))) == 0;
        total += file->header.data_bytes;
    }
    return made && json_object_set_new(metadata, "total_size", json_integer(total)) == 0;
}

tsr_status tsr_checkpoint_make_index(tsr_checkpoint_saving *s)
{
    json_t *const metadata = json_object(), *const map = json_object();
    json_t *const root = json_pack("{sO?sO?}", "metadata", metadata, "weight_map", map);
    const size_t flags = JSON_INDENT(2) | JSON_SORT_KEYS;
    tsr_status status = TSR_OK;
    if (!root || !fill_index(s, metadata, map))
        status = lack(s, "the index");
    const size_t length = status == TSR_OK ? json_dumpb(root, NULL, 0, flags) : 0;
    s->index = length > 0 ? malloc(length + 1) : NULL;
    if (status == TSR_OK && (!s->index || json_dumpb(root, s->index, length, flags) != length))
        status = lack(s, "the index");
    if (status == TSR_OK)
        s->index[length] = '\n';
    s->index_bytes = length + 1;
    json_decref(root);
    json_decref(map);
    json_decref(metadata);
    return status;
}
