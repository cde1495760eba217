#include "files/beginning.h"

#include <tessera/npy.h>
#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian, and read in place");

/* Bytes: enough for the vector loads of any kernel; elements alone need at most 8. */
#define ELEMENT_ALIGNMENT 64

/* Bytes: more than any header of version 1, and any later header of a dtype that is read. */
#define MOST_HEADER ((size_t)1 << 17)

struct tsr_npy {
    char *path;
    tsr_npy_header header;
    tsr_tensor tensor; /* the elements; data is NULL until they are loaded */
};

/* Puts the path before the sentence of the last error. */
static tsr_status named(const char *path, tsr_status status)
{
    return status == TSR_OK ? TSR_OK : tsr_status_set(status, "%s: %s", path, tsr_status_message());
}

static tsr_status read_header(const char *path, tsr_npy_header *out)
{
    tsr_beginning begin;
    TSR_TRY(tsr_beginning_read(path, MOST_HEADER, &begin));
    const tsr_status status = begin.size == 0
                                  ? tsr_status_set(TSR_ERROR_IO, "%s: it is empty, so it is not a .npy file", path)
                                  : named(path, tsr_npy_header_parse(begin.data, begin.bytes, begin.size, out));
    tsr_beginning_free(&begin);
    return status;
}

/* Bytes to reverse together: an element, or one part of a complex element. */
static size_t part_bytes(tsr_dtype dtype)
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    return info->kind == TSR_CLASS_COMPLEX ? info->bytes / 2 : info->bytes;
}

static void reverse_parts(unsigned char *data, size_t bytes, size_t part)
{
    for (unsigned char *at = data; at < data + bytes; at += part) {
        for (size_t i = 0; i < part / 2; i++) {
            const unsigned char byte = at[i];
            at[i] = at[part - 1 - i];
            at[part - 1 - i] = byte;
        }
    }
}

static void set_fortran_strides(tsr_tensor *tensor)
{
    int64_t stride = 1;
    for (int d = 0; d < tensor->ndim; d++) {
        tensor->strides[d] = stride;
        stride *= tensor->shape[d] > 0 ? tensor->shape[d] : 1;
    }
}

/* Makes the dtype of the elements `dtype`, whose descr must be that of the file. */
static tsr_status retype(tsr_npy *file, tsr_dtype dtype)
{
    const tsr_dtype_info *const has = tsr_dtype_get(file->header.dtype), *const wanted = tsr_dtype_get(dtype);
    if (dtype == TSR_DTYPE_NONE)
        return TSR_OK;
    if (!wanted)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dtype is %d, which is not a dtype", file->path, (int)dtype);
    if (strcmp(has->npy, wanted->npy) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: its elements are %s (descr '%s'), but dtype %s travels as '%s'",
                              file->path, has->name, has->npy, wanted->name, wanted->npy);
    file->header.dtype = dtype;
    return TSR_OK;
}

static tsr_status open_file(const char *path, tsr_dtype dtype, tsr_npy *file)
{
    file->path = strdup(path);
    if (!file->path)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for its path", path);
    TSR_TRY(read_header(path, &file->header));
    TSR_TRY(retype(file, dtype));
    const tsr_npy_header *const h = &file->header;
    file->tensor = tsr_tensor_contiguous(NULL, h->dtype, h->ndim, h->shape);
    /* An empty tensor needs no strides, and the product of its other sizes may overflow. */
    if (h->fortran && h->bytes > 0)
        set_fortran_strides(&file->tensor);
    return TSR_OK;
}

