#include "channel.h"

#include "model.h"

#include <tessera/mesh.h>
#include <tessera/sys/status.h>
#include <tessera/values.h>

#include <stdlib.h>

static tsr_status make_tensors(const tsr_layout *layout, int64_t count, tsr_dtensor ***out)
{
    *out = calloc((size_t)count, sizeof **out);
    if (!*out)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %lld tensors of a channel", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &(*out)[i]));
        TSR_TRY(tsr_dtensor_fill((*out)[i], 0, NULL));
    }
    return TSR_OK;
}

/* Rows are cut along dp. */
static tsr_status make_end(const channel *c, channel_end end, const channel_load *load, tsr_mesh **mesh,
                           tsr_layout **layout, tsr_dtensor ***tensors)
{
    const int64_t shape[] = {load->rows, load->width};
    char placements[PLACEMENTS_BYTES];
    TSR_TRY(tsr_mesh_parse(c->comm, NULL, end.mesh, mesh));
    model_place(*mesh, "S(0)", "R", placements);
    TSR_TRY(tsr_layout_parse(*mesh, placements, 2, shape, TSR_F32, layout));
    return make_tensors(*layout, end.count, tensors);
}

tsr_status channel_create(tsr_comm *comm, channel_end from, channel_end to, const channel_load *load, channel *out)
{
    tsr_layout *source = NULL, *destination = NULL;
    tsr_sync_options options = TSR_SYNC_OPTIONS_INIT;
    options.mode = load->mode;
    out->sent_count = from.count;
    out->received_count = to.count;
    TSR_TRY(tsr_comm_split(comm, 0, tsr_comm_rank(comm), &out->comm));
    tsr_status status = make_end(out, from, load, &out->from, &source, &out->sent);
    if (status == TSR_OK)
        status = make_end(out, to, load, &out->to, &destination, &out->received);
    if (status == TSR_OK) {
        const tsr_sync_tensor begin = {"tensor", source}, end = {"tensor", destination};
        status = tsr_sync_create(out->comm, 1, &begin, 1, &end, &options, &out->sync);
    }
    tsr_layout_destroy(destination);
    tsr_layout_destroy(source);
    return status;
}

static void free_tensors(tsr_dtensor **tensors, int64_t count)
{
    for (int64_t i = 0; tensors && i < count; i++)
        tsr_dtensor_destroy(tensors[i]);
    free(tensors);
}

void channel_destroy(channel *c)
{
    if (c->started)
        (void)channel_finish(c);
    tsr_sync_destroy(c->sync);
    free_tensors(c->received, c->received_count);
    free_tensors(c->sent, c->sent_count);
    tsr_mesh_destroy(c->to);
    tsr_mesh_destroy(c->from);
    tsr_comm_destroy(c->comm);
}

tsr_tensor channel_sent(const channel *c, int64_t micro_batch)
{
    return tsr_dtensor_to_local(c->sent[micro_batch % c->sent_count]);
}

tsr_tensor channel_received(const channel *c, int64_t micro_batch)
{
    return tsr_dtensor_to_local(c->received[micro_batch % c->received_count]);
}

tsr_status channel_start(channel *c, int64_t micro_batch)
{
    const tsr_dtensor *const from = c->sent[micro_batch % c->sent_count];
    tsr_dtensor *const to = c->received[micro_batch % c->received_count];
    TSR_TRY(tsr_sync_start(c->sync, &from, &to, NULL));
    c->started = true;
    c->micro_batch = micro_batch;
    return TSR_OK;
}

tsr_status channel_finish(channel *c)
{
    if (!c->started)
        return TSR_OK;
    c->started = false;
    return tsr_sync_finish(c->sync);
}
