#include "cuda.h"

#include <tessera/cuda.h>
#include <tessera/nccl.h>
#include <tessera/sys/device.h>
#include <tessera/sys/library.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* A communicator over one of XLA's. XLA may end that one, and make another GPU's in its place in
 * memory. */
typedef struct wrapped {
    struct wrapped *next;
    struct ncclComm *lent;
    int64_t device, timeout_ms;
    tsr_comm *comm;
    int users;
    bool broken;
} wrapped;

/* The process's GPUs while there are call sites on them. */
static struct {
    pthread_mutex_t gate;
    int users;
    tsr_context *context;
    tsr_device_driver *driver;
    tsr_status (*from_nccl)(struct ncclComm *, const tsr_nccl_options *, tsr_comm **);
    wrapped *comms;
} gpus = {.gate = PTHREAD_MUTEX_INITIALIZER};

typedef tsr_status create_driver(tsr_context *, const tsr_cuda_options *, tsr_device_driver **);

static tsr_status find_function(void *library, const char *name, void *function)
{
    void *const found = dlsym(library, name);
    if (!found)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s has no %s: it was built without %s, or is of another version",
                              TSR_XLA_CUDA, name, strstr(name, "nccl") ? "NCCL" : "CUDA");
    memcpy(function, &found, sizeof found);
    return TSR_OK;
}

static tsr_status check_driver(void)
{
    void *self;
    int count = 0;
    const char *reason = NULL;
    const tsr_device_table *const table = tsr_device_driver_table(gpus.driver, &self);
    TSR_TRY(table->count(self, &count, &reason));
    if (count == 0)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "there is no GPU: %s", reason ? reason : "none is found");
    return TSR_OK;
}

static void end_gpus(void)
{
    tsr_device_driver_destroy(gpus.driver);
    tsr_context_destroy(gpus.context);
    gpus.driver = NULL;
    gpus.context = NULL;
}

static tsr_status open_library(void **library)
{
    const tsr_status status = tsr_library_load(TSR_XLA_CUDA, RTLD_NOW | RTLD_LOCAL, library);
    if (status == TSR_OK)
        return TSR_OK;
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    return tsr_status_set(status, "calls on GPUs need libtessera-cuda, which cannot be opened: %s", kept.text);
}

/* The library stays open for good: drivers and communicators may outlive their call sites. */
static tsr_status begin_gpus(void)
{
    void *library;
    create_driver *create = NULL;
    TSR_TRY(open_library(&library));
    TSR_TRY(find_function(library, "tsr_cuda_driver_create", &create));
    TSR_TRY(find_function(library, "tsr_comm_from_nccl", &gpus.from_nccl));
    TSR_TRY(tsr_context_create(NULL, &gpus.context));
    tsr_status status = create(gpus.context, NULL, &gpus.driver);
    if (status == TSR_OK)
        status = check_driver();
    if (status != TSR_OK) {
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        end_gpus();
        tsr_status_restore(&kept, status);
    }
    return status;
}

tsr_status tsr_xla_cuda_acquire(void)
{
    pthread_mutex_lock(&gpus.gate);
    const tsr_status status = gpus.users == 0 ? begin_gpus() : TSR_OK;
    if (status == TSR_OK)
        gpus.users++;
    pthread_mutex_unlock(&gpus.gate);
    return status;
}

void tsr_xla_cuda_release(void)
{
    pthread_mutex_lock(&gpus.gate);
    if (--gpus.users == 0)
        end_gpus();
    pthread_mutex_unlock(&gpus.gate);
}

const tsr_device_driver *tsr_xla_cuda_driver(void)
{
    return gpus.driver;
}

static wrapped *find_wrapped(struct ncclComm *lent, int64_t device, int64_t timeout_ms)
{
    wrapped *at = gpus.comms;
    while (at && (at->broken || at->lent != lent || at->device != device || at->timeout_ms != timeout_ms))
        at = at->next;
    return at;
}

static tsr_status wrap(struct ncclComm *lent, int64_t device, int64_t timeout_ms, wrapped **out)
{
    tsr_nccl_options options = TSR_NCCL_OPTIONS_INIT;
    void *memory;
    options.context = gpus.context;
    options.driver = gpus.driver;
    options.timeout_ms = timeout_ms;
    options.no_split = 1;
    TSR_TRY(tsr_allocate(gpus.context, sizeof(wrapped), &memory));
    wrapped *const made = memory;
    *made = (wrapped){.next = gpus.comms, .lent = lent, .device = device, .timeout_ms = timeout_ms};
    const tsr_status status = gpus.from_nccl(lent, &options, &made->comm);
    if (status == TSR_OK)
        *out = gpus.comms = made;
    else
        tsr_release(gpus.context, made);
    return status;
}

tsr_status tsr_xla_cuda_open(struct ncclComm *lent, int64_t device, int64_t timeout_ms, tsr_comm **out)
{
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&gpus.gate);
    wrapped *found = find_wrapped(lent, device, timeout_ms);
    if (!found)
        status = wrap(lent, device, timeout_ms, &found);
    if (status == TSR_OK) {
        found->users++;
        *out = found->comm;
    }
    pthread_mutex_unlock(&gpus.gate);
    return status;
}

void tsr_xla_cuda_close(tsr_comm *comm, int broken)
{
    wrapped *over = NULL;
    pthread_mutex_lock(&gpus.gate);
    wrapped **at = &gpus.comms;
    while ((*at)->comm != comm)
        at = &(*at)->next;
    (*at)->broken = (*at)->broken || broken;
    if (--(*at)->users == 0) {
        over = *at;
        *at = over->next;
    }
    pthread_mutex_unlock(&gpus.gate);
    if (!over)
        return;
    tsr_comm_destroy(over->comm);
    tsr_release(gpus.context, over);
}
