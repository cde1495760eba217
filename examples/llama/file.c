#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tessera/sys/status.h>
#include <unistd.h>

static tsr_status map_open(const char *path, int descriptor, llama_file *out)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return tsr_status_set(TSR_ERROR_IO, "%s is not a regular file", path);
    llama_file file = {NULL, (size_t)about.st_size};
    if (file.bytes > 0) {
        void *const data = mmap(NULL, file.bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED)
            return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
        file.data = data;
    }
    *out = file;
    return TSR_OK;
}

tsr_status llama_file_map(const char *path, llama_file *out)
{
    /* Non-blocking, so that a FIFO of that name is refused rather than waited for. */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
    const tsr_status status = map_open(path, descriptor, out);
    close(descriptor);
    return status;
}

void llama_file_unmap(llama_file *file)
{
    if (file->data != NULL)
        munmap((void *)(uintptr_t)file->data, file->bytes);
    *file = (llama_file){NULL, 0};
}
