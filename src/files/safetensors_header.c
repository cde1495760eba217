#include "files/safetensors_header.h"

#include "files/beginning.h"
#include "files/json.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

#define PREFIX_BYTES 8

/* A file whose header is being read. */
typedef struct reader {
    const char *name;
    int64_t data_offset; /* where the tensors' bytes begin in the file */
    int64_t data_bytes;
} reader;

static tsr_status read_dtype(const reader *from, const char *tensor, const json_t *value, tsr_dtype *out)
{
    const char *const text = json_is_string(value) ? json_string_value(value) : "";
    for (tsr_dtype dtype = TSR_F64; dtype < TSR_DTYPE_END; dtype++) {
        const char *const name = tsr_dtype_get(dtype)->safetensors;
        if (name && strcmp(name, text) == 0) {
            *out = dtype;
            return TSR_OK;
        }
    }
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %.200s has dtype \"%.40s\", which is not known", from->name,
                          tensor, text);
}

/* Reads the shape, and sets `bytes` to the size of that many elements of the entry's dtype. */
static tsr_status read_shape(const reader *from, const json_t *value, tsr_safetensors_entry *entry)
{
    if (!json_is_array(value) || json_array_size(value) > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the shape of tensor %.200s must be a list of at most %d sizes",
                              from->name, entry->name, TSR_MAX_DIMS);
    entry->ndim = (int)json_array_size(value);
    entry->bytes = (int64_t)tsr_dtype_bytes(entry->dtype);
    for (int i = 0; i < entry->ndim; i++) {
        const json_t *const size = json_array_get(value, (size_t)i);
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: the shape of tensor %.200s must hold whole numbers, 0 or more", from->name,
                                  entry->name);
        entry->shape[i] = json_integer_value(size);
        if (__builtin_mul_overflow(entry->bytes, entry->shape[i], &entry->bytes))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the shape of tensor %.200s overflows", from->name,
                                  entry->name);
    }
    return TSR_OK;
}

static tsr_status read_offsets(const reader *from, const json_t *value, tsr_safetensors_entry *entry)
{
    const json_t *const first = json_array_get(value, 0), *const last = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: data_offsets of tensor %.200s must be two whole numbers",
                              from->name, entry->name);
    const int64_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || end > from->data_bytes)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: data_offsets of tensor %.200s are %lld to %lld, but the file holds %lld bytes of tensors", from->name,
            entry->name, (long long)begin, (long long)end, (long long)from->data_bytes);
    if (end - begin != entry->bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: tensor %.200s has %lld bytes by its data_offsets, but %lld by its shape and dtype",
                              from->name, entry->name, (long long)(end - begin), (long long)entry->bytes);
    entry->offset = from->data_offset + begin;
    return TSR_OK;
}

static tsr_status read_entry(const reader *from, const char *name, const json_t *value, tsr_safetensors_entry *entry)
{
    entry->path = from->name;
    entry->name = strdup(name);
    if (!entry->name)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for the name of tensor %.200s", from->name, name);
    if (!json_is_object(value))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: tensor %.200s must be an object with dtype, shape and data_offsets", from->name,
                              name);
    TSR_TRY(read_dtype(from, name, json_object_get(value, "dtype"), &entry->dtype));
    TSR_TRY(read_shape(from, json_object_get(value, "shape"), entry));
    return read_offsets(from, json_object_get(value, "data_offsets"), entry);
}

static int by_offset(const void *a, const void *b)
{
    const tsr_safetensors_entry *const x = a, *const y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

int tsr_safetensors_by_name(const void *a, const void *b)
{
    const tsr_safetensors_entry *const x = a, *const y = b;
    return strcmp(x->name, y->name);
}

/* Checks that the tensors cover the data without gaps or overlaps. */
static tsr_status check_gapless(const reader *from, tsr_safetensors_header *file)
{
    int64_t at = from->data_offset;
    if (file->count > 0)
        qsort(file->entries, file->count, sizeof file->entries[0], by_offset);
    for (size_t i = 0; i < file->count; i++) {
        const tsr_safetensors_entry *const entry = &file->entries[i];
        if (entry->offset != at)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: tensor %.200s begins at byte %lld of the file, where %lld is due: tensors %s",
                                  from->name, entry->name, (long long)entry->offset, (long long)at,
                                  entry->offset < at ? "overlap" : "leave a gap");
        at += entry->bytes;
    }
    if (at != from->data_offset + from->data_bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the last %lld bytes of the file belong to no tensor", from->name,
                              (long long)(from->data_offset + from->data_bytes - at));
    return TSR_OK;
}