tsr_status tsr_npy_open(const char *path, tsr_dtype dtype, tsr_npy **out)
{
    if (!path || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_npy_open: %s is NULL", !path ? "path" : "out");
    tsr_npy *const file = calloc(1, sizeof *file);
    if (!file)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for its path", path);
    const tsr_status status = open_file(path, dtype, file);
    if (status == TSR_OK)
        *out = file;
    else
        tsr_npy_destroy(file);
    return status;
}

void tsr_npy_destroy(tsr_npy *file)
{
    if (!file)
        return;
    free(file->tensor.data);
    free(file->path);
    free(file);
}

const tsr_npy_header *tsr_npy_get_header(const tsr_npy *file)
{
    return &file->header;
}

/* True if the headers are of one file, whose elements may be called by another dtype. */
static bool same_header(const tsr_npy_header *a, const tsr_npy_header *b)
{
    return strcmp(tsr_dtype_get(a->dtype)->npy, tsr_dtype_get(b->dtype)->npy) == 0 && a->big_endian == b->big_endian &&
           a->fortran == b->fortran && a->data == b->data && a->bytes == b->bytes && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static tsr_status read_elements(const tsr_npy *file, void *to)
{
    const tsr_npy_header *const h = &file->header;
    const size_t bytes = (size_t)h->bytes;
    size_t got = 0;
    int fd;
    TSR_TRY(tsr_open_to_read(file->path, &fd));
    const tsr_status status = tsr_read_at(file->path, fd, (size_t)h->data, to, bytes, &got);
    close(fd);
    TSR_TRY(status);
    if (got < bytes)
        return tsr_status_set(
            TSR_ERROR_IO,
            "%s: it was cut short while it was read: its header promises %zu bytes of elements, %zu are there",
            file->path, bytes, got);
    if (h->big_endian)
        reverse_parts(to, bytes, part_bytes(h->dtype));
    return TSR_OK;
}

/* Reads the elements into new memory, which the caller frees. */
static tsr_status load_elements(const tsr_npy *file, void **out)
{
    const size_t bytes = (size_t)file->header.bytes;
    tsr_npy_header now;
    void *memory;
    TSR_TRY(read_header(file->path, &now));
    if (!same_header(&now, &file->header))
        return tsr_status_set(TSR_ERROR_IO, "%s: it was replaced while it was read", file->path);
    if (posix_memalign(&memory, ELEMENT_ALIGNMENT, bytes > 0 ? bytes : 1) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for its %zu bytes of elements", file->path,
                              bytes);
    const tsr_status status = read_elements(file, memory);
    if (status == TSR_OK)
        *out = memory;
    else
        free(memory);
    return status;
}

tsr_status tsr_npy_load(tsr_npy *file, tsr_tensor *out)
{
    if (!file || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_npy_load: %s is NULL", !file ? "file" : "out");
    if (!file->tensor.data)
        TSR_TRY(load_elements(file, &file->tensor.data));
    *out = file->tensor;
    return TSR_OK;
}

/* "512x192", or "scalar". */
static void print_shape(int ndim, const int64_t *shape, char text[TSR_MAX_DIMS * 21])
{
    size_t length = 0;
    strcpy(text, "scalar");
    for (int i = 0; i < ndim; i++)
        length += (size_t)snprintf(text + length, TSR_MAX_DIMS * 21 - length, "%s%lld", i > 0 ? "x" : "",
                                   (long long)shape[i]);
}

static tsr_status check_shape(const tsr_npy *file, const tsr_layout *layout)
{
    const tsr_npy_header *const h = &file->header;
    const int ndim = tsr_layout_ndim(layout);
    const int64_t *const shape = tsr_layout_shape(layout);
    char has[TSR_MAX_DIMS * 21], wanted[TSR_MAX_DIMS * 21];
    if (h->ndim == ndim && memcmp(h->shape, shape, (size_t)ndim * sizeof *shape) == 0)
        return TSR_OK;
    print_shape(h->ndim, h->shape, has);
    print_shape(ndim, shape, wanted);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: its tensor is %s, but the layout is of %s", file->path, has, wanted);
}

/* Distributes a tensor of the layout's dtype that every rank has. */
static tsr_status distribute(const tsr_tensor *tensor, const tsr_layout *layout, tsr_dtensor **out)
{
    return tsr_distribute_tensor(tensor, tsr_layout_mesh(layout), tsr_layout_placements(layout), NULL, out);
}

/* Distributes a loaded tensor in another dtype: converts all of it, as it lies in memory. */
static tsr_status convert_and_distribute(const tsr_tensor *tensor, const tsr_layout *layout, tsr_dtensor **out)
{
    int64_t count;
    void *self, *memory;
    TSR_TRY(tsr_tensor_count(tensor, &count));
    const size_t bytes = (size_t)count * tsr_dtype_bytes(tsr_layout_dtype(layout));
    const tsr_device_table *const host = tsr_device_driver_table(NULL, &self);
    if (posix_memalign(&memory, ELEMENT_ALIGNMENT, bytes > 0 ? bytes : 1) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu bytes of converted elements", bytes);
    tsr_tensor converted = *tensor;
    converted.data = memory;
    converted.dtype = tsr_layout_dtype(layout);
    tsr_status status = host->convert(self, 0, memory, converted.dtype, tensor->data, tensor->dtype, count, NULL);
    if (status == TSR_OK)
        status = distribute(&converted, layout, out);
    free(memory);
    return status;
}

/* Distributes the file's tensor, whose elements are all in `memory`. */
static tsr_status distribute_loaded(const tsr_npy *file, void *memory, const tsr_layout *layout, tsr_dtensor **out)
{
    tsr_tensor tensor = file->tensor;
    tensor.data = memory;
    return named(file->path, (tensor.dtype == tsr_layout_dtype(layout) ? distribute
                                                                       : convert_and_distribute)(&tensor, layout, out));
}

tsr_status tsr_npy_read(const tsr_npy *file, const tsr_layout *layout, int64_t *bytes_read, tsr_dtensor **out)
{
    void *memory;
    if (!file || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_npy_read: %s is NULL",
                              !file     ? "file"
                              : !layout ? "layout"
                                        : "out");
    TSR_TRY(check_shape(file, layout));
    const tsr_npy_header *const h = &file->header;
    if (file->tensor.data) {
        TSR_TRY(distribute_loaded(file, file->tensor.data, layout, out));
        if (bytes_read)
            *bytes_read = 0;
        return TSR_OK;
    }
    if (!h->fortran && !h->big_endian)
        return tsr_distribute_file(file->path, h->data, h->dtype, layout, bytes_read, out);
    TSR_TRY(load_elements(file, &memory));
    const tsr_status status = distribute_loaded(file, memory, layout, out);
    free(memory);
    if (status == TSR_OK && bytes_read)
        *bytes_read = h->bytes;
    return status;
}

tsr_status tsr_npy_distribute(const char *path, const tsr_mesh *mesh, const char *placements, tsr_dtensor **out)
{
    tsr_npy *file = NULL;
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_npy_open(path, TSR_DTYPE_NONE, &file));
    const tsr_npy_header *const h = &file->header;
    tsr_status status = tsr_layout_parse(mesh, placements, h->ndim, h->shape, h->dtype, &layout);
    if (status == TSR_OK)
        status = tsr_npy_read(file, layout, NULL, out);
    tsr_layout_destroy(layout);
    tsr_npy_destroy(file);
    return status;
}
