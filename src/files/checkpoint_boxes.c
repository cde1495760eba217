#include "files/checkpoint_boxes.h"

#include "files/checkpoint.h"
#include "files/json.h"

#include <tessera/sys/status.h>

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tsr_status lack(const tsr_catalog *c, const char *what)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "%s: %s: there is no memory for %s", c->call, c->folder, what);
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

static tsr_status refuse_info(const tsr_safetensors_entry *entry)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: DCP_SHARDING_INFO must have saved_offsets of tensor %.200s, %d whole numbers",
                          entry->path, entry->name, entry->ndim);
}

/* Reads where a tensor of a file lies, by what PyTorch wrote in the metadata; NULL: it is whole. */
static tsr_status read_begin(const json_t *info, tsr_stored_box *box)
{
    const tsr_safetensors_entry *const entry = box->entry;
    if (!info)
        return TSR_OK;
    const json_t *const list = json_object_get(json_object_get(info, entry->name), "saved_offsets");
    if (!json_is_array(list) || json_array_size(list) != (size_t)entry->ndim)
        return refuse_info(entry);
    for (int i = 0; i < entry->ndim; i++) {
        const json_t *const number = json_array_get(list, (size_t)i);
        int64_t end;
        if (!json_is_integer(number) || json_integer_value(number) < 0 ||
            __builtin_add_overflow((int64_t)json_integer_value(number), entry->shape[i], &end))
            return refuse_info(entry);
        box->begin[i] = json_integer_value(number);
    }
    return TSR_OK;
}

static tsr_status list_boxes(tsr_catalog *c, const tsr_safetensors *file, const json_t *info)
{
    const size_t more = tsr_safetensors_count(file);
    tsr_stored_box *const grown = realloc(c->boxes, (c->count + more + 1) * sizeof *grown);
    if (!grown)
        return lack(c, "the list of its tensors");
    c->boxes = grown;
    for (size_t i = 0; i < more; i++) {
        tsr_stored_box *const box = &grown[c->count];
        *box = (tsr_stored_box){tsr_safetensors_get(file, i), info != NULL, {0}};
        TSR_TRY(read_begin(info, box));
        c->count++;
    }
    return TSR_OK;
}

static tsr_status add_file(tsr_catalog *c, const char *path)
{
    tsr_safetensors **const grown = realloc(c->files, (c->file_count + 1) * sizeof(tsr_safetensors *));
    if (!grown)
        return lack(c, "the list of its files");
    c->files = grown;
    TSR_TRY(tsr_safetensors_open(path, &grown[c->file_count]));
    const tsr_safetensors *const file = grown[c->file_count++];
    const char *const text = tsr_safetensors_metadata(file, "DCP_SHARDING_INFO");
    json_error_t error;
    json_t *const info = text ? tsr_json_load(text, strlen(text), &error) : NULL;
    if (text && !info)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: DCP_SHARDING_INFO: line %d: %s", path, error.line, error.text);
    const tsr_status status = list_boxes(c, file, info);
    json_decref(info);
    return status;
}

/* Adds the safetensors files of a folder without an index. */
static tsr_status add_folder(tsr_catalog *c)
{
    bool pickles = false;
    tsr_status status = TSR_OK;
    DIR *const folder = opendir(c->folder);
    if (!folder)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", c->folder, strerror(errno));
    for (struct dirent *entry; status == TSR_OK && (entry = readdir(folder));) {
        char *path = NULL;
        pickles = pickles || ends_in(entry->d_name, ".distcp");
        if (!ends_in(entry->d_name, ".safetensors"))
            continue;
        status = asprintf(&path, "%s/%s", c->folder, entry->d_name) < 0 ? lack(c, "a path") : add_file(c, path);
        if (path)
            free(path);
    }
    closedir(folder);
    if (status != TSR_OK || c->file_count > 0)
        return status;
    if (pickles)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: %s has .distcp files of PyTorch, which are Python pickles: programs and not data. "
                              "Save it in PyTorch with HuggingFaceStorageWriter",
                              c->call, c->folder);
    return tsr_status_set(TSR_ERROR_IO,
                          "%s: %s has no checkpoint: neither " TSR_CHECKPOINT_INDEX " nor .safetensors files", c->call,
                          c->folder);
}

