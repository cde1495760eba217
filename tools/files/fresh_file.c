#include "files/fresh_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

/* Upper bound of the random names to try: of 2^64 names, so many are not taken by chance. */
#define MOST_TRIES 64

int fresh_file_create(int folder, char name[FRESH_NAME_BYTES])
{
    for (int i = 0; i < MOST_TRIES; i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            return -1;
        snprintf(name, FRESH_NAME_BYTES, ".tessera-%016llx", (unsigned long long)number);
        const int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

bool fresh_file_write(int file, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
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

char *fresh_file_resolve(const char *path)
{
    char *const behind = realpath(path, NULL);
    return behind || errno == ENOMEM ? behind : strdup(path);
}

/* Opens the folder of f->path, and sets f->name. Returns the descriptor, or -1. */
static int open_folder(fresh_file *f)
{
    static const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    char *const slash = strrchr(f->path, '/');
    f->name = slash ? slash + 1 : f->path;
    if (!slash)
        return open(".", flags);
    if (slash == f->path)
        return open("/", flags);
    *slash = '\0';
    const int folder = open(f->path, flags);
    *slash = '/';
    return folder;
}

static void forget(fresh_file *f)
{
    const int reason = errno;
    if (f->file >= 0)
        close(f->file);
    if (f->folder >= 0)
        close(f->folder);
    free(f->path);
    f->path = f->name = NULL;
    f->file = f->folder = -1;
    errno = reason;
}

bool fresh_file_begin(const char *path, fresh_file *out)
{
    fresh_file f = {.file = -1, .folder = -1, .path = fresh_file_resolve(path)};
    if (f.path)
        f.folder = open_folder(&f);
    if (f.folder >= 0)
        f.file = fresh_file_create(f.folder, f.temporary);
    if (f.file >= 0)
        *out = f;
    else
        forget(&f);
    return f.file >= 0;
}

bool fresh_file_settle(fresh_file *f)
{
    const bool written = fsync(f->file) == 0;
    const int reason = errno;
    const bool closed = close(f->file) == 0;
    f->file = -1;
    if (!written)
        errno = reason;
    return written && closed;
}

bool fresh_file_publish(fresh_file *f)
{
    const bool done = renameat(f->folder, f->temporary, f->folder, f->name) == 0;
    if (done)
        forget(f);
    else
        fresh_file_discard(f);
    return done;
}

void fresh_file_discard(fresh_file *f)
{
    const int reason = errno;
    if (f->folder >= 0)
        unlinkat(f->folder, f->temporary, 0);
    errno = reason;
    forget(f);
}