static tsr_status read_entries(const reader *from, json_t *header, tsr_safetensors_header *file)
{
    const char *name;
    json_t *value;
    json_object_foreach(header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            file->metadata = json_incref(value);
            continue;
        }
        /* Counted before it is read, so that freeing the header frees a refused entry's name. */
        TSR_TRY(read_entry(from, name, value, &file->entries[file->count++]));
    }
    TSR_TRY(check_gapless(from, file));
    if (file->count > 0)
        qsort(file->entries, file->count, sizeof file->entries[0], tsr_safetensors_by_name);
    return TSR_OK;
}

static tsr_status read_object(const reader *from, json_t *object, tsr_safetensors_header *out)
{
    if (!json_is_object(object))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the header must be a JSON object", from->name);
    const size_t most = json_object_size(object);
    tsr_safetensors_header file = {.entries = calloc(most > 0 ? most : 1, sizeof *file.entries)};
    if (!file.entries)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for %zu tensors", from->name, most);
    const tsr_status status = read_entries(from, object, &file);
    if (status == TSR_OK)
        *out = file;
    else
        tsr_safetensors_header_free(&file);
    return status;
}

static uint64_t little_endian(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int i = PREFIX_BYTES - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

tsr_status tsr_safetensors_header_parse(const char *name, const void *data, size_t known, size_t size,
                                        tsr_safetensors_header *out)
{
    if (known < PREFIX_BYTES)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the file has %zu bytes, too few for a safetensors header", name,
                              known);
    const uint64_t header_bytes = little_endian(data);
    if (header_bytes > TSR_SAFETENSORS_HEADER_BYTES || header_bytes > size - PREFIX_BYTES)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: the header says that it has %llu bytes; the file has %zu, and headers at most %zu",
                              name, (unsigned long long)header_bytes, size, TSR_SAFETENSORS_HEADER_BYTES);
    if (header_bytes > known - PREFIX_BYTES)
        return tsr_status_set(TSR_ERROR_IO,
                              "%s: it was cut short while it was read: its header has %llu bytes, %zu are left", name,
                              (unsigned long long)header_bytes, known - PREFIX_BYTES);
    json_error_t error;
    json_t *const object = tsr_json_load((const char *)data + PREFIX_BYTES, (size_t)header_bytes, &error);
    if (!object)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the header, at byte %d: %s", name, PREFIX_BYTES + error.position,
                              error.text);
    const int64_t data_offset = PREFIX_BYTES + (int64_t)header_bytes;
    const reader from = {name, data_offset, (int64_t)size - data_offset};
    const tsr_status status = read_object(&from, object, out);
    json_decref(object);
    return status;
}

/* Reads the prefix and the header; the prefix gives the header's length. */
static tsr_status read_beginning(const char *path, tsr_beginning *out)
{
    tsr_beginning prefix;
    TSR_TRY(tsr_beginning_read(path, PREFIX_BYTES, &prefix));
    const uint64_t said = prefix.bytes == PREFIX_BYTES ? little_endian((const unsigned char *)prefix.data) : 0;
    tsr_beginning_free(&prefix);
    const size_t most = TSR_SAFETENSORS_HEADER_BYTES;
    return tsr_beginning_read(path, PREFIX_BYTES + (said < most ? (size_t)said : most), out);
}

tsr_status tsr_safetensors_header_read(const char *path, tsr_safetensors_header *out)
{
    tsr_beginning file;
    TSR_TRY(read_beginning(path, &file));
    const tsr_status status = tsr_safetensors_header_parse(path, file.data, file.bytes, file.size, out);
    tsr_beginning_free(&file);
    return status;
}

void tsr_safetensors_header_free(tsr_safetensors_header *header)
{
    for (size_t i = 0; i < header->count; i++)
        free((char *)(uintptr_t)header->entries[i].name);
    free(header->entries);
    json_decref(header->metadata);
    *header = (tsr_safetensors_header){0};
}

const tsr_safetensors_entry *tsr_safetensors_among(const tsr_safetensors_entry *entries, size_t count, const char *name)
{
    const tsr_safetensors_entry key = {.name = name};
    return count == 0 ? NULL : bsearch(&key, entries, count, sizeof key, tsr_safetensors_by_name);
}
