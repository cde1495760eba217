#include "message_engine.h"
#include <stdlib.h>
#include <tessera/sys/comm.h>

/** `owned`: the carrier came from a split and goes with this. */
typedef struct engine {
    tsr_comm *carrier;
    int owned;
    int *calls;
} engine;

static tsr_status count_call(const engine *e)
{
    if (e->calls != NULL && *e->calls > 0 && --*e->calls == 0)
        return tsr_status_set(TSR_ERROR_DEVICE, "the engine of rank %d has failed", tsr_comm_rank(e->carrier));
    return TSR_OK;
}

static int engine_rank(void *self)
{
    return tsr_comm_rank(((engine *)self)->carrier);
}

static int engine_ranks(void *self)
{
    return tsr_comm_size(((engine *)self)->carrier);
}

static tsr_status engine_split(void *self, int color, int key, void **out)
{
    const engine *e = self;
    tsr_comm *carrier = NULL;
    const tsr_status failure = count_call(e);
    TSR_TRY(tsr_comm_split(e->carrier, failure == TSR_OK ? color : -1, key, &carrier));
    if (failure != TSR_OK)
        return tsr_status_set(failure, "the engine of rank %d has failed to split", tsr_comm_rank(e->carrier));
    if (carrier == NULL) {
        *out = NULL;
        return TSR_OK;
    }
    engine *split = malloc(sizeof(*split));
    if (split == NULL) {
        tsr_comm_destroy(carrier);
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for an engine");
    }
    *split = (engine){carrier, 1, e->calls};
    *out = split;
    return TSR_OK;
}

static tsr_status engine_exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                  size_t receive_count, tsr_device device, tsr_stream stream)
{
    TSR_TRY(count_call(self));
    return tsr_comm_exchange(((engine *)self)->carrier, sends, send_count, receives, receive_count, device, stream);
}

static tsr_status engine_barrier(void *self)
{
    TSR_TRY(count_call(self));
    return tsr_comm_barrier(((engine *)self)->carrier);
}

static void engine_abort(void *self)
{
    tsr_comm_abort(((engine *)self)->carrier);
}

static void engine_destroy(void *self)
{
    engine *e = self;
    if (e->owned)
        tsr_comm_destroy(e->carrier);
    free(e);
}

tsr_status message_engine_create(tsr_comm *carrier, int *calls, tsr_comm **out)
{
    static const tsr_comm_table table = {
        .size = sizeof(tsr_comm_table),
        .name = "messages",
        .rank = engine_rank,
        .ranks = engine_ranks,
        .split = engine_split,
        .exchange = engine_exchange,
        .barrier = engine_barrier,
        .abort = engine_abort,
        .destroy = engine_destroy,
    };
    engine *e = malloc(sizeof(*e));
    if (e == NULL)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for an engine");
    *e = (engine){carrier, 0, calls};
    const tsr_status status = tsr_comm_create_from_table(tsr_comm_context(carrier), &table, e, out);
    if (status != TSR_OK)
        free(e);
    return status;
}