static bool is_there(const char *folder, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return false;
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* The order of names; then of boxes, so that all ranks have the same whatever order the folder
 * gives. */
static int by_name(const void *a, const void *b)
{
    const tsr_stored_box *const x = a, *const y = b;
    const int order = strcmp(x->entry->name, y->entry->name);
    if (order != 0)
        return order;
    for (int i = 0; i < TSR_MAX_DIMS; i++)
        if (x->begin[i] != y->begin[i])
            return x->begin[i] < y->begin[i] ? -1 : 1;
    return strcmp(x->entry->path, y->entry->path);
}

tsr_status tsr_catalog_open(const char *call, const char *folder, tsr_catalog *out)
{
    struct stat facts;
    *out = (tsr_catalog){.call = call, .folder = folder};
    if (!folder)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: folder is NULL", call);
    const bool is_folder = stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode);
    if (!is_folder && ends_in(folder, ".distcp"))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: %s is a Python pickle of PyTorch: a program and not data",
                              call, folder);
    if (is_folder && !is_there(folder, TSR_CHECKPOINT_SINGLE) && !is_there(folder, TSR_CHECKPOINT_INDEX))
        TSR_TRY(add_folder(out));
    else
        TSR_TRY(add_file(out, folder));
    if (out->count > 0)
        qsort(out->boxes, out->count, sizeof *out->boxes, by_name);
    return TSR_OK;
}

void tsr_catalog_close(tsr_catalog *catalog)
{
    for (size_t i = 0; i < catalog->file_count; i++)
        tsr_safetensors_destroy(catalog->files[i]);
    free(catalog->files);
    free(catalog->boxes);
}

const char *tsr_catalog_metadata(const tsr_catalog *catalog, const char *key)
{
    const char *text = NULL;
    for (size_t i = 0; i < catalog->file_count && !text; i++)
        text = tsr_safetensors_metadata(catalog->files[i], key);
    return text;
}

/* The boxes of one stored tensor. */
typedef struct stored {
    const tsr_stored_box *boxes; /* NULL: there is no such tensor */
    size_t count;
    int ndim;
    int64_t shape[TSR_MAX_DIMS]; /* as far as boxes go */
} stored;

/* Sets `*out` to the stored tensor called `name`. Without such a tensor, `ndim` and the number of
 * boxes become 0. */
static tsr_status find_stored(const tsr_catalog *c, const char *name, stored *out)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(c->boxes[middle].entry->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *out = (stored){.boxes = NULL};
    for (size_t i = low; i < c->count && strcmp(c->boxes[i].entry->name, name) == 0; i++) {
        const tsr_stored_box *const box = &c->boxes[i];
        if (out->boxes && box->entry->ndim != out->ndim)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %.200s has %d dims in one file, and %d in %s",
                                  c->call, name, out->ndim, box->entry->ndim, box->entry->path);
        out->boxes = out->boxes ? out->boxes : box;
        out->ndim = box->entry->ndim;
        out->count++;
        for (int d = 0; d < out->ndim; d++)
            if (box->begin[d] + box->entry->shape[d] > out->shape[d])
                out->shape[d] = box->begin[d] + box->entry->shape[d];
    }
    return TSR_OK;
}

/* The boxes of a dtensor, while they are collected. */
typedef struct collection {
    const tsr_catalog *catalog;
    const tsr_safetensors_target *target;
    const tsr_layout *layout;
    tsr_stored_shape shape; /* of the dtensor, or of the tensor that it is a view of */
    tsr_file_box *boxes;
    size_t count, capacity;
} collection;

