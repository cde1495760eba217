#include "message_engine.h"
#include <stdlib.h>
#include <tessera/sys/comm.h>

/** `owned`: the carrier came from a split and goes with this. */
typedef struct engine {
    tsr_comm *carrier;
    int owned;
} engine;

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
    tsr_comm *carrier = NULL;
    TSR_TRY(tsr_comm_split(((engine *)self)->carrier, color, key, &carrier));
    if (carrier == NULL) {
        *out = NULL;
        return TSR_OK;
    }
    engine *split = malloc(sizeof(*split));
    if (split == NULL) {
        tsr_comm_destroy(carrier);
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for an engine");
    }
    *split = (engine){carrier, 1};
    *out = split;
    return TSR_OK;
}

static tsr_status engine_exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                  size_t receive_count, tsr_device device, tsr_stream stream)
{
    return tsr_comm_exchange(((engine *)self)->carrier, sends, send_count, receives, receive_count, device, stream);
}

static tsr_status engine_barrier(void *self)
{
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

tsr_status message_engine_create(tsr_comm *carrier, tsr_comm **out)
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
    *e = (engine){carrier, 0};
    const tsr_status status = tsr_comm_create_from_table(tsr_comm_context(carrier), &table, e, out);
    if (status != TSR_OK)
        free(e);
    return status;
}
