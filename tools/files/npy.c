#include "files/npy.h"

#include "files/fresh_file.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are little-endian, and read in place");

/* Bytes: enough for the vector loads of any kernel; elements alone need at most 8. */
#define ELEMENT_ALIGNMENT 64

/* Bytes: more than any header of version 1, and any later header of a dtype that is read. */
#define MOST_HEADER ((size_t)1 << 17)

static tsr_status failed(const char *path, const char *verb)
{
    return tsr_status_set(TSR_ERROR_IO, "%s: cannot %s it: %s", path, verb, strerror(errno));
}

/* Puts the path before the sentence of the last error. */
static tsr_status named(const char *path, tsr_status status)
{
    return tsr_status_set(status, "%s: %s", path, tsr_status_message());
}

/* Reads `bytes` bytes at `offset`, fewer if the file ends. `*got`: the bytes read. */
static tsr_status read_at(const char *path, int fd, size_t offset, void *to, size_t bytes, size_t *got)
{
    for (*got = 0; *got < bytes;) {
        const ssize_t more = pread(fd, (char *)to + *got, bytes - *got, (off_t)(offset + *got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return failed(path, "read");
        if (more == 0)
            break;
        *got += (size_t)more;
    }
    return TSR_OK;
}

static tsr_status read_header(const char *path, int fd, npy_header *out)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return failed(path, "read");
    if (!S_ISREG(facts.st_mode))
        return tsr_status_set(TSR_ERROR_IO, "%s: it is not a regular file", path);
    if (facts.st_size == 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: it is empty, so it is not a .npy file", path);
    unsigned char *const begin = malloc(MOST_HEADER);
    size_t known;
    if (!begin)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for its header", path);
    tsr_status status = read_at(path, fd, 0, begin, MOST_HEADER, &known);
    if (status == TSR_OK) {
        status = npy_header_parse_beginning(begin, known, (size_t)facts.st_size, out);
        status = status == TSR_OK ? status : named(path, status);
    }
    free(begin);
    return status;
}

/* Opens the file and reads its header; the caller closes `*fd`. */
static tsr_status open_file(const char *path, int *fd, npy_header *header)
{
    /* O_NONBLOCK, so as not to wait for the writer of a FIFO. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return failed(path, "open");
    const tsr_status status = read_header(path, *fd, header);
    if (status != TSR_OK)
        close(*fd);
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

tsr_status npy_open(const char *path, npy_file *out)
{
    npy_file file = {.path = strdup(path)};
    int fd;
    if (!file.path)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for its path", path);
    const tsr_status status = open_file(path, &fd, &file.header);
    if (status != TSR_OK) {
        npy_close(&file);
        return status;
    }
    close(fd);
    const npy_header *const h = &file.header;
    file.tensor = tsr_tensor_contiguous(NULL, h->dtype, h->ndim, h->shape);
    /* An empty tensor needs no strides, and the product of its other sizes may overflow. */
    if (h->fortran && h->bytes > 0)
        set_fortran_strides(&file.tensor);
    *out = file;
    return TSR_OK;
}

static bool same_header(const npy_header *a, const npy_header *b)
{
    return a->dtype == b->dtype && a->big_endian == b->big_endian && a->fortran == b->fortran && a->data == b->data &&
           a->bytes == b->bytes && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static tsr_status read_elements(const npy_file *file, int fd, void *to)
{
    const npy_header *const h = &file->header;
    size_t got;
    TSR_TRY(read_at(file->path, fd, h->data, to, h->bytes, &got));
    if (got < h->bytes)
        return tsr_status_set(
            TSR_ERROR_IO,
            "%s: it was cut short while it was read: its header promises %zu bytes of elements, %zu are there",
            file->path, h->bytes, got);
    if (h->big_endian)
        reverse_parts(to, h->bytes, part_bytes(h->dtype));
    return TSR_OK;
}

static tsr_status load_from(npy_file *file, int fd, const npy_header *now)
{
    const size_t bytes = file->header.bytes;
    void *memory;
    if (!same_header(now, &file->header))
        return tsr_status_set(TSR_ERROR_IO, "%s: it was replaced while it was read", file->path);
    if (posix_memalign(&memory, ELEMENT_ALIGNMENT, bytes > 0 ? bytes : 1) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for its %zu bytes of elements", file->path,
                              bytes);
    const tsr_status status = read_elements(file, fd, memory);
    if (status == TSR_OK)
        file->memory = file->tensor.data = memory;
    else
        free(memory);
    return status;
}

tsr_status npy_load(npy_file *file)
{
    npy_header now;
    int fd;
    if (file->memory)
        return TSR_OK;
    TSR_TRY(open_file(file->path, &fd, &now));
    const tsr_status status = load_from(file, fd, &now);
    close(fd);
    return status;
}

bool npy_is_plain(const npy_file *file)
{
    return !file->header.fortran && !file->header.big_endian;
}

tsr_status npy_retype(npy_file *file, tsr_dtype dtype)
{
    const tsr_dtype_info *const has = tsr_dtype_get(file->tensor.dtype), *const wanted = tsr_dtype_get(dtype);
    if (strcmp(has->npy, wanted->npy) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: its elements are %s (descr '%s'), but dtype %s travels as '%s'",
                              file->path, has->name, has->npy, wanted->name, wanted->npy);
    file->tensor.dtype = dtype;
    return TSR_OK;
}

void npy_close(npy_file *file)
{
    free(file->memory);
    free(file->path);
    *file = (npy_file){0};
}

bool npy_write(int file, const tsr_tensor *tensor)
{
    int64_t count;
    char header[NPY_HEADER_BYTES];
    if (tsr_tensor_count(tensor, &count) != TSR_OK) {
        errno = EOVERFLOW;
        return false;
    }
    const size_t length = npy_header_print(tensor->dtype, tensor->ndim, tensor->shape, header);
    return fresh_file_write(file, header, length) &&
           fresh_file_write(file, tensor->data, (size_t)count * tsr_dtype_bytes(tensor->dtype));
}

static bool write_fresh(const char *path, const tsr_tensor *tensor, fresh_file *out)
{
    fresh_file file;
    if (!fresh_file_begin(path, &file))
        return false;
    const bool written = npy_write(file.file, tensor) && fresh_file_settle(&file);
    if (written)
        *out = file;
    else
        fresh_file_discard(&file);
    return written;
}

/* Writes to a path that exists and is not a regular file: a rename must not replace it. Fails for
 * a pipe that no process reads. */
static bool save_in_place(const char *path, const tsr_tensor *tensor)
{
    const int file = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return false;
    const bool written = fcntl(file, F_SETFL, 0) == 0 && npy_write(file, tensor);
    const int reason = errno;
    if (close(file) == 0 && written)
        return true;
    errno = written ? errno : reason;
    return false;
}

tsr_status npy_prepare(const char *path, const tsr_tensor *tensor, fresh_file *out)
{
    struct stat facts;
    const bool other = stat(path, &facts) == 0 && !S_ISREG(facts.st_mode);
    *out = FRESH_FILE_NONE;
    return (other ? save_in_place(path, tensor) : write_fresh(path, tensor, out)) ? TSR_OK : failed(path, "write");
}

tsr_status npy_publish(const char *path, fresh_file *file)
{
    return file->folder < 0 || fresh_file_publish(file) ? TSR_OK : failed(path, "write");
}

tsr_status npy_save(const char *path, const tsr_tensor *tensor)
{
    fresh_file file;
    TSR_TRY(npy_prepare(path, tensor, &file));
    return npy_publish(path, &file);
}