static tsr_status reserve(collection *c)
{
    if (c->count < c->capacity)
        return TSR_OK;
    const size_t capacity = 2 * c->capacity + 4;
    tsr_file_box *const grown = realloc(c->boxes, capacity * sizeof *grown);
    if (!grown)
        return lack(c->catalog, "the places of a tensor");
    c->boxes = grown;
    c->capacity = capacity;
    return TSR_OK;
}

/* Cuts [begin, end) of dim `dim` out of a box of which `at[dim]` is the first index. False: nothing
 * is left. */
static bool cut(tsr_file_box *box, int64_t *first, int64_t *length, int64_t stride, int64_t begin, int64_t end)
{
    const int64_t low = *first > begin ? *first : begin;
    const int64_t high = *first + *length < end ? *first + *length : end;
    if (low >= high)
        return false;
    box->offset += (low - *first) * stride * (int64_t)tsr_dtype_bytes(box->dtype);
    *first = low;
    *length = high - low;
    return true;
}

/* How a stored tensor goes to the dtensor. */
typedef struct placing {
    int dropped; /* 1: its dim 0 is not the dtensor's, of which `slice` is read; else 0 */
    int added;   /* 1: the dtensor's dim 0 is not the tensor's: the tensor is its index `slice` */
    int64_t slice;
    int dim;            /* of the dtensor */
    int64_t begin, end; /* indices of the tensor along `dim` */
    int64_t at;         /* the dtensor's index along `dim` of `begin` */
} placing;

static tsr_status add_box(collection *c, const tsr_stored_box *from, const placing *p)
{
    const tsr_safetensors_entry *const entry = from->entry;
    tsr_file_box box = {.path = entry->path, .offset = entry->offset, .dtype = entry->dtype};
    int64_t stride = 1;
    bool some = entry->bytes > 0; /* of an empty tensor, the product of some sizes may be too large */
    for (int d = entry->ndim - 1; d >= 0 && some; d--) {
        const int to = d - p->dropped + p->added;
        int64_t first = from->begin[d], length = entry->shape[d];
        if (d == 0 && p->dropped)
            some = cut(&box, &first, &length, stride, p->slice, p->slice + 1);
        else if (to == p->dim)
            some = cut(&box, &first, &length, stride, p->begin, p->end);
        if (to >= 0) {
            box.begin[to] = to == p->dim ? first - p->begin + p->at : first;
            box.shape[to] = length;
            box.strides[to] = stride;
        }
        stride *= entry->shape[d];
    }
    if (p->added) {
        box.begin[0] = p->slice;
        box.shape[0] = 1;
        box.strides[0] = stride;
    }
    if (!some)
        return TSR_OK;
    TSR_TRY(reserve(c));
    c->boxes[c->count++] = box;
    return TSR_OK;
}

/* The sentence of a stored tensor whose number of dims does not fit. */
static tsr_status refuse_dims(const collection *c, const char *name, int has, int wanted)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s: tensor %.200s has %d dims, but for %.200s it should have %d",
                          c->catalog->call, c->catalog->folder, name, has, c->target->name, wanted);
}

