/**
 * A rank's communicators over NCCL. The first one, borrowed or made here, and all that are split
 * off it are a family. A family has one device, and one lock under which its calls of NCCL are
 * made. Its kernels run one after the other, in the order of the calls, whichever streams they are
 * given: if kernels of two communicators ran in different orders on two GPUs, they could wait for
 * each other for ever.
 *
 * Communicators that are made here are non-blocking, since only those can be aborted safely. A call
 * may leave its work to NCCL's background; until the communicator is ready, neither NCCL nor the
 * stream may be given more. To destroy a communicator takes its peers. So when a handle is
 * destroyed, NCCL finalizes its communicator in the background, and the handle stays in the family
 * until that is done, or until the last handle is destroyed, which waits for it.
 */
#ifndef TSR_COMM_ENGINES_NCCL_HANDLE_H
#define TSR_COMM_ENGINES_NCCL_HANDLE_H

#include "comm/core/lateness.h"
#include "comm/engines/nccl/error.h"

#include <tessera/nccl.h>
#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct tsr_nccl_handle tsr_nccl_handle;

/** A block of pinned host memory, which the GPU reaches. Freeing one waits for all work of the GPU,
 * so a family keeps its blocks until it is freed. */
typedef struct tsr_nccl_block {
    struct tsr_nccl_block *next;
    char *at;
    size_t bytes;
} tsr_nccl_block;

typedef struct tsr_nccl_family {
    const tsr_nccl_api *api;
    tsr_context *context;
    const tsr_device_driver *driver; /**< NULL: any driver named "cuda" */
    int device;
    int64_t timeout_ms; /**< how long a call waits; 0: for ever */
    atomic_bool aborted;
    pthread_mutex_t lock; /**< held during calls of NCCL and CUDA, but not while the engine itself waits for peers */
    tsr_nccl_handle *handles; /**< includes handles that are being finalized */
    int living;               /**< handles that are not destroyed */
    cudaStream_t stream;      /**< for exchanges of host memory, and barriers */
    cudaEvent_t last;         /**< if `marked`: recorded after the last kernel that was put into a stream */
    bool marked;
    tsr_nccl_handle *unsettled; /**< the handle whose last kernel may not be in its stream yet; or NULL */
    uint64_t started;           /**< how often `unsettled` was set */
    tsr_nccl_block *spare;      /**< blocks that no handle uses */
    bool leaks; /**< a borrowed communicator hangs and may still write to `spare`, which is never freed then */
} tsr_nccl_family;

/** An exchange from its start to its finish. */
typedef struct tsr_nccl_exchange {
    const tsr_message *sends, *receives;
    size_t send_count, receive_count;
    size_t part; /**< bytes of each staged message that one round carries */
    size_t done; /**< bytes of each message that earlier rounds have carried, where it has so many */
    bool staged; /**< messages are in host memory, and go through `staging` */
    bool started;
} tsr_nccl_exchange;

struct tsr_nccl_handle {
    tsr_nccl_family *family;
    tsr_nccl_handle *next;
    tsr_late_hook late;
    ncclComm_t comm; /**< NULL: not made yet, or destroyed */
    bool owned;      /**< `comm` was made here, so the engine aborts and destroys it */
    bool finalizing; /**< it was destroyed, and is freed when NCCL is done with it */
    int holders;     /**< threads that wait for its kernel (kernel.c): it is not freed meanwhile */
    ncclComm_t made; /**< the communicator that a split in progress makes */
    bool stuck;      /**< a split failed, and NCCL may still write `made`: the handle is never freed */
    int rank, ranks;
    bool broken; /**< every call fails, and says `why` */
    tsr_kept_sentence why;
    tsr_nccl_block *staging;
    tsr_nccl_exchange exchange;
};

/** Breaks the handle with `status` and this thread's sentence, aborts its communicator if that was
 * made here, and returns `status`. To be called without the lock. */
tsr_status tsr_nccl_break(tsr_nccl_handle *handle, tsr_status status);

/** To be called around calls of NCCL and CUDA. Open takes the lock and makes the family's device
 * current. TSR_ERROR_PEER: the handle is broken or the family aborted; other errors are CUDA's.
 * After an error it is not to be closed. */
tsr_status tsr_nccl_open(tsr_nccl_handle *handle, int *previous_device);
void tsr_nccl_close(tsr_nccl_handle *handle, int previous_device);

#endif
