/**
 * A rank's communicators over NCCL. The one that was lent or made and all that is split off it are a family: they share the device, and
 * NCCL's calls for them are made one at a time. So are their kernels run: whichever streams they are given, they follow one another in the
 * order of the calls, because two communicators whose kernels come in another order on another GPU may wait for each other for ever.
 *
 * Those that we make are non-blocking, as NCCL asks of whoever wants to abort: a call may leave its work to NCCL, and until the
 * communicator is ready neither NCCL nor the stream may be given any more. To destroy one takes its peers, so a handle that goes lets NCCL
 * finalize it in the background and stays in the family until that is done, or until the last handle goes, which waits for it.
 */
#ifndef TSR_COMM_ENGINES_NCCL_HANDLE_H
#define TSR_COMM_ENGINES_NCCL_HANDLE_H

#include "comm/core/lateness.h"
#include "comm/engines/nccl/error.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <tessera/nccl.h>
#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

typedef struct tsr_nccl_handle tsr_nccl_handle;

/** Host memory that the GPU reaches. To free it waits for all that the GPU does, so families keep it until they go. */
typedef struct tsr_nccl_block {
    struct tsr_nccl_block *next;
    char *at;
    size_t bytes;
} tsr_nccl_block;

typedef struct tsr_nccl_family {
    const tsr_nccl_api *api;
    tsr_context *context;
    const tsr_device_driver *driver; /**< NULL: any called "cuda" */
    int device;
    int64_t timeout_ms; /**< 0: for ever */
    atomic_bool aborted;
    pthread_mutex_t lock;     /**< held in calls of NCCL and CUDA, never while waiting for peers where NCCL does not */
    tsr_nccl_handle *handles; /**< those that go included */
    int living;               /**< handles that are somebody's */
    cudaStream_t stream;      /**< of host memory and barriers */
    cudaEvent_t last;         /**< after the last kernel that was left to a stream, if `marked` */
    bool marked;
    tsr_nccl_handle *unsettled; /**< what it has started may not be in the stream yet; or NULL */
    uint64_t started;           /**< how often there was one */
    tsr_nccl_block *spare;      /**< that no handle uses */
    bool leaks;                 /**< a borrowed communicator hangs, which may still write to them: they are left alone */
} tsr_nccl_family;

/** An exchange between its halves. */
typedef struct tsr_nccl_exchange {
    const tsr_message *sends, *receives;
    size_t send_count, receive_count;
    size_t part; /**< what goes at once of each message that is staged */
    size_t done; /**< so many bytes of each message, of those that are longer */
    bool staged; /**< host memory */
    bool started;
} tsr_nccl_exchange;

struct tsr_nccl_handle {
    tsr_nccl_family *family;
    tsr_nccl_handle *next;
    tsr_late_hook late;
    ncclComm_t comm; /**< NULL: none yet, or gone */
    bool owned;      /**< we made it, so we abort and destroy it */
    bool finalizing; /**< it goes */
    int holders;     /**< threads that conclude what it has started: it is not freed before */
    ncclComm_t made; /**< by a split that is under way */
    bool stuck;      /**< it failed, and NCCL may write `made` whenever it likes: the handle is never freed */
    int rank, ranks;
    bool broken; /**< every call says why */
    tsr_kept_sentence why;
    tsr_nccl_block *staging;
    tsr_nccl_exchange exchange;
};

/** Breaks the handle with `status` and this thread's sentence, aborts its communicator if we made it, and returns `status`. Not under the
 * lock. */
tsr_status tsr_nccl_break(tsr_nccl_handle *handle, tsr_status status);

/** Around calls of NCCL and CUDA: takes the lock and makes the family's device current. TSR_ERROR_PEER, with nothing to close: broken or
 * aborted. */
tsr_status tsr_nccl_open(tsr_nccl_handle *handle, int *previous_device);
void tsr_nccl_close(tsr_nccl_handle *handle, int previous_device);

#endif