/* Adds what a source has of the stored tensor `name`, and moves `p->at` behind it. */
static tsr_status add_source(collection *c, const char *name, const tsr_checkpoint_source *source, placing *p)
{
    const int wanted = c->shape.ndim - p->added;
    stored from;
    TSR_TRY(find_stored(c->catalog, name, &from));
    if (!from.boxes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s: there is no tensor %.200s for %.200s", c->catalog->call,
                              c->catalog->folder, name, c->target->name);
    p->dropped = !p->added && from.ndim == wanted + 1;
    if (from.ndim != wanted + p->dropped)
        return refuse_dims(c, name, from.ndim, wanted);
    if (p->dropped) {
        p->slice = source->slice;
        if (source->slice < 0 || source->slice >= from.shape[0])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the map of %.200s has slice %lld of %.200s, which has %lld",
                                  c->catalog->call, c->target->name, (long long)source->slice, name,
                                  (long long)from.shape[0]);
    }
    const int64_t size = wanted > 0 ? from.shape[p->dim + p->dropped - p->added] : 1;
    const bool all = source->begin == 0 && source->end == 0;
    p->begin = source->begin;
    p->end = all ? size : source->end;
    if (p->begin < 0 || p->end < p->begin || p->end > size)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: the map of %.200s has indices %lld to %lld of %.200s, which has %lld along that dim",
                              c->catalog->call, c->target->name, (long long)p->begin, (long long)p->end, name,
                              (long long)size);
    for (size_t i = 0; i < from.count; i++)
        TSR_TRY(add_box(c, &from.boxes[i], p));
    p->at += p->end - p->begin;
    return TSR_OK;
}

/* The name with `index` in place of its `*`; the caller frees it. NULL: there is no memory. */
static char *name_slice(const char *pattern, int64_t index)
{
    char *name;
    const char *const star = strchr(pattern, '*');
    return asprintf(&name, "%.*s%lld%s", (int)(star - pattern), pattern, (long long)index, star + 1) < 0 ? NULL : name;
}

/* Adds what a source has of slice `p->slice` of the dtensor. */
static tsr_status add_slice(collection *c, const tsr_checkpoint_source *source, placing *p)
{
    char *const name = name_slice(source->name, p->slice);
    const tsr_status status = name ? add_source(c, name, source, p) : lack(c->catalog, "a name");
    free(name);
    return status;
}

/* Refuses a stack that has fewer slices than the files. */
static tsr_status check_end(const collection *c, const tsr_checkpoint_source *source, int64_t slices)
{
    stored more;
    char *const name = name_slice(source->name, slices);
    tsr_status status = name ? find_stored(c->catalog, name, &more) : lack(c->catalog, "a name");
    if (status == TSR_OK && more.boxes)
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s: there is a tensor %.200s, but %.200s has only %lld slices",
                                c->catalog->call, c->catalog->folder, name, c->target->name, (long long)slices);
    free(name);
    return status;
}

