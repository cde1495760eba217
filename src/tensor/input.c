#include "tensor/input.h"

#include "base/checked.h"
#include "placement/ownership.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tsr_input_close(tsr_input *input)
{
    if (input->path)
        close(input->file);
    input->path = NULL;
}

tsr_status tsr_input_open(tsr_input *input, const char *path)
{
    if (input->path && strcmp(input->path, path) == 0)
        return TSR_OK;
    tsr_input_close(input);
    /* O_NONBLOCK, because opening a pipe must not wait for its writer; pread() then refuses the
     * pipe. */
    input->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (input->file < 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
    input->path = path;
    return TSR_OK;
}

tsr_status tsr_input_read(tsr_input *input, int64_t at, char *to, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t got = pread(input->file, to, bytes < INT_MAX ? bytes : INT_MAX, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tsr_status_set(TSR_ERROR_IO, "%s: reading %zu bytes at %lld failed: %s", input->path, bytes,
                                  (long long)at, strerror(errno));
        if (got == 0)
            return tsr_status_set(TSR_ERROR_IO, "%s ends at byte %lld, within the tensor", input->path, (long long)at);
        at += got;
        to += got;
        bytes -= (size_t)got;
        input->bytes_read += got;
    }
    return TSR_OK;
}

tsr_status tsr_input_check(tsr_input *input, const char *path, int64_t offset, int64_t bytes)
{
    struct stat info;
    int64_t end;
    TSR_TRY(tsr_input_open(input, path));
    if (fstat(input->file, &info) != 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
    if (!tsr_add_sizes(bytes, offset, &end) || (S_ISREG(info.st_mode) && end > info.st_size))
        return tsr_status_set(TSR_ERROR_IO, "%s has %lld bytes, but the tensor at byte %lld would end beyond", path,
                              (long long)info.st_size, (long long)offset);
    return TSR_OK;
}

bool tsr_input_holds_value(const tsr_layout *layout, const int64_t *coordinate, tsr_reduce_op *op)
{
    for (int i = 0; i < layout->mesh_ndim; i++) {
        *op = layout->placements[i].op;
        if (tsr_layout_kind(layout, i) == TSR_PARTIAL && (*op == TSR_SUM || *op == TSR_PROD) && coordinate[i] != 0)
            return false;
    }
    return true;
}
