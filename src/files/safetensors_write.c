#include "files/shared_file.h"

#include <tessera/safetensors.h>
#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CALL         "tsr_safetensors_write"
#define PREFIX_BYTES 8

/* Bytes: the header with its prefix has a multiple of it, so that elements are aligned. */
#define ALIGNMENT 8

/* A file that this rank is about to write. */
typedef struct writing {
    tsr_comm *comm;
    size_t count;
    tsr_safetensors_tensor *tensors; /* in the order of the file, their dtypes settled */
    int64_t *offsets;                /* of each tensor's first byte behind the header */
    char *header;                    /* with the prefix */
    size_t header_bytes;
} writing;

static tsr_comm *comm_of(const tsr_dtensor *x)
{
    return tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(x)));
}

/* The communicator of the first tensor; NULL: there is no tensor. */
static tsr_comm *first_comm(size_t count, const tsr_safetensors_tensor *tensors)
{
    for (size_t i = 0; tensors && i < count; i++)
        if (tensors[i].x)
            return comm_of(tensors[i].x);
    return NULL;
}

static tsr_status check_tensor(const tsr_comm *comm, size_t index, tsr_safetensors_tensor *tensor)
{
    if (!tensor->name || !tensor->x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": tensors[%zu].%s is NULL", index, tensor->name ? "x" : "name");
    if (strcmp(tensor->name, "__metadata__") == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": tensors[%zu].name is \"__metadata__\", which is no tensor's",
                              index);
    if (comm_of(tensor->x) != comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": tensor %.200s is over another communicator than the first",
                              tensor->name);
    if (tensor->dtype == TSR_DTYPE_NONE)
        tensor->dtype = tsr_layout_dtype(tsr_dtensor_layout(tensor->x));
    const tsr_dtype_info *const info = tsr_dtype_get(tensor->dtype);
    if (!info)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": tensors[%zu].dtype is %d, which is not a dtype", index,
                              (int)tensor->dtype);
    if (!info->safetensors)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, CALL ": tensor %.200s is of %s, which safetensors files lack",
                              tensor->name, info->name);
    return TSR_OK;
}

/* Tensors with larger elements come first, then by name: each begins at a multiple of its elements'
 * size. */
static int by_place(const void *a, const void *b)
{
    const tsr_safetensors_tensor *const x = a, *const y = b;
    const size_t of_x = tsr_dtype_bytes(x->dtype), of_y = tsr_dtype_bytes(y->dtype);
    return of_x != of_y ? (of_x > of_y ? -1 : 1) : strcmp(x->name, y->name);
}

static tsr_status lack(void)
{
    return tsr_status_set(TSR_ERROR_MEMORY, CALL ": there is no memory for the header");
}

static tsr_status not_new(const char *what, const char *text)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s \"%.200s\" comes twice", what, text);
}

/* The text as a JSON string; `what` names it in errors. */
static tsr_status make_text(const char *what, const char *text, json_t **out)
{
    json_t *const empty = json_string(""), *const string = empty ? json_string(text) : NULL;
    json_decref(empty);
    if (!empty)
        return lack();
    if (!string)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s \"%.200s\" is not UTF-8", what, text);
    *out = string;
    return TSR_OK;
}

/* Puts `value`, which it takes over, under `key`. */
static tsr_status put(json_t *object, const char *what, const char *key, json_t *value)
{
    json_t *text = NULL;
    tsr_status status = value ? make_text(what, key, &text) : lack();
    json_decref(text);
    if (status == TSR_OK && json_object_get(object, key))
        status = not_new(what, key);
    if (status != TSR_OK) {
        json_decref(value);
        return status;
    }
    return json_object_set_new(object, key, value) == 0 ? TSR_OK : lack();
}

static tsr_status add_metadata(json_t *root, const tsr_safetensors_write_options *options)
{
    if (options->metadata_count == 0)
        return TSR_OK;
    if (!options->metadata)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": options.metadata is NULL");
    json_t *const object = json_object();
    TSR_TRY(put(root, "the key", "__metadata__", object));
    for (size_t i = 0; i < options->metadata_count; i++) {
        const tsr_safetensors_text *const line = &options->metadata[i];
        json_t *value = NULL;
        if (!line->key || !line->value)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": options.metadata[%zu].%s is NULL", i,
                                  line->key ? "value" : "key");
        TSR_TRY(make_text("the metadata", line->value, &value));
        TSR_TRY(put(object, "the key", line->key, value));
    }
    return TSR_OK;
}

