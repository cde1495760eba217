#include "comm/engines/nccl/engine.h"

#include "comm/engines/nccl/collectives.h"
#include "comm/engines/nccl/exchange.h"
#include "comm/engines/nccl/family.h"
#include "comm/engines/nccl/life.h"
#include "comm/engines/nccl/split.h"
#include "comm/engines/nccl/types.h"
#include "comm/engines/nccl/wait.h"

#include <tessera/sys/options.h>

#include <string.h>

/* 2.18.0, as ncclGetVersion() writes it. */
#define OLDEST_VERSION 21800

_Static_assert(sizeof(tsr_nccl_id) == sizeof(ncclUniqueId), "an id is NCCL's");

static int rank_of(void *self)
{
    return ((const tsr_nccl_handle *)self)->rank;
}

static int count_ranks(void *self)
{
    return ((const tsr_nccl_handle *)self)->ranks;
}

static void abort_family(void *self)
{
    tsr_nccl_family_abort(((tsr_nccl_handle *)self)->family);
}

static void nccl_destroy(void *self)
{
    tsr_nccl_handle_destroy(self);
}

static tsr_status wait_for(void *self, tsr_stream stream, int64_t timeout_ms)
{
    return tsr_nccl_drain(self, stream, timeout_ms);
}

static int nccl_reduces(void *self, tsr_dtype dtype, tsr_reduce_op op)
{
    tsr_nccl_reduction found;
    (void)self;
    return tsr_nccl_find_reduction(dtype, op, &found);
}

static void tell_late(void *self, tsr_comm_late *late, void *arg)
{
    ((tsr_nccl_handle *)self)->late = (tsr_late_hook){late, arg};
}

static const tsr_comm_messages nccl_messages = {
    .size = sizeof(tsr_comm_messages),
    .exchange = tsr_nccl_exchange_all,
    .barrier = tsr_nccl_barrier,
    .start = tsr_nccl_exchange_start,
    .finish = tsr_nccl_exchange_finish,
};

static const tsr_comm_collectives nccl_collectives = {
    .size = sizeof(tsr_comm_collectives),
    .all_gather = tsr_nccl_all_gather,
    .reduce_scatter = tsr_nccl_reduce_scatter,
    .all_reduce = tsr_nccl_all_reduce,
    .broadcast = tsr_nccl_broadcast,
    .reduces = nccl_reduces,
};

static const tsr_comm_table nccl_table = {
    .size = sizeof(tsr_comm_table),
    .name = "nccl",
    .rank = rank_of,
    .ranks = count_ranks,
    .abort = abort_family,
    .destroy = nccl_destroy,
    .split = tsr_nccl_split,
    .tell_late = tell_late,
    .wait = wait_for,
    .messages = &nccl_messages,
    .collectives = &nccl_collectives,
};

/* Before 2.9 a version had one digit less. */
static tsr_status check_version(const tsr_nccl_api *api, const char *call)
{
    int version = 0;
    TSR_TRY(tsr_nccl_check(api, api->get_version(&version), "ncclGetVersion"));
    if (version >= OLDEST_VERSION)
        return TSR_OK;
    const int unit = version < 10000 ? 1000 : 10000;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: NCCL %d.%d.%d is loaded; it takes 2.18 or newer, where communicators can be split", call,
                          version / unit, version % unit / 100, version % 100);
}

static tsr_status check_devices(const tsr_nccl_api *api, const char *call)
{
    int count = 0;
    const cudaError_t error = api->cuda_get_device_count(&count);
    if (error == cudaSuccess && count > 0)
        return TSR_OK;
    api->cuda_get_last_error();
    return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s: there is no CUDA device: cudaGetDeviceCount: %s", call,
                          error == cudaSuccess ? "0 devices" : api->cuda_get_error_string(error));
}

static tsr_status read_options(const char *call, const tsr_nccl_options *given, tsr_nccl_options *options)
{
    TSR_TRY(tsr_options_read(call, given, options, sizeof *options));
    if (options->timeout_ms >= 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.timeout_ms is %lld; 0 waits for ever", call,
                          (long long)options->timeout_ms);
}

/* Makes a family and its first handle; the family is freed with its last handle. */
static tsr_status make_handle(const tsr_nccl_api *api, const tsr_nccl_options *options, int device, int ranks,
                              tsr_nccl_handle **out)
{
    tsr_context *context = tsr_context_retain(options->context);
    if (!context)
        TSR_TRY(tsr_context_create(NULL, &context));
    tsr_nccl_family *family = NULL;
    const int64_t timeout_ms = tsr_context_timeout_ms(context, options->timeout_ms);
    tsr_status status = tsr_nccl_family_create(api, context, options->driver, device, timeout_ms, &family);
    if (status == TSR_OK)
        status = tsr_nccl_handle_create(family, ranks, out);
    tsr_context_destroy(context);
    return status;
}

