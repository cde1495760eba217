/** A file that all ranks write, and that appears under its name only when all have succeeded. */
#ifndef TSR_FILES_SHARED_FILE_H
#define TSR_FILES_SHARED_FILE_H

#include <tessera/comm.h>
#include <tessera/new_file.h>

/** Bytes of the longest path, with the NUL. */
#define TSR_SHARED_PATH_BYTES 4096

/** The public call that writes, and the communicator of its ranks. */
typedef struct tsr_shared_call {
    const char *name;
    tsr_comm *comm;
} tsr_shared_call;

typedef struct tsr_shared_file {
    tsr_new_file *file;               /**< on rank 0; NULL elsewhere */
    char path[TSR_SHARED_PATH_BYTES]; /**< the path until the file is published, on every rank */
} tsr_shared_file;

/** Collective: rank 0 makes the file that will replace `path`, and writes its first `bytes` bytes.
 * `local` is this rank's status so far. After success, tsr_shared_file_end() must follow on every
 * rank; after a failure nothing is left. */
tsr_status tsr_shared_file_begin(const tsr_shared_call *call, tsr_status local, const char *path, const void *header,
                                 size_t bytes, tsr_shared_file *out);

/** Collective if `status` is TSR_OK, which then it is on every rank: each rank brings its part to
 * the disk, rank 0 publishes the file, and all ranks learn whether they could. Else removes the
 * file and returns `status`. */
tsr_status tsr_shared_file_end(const tsr_shared_call *call, tsr_status status, tsr_shared_file *file);

#endif
