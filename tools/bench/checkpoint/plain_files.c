#include "bench/checkpoint/plain_files.h"

#include <tessera/sys/status.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tsr_status failed(const char *path, const char *what)
{
    return tsr_status_set(TSR_ERROR_IO, "%s: %s failed: %s", path, what, strerror(errno));
}

/* The path of a file until it is whole. */
static const char *partial_path(const char *path, char text[static 4096])
{
    snprintf(text, 4096, "%s.part", path);
    return text;
}

static tsr_status write_all(const char *path, int file, const char *from, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t put = write(file, from, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return failed(path, "writing it");
        from += put;
        bytes -= (size_t)put;
    }
    return TSR_OK;
}

/* Brings a file to the disk, closes it and gives it its name, by which an older one goes. */
static tsr_status complete(const char *partial, const char *path, int file, tsr_status status)
{
    if (status == TSR_OK && fsync(file) != 0)
        status = failed(partial, "bringing it to the disk");
    if (close(file) != 0 && status == TSR_OK)
        status = failed(partial, "closing it");
    if (status == TSR_OK && rename(partial, path) != 0)
        status = failed(path, "giving it its name");
    return status;
}

tsr_status plain_write(const char *path, const void *from, int64_t bytes)
{
    char text[4096];
    const char *const partial = partial_path(path, text);
    tsr_status status = TSR_OK;
    const int file = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return failed(partial, "making it");
    for (int64_t left = bytes; left > 0 && status == TSR_OK; left -= (int64_t)PLAIN_PIECE)
        status = write_all(partial, file, from, left < (int64_t)PLAIN_PIECE ? (size_t)left : PLAIN_PIECE);
    return complete(partial, path, file, status);
}

/* Reads the next bytes of a file; `*got` is 0 at its end. */
static tsr_status read_piece(const char *path, int file, void *room, size_t *got)
{
    ssize_t some;
    do
        some = read(file, room, PLAIN_PIECE);
    while (some < 0 && errno == EINTR);
    *got = some > 0 ? (size_t)some : 0;
    return some < 0 ? failed(path, "reading it") : TSR_OK;
}

static tsr_status copy_pieces(const char *from, int source, const char *to, int target, void *room)
{
    size_t got;
    do {
        TSR_TRY(read_piece(from, source, room, &got));
        if (got > 0)
            TSR_TRY(write_all(to, target, room, got));
    } while (got > 0);
    return TSR_OK;
}

tsr_status plain_copy(const char *from, const char *to, void *room)
{
    char text[4096];
    const char *const partial = partial_path(to, text);
    const int source = open(from, O_RDONLY | O_CLOEXEC);
    if (source < 0)
        return failed(from, "opening it");
    const int target = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    tsr_status status = target < 0 ? failed(partial, "making it") : TSR_OK;
    if (status == TSR_OK)
        status = complete(partial, to, target, copy_pieces(from, source, partial, target, room));
    close(source);
    return status;
}

tsr_status plain_read(const char *path, void *room)
{
    size_t got = 1;
    tsr_status status = TSR_OK;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return failed(path, "opening it");
    while (got > 0 && status == TSR_OK)
        status = read_piece(path, file, room, &got);
    close(file);
    return status;
}

/* Forgets one file: what is not on the disk yet cannot be forgotten. */
static tsr_status forget_file(int folder, const char *name)
{
    const int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return failed(name, "opening it");
    errno = 0;
    if (fsync(file) == 0)
        errno = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    const tsr_status status = errno == 0 ? TSR_OK : failed(name, "forgetting what memory has of it");
    close(file);
    return status;
}

tsr_status plain_forget(const char *folder)
{
    tsr_status status = TSR_OK;
    DIR *const list = opendir(folder);
    if (!list)
        return failed(folder, "listing it");
    for (struct dirent *entry; status == TSR_OK && (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            status = forget_file(dirfd(list), entry->d_name);
    closedir(list);
    return status;
}

void plain_remove(const char *folder)
{
    DIR *const list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    rmdir(folder);
}