static tsr_status check_map(const collection *c, const tsr_checkpoint_map *map)
{
    const int ndim = c->shape.ndim;
    const char *const call = c->catalog->call, *const name = c->target->name;
    if (!map->sources || map->count == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the map of %.200s has no sources", call, name);
    for (size_t i = 0; i < map->count; i++) {
        const char *const text = map->sources[i].name;
        const char *const star = text ? strchr(text, '*') : NULL;
        if (!text)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the map of %.200s has a source without a name", call, name);
        if (!star != !strchr(map->sources[0].name, '*') || (star && strchr(star + 1, '*')))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: the map of %.200s: all sources or none have one *, as %.200s", call, name, text);
    }
    const bool stacked = strchr(map->sources[0].name, '*') != NULL;
    if (map->dim < 0 || (map->dim > 0 && map->dim >= ndim) || (stacked && ndim == 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the map of %.200s joins along dim %d of %d", call, name,
                              map->dim, ndim);
    if (stacked && map->dim == 0 && ndim > 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: the map of %.200s joins along dim 0, which is the stack's; 1 to %d would do", call,
                              name, ndim - 1);
    return TSR_OK;
}

/* Adds the sources that make up the dtensor, or one slice of it. */
static tsr_status add_joined(collection *c, const tsr_checkpoint_map *map, placing *p)
{
    const int64_t slice = p->slice, size = c->shape.ndim > p->added ? c->shape.sizes[map->dim] : 1;
    for (size_t i = 0; i < map->count; i++) {
        p->slice = slice;
        TSR_TRY(p->added ? add_slice(c, &map->sources[i], p)
                         : add_source(c, map->sources[i].name, &map->sources[i], p));
    }
    if (p->at == size)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: the sources of %.200s have %lld indices along dim %d together, but it has %lld",
                          c->catalog->call, c->target->name, (long long)p->at, map->dim, (long long)size);
}

static tsr_status collect(collection *c, const tsr_checkpoint_map *map)
{
    placing p = {.dim = map->dim};
    TSR_TRY(check_map(c, map));
    if (!strchr(map->sources[0].name, '*'))
        return add_joined(c, map, &p);
    const int64_t slices = c->shape.sizes[0];
    for (int64_t i = 0; i < slices; i++) {
        p = (placing){.dim = map->dim, .added = 1, .slice = i};
        TSR_TRY(add_joined(c, map, &p));
    }
    for (size_t i = 0; i < map->count; i++)
        TSR_TRY(check_end(c, &map->sources[i], slices));
    return TSR_OK;
}

/* The tensor of the target's own name. */
static tsr_status collect_own(collection *c)
{
    stored from;
    const int ndim = c->shape.ndim;
    const char *const name = c->target->name;
    TSR_TRY(find_stored(c->catalog, name, &from));
    if (!from.boxes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s: there is no tensor %.200s", c->catalog->call,
                              c->catalog->folder, name);
    if (from.ndim != ndim)
        return refuse_dims(c, name, from.ndim, ndim);
    for (int d = 0; d < ndim && !from.boxes->part; d++)
        if (from.shape[d] != c->shape.sizes[d])
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: %s: tensor %.200s has size %lld along dim %d, but the dtensor has %lld",
                                  c->catalog->call, from.boxes->entry->path, name, (long long)from.shape[d], d,
                                  (long long)c->shape.sizes[d]);
    for (size_t i = 0; i < from.count; i++) {
        const placing p = {.dim = -1};
        TSR_TRY(add_box(c, &from.boxes[i], &p));
    }
    return TSR_OK;
}

/* The first dim of those whose elements in a box follow one another, in the file and in the view:
 * dims behind it are whole. */
static int find_run(const tsr_stored_shape *shape, const tsr_file_box *box)
{
    int64_t stride = 1;
    int d = shape->ndim - 1;
    for (; d > 0; d--) {
        if (box->strides[d] != stride || box->shape[d] != shape->sizes[d])
            break;
        stride *= box->shape[d];
    }
    return box->strides[d] == stride ? d : d + 1;
}

/* Adds run `number` of a box, of the dims from `first` on, as a box of a view. */
static tsr_status add_run(collection *c, const tsr_file_box *box, int first, int64_t number)
{
    tsr_file_box run = {.path = box->path, .offset = box->offset, .dtype = box->dtype};
    int64_t stride = 1;
    run.shape[0] = run.strides[0] = 1;
    for (int d = c->shape.ndim - 1; d >= 0; d--) {
        int64_t at = 0;
        if (d >= first) {
            run.shape[0] *= box->shape[d];
        } else {
            at = number % box->shape[d];
            number /= box->shape[d];
        }
        run.begin[0] += (box->begin[d] + at) * stride;
        run.offset += at * box->strides[d] * (int64_t)tsr_dtype_bytes(box->dtype);
        stride *= c->shape.sizes[d];
    }
    TSR_TRY(reserve(c));
    c->boxes[c->count++] = run;
    return TSR_OK;
}

/* Divides boxes of a tensor into those of its view. */
static tsr_status flatten(collection *c)
{
    tsr_file_box *const boxes = c->boxes;
    const size_t count = c->count;
    tsr_status status = TSR_OK;
    c->boxes = NULL;
    c->count = c->capacity = 0;
    for (size_t i = 0; i < count; i++) {
        const int first = find_run(&c->shape, &boxes[i]);
        int64_t runs = 1;
        for (int d = 0; d < first; d++)
            runs *= boxes[i].shape[d];
        for (int64_t k = 0; k < runs && status == TSR_OK; k++)
            status = add_run(c, &boxes[i], first, k);
    }
    free(boxes);
    return status;
}

