#include "files/checkpoint_files.h"

#include <tessera/sys/status.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* What names begin and end with; of a file that is not complete, PARTIAL follows. */
#define BEGIN   "model-"
#define END     ".safetensors"
#define PARTIAL ".part"

/* Digits of a stamp in a name. */
#define STAMP_DIGITS (TSR_CHECKPOINT_STAMP_BYTES - 1)

static tsr_status failed(const char *path, const char *what)
{
    return tsr_status_set(TSR_ERROR_IO, "%s: %s failed: %s", path, what, strerror(errno));
}

static tsr_status lack(const tsr_checkpoint_saving *s)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for the path of a file", s->call);
}

static tsr_status check_folder(const tsr_checkpoint_saving *s)
{
    char *single;
    struct stat facts;
    if (stat(s->folder, &facts) != 0)
        return failed(s->folder, "looking at it");
    if (!S_ISDIR(facts.st_mode))
        return tsr_status_set(TSR_ERROR_IO, "%s is not a folder", s->folder);
    if (asprintf(&single, "%s/" TSR_CHECKPOINT_SINGLE, s->folder) < 0)
        return lack(s);
    const bool there = stat(single, &facts) == 0;
    free(single);
    return there ? tsr_status_set(TSR_ERROR_IO,
                                  "%s: %s has a " TSR_CHECKPOINT_SINGLE ", which readers prefer to an index: save to "
                                  "another folder",
                                  s->call, s->folder)
                 : TSR_OK;
}

/* The name that the folder has until it is complete. */
static tsr_status name_inside(tsr_checkpoint_saving *s)
{
    size_t length = strlen(s->folder);
    while (length > 1 && s->folder[length - 1] == '/')
        length--;
    const int made = s->dcp ? asprintf(&s->inside, "%.*s" PARTIAL "-%s", (int)length, s->folder, s->stamp)
                            : asprintf(&s->inside, "%s", s->folder);
    if (made < 0)
        s->inside = NULL;
    return made < 0 ? lack(s) : TSR_OK;
}

tsr_status tsr_checkpoint_make_folder(tsr_checkpoint_saving *s)
{
    uint64_t number;
    struct stat facts;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return failed(s->folder, "choosing a random name");
    snprintf(s->stamp, sizeof s->stamp, "%016llx", (unsigned long long)number);
    if (!s->dcp) {
        if (mkdir(s->folder, 0777) != 0 && errno != EEXIST)
            return failed(s->folder, "making the folder");
        return check_folder(s);
    }
    if (stat(s->folder, &facts) == 0 && rmdir(s->folder) != 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: options.dcp: %s must be a new or an empty folder: %s", s->call,
                              s->folder, strerror(errno));
    TSR_TRY(name_inside(s));
    return mkdir(s->inside, 0777) == 0 ? TSR_OK : failed(s->inside, "making the folder");
}

static tsr_status name_file(const tsr_checkpoint_saving *s, size_t index, tsr_checkpoint_file *file)
{
    int made;
    if (s->dcp)
        made = asprintf(&file->path, "%s/shard-%05d-model-00001-of-00001" END, s->inside, tsr_comm_rank(s->comm) + 1);
    else
        made =
            asprintf(&file->path, "%s/" BEGIN "%s-%05zu-of-%05zu" END, s->inside, s->stamp, index + 1, s->file_count);
    if (made < 0)
        file->path = NULL;
    if (made >= 0 && asprintf(&file->partial, "%s" PARTIAL, file->path) < 0)
        file->partial = NULL;
    return file->partial ? TSR_OK : lack(s);
}

