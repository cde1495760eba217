#include "npy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tessera/sys/status.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian, and read in place");

/** Enough for the vector loads of any kernel; elements themselves need at most 8. */
#define ELEMENT_ALIGNMENT 16

static tsr_status failed(const char *path, const char *verb)
{
    return tsr_status_set(TSR_ERROR_IO, "%s: cannot %s it: %s", path, verb, strerror(errno));
}

/** Puts the file's name before the sentence of the last error. */
static tsr_status named(const char *path, tsr_status status)
{
    return tsr_status_set(status, "%s: %s", path, tsr_status_message());
}

/** A private, writable mapping: what reordering changes stays ours, and untouched pages stay the file's. */
static tsr_status map_file(const char *path, void **mapping, size_t *size)
{
    /* A FIFO must not make us wait for its writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return failed(path, "open");
    tsr_status status = TSR_OK;
    struct stat facts;
    if (fstat(fd, &facts) != 0) {
        status = failed(path, "read");
    } else if (!S_ISREG(facts.st_mode)) {
        status = tsr_status_set(TSR_ERROR_IO, "%s: it is not a regular file", path);
    } else if (facts.st_size == 0) {
        status = tsr_status_set(TSR_ERROR_IO, "%s: it is empty, so no .npy file", path);
    } else {
        *size = (size_t)facts.st_size;
        *mapping = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
        if (*mapping == MAP_FAILED)
            status = failed(path, "map");
    }
    close(fd);
    return status;
}

/** Bytes that are swapped together: an element, or one part of a complex one. */
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

/** Makes the elements what the library reads: aligned (they are, in files that NumPy wrote) and little-endian. */
static unsigned char *settle_elements(unsigned char *mapping, const npy_header *h)
{
    unsigned char *data = mapping + h->data;
    const size_t part = part_bytes(h->dtype);
    if (h->data % part != 0 && h->bytes > 0) {
        data = mapping + h->data / ELEMENT_ALIGNMENT * ELEMENT_ALIGNMENT;
        memmove(data, mapping + h->data, h->bytes);
    }
    if (h->big_endian)
        reverse_parts(data, h->bytes, part);
    return data;
}

static void set_fortran_strides(tsr_tensor *tensor)
{
    int64_t stride = 1;
    for (int d = 0; d < tensor->ndim; d++) {
        tensor->strides[d] = stride;
        stride *= tensor->shape[d] > 0 ? tensor->shape[d] : 1;
    }
}

tsr_status npy_open(const char *path, npy_file *out)
{
    npy_file file = {0};
    TSR_TRY(map_file(path, &file.mapping, &file.size));
    npy_header h;
    const tsr_status status = npy_header_parse(file.mapping, file.size, &h);
    if (status != TSR_OK) {
        npy_close(&file);
        return named(path, status);
    }
    file.tensor = tsr_tensor_contiguous(settle_elements(file.mapping, &h), h.dtype, h.ndim, h.shape);
    /* An empty tensor has no strides to speak of; its sizes may multiply beyond int64_t. */
    if (h.fortran && h.bytes > 0)
        set_fortran_strides(&file.tensor);
    *out = file;
    return TSR_OK;
}

tsr_status npy_retype(npy_file *file, const char *path, tsr_dtype dtype)
{
    const tsr_dtype_info *const has = tsr_dtype_get(file->tensor.dtype), *const wanted = tsr_dtype_get(dtype);
    if (strcmp(has->npy, wanted->npy) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: its elements are %s (descr '%s'), but dtype %s travels as '%s'", path, has->name,
                              has->npy, wanted->name, wanted->npy);
    file->tensor.dtype = dtype;
    return TSR_OK;
}

void npy_close(npy_file *file)
{
    if (file->mapping != NULL)
        munmap(file->mapping, file->size);
    *file = (npy_file){0};
}

static bool write_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        const ssize_t written = write(fd, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        at += written;
        bytes -= (size_t)written;
    }
    return true;
}

tsr_status npy_save(const char *path, const tsr_tensor *tensor)
{
    int64_t count;
    TSR_TRY(tsr_tensor_count(tensor, &count));
    char header[NPY_HEADER_BYTES];
    const size_t length = npy_header_print(tensor->dtype, tensor->ndim, tensor->shape, header);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(path, "create");
    const bool written = write_all(fd, header, length) && write_all(fd, tensor->data, (size_t)count * tsr_dtype_bytes(tensor->dtype));
    const int why = errno;
    if (close(fd) == 0 && written)
        return TSR_OK;
    errno = written ? errno : why;
    const tsr_status status = failed(path, "write");
    struct stat facts;
    if (lstat(path, &facts) == 0 && S_ISREG(facts.st_mode))
        unlink(path);
    return status;
}
