#include "files/shared_file.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* On rank 0: makes the file and writes its header. */
static tsr_status make_file(const char *path, const void *header, size_t bytes, tsr_shared_file *file)
{
    TSR_TRY(tsr_new_file_create(path, &file->file));
    const char *const temporary = tsr_new_file_path(file->file);
    if (strlen(temporary) >= sizeof file->path)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a path of more than %zu bytes", path, sizeof file->path - 1);
    strcpy(file->path, temporary);
    return tsr_new_file_write(file->file, header, bytes);
}

tsr_status tsr_shared_file_begin(const tsr_shared_call *call, tsr_status local, const char *path, const void *header,
                                 size_t bytes, tsr_shared_file *out)
{
    memset(out, 0, sizeof *out);
    if (local == TSR_OK && !path)
        local = tsr_status_set(TSR_ERROR_ARGUMENT, "%s: path is NULL", call->name);
    if (local == TSR_OK && tsr_comm_rank(call->comm) == 0)
        local = make_file(path, header, bytes, out);
    tsr_status status = tsr_comm_share_status(call->comm, call->name, local);
    if (status == TSR_OK)
        status = tsr_comm_broadcast(call->comm, out->path, sizeof out->path, TSR_U8, 0, tsr_device_host(), NULL);
    if (status != TSR_OK)
        tsr_new_file_discard(out->file);
    return status;
}

/* Brings to the disk what this rank wrote. Rank 0, which does so when it publishes the file,
 * reaches no more than its own node's part where the file system keeps parts on nodes. */
static tsr_status settle_part(const tsr_shared_call *call, const char *path)
{
    if (tsr_comm_rank(call->comm) == 0)
        return TSR_OK;
    const int file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    const int reason = file < 0 || fsync(file) != 0 ? errno : 0;
    if (file >= 0)
        close(file);
    return reason == 0 ? TSR_OK
                       : tsr_status_set(TSR_ERROR_IO, "%s: bringing it to the disk failed: %s", path, strerror(reason));
}

tsr_status tsr_shared_file_end(const tsr_shared_call *call, tsr_status status, tsr_shared_file *file)
{
    if (status == TSR_OK)
        status = tsr_comm_share_status(call->comm, call->name, settle_part(call, file->path));
    if (status != TSR_OK) {
        tsr_new_file_discard(file->file);
        return status;
    }
    if (file->file)
        status = tsr_new_file_publish(file->file);
    return tsr_comm_share_status(call->comm, call->name, status);
}
