#include "hosts/ggml/comm.h"

#include "hosts/ggml/buffer.h"
#include "hosts/ggml/stream.h"

#include <tessera/comm.h>
#include <tessera/status.h>

#include <ggml-impl.h>
#include <stdlib.h>
#include <string.h>

typedef struct tsr_ggml_comm {
    int count;
    _Atomic int broken; /* a sum has failed */
    tsr_comm *ranks[TSR_GGML_MAX_DEVICES];
    tsr_ggml_stream *streams[TSR_GGML_MAX_DEVICES];
} tsr_ggml_comm;

/* A rank's part of a sum. */
typedef struct sum_job {
    tsr_ggml_job job;
    struct sum *sum;
    int rank;
    int zeros; /* the rank's term was not computed */
    void *data;
} sum_job;

/* A sum in flight. */
typedef struct sum {
    tsr_ggml_comm *comm;
    _Atomic int left; /* ranks that still work on it; the last one frees it */
    int64_t elements;
    size_t bytes;
    tsr_dtype dtype;
    sum_job jobs[TSR_GGML_MAX_DEVICES];
} sum;

/* The dtype of elements that can be added; -1: of these they cannot. */
static int dtype_of(enum ggml_type type)
{
    switch (type) {
    case GGML_TYPE_F32:
        return TSR_F32;
    case GGML_TYPE_F16:
        return TSR_F16;
    case GGML_TYPE_BF16:
        return TSR_BF16;
    case GGML_TYPE_F64:
        return TSR_F64;
    default:
        return -1;
    }
}

/* Nobody must take what a failed sum leaves for a result: all bits set are a NaN in each of these
 * dtypes. Every rank learns of a failure, so rank 0 speaks for all. */
static void fail(const sum_job *job)
{
    tsr_ggml_comm *const comm = job->sum->comm;
    memset(job->data, 0xff, job->sum->bytes);
    atomic_store(&comm->broken, 1);
    if (job->rank != 0)
        return;
    GGML_LOG_ERROR("tessera: a sum over %d devices failed: %s\n", comm->count, tsr_status_message());
    atomic_store(&comm->streams[0]->failed, GGML_STATUS_FAILED);
}

static void run_sum(tsr_ggml_job *job)
{
    const sum_job *const self = (const sum_job *)job;
    sum *const all = self->sum;
    if (self->zeros)
        memset(self->data, 0, all->bytes);
    if (tsr_comm_all_reduce(all->comm->ranks[self->rank], self->data, self->data, all->elements, all->dtype, TSR_SUM,
                            tsr_device_host(), NULL) != TSR_OK)
        fail(self);
    if (atomic_fetch_sub(&all->left, 1) == 1)
        free(all);
}

static bool can_add(const tsr_ggml_comm *comm, struct ggml_tensor *const *tensors)
{
    const struct ggml_tensor *const first = tensors[0];
    if (atomic_load(&comm->broken) || dtype_of(first->type) < 0)
        return false;
    for (int r = 0; r < comm->count; r++) {
        const struct ggml_tensor *const tensor = tensors[r];
        if (tensor->type != first->type || !ggml_are_same_shape(tensor, first) || !ggml_is_contiguous(tensor))
            return false;
        if (ggml_nelements(tensor) > 0 && !tsr_ggml_tensor_is_near(tensor))
            return false;
    }
    return true;
}

bool tsr_ggml_comm_allreduce_tensor(void *context, struct ggml_tensor **tensors)
{
    tsr_ggml_comm *const comm = context;
    const struct ggml_tensor *const first = tensors[0];
    if (!can_add(comm, tensors))
        return false;
    if (ggml_nelements(first) == 0)
        return true;
    sum *const all = malloc(sizeof *all);
    if (!all)
        return false;
    *all =
        (sum){comm, comm->count, ggml_nelements(first), ggml_nbytes(first), (tsr_dtype)dtype_of(first->type), {{{0}}}};
    int r = 0;
    do {
        const int zeros = !(tensors[r]->flags & GGML_TENSOR_FLAG_COMPUTE);
        all->jobs[r] = (sum_job){{NULL, run_sum}, all, r, zeros, tensors[r]->data};
        tsr_ggml_worker_give(comm->streams[r]->worker, &all->jobs[r].job);
    } while (++r < comm->count);
    return true;
}

/* The ranks of a sum wait for each other, so each needs a worker of its own. */
static bool find_streams(tsr_ggml_comm *comm, ggml_backend_t *backends)
{
    for (int r = 0; r < comm->count; r++) {
        if (!(comm->streams[r] = tsr_ggml_stream_of(backends[r])))
            return false;
        for (int other = 0; other < r; other++)
            if (comm->streams[other] == comm->streams[r]) {
                GGML_LOG_ERROR("tessera: no communicator of %d devices: backend %d is backend %d\n", comm->count, r,
                               other);
                return false;
            }
    }
    return true;
}

void *tsr_ggml_comm_init(ggml_backend_t *backends, size_t count)
{
    if (count < 1 || count > TSR_GGML_MAX_DEVICES)
        return NULL;
    tsr_ggml_comm *const comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->count = (int)count;
    if (!find_streams(comm, backends)) {
        free(comm);
        return NULL;
    }
    if (tsr_comm_create_threads(comm->count, NULL, comm->ranks) != TSR_OK) {
        GGML_LOG_ERROR("tessera: no communicator of %d devices: %s\n", comm->count, tsr_status_message());
        free(comm);
        return NULL;
    }
    for (int r = 0; r < comm->count; r++)
        comm->streams[r]->groups++;
    return comm;
}

void tsr_ggml_comm_free(void *context)
{
    tsr_ggml_comm *const comm = context;
    if (!comm)
        return;
    for (int r = 0; r < comm->count; r++)
        tsr_ggml_worker_wait(comm->streams[r]->worker);
    for (int r = 0; r < comm->count; r++) {
        comm->streams[r]->groups--;
        tsr_comm_destroy(comm->ranks[r]);
    }
    free(comm);
}
