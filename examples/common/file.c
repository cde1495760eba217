#include "file.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads up to `most` bytes; fewer if the file is truncated meanwhile. */
static tsr_status read_bytes(const char *path, int descriptor, size_t most, llama_file *file)
{
    while (file->bytes < most) {
        const ssize_t got = pread(descriptor, file->data + file->bytes, most - file->bytes, (off_t)file->bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
        if (got == 0)
            break;
        file->bytes += (size_t)got;
    }
    return TSR_OK;
}

static tsr_status read_open(const char *path, int descriptor, size_t most, llama_file *out)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return tsr_status_set(TSR_ERROR_IO, "%s is not a regular file", path);
    const size_t size = (size_t)about.st_size, wanted = size < most ? size : most;
    llama_file file = {.data = malloc(wanted + 1), .size = size};
    if (!file.data)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for %zu bytes of it", path, wanted);
    const tsr_status status = read_bytes(path, descriptor, wanted, &file);
    if (status == TSR_OK)
        *out = file;
    else
        llama_file_finish(&file);
    return status;
}

tsr_status llama_file_read(const char *path, size_t most, llama_file *out)
{
    /* Non-blocking, so that a FIFO of that name is refused rather than waited for. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
    const tsr_status status = read_open(path, descriptor, most, out);
    close(descriptor);
    return status;
}

tsr_status llama_file_read_description(const char *path, llama_file *out)
{
    llama_file file;
    TSR_TRY(llama_file_read(path, LLAMA_DESCRIPTION_BYTES, &file));
    if (file.size > file.bytes) {
        llama_file_finish(&file);
        return tsr_status_set(TSR_ERROR_IO, "%s has %zu bytes, of which %zu can be read; at most %zu are allowed", path,
                              file.size, file.bytes, LLAMA_DESCRIPTION_BYTES);
    }
    *out = file;
    return TSR_OK;
}

void llama_file_finish(llama_file *file)
{
    free(file->data);
    *file = (llama_file){NULL, 0, 0};
}
