/* Preloaded: truncates the file CUT_FILE to CUT_BYTES bytes after the first pread() of any file. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef ssize_t reader(int file, void *to, size_t bytes, off_t offset);

__attribute__((visibility("default"))) ssize_t pread(int file, void *to, size_t bytes, off_t offset)
{
    static reader *next;
    void *const found = !next ? dlsym(RTLD_NEXT, "pread64") : NULL;
    if (!next)
        memcpy(&next, &found, sizeof next);
    const ssize_t got = next(file, to, bytes, offset);
    const char *const path = getenv("CUT_FILE"), *const left = getenv("CUT_BYTES");
    if (path && left && truncate(path, atol(left)) != 0)
        abort();
    return got;
}