/* Checks that the boxes make up the dtensor, or the tensor that it is a view of, in its dims. Words
 * the core's sentence for the tensor. */
static tsr_status check_boxes(const collection *c)
{
    char sentence[900];
    tsr_placement whole[TSR_MAX_DIMS];
    tsr_layout *layout;
    const tsr_mesh *const mesh = tsr_layout_mesh(c->layout);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        whole[k] = tsr_replicate();
    TSR_TRY(tsr_layout_create(mesh, whole, c->shape.ndim, c->shape.sizes, tsr_layout_dtype(c->layout), &layout));
    const tsr_status status = tsr_file_boxes_check(c->count, c->boxes, layout);
    tsr_layout_destroy(layout);
    if (status == TSR_OK)
        return TSR_OK;
    const char *const message = tsr_status_message(), *const colon = strstr(message, ": ");
    snprintf(sentence, sizeof sentence, "%s", colon ? colon + 2 : message);
    return tsr_status_set(status, "%s: %s: tensor %.200s: %s", c->catalog->call, c->catalog->folder, c->target->name,
                          sentence);
}

tsr_status tsr_catalog_find(const tsr_catalog *catalog, const tsr_safetensors_target *target,
                            const tsr_stored_shape *shape, const tsr_checkpoint_map *map, size_t *count,
                            tsr_file_box **out)
{
    collection c = {.catalog = catalog, .target = target, .layout = tsr_dtensor_layout(target->x), .shape = *shape};
    tsr_status status = map ? collect(&c, map) : collect_own(&c);
    if (status == TSR_OK)
        status = check_boxes(&c);
    if (status == TSR_OK && shape->ndim != tsr_layout_ndim(c.layout))
        status = flatten(&c);
    if (status != TSR_OK) {
        free(c.boxes);
        return status;
    }
    *count = c.count;
    *out = c.boxes;
    return TSR_OK;
}

static tsr_status check_fit(const char *call, const tsr_checkpoint_view *view, const tsr_layout *layout)
{
    int64_t count = 1;
    bool fits = view->shape && view->ndim >= 1 && view->ndim <= TSR_MAX_DIMS && tsr_layout_ndim(layout) == 1;
    for (int d = 0; fits && d < view->ndim; d++)
        fits = view->shape[d] >= 0 && !__builtin_mul_overflow(count, view->shape[d], &count);
    if (fits && count == tsr_layout_shape(layout)[0])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: the view of %.200s does not fit: a view has 1 to %d dims, and the dtensor one, with as "
                          "many elements",
                          call, view->name, TSR_MAX_DIMS);
}

tsr_status tsr_checkpoint_shape(const char *call, size_t count, const tsr_checkpoint_view *views, const char *name,
                                const tsr_layout *layout, tsr_stored_shape *out)
{
    *out = (tsr_stored_shape){tsr_layout_ndim(layout), tsr_layout_shape(layout)};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(views[i].name, name) != 0)
            continue;
        TSR_TRY(check_fit(call, &views[i], layout));
        *out = (tsr_stored_shape){views[i].ndim, views[i].shape};
    }
    return TSR_OK;
}

tsr_status tsr_checkpoint_check_views(const char *call, size_t view_count, const tsr_checkpoint_view *views,
                                      size_t count, const char *(*name_of)(const void *user, size_t index),
                                      const void *user)
{
    if (view_count > 0 && !views)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.views is NULL", call);
    for (size_t i = 0; i < view_count; i++) {
        bool found = false;
        for (size_t j = 0; j < count && views[i].name; j++)
            found = found || strcmp(name_of(user, j), views[i].name) == 0;
        if (!found)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.views[%zu].name is %.200s, which is not a dtensor's",
                                  call, i, views[i].name ? views[i].name : "NULL");
    }
    return TSR_OK;
}
