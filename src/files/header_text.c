#include "files/header_text.h"

#include <tessera/sys/status.h>

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_BYTES 8

/* Bytes: the header with its prefix has a multiple of it, so that elements are aligned. */
#define ALIGNMENT 8

tsr_status tsr_header_check(const char *call, const tsr_comm *comm, size_t index, tsr_safetensors_tensor *tensor)
{
    if (!tensor->name || !tensor->x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensors[%zu].%s is NULL", call, index,
                              tensor->name ? "x" : "name");
    if (strcmp(tensor->name, "__metadata__") == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensors[%zu].name is \"__metadata__\", which is no tensor's",
                              call, index);
    if (tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(tensor->x))) != comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %.200s is over another communicator than the first", call,
                              tensor->name);
    if (tensor->dtype == TSR_DTYPE_NONE)
        tensor->dtype = tsr_layout_dtype(tsr_dtensor_layout(tensor->x));
    const tsr_dtype_info *const info = tsr_dtype_get(tensor->dtype);
    if (!info)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensors[%zu].dtype is %d, which is not a dtype", call, index,
                              (int)tensor->dtype);
    if (!info->safetensors)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: tensor %.200s is of %s, which safetensors files lack", call,
                              tensor->name, info->name);
    return TSR_OK;
}

int tsr_header_order(const void *a, const void *b)
{
    const tsr_safetensors_tensor *const x = a, *const y = b;
    const size_t of_x = tsr_dtype_bytes(x->dtype), of_y = tsr_dtype_bytes(y->dtype);
    return of_x != of_y ? (of_x > of_y ? -1 : 1) : strcmp(x->name, y->name);
}

static tsr_status lack(const char *call)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for the header", call);
}

static tsr_status not_new(const char *call, const char *what, const char *text)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s \"%.200s\" comes twice", call, what, text);
}

/* The text as a JSON string; `what` names it in errors. */
static tsr_status make_text(const char *call, const char *what, const char *text, json_t **out)
{
    json_t *const empty = json_string(""), *const string = empty ? json_string(text) : NULL;
    json_decref(empty);
    if (!empty)
        return lack(call);
    if (!string)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s \"%.200s\" is not UTF-8", call, what, text);
    *out = string;
    return TSR_OK;
}

/* Puts `value`, which it takes over, under `key`. */
static tsr_status put(const char *call, json_t *object, const char *what, const char *key, json_t *value)
{
    json_t *text = NULL;
    tsr_status status = value ? make_text(call, what, key, &text) : lack(call);
    json_decref(text);
    if (status == TSR_OK && json_object_get(object, key))
        status = not_new(call, what, key);
    if (status != TSR_OK) {
        json_decref(value);
        return status;
    }
    return json_object_set_new(object, key, value) == 0 ? TSR_OK : lack(call);
}

static tsr_status add_metadata(const char *call, json_t *root, size_t count, const tsr_safetensors_text *metadata)
{
    if (count == 0)
        return TSR_OK;
    if (!metadata)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.metadata is NULL", call);
    json_t *const object = json_object();
    TSR_TRY(put(call, root, "the key", "__metadata__", object));
    for (size_t i = 0; i < count; i++) {
        const tsr_safetensors_text *const line = &metadata[i];
        json_t *value = NULL;
        if (!line->key || !line->value)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.metadata[%zu].%s is NULL", call, i,
                                  line->key ? "value" : "key");
        TSR_TRY(make_text(call, "the metadata", line->value, &value));
        TSR_TRY(put(call, object, "the key", line->key, value));
    }
    return TSR_OK;
}

/* Adds a tensor that begins at `begin` behind the header, and sets `*end` to where it ends. */
static tsr_status add_tensor(const char *call, json_t *root, const tsr_header_tensor *tensor, int64_t begin,
                             int64_t *end)
{
    int64_t bytes = (int64_t)tsr_dtype_bytes(tensor->dtype);
    bool fits = true, made = true;
    json_t *const shape = json_array();
    for (int i = 0; i < tensor->ndim; i++) {
        const int64_t size = tensor->shape[i];
        fits = fits && !__builtin_mul_overflow(bytes, size, &bytes);
        made = made && json_array_append_new(shape, json_integer(size)) == 0;
    }
    if (!fits || __builtin_add_overflow(begin, bytes, end)) {
        json_decref(shape);
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: up to tensor %.200s there are more than 2^63 - 1 bytes", call,
                              tensor->name);
    }
    if (!made || !shape) {
        json_decref(shape);
        return lack(call);
    }
    return put(call, root, "the name", tensor->name,
               json_pack("{ss so s[II]}", "dtype", tsr_dtype_get(tensor->dtype)->safetensors, "shape", shape,
                         "data_offsets", (json_int_t)begin, (json_int_t)*end));
}

/* The text of the header with its length before it, filled up with spaces. */
static tsr_status print_root(const char *call, const json_t *root, tsr_header_text *out)
{
    const size_t length = json_dumpb(root, NULL, 0, JSON_COMPACT);
    const size_t bytes = (PREFIX_BYTES + length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *const text = length > 0 ? malloc(bytes) : NULL;
    if (!text)
        return lack(call);
    memset(text, ' ', bytes);
    if (json_dumpb(root, text + PREFIX_BYTES, bytes - PREFIX_BYTES, JSON_COMPACT) != length) {
        free(text);
        return lack(call);
    }
    for (int i = 0; i < PREFIX_BYTES; i++)
        text[i] = (char)((uint64_t)(bytes - PREFIX_BYTES) >> (8 * i) & 0xff);
    out->text = text;
    out->bytes = bytes;
    return TSR_OK;
}

tsr_status tsr_header_print(const char *call, size_t count, tsr_header_tensor *tensors, size_t metadata_count,
                            const tsr_safetensors_text *metadata, tsr_header_text *out)
{
    json_t *const root = json_object();
    int64_t end = 0;
    tsr_status status = root ? add_metadata(call, root, metadata_count, metadata) : lack(call);
    for (size_t i = 0; i < count && status == TSR_OK; i++) {
        tensors[i].offset = end;
        status = add_tensor(call, root, &tensors[i], tensors[i].offset, &end);
    }
    if (status == TSR_OK)
        status = print_root(call, root, out);
    if (status == TSR_OK)
        out->data_bytes = end;
    json_decref(root);
    return status;
}