static tsr_status make_comm(tsr_nccl_handle *handle, const tsr_nccl_options *options, tsr_comm **out)
{
    tsr_comm_table table = nccl_table;
    if (options->no_split)
        table.split = NULL;
    const tsr_status status = tsr_comm_create_from_table(handle->family->context, &table, handle, out);
    if (status != TSR_OK)
        tsr_nccl_handle_destroy(handle);
    return status;
}

static tsr_status ask_borrowed(const tsr_nccl_api *api, ncclComm_t comm, int *device, int *ranks)
{
    ncclResult_t state = ncclSuccess;
    TSR_TRY(tsr_nccl_check(api, api->comm_get_async_error(comm, &state), "tsr_comm_from_nccl: ncclCommGetAsyncError"));
    TSR_TRY(tsr_nccl_check(api, state, "tsr_comm_from_nccl: the communicator"));
    if (state == ncclInProgress)
        return tsr_status_set(TSR_ERROR_STATE,
                              "tsr_comm_from_nccl: the communicator is not ready: ncclCommGetAsyncError() says "
                              "ncclInProgress");
    TSR_TRY(tsr_nccl_check(api, api->comm_count(comm, ranks), "tsr_comm_from_nccl: ncclCommCount"));
    return tsr_nccl_check(api, api->comm_cu_device(comm, device), "tsr_comm_from_nccl: ncclCommCuDevice");
}

tsr_status tsr_nccl_borrow(const tsr_nccl_api *api, ncclComm_t comm, const tsr_nccl_options *given, tsr_comm **out)
{
    static const char call[] = "tsr_comm_from_nccl";
    tsr_nccl_options options = TSR_NCCL_OPTIONS_INIT;
    int device = 0, ranks = 1;
    if (!comm || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, comm ? "out" : "comm");
    TSR_TRY(read_options(call, given, &options));
    TSR_TRY(check_version(api, call));
    TSR_TRY(check_devices(api, call));
    TSR_TRY(ask_borrowed(api, comm, &device, &ranks));
    tsr_nccl_handle *handle;
    TSR_TRY(make_handle(api, &options, device, ranks, &handle));
    const tsr_status status = tsr_nccl_adopt(handle, comm);
    if (status != TSR_OK) {
        tsr_nccl_handle_destroy(handle);
        return status;
    }
    return make_comm(handle, &options, out);
}

static tsr_status check_seat(const char *call, int ranks, int rank)
{
    if (ranks < 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: nranks is %d; it must be at least 1", call, ranks);
    if (rank < 0 || rank >= ranks)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: rank is %d; the ranks are 0 to %d", call, rank, ranks - 1);
    return TSR_OK;
}

tsr_status tsr_nccl_create(const tsr_nccl_api *api, int ranks, int rank, const tsr_nccl_id *id,
                           const tsr_nccl_options *given, tsr_comm **out)
{
    static const char call[] = "tsr_comm_create_nccl";
    tsr_nccl_options options = TSR_NCCL_OPTIONS_INIT;
    int device = 0;
    if (!id || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, id ? "out" : "id");
    TSR_TRY(check_seat(call, ranks, rank));
    TSR_TRY(read_options(call, given, &options));
    TSR_TRY(check_version(api, call));
    TSR_TRY(check_devices(api, call));
    TSR_TRY(tsr_nccl_check_cuda(api, api->cuda_get_device(&device), "cudaGetDevice"));
    tsr_nccl_handle *handle;
    TSR_TRY(make_handle(api, &options, device, ranks, &handle));
    const tsr_status status = tsr_nccl_init(handle, ranks, rank, id);
    if (status != TSR_OK) {
        tsr_nccl_handle_destroy(handle);
        return status;
    }
    return make_comm(handle, &options, out);
}

tsr_status tsr_nccl_make_id(const tsr_nccl_api *api, tsr_nccl_id *out)
{
    ncclUniqueId id;
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_nccl_id_create: out is NULL");
    TSR_TRY(check_version(api, "tsr_nccl_id_create"));
    TSR_TRY(tsr_nccl_check(api, api->get_unique_id(&id), "ncclGetUniqueId"));
    memcpy(out, &id, sizeof *out);
    return TSR_OK;
}