static tsr_status make_file(tsr_checkpoint_file *file)
{
    const int fd = open(file->partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(file->partial, "making it");
    file->made = true;
    tsr_status status = TSR_OK;
    if (ftruncate(fd, (off_t)((int64_t)file->header.bytes + file->header.data_bytes)) != 0)
        status = failed(file->partial, "giving it its size");
    if (close(fd) != 0 && status == TSR_OK)
        status = failed(file->partial, "closing it");
    return status;
}

tsr_status tsr_checkpoint_make_files(tsr_checkpoint_saving *s)
{
    if (!s->inside)
        TSR_TRY(name_inside(s));
    for (size_t i = 0; i < s->file_count; i++)
        TSR_TRY(name_file(s, i, &s->files[i]));
    for (size_t i = 0; i < s->file_count && (s->dcp || tsr_comm_rank(s->comm) == 0); i++)
        TSR_TRY(make_file(&s->files[i]));
    return TSR_OK;
}

/* Writes the first `bytes` bytes of a file, and brings it to the disk. */
static tsr_status write_text(const char *path, int fd, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t put = pwrite(fd, text + at, bytes - at, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return failed(path, "writing it");
        at += (size_t)put;
    }
    return fsync(fd) == 0 ? TSR_OK : failed(path, "bringing it to the disk");
}

/* Opens the file at `partial`, writes its first bytes, and renames it to `path`. */
static tsr_status complete(const char *partial, const char *path, int flags, const char *text, size_t bytes)
{
    const int fd = open(partial, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return failed(partial, "opening it");
    tsr_status status = write_text(partial, fd, text, bytes);
    if (close(fd) != 0 && status == TSR_OK)
        status = failed(partial, "closing it");
    if (status == TSR_OK && rename(partial, path) != 0)
        status = failed(path, "giving it its name");
    return status;
}

tsr_status tsr_checkpoint_complete_files(tsr_checkpoint_saving *s)
{
    for (size_t i = 0; i < s->file_count; i++) {
        const tsr_checkpoint_file *const file = &s->files[i];
        if (file->made)
            TSR_TRY(complete(file->partial, file->path, 0, file->header.text, file->header.bytes));
    }
    return TSR_OK;
}

/* Brings the names in a folder to the disk. */
static tsr_status settle_folder(const char *path)
{
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(path, "opening the folder");
    /* EINVAL: the file system has nothing to bring. */
    const bool settled = fsync(fd) == 0 || errno == EINVAL;
    const tsr_status status = settled ? TSR_OK : failed(path, "bringing the folder to the disk");
    close(fd);
    return status;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* True if `text` begins with the digits of a stamp. */
static bool is_stamp(const char *text)
{
    int count = 0;
    while (count < STAMP_DIGITS && isxdigit((unsigned char)text[count]))
        count++;
    return count == STAMP_DIGITS;
}

/* True if `name` is that of a checkpoint's file, complete or not, of another save than `stamp`. */
static bool is_older(const char *name, const char *stamp)
{
    if (strncmp(name, BEGIN, sizeof BEGIN - 1) != 0)
        return false;
    name += sizeof BEGIN - 1;
    return is_stamp(name) && strncmp(name, stamp, STAMP_DIGITS) != 0 && name[STAMP_DIGITS] == '-' &&
           (ends_in(name, END) || ends_in(name, PARTIAL));
}

/* Removes files of older checkpoints, and what a save that was killed left. A file that cannot be
 * removed is left to the next save: the checkpoint is whole without. */
static void clean(const tsr_checkpoint_saving *s)
{
    DIR *const folder = opendir(s->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (is_older(entry->d_name, s->stamp))
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

/* Removes a folder of files. */
static void remove_folder(const char *path)
{
    DIR *const folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

/* Removes the folders that saves of the dcp's folder left, which were killed. */
static void clean_beside(const tsr_checkpoint_saving *s)
{
    char *parent = NULL, *path;
    const char *const slash = strrchr(s->inside, '/'), *const name = slash ? slash + 1 : s->inside;
    const size_t length = strlen(name) - STAMP_DIGITS;
    if (asprintf(&parent, "%.*s.", slash ? (int)(slash + 1 - s->inside) : 0, s->inside) < 0)
        return;
    DIR *const folder = opendir(parent);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        const char *const end = entry->d_name + (strlen(entry->d_name) < length ? 0 : length);
        if (strncmp(entry->d_name, name, length) == 0 && strlen(end) == STAMP_DIGITS && is_stamp(end) &&
            asprintf(&path, "%s/%s", parent, entry->d_name) >= 0) {
            remove_folder(path);
            free(path);
        }
    }
    if (folder)
        closedir(folder);
    free(parent);
}

static tsr_status publish_index(const tsr_checkpoint_saving *s)
{
    char *path = NULL, *partial = NULL;
    tsr_status status = lack(s);
    if (asprintf(&path, "%s/" TSR_CHECKPOINT_INDEX, s->folder) < 0)
        return status;
    if (asprintf(&partial, "%s/" BEGIN "%s-index.json" PARTIAL, s->folder, s->stamp) >= 0) {
        status = complete(partial, path, O_CREAT | O_EXCL, s->index, s->index_bytes);
        if (status != TSR_OK)
            unlink(partial);
        free(partial);
    }
    free(path);
    return status;
}

/* Brings the name of a folder, in the folder that holds it, to the disk. */
static tsr_status settle_name(const tsr_checkpoint_saving *s)
{
    char *path;
    if (asprintf(&path, "%s/..", s->folder) < 0)
        return lack(s);
    const tsr_status status = settle_folder(path);
    free(path);
    return status;
}

tsr_status tsr_checkpoint_publish(tsr_checkpoint_saving *s)
{
    TSR_TRY(settle_folder(s->inside));
    if (!s->dcp)
        TSR_TRY(publish_index(s));
    else if (rename(s->inside, s->folder) != 0)
        return failed(s->folder, "giving the folder its name");
    /* The new checkpoint is there: its files stay, whatever fails. */
    for (size_t i = 0; i < s->file_count; i++)
        s->files[i].made = false;
    TSR_TRY(settle_folder(s->folder));
    TSR_TRY(settle_name(s));
    if (s->dcp)
        clean_beside(s);
    else
        clean(s);
    return TSR_OK;
}

void tsr_checkpoint_remove_files(tsr_checkpoint_saving *s)
{
    for (size_t i = 0; i < s->file_count; i++)
        if (s->files[i].made) {
            unlink(s->files[i].partial);
            unlink(s->files[i].path);
        }
    if (s->dcp && s->inside && tsr_comm_rank(s->comm) == 0)
        remove_folder(s->inside);
}
