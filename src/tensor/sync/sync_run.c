#include "device/device.h"
#include "placement/print.h"
#include "redistribute/schedule/plan.h"
#include "tensor/dtensor.h"
#include "tensor/sync/sync_convert.h"
#include "tensor/sync/sync_state.h"

#include <tessera/sys/plan.h>
#include <tessera/sys/status.h>

static const char run_name[] = "tsr_sync_run", start_name[] = "tsr_sync_start", finish_name[] = "tsr_sync_finish";

/* Names a tensor of the lists for sentences. */
typedef struct side {
    const char *name;
    size_t number;
    const tsr_layout *layout;
} side;

static tsr_status check_tensor(const tsr_sync *sync, const side *s, const tsr_dtensor *x)
{
    char have[256], want[256];
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %zu is NULL, but this rank is in its mesh", s->name, s->number);
    if (x->layout != s->layout && !tsr_layout_equal(x->layout, s->layout))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %zu is %s, but the sync was created for %s", s->name, s->number,
                              tsr_layout_describe(x->layout, have, sizeof have),
                              tsr_layout_describe(s->layout, want, sizeof want));
    if (!tsr_device_same(x->local.device, sync->device))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %zu is on device %s, but the sync was created for %s", s->name,
                              s->number, tsr_device_print(x->local.device, have), tsr_device_print(sync->device, want));
    return TSR_OK;
}

/* Takes a tensor of this rank: it goes to `moved` as it is, or is kept in `given`, to be
 * converted. */
static tsr_status take(const tsr_sync *sync, const side *s, const tsr_dtensor *x, tsr_dtype wire, tsr_tensor *moved,
                       tsr_tensor *given)
{
    TSR_TRY(check_tensor(sync, s, x));
    *(s->layout->dtype == wire ? moved : given) = x->local;
    return TSR_OK;
}

static tsr_status refuse_overlap(const side *s, const tsr_tensor *given)
{
    if (!tsr_tensor_overlaps(given))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s %zu: its strides make elements share memory that is to be written",
                          s->name, s->number);
}

static tsr_status bind(const tsr_sync *sync, const tsr_dtensor *const *sources, tsr_dtensor *const *destinations)
{
    const size_t count = sync->count;
    for (size_t i = 0; i < count; i++) {
        const tsr_sync_pair *const pair = &sync->pairs[i];
        const tsr_item *const item = &sync->plan->items[i];
        const side from = {"source", pair->source, pair->from}, to = {"destination", i, pair->to};
        if (item->in_src)
            TSR_TRY(take(sync, &from, sources ? sources[pair->source] : NULL, pair->wire, &sync->tensors[i],
                         &sync->given[i]));
        if (!item->in_dst)
            continue;
        TSR_TRY(take(sync, &to, destinations ? destinations[i] : NULL, pair->wire, &sync->tensors[count + i],
                     &sync->given[count + i]));
        if (pair->to->dtype != pair->wire)
            TSR_TRY(refuse_overlap(&to, &sync->given[count + i]));
    }
    return TSR_OK;
}

static tsr_status convert_sources(const tsr_sync *sync, tsr_stream stream)
{
    const tsr_device_ops ops = tsr_device_resolve(sync->context, sync->device);
    for (size_t i = 0; i < sync->count; i++)
        if (sync->plan->items[i].in_src && sync->pairs[i].from->dtype != sync->pairs[i].wire)
            TSR_TRY(tsr_sync_convert(&ops, &sync->given[i], &sync->tensors[i], stream));
    return TSR_OK;
}

static tsr_status convert_destinations(const tsr_sync *sync, tsr_stream stream)
{
    const tsr_device_ops ops = tsr_device_resolve(sync->context, sync->device);
    for (size_t i = sync->count; i < 2 * sync->count; i++) {
        const size_t move = i - sync->count;
        if (sync->plan->items[move].in_dst && sync->pairs[move].to->dtype != sync->pairs[move].wire)
            TSR_TRY(tsr_sync_convert(&ops, &sync->tensors[i], &sync->given[i], stream));
    }
    return TSR_OK;
}

/* What a rank does before the exchange. */
static tsr_status prepare(const tsr_sync *sync, const tsr_dtensor *const *sources, tsr_dtensor *const *destinations,
                          tsr_stream stream)
{
    if (!tsr_host_is_meant(sync->device, stream))
        return tsr_refuse_host("the sync", sync->device, stream);
    TSR_TRY(bind(sync, sources, destinations));
    return convert_sources(sync, stream);
}

typedef tsr_status execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                           void *workspace, size_t bytes, tsr_stream stream);

/* Executes the plan, or its first half, on a rank that takes part; as failed if the rank's tensors
 * are wrong. */
static tsr_status exchange(const char *call, tsr_sync *sync, const tsr_dtensor *const *sources,
                           tsr_dtensor *const *destinations, tsr_stream stream, execute *how)
{
    const tsr_status status = tsr_name_call(call, prepare(sync, sources, destinations, stream));
    if (status != TSR_OK)
        return tsr_plan_execute_failed_on(sync->plan, sync->comm, sync->device, stream, status);
    return how(sync->plan, sync->comm, sync->tensors, sync->tensors + sync->count, sync->workspace.data,
               sync->workspace.bytes, stream);
}

static tsr_status check_idle(const char *call, const tsr_sync *sync)
{
    if (!sync)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: sync is NULL", call);
    return sync->started
               ? tsr_status_set(TSR_ERROR_STATE, "%s: the sync is started: call %s() first", call, finish_name)
               : TSR_OK;
}

tsr_status tsr_sync_run(tsr_sync *sync, const tsr_dtensor *const *sources, tsr_dtensor *const *destinations,
                        tsr_stream stream)
{
    TSR_TRY(check_idle(run_name, sync));
    if (!tsr_plan_takes_part(sync->plan))
        return TSR_OK;
    TSR_TRY(exchange(run_name, sync, sources, destinations, stream, tsr_plan_execute));
    return convert_destinations(sync, stream);
}

tsr_status tsr_sync_start(tsr_sync *sync, const tsr_dtensor *const *sources, tsr_dtensor *const *destinations,
                          tsr_stream stream)
{
    TSR_TRY(check_idle(start_name, sync));
    if (tsr_plan_takes_part(sync->plan))
        TSR_TRY(exchange(start_name, sync, sources, destinations, stream, tsr_plan_start));
    sync->started = true;
    sync->stream = stream;
    return TSR_OK;
}

tsr_status tsr_sync_finish(tsr_sync *sync)
{
    if (!sync || !sync->started)
        return tsr_status_set(sync ? TSR_ERROR_STATE : TSR_ERROR_ARGUMENT, "%s: %s", finish_name,
                              sync ? "the sync was not started" : "sync is NULL");
    sync->started = false;
    if (!tsr_plan_takes_part(sync->plan))
        return TSR_OK;
    TSR_TRY(tsr_plan_finish(sync->plan, sync->comm));
    return convert_destinations(sync, sync->stream);
}
