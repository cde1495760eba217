#include "files/beginning.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tsr_status tsr_read_at(const char *path, int file, size_t offset, void *to, size_t bytes, size_t *got)
{
    for (*got = 0; *got < bytes;) {
        const ssize_t more = pread(file, (char *)to + *got, bytes - *got, (off_t)(offset + *got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return tsr_status_set(TSR_ERROR_IO, "%s: cannot read it: %s", path, strerror(errno));
        if (more == 0)
            break;
        *got += (size_t)more;
    }
    return TSR_OK;
}

tsr_status tsr_open_to_read(const char *path, int *out)
{
    *out = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return *out >= 0 ? TSR_OK : tsr_status_set(TSR_ERROR_IO, "%s: cannot open it: %s", path, strerror(errno));
}

static tsr_status read_open(const char *path, int file, size_t most, tsr_beginning *out)
{
    struct stat facts;
    if (fstat(file, &facts) != 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: cannot read it: %s", path, strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return tsr_status_set(TSR_ERROR_IO, "%s: it is not a regular file", path);
    const size_t size = (size_t)facts.st_size, wanted = size < most ? size : most;
    tsr_beginning beginning = {.data = malloc(wanted + 1), .size = size};
    if (!beginning.data)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for %zu bytes of it", path, wanted);
    const tsr_status status = tsr_read_at(path, file, 0, beginning.data, wanted, &beginning.bytes);
    if (status == TSR_OK)
        *out = beginning;
    else
        tsr_beginning_free(&beginning);
    return status;
}

tsr_status tsr_beginning_read(const char *path, size_t most, tsr_beginning *out)
{
    int file;
    TSR_TRY(tsr_open_to_read(path, &file));
    const tsr_status status = read_open(path, file, most, out);
    close(file);
    return status;
}

void tsr_beginning_free(tsr_beginning *beginning)
{
    free(beginning->data);
    *beginning = (tsr_beginning){NULL, 0, 0};
}
