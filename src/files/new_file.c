#include <tessera/new_file.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Upper bound of the random names to try: of 2^64 names, so many are not taken by chance. */
#define MOST_TRIES 64

/* Bytes of ".tessera-" with 16 digits and the NUL. */
#define NAME_BYTES 26

struct tsr_new_file {
    int file;        /* descriptor; -1 once it is closed */
    char *path;      /* final path, with symbolic links resolved */
    char *temporary; /* path until the file is published */
};

/* TSR_ERROR_IO with the reason in errno, which stays. */
static tsr_status failed(const char *path)
{
    const int reason = errno;
    const tsr_status status = tsr_status_set(TSR_ERROR_IO, "%s: cannot write it: %s", path, strerror(reason));
    errno = reason;
    return status;
}

static void free_file(tsr_new_file *file)
{
    const int reason = errno;
    if (file->file >= 0)
        close(file->file);
    free(file->temporary);
    free(file->path);
    free(file);
    errno = reason;
}

/* The path of a new file, symbolic links resolved, on the heap; NULL if there is no memory. */
static char *resolve(const char *path)
{
    char *const behind = realpath(path, NULL);
    return behind || errno == ENOMEM ? behind : strdup(path);
}

/* Makes the file under a random name; the reason of a failure is in errno. */
static bool make_random(tsr_new_file *file)
{
    const char *const slash = strrchr(file->path, '/');
    const size_t folder = slash ? (size_t)(slash - file->path) + 1 : 0;
    memcpy(file->temporary, file->path, folder);
    for (int i = 0; i < MOST_TRIES; i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return false;
        snprintf(file->temporary + folder, NAME_BYTES, ".tessera-%016llx", (unsigned long long)number);
        file->file = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file->file >= 0 || errno != EEXIST)
            return file->file >= 0;
    }
    return false;
}

static tsr_status make(const char *path, tsr_new_file *file)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        errno = S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
        return tsr_status_set(TSR_ERROR_IO, "%s: cannot write it: it is not a regular file", path);
    }
    file->path = resolve(path);
    file->temporary = file->path ? malloc(strlen(file->path) + NAME_BYTES) : NULL;
    if (!file->temporary)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for its path", path);
    return make_random(file) ? TSR_OK : failed(path);
}

tsr_status tsr_new_file_create(const char *path, tsr_new_file **out)
{
    if (!path || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_new_file_create: %s is NULL", !path ? "path" : "out");
    tsr_new_file *const file = calloc(1, sizeof *file);
    if (!file)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for its path", path);
    file->file = -1;
    const tsr_status status = make(path, file);
    if (status == TSR_OK)
        *out = file;
    else
        free_file(file);
    return status;
}

const char *tsr_new_file_path(const tsr_new_file *file)
{
    return file->temporary;
}

tsr_status tsr_new_file_write(tsr_new_file *file, const void *data, size_t bytes)
{
    if (!file || (!data && bytes > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_new_file_write: %s is NULL", !file ? "file" : "data");
    if (file->file < 0)
        return tsr_status_set(TSR_ERROR_STATE, "%s: the file is closed, and takes no more", file->path);
    for (const char *at = data; bytes > 0;) {
        const ssize_t written = write(file->file, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return failed(file->path);
        at += written;
        bytes -= (size_t)written;
    }
    return TSR_OK;
}

/* Closes the file; `written` is false if the reason in errno kept it from the disk. */
static tsr_status close_file(tsr_new_file *file, bool written)
{
    const int reason = errno;
    const bool closed = close(file->file) == 0;
    file->file = -1;
    if (!written)
        errno = reason;
    return written && closed ? TSR_OK : failed(file->path);
}

tsr_status tsr_new_file_settle(tsr_new_file *file)
{
    if (!file)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_new_file_settle: file is NULL");
    return file->file < 0 ? TSR_OK : close_file(file, fsync(file->file) == 0);
}

tsr_status tsr_new_file_close(tsr_new_file *file)
{
    if (!file)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_new_file_close: file is NULL");
    return file->file < 0 ? TSR_OK : close_file(file, true);
}

tsr_status tsr_new_file_publish(tsr_new_file *file)
{
    if (!file)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_new_file_publish: file is NULL");
    tsr_status status = tsr_new_file_settle(file);
    if (status == TSR_OK && rename(file->temporary, file->path) != 0)
        status = failed(file->path);
    if (status == TSR_OK)
        free_file(file);
    else
        tsr_new_file_discard(file);
    return status;
}

void tsr_new_file_discard(tsr_new_file *file)
{
    const int reason = errno;
    if (!file)
        return;
    unlink(file->temporary);
    errno = reason;
    free_file(file);
}
