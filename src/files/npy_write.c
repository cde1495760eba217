#include "files/shared_file.h"

#include <tessera/npy.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks a tensor to write, and sets `*bytes` to the bytes of its elements. */
static tsr_status check_tensor(const char *call, const char *path, const tsr_tensor *tensor, size_t *bytes)
{
    int64_t count;
    if (!path || !tensor)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, !path ? "path" : "tensor");
    if (!tsr_dtype_get(tensor->dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor.dtype is %d, which is not a dtype", call,
                              (int)tensor->dtype);
    TSR_TRY(tsr_tensor_count(tensor, &count));
    if (tensor->device.driver || !tsr_tensor_is_contiguous(tensor))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the tensor is %s: a contiguous tensor on the host is needed",
                              call, tensor->device.driver ? "on a device" : "strided");
    if (count > 0 && !tensor->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the tensor has no data", call);
    *bytes = (size_t)count * tsr_dtype_bytes(tensor->dtype);
    return TSR_OK;
}

static tsr_status write_new(const char *path, const tsr_tensor *tensor, size_t bytes, tsr_new_file **out)
{
    char header[TSR_NPY_HEADER_BYTES];
    const size_t length = tsr_npy_header_print(tensor->dtype, tensor->ndim, tensor->shape, header);
    tsr_new_file *file;
    TSR_TRY(tsr_new_file_create(path, &file));
    tsr_status status = tsr_new_file_write(file, header, length);
    if (status == TSR_OK)
        status = tsr_new_file_write(file, tensor->data, bytes);
    if (status == TSR_OK)
        *out = file;
    else
        tsr_new_file_discard(file);
    return status;
}

static bool write_all(int file, const char *at, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t written = write(file, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        bytes -= (size_t)written;
    }
    return true;
}

/* Writes to a path that exists and is not a regular file: a rename must not replace it. Fails for
 * a pipe that no process reads. */
static bool write_in_place(const char *path, const tsr_tensor *tensor, size_t bytes)
{
    char header[TSR_NPY_HEADER_BYTES];
    const size_t length = tsr_npy_header_print(tensor->dtype, tensor->ndim, tensor->shape, header);
    const int file = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return false;
    const bool written =
        fcntl(file, F_SETFL, 0) == 0 && write_all(file, header, length) && write_all(file, tensor->data, bytes);
    const int reason = errno;
    if (close(file) == 0 && written)
        return true;
    errno = written ? errno : reason;
    return false;
}

static tsr_status prepare(const char *path, const tsr_tensor *tensor, size_t bytes, tsr_new_file **out)
{
    struct stat facts;
    if (stat(path, &facts) != 0 || S_ISREG(facts.st_mode))
        return write_new(path, tensor, bytes, out);
    if (!write_in_place(path, tensor, bytes)) {
        const int reason = errno;
        const tsr_status status = tsr_status_set(TSR_ERROR_IO, "%s: cannot write it: %s", path, strerror(reason));
        errno = reason;
        return status;
    }
    *out = NULL;
    return TSR_OK;
}

tsr_status tsr_npy_prepare(const char *path, const tsr_tensor *tensor, tsr_new_file **out)
{
    size_t bytes = 0;
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_npy_prepare: out is NULL");
    TSR_TRY(check_tensor("tsr_npy_prepare", path, tensor, &bytes));
    return prepare(path, tensor, bytes, out);
}

tsr_status tsr_npy_save(const char *path, const tsr_tensor *tensor)
{
    tsr_new_file *file;
    size_t bytes = 0;
    TSR_TRY(check_tensor("tsr_npy_save", path, tensor, &bytes));
    TSR_TRY(prepare(path, tensor, bytes, &file));
    return file ? tsr_new_file_publish(file) : TSR_OK;
}

tsr_status tsr_npy_write(const tsr_dtensor *x, const char *path, tsr_dtype dtype)
{
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_npy_write: x is NULL");
    const tsr_layout *const layout = tsr_dtensor_layout(x);
    const tsr_dtype stored = dtype == TSR_DTYPE_NONE ? tsr_layout_dtype(layout) : dtype;
    char header[TSR_NPY_HEADER_BYTES];
    size_t length = 0;
    tsr_status status = TSR_OK;
    if (!tsr_dtype_get(stored))
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_npy_write: dtype is %d, which is not a dtype", (int)dtype);
    else
        length = tsr_npy_header_print(stored, tsr_layout_ndim(layout), tsr_layout_shape(layout), header);
    tsr_shared_file file;
    const tsr_shared_call call = {"tsr_npy_write", tsr_mesh_comm(tsr_layout_mesh(layout))};
    TSR_TRY(tsr_shared_file_begin(&call, status, path, header, length, &file));
    status = tsr_dtensor_write_as(x, file.path, (int64_t)length, stored, NULL);
    return tsr_shared_file_end(&call, status, &file);
}