/* Adds a tensor that begins at `begin` behind the header, and sets `*end` to where it ends. */
static tsr_status add_tensor(json_t *root, const tsr_safetensors_tensor *tensor, int64_t begin, int64_t *end)
{
    const tsr_layout *const layout = tsr_dtensor_layout(tensor->x);
    int64_t bytes = (int64_t)tsr_dtype_bytes(tensor->dtype);
    bool fits = true, made = true;
    json_t *const shape = json_array();
    for (int i = 0; i < tsr_layout_ndim(layout); i++) {
        const int64_t size = tsr_layout_shape(layout)[i];
        fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
        made = made && json_array_append_new(shape, json_integer(size)) == 0;
    }
    if (!fits || __builtin_add_overflow(begin, bytes, end)) {
        json_decref(shape);
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": up to tensor %.200s there are more than 2^63 - 1 bytes",
                              tensor->name);
    }
    if (!made || !shape) {
        json_decref(shape);
        return lack();
    }
    return put(root, "the name", tensor->name,
               json_pack("{ss so s[II]}", "dtype", tsr_dtype_get(tensor->dtype)->safetensors, "shape", shape,
                         "data_offsets", (json_int_t)begin, (json_int_t)*end));
}

/* The text of the header with its length before it, filled up with spaces. */
static tsr_status print_header(const json_t *root, writing *w)
{
    const size_t length = json_dumpb(root, NULL, 0, JSON_COMPACT);
    const size_t bytes = (PREFIX_BYTES + length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    w->header = length > 0 ? malloc(bytes) : NULL;
    if (!w->header)
        return lack();
    memset(w->header, ' ', bytes);
    if (json_dumpb(root, w->header + PREFIX_BYTES, bytes - PREFIX_BYTES, JSON_COMPACT) != length)
        return lack();
    for (int i = 0; i < PREFIX_BYTES; i++)
        w->header[i] = (char)((uint64_t)(bytes - PREFIX_BYTES) >> (8 * i) & 0xff);
    w->header_bytes = bytes;
    return TSR_OK;
}

static tsr_status make_header(const tsr_safetensors_write_options *options, writing *w)
{
    json_t *const root = json_object();
    int64_t end = 0;
    tsr_status status = root ? add_metadata(root, options) : lack();
    for (size_t i = 0; i < w->count && status == TSR_OK; i++) {
        w->offsets[i] = end;
        status = add_tensor(root, &w->tensors[i], w->offsets[i], &end);
    }
    if (status == TSR_OK)
        status = print_header(root, w);
    json_decref(root);
    return status;
}

static tsr_status prepare(const tsr_safetensors_tensor *tensors, const tsr_safetensors_write_options *given, writing *w)
{
    tsr_safetensors_write_options options = TSR_SAFETENSORS_WRITE_OPTIONS_INIT;
    TSR_TRY(tsr_options_read(CALL, given, &options, sizeof options));
    w->tensors = malloc(w->count * sizeof *w->tensors);
    w->offsets = malloc(w->count * sizeof *w->offsets);
    if (!w->tensors || !w->offsets)
        return lack();
    memcpy(w->tensors, tensors, w->count * sizeof *w->tensors);
    for (size_t i = 0; i < w->count; i++)
        TSR_TRY(check_tensor(w->comm, i, &w->tensors[i]));
    qsort(w->tensors, w->count, sizeof *w->tensors, by_place);
    return make_header(&options, w);
}

static int64_t fingerprint(const char *path, const writing *w)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < w->header_bytes; i++)
        hash = (hash ^ (unsigned char)w->header[i]) * UINT64_C(0x100000001b3);
    for (; path && *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    return (int64_t)hash;
}

/* Collective: refuses, on every rank, headers that differ. */
static tsr_status compare(const char *path, const writing *w)
{
    const int64_t hash = fingerprint(path, w);
    int64_t least[2] = {hash, ~hash};
    TSR_TRY(tsr_comm_all_reduce(w->comm, least, least, 2, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    if (least[0] == ~least[1])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, CALL
                          ": ranks give different paths, names, shapes, dtypes or metadata; all must give the same");
}

static tsr_status write_file(const tsr_shared_call *call, const char *path, const writing *w)
{
    tsr_shared_file file;
    TSR_TRY(tsr_shared_file_begin(call, TSR_OK, path, w->header, w->header_bytes, &file));
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < w->count && status == TSR_OK; i++)
        status = tsr_dtensor_write_as(w->tensors[i].x, file.path, (int64_t)w->header_bytes + w->offsets[i],
                                      w->tensors[i].dtype, NULL);
    return tsr_shared_file_end(call, status, &file);
}

tsr_status tsr_safetensors_write(const char *path, size_t count, const tsr_safetensors_tensor *tensors,
                                 const tsr_safetensors_write_options *options)
{
    writing w = {.comm = first_comm(count, tensors), .count = count};
    if (!w.comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": there is no tensor: %s",
                              !tensors     ? "tensors is NULL"
                              : count == 0 ? "count is 0"
                                           : "every x is NULL");
    const tsr_shared_call call = {CALL, w.comm};
    tsr_status status = tsr_comm_share_status(w.comm, CALL, prepare(tensors, options, &w));
    if (status == TSR_OK)
        status = compare(path, &w);
    if (status == TSR_OK)
        status = write_file(&call, path, &w);
    free(w.tensors);
    free(w.offsets);
    free(w.header);
    return status;
}
