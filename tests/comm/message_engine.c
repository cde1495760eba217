#include "message_engine.h"

#include "body.h"

#include <stdlib.h>
#include <string.h>

/* The byte that fills receive buffers while an exchange is in flight, since they then belong to the
 * engine. */
#define SCRIBBLE 0xa5

/* The engine's `self`. */
typedef struct lender {
    tsr_comm *carrier;
    int owned; /* the carrier is destroyed with it */
    int *calls;
    message_engine_tally *tally;
    tsr_message *posted; /* the sends in flight, in one block with their bytes */
} lender;

static tsr_comm *carrier_of(void *self)
{
    return ((const lender *)self)->carrier;
}

static tsr_status make_self(tsr_comm *carrier, int owned, int *calls, message_engine_tally *tally, void **self)
{
    lender *made = malloc(sizeof *made);
    if (!made)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a handle of \"messages\"");
    *made = (lender){carrier, owned, calls, tally, NULL};
    *self = made;
    return TSR_OK;
}

tsr_status message_engine_self(tsr_comm *carrier, void **self)
{
    return make_self(carrier, 1, NULL, NULL, self);
}

void message_engine_release(void *self)
{
    free(((lender *)self)->posted);
    free(self);
}

static tsr_status count_call(void *self, const char *what)
{
    const lender *mine = self;
    if (mine->calls && *mine->calls > 0 && --*mine->calls == 0)
        return tsr_status_set(TSR_ERROR_DEVICE, "the engine of rank %d has failed to %s", tsr_comm_rank(mine->carrier),
                              what);
    return TSR_OK;
}

static message_engine_tally *tally_of(void *self)
{
    return ((const lender *)self)->tally;
}

static int rank_of(void *self)
{
    return tsr_comm_rank(carrier_of(self));
}

static int count_ranks(void *self)
{
    return tsr_comm_size(carrier_of(self));
}

/* The carrier's first exchange and reduction allocate what later ones need, so that the engine then
 * allocates nothing in a call. */
static tsr_status warm_up(tsr_comm *carrier)
{
    int32_t one = 1;
    TSR_TRY(tsr_comm_exchange(carrier, NULL, 0, NULL, 0, tsr_device_host(), NULL));
    return tsr_comm_all_reduce(carrier, &one, &one, 1, TSR_I32, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status split(void *self, int color, int key, void **out)
{
    const lender *mine = self;
    const int fails = count_call(self, "split") != TSR_OK;
    tsr_comm *part = NULL;
    TSR_TRY(tsr_comm_split(mine->carrier, fails ? -1 : color, key, &part));
    if (fails)
        return tsr_status_set(TSR_ERROR_DEVICE, "the engine of rank %d has failed to split", rank_of(self));
    if (!part) {
        *out = NULL;
        return TSR_OK;
    }
    tsr_status status = warm_up(part);
    if (status == TSR_OK)
        status = make_self(part, 1, mine->calls, mine->tally, out);
    if (status != TSR_OK)
        tsr_comm_destroy(part);
    return status;
}

static tsr_status exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                           size_t receive_count, tsr_device device, tsr_stream stream)
{
    TSR_TRY(count_call(self, "exchange"));
    return tsr_comm_exchange(carrier_of(self), sends, send_count, receives, receive_count, device, stream);
}

/* Copies all sends to one block: the list, then the bytes. */
static tsr_message *copy_sends(const tsr_message *sends, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += sends[i].bytes;
    tsr_message *copies = malloc(count * sizeof *copies + bytes + 1);
    char *at = copies ? (char *)(copies + count) : NULL;
    for (size_t i = 0; copies && i < count; i++) {
        copies[i] = (tsr_message){sends[i].peer, at, sends[i].bytes};
        if (sends[i].bytes > 0)
            memcpy(at, sends[i].data, sends[i].bytes);
        at += sends[i].bytes;
    }
    return copies;
}

/* Copies the sends, so that later writes to them change nothing, and fills the receive buffers with
 * SCRIBBLE. */
static tsr_status exchange_start(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                 size_t receive_count, tsr_device device, tsr_stream stream)
{
    lender *mine = self;
    TSR_TRY(count_call(self, "start an exchange"));
    tsr_message *posted = copy_sends(sends, send_count);
    if (!posted)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for what rank %d sends", rank_of(self));
    const tsr_status status =
        tsr_comm_exchange_start(mine->carrier, posted, send_count, receives, receive_count, device, stream);
    if (status != TSR_OK) {
        free(posted);
        return status;
    }
    for (size_t i = 0; i < receive_count; i++)
        if (receives[i].bytes > 0)
            memset(receives[i].data, SCRIBBLE, receives[i].bytes);
    mine->posted = posted;
    if (mine->tally)
        mine->tally->open++;
    return TSR_OK;
}

static tsr_status exchange_finish(void *self)
{
    lender *mine = self;
    const tsr_status status = tsr_comm_exchange_finish(mine->carrier);
    free(mine->posted);
    mine->posted = NULL;
    if (mine->tally)
        mine->tally->open--;
    TSR_TRY(status);
    return count_call(self, "finish an exchange");
}

static tsr_status barrier(void *self)
{
    TSR_TRY(count_call(self, "meet"));
    return tsr_comm_barrier(carrier_of(self));
}

static void abort_all(void *self)
{
    tsr_comm_abort(carrier_of(self));
}

/* Finishes an exchange in flight, since peers may be reading the posted sends. */
static void destroy(void *self)
{
    const lender *mine = self;
    if (mine->posted)
        tsr_comm_exchange_finish(mine->carrier);
    if (mine->owned)
        tsr_comm_destroy(mine->carrier);
    message_engine_release(self);
}

static tsr_status all_gather(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                             tsr_device device, tsr_stream stream)
{
    TSR_TRY(count_call(self, "gather"));
    if (tally_of(self))
        tally_of(self)->all_gathers++;
    return tsr_comm_all_gather(carrier_of(self), send, receive, count, NULL, dtype, device, stream);
}

static tsr_status reduce_scatter(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                                 tsr_reduce_op op, tsr_device device, tsr_stream stream)
{
    TSR_TRY(count_call(self, "reduce and scatter"));
    if (tally_of(self))
        tally_of(self)->reduce_scatters++;
    return tsr_comm_reduce_scatter(carrier_of(self), send, receive, count, NULL, dtype, op, device, stream);
}

static tsr_status all_reduce(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                             tsr_reduce_op op, tsr_device device, tsr_stream stream)
{
    TSR_TRY(count_call(self, "reduce"));
    if (tally_of(self))
        tally_of(self)->all_reduces++;
    return tsr_comm_all_reduce(carrier_of(self), send, receive, count, dtype, op, device, stream);
}

static tsr_status broadcast(void *self, void *buffer, int64_t count, tsr_dtype dtype, int root, tsr_device device,
                            tsr_stream stream)
{
    TSR_TRY(count_call(self, "broadcast"));
    if (tally_of(self))
        tally_of(self)->broadcasts++;
    return tsr_comm_broadcast(carrier_of(self), buffer, count, dtype, root, device, stream);
}

const tsr_comm_messages message_engine_messages = {
    .size = sizeof(tsr_comm_messages),
    .exchange = exchange,
    .barrier = barrier,
};

static const tsr_comm_messages messages_with_halves = {
    .size = sizeof(tsr_comm_messages),
    .exchange = exchange,
    .barrier = barrier,
    .start = exchange_start,
    .finish = exchange_finish,
};

static const tsr_comm_collectives own_collectives = {
    .size = sizeof(tsr_comm_collectives),
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
};

const tsr_comm_table message_engine_table = {
    .size = sizeof(tsr_comm_table),
    .name = "messages",
    .rank = rank_of,
    .ranks = count_ranks,
    .abort = abort_all,
    .destroy = destroy,
    .split = split,
    .messages = &message_engine_messages,
};

static tsr_comm_table table_with_halves(void)
{
    tsr_comm_table table = message_engine_table;
    table.messages = &messages_with_halves;
    return table;
}

static tsr_comm_table table_with_all(void)
{
    tsr_comm_table table = table_with_halves();
    table.collectives = &own_collectives;
    return table;
}

static tsr_status wrap(tsr_comm *carrier, int owned, int *calls, message_engine_tally *tally,
                       const tsr_comm_table *table, tsr_comm **out)
{
    void *self = NULL;
    TSR_TRY(make_self(carrier, owned, calls, tally, &self));
    const tsr_status status = tsr_comm_create_from_table(tsr_comm_context(carrier), table, self, out);
    if (status != TSR_OK)
        message_engine_release(self);
    return status;
}

tsr_status message_engine_create(tsr_comm *carrier, int *calls, tsr_comm **out)
{
    const tsr_comm_table table = table_with_halves();
    return wrap(carrier, 0, calls, NULL, &table, out);
}

tsr_status message_engine_create_own(tsr_comm *carrier, int *calls, message_engine_tally *tally,
                                     message_engine_kind kind, tsr_comm **out)
{
    tsr_comm_table table = table_with_all();
    if (kind == MESSAGE_ENGINE_LENT)
        table.split = NULL;
    if (kind == MESSAGE_ENGINE_UNCHECKED)
        table.flags = TSR_COMM_UNCHECKED;
    TSR_TRY(warm_up(carrier));
    return wrap(carrier, 0, calls, tally, &table, out);
}

typedef struct program {
    tsr_rank_main *body;
    void *arg;
    tsr_comm_table table;
} program;

/* Wraps a copy of the rank's communicator, which belongs to tsr_threads_run(). */
static tsr_status run_wrapped(tsr_comm *comm, void *arg)
{
    const program *run = arg;
    tsr_comm *copy, *wrapped;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &copy));
    tsr_status status = wrap(copy, 1, NULL, NULL, &run->table, &wrapped);
    if (status != TSR_OK) {
        tsr_comm_destroy(copy);
        return status;
    }
    return run_body(run->body, wrapped, run->arg);
}

tsr_status message_engine_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    program run = {body, arg, message_engine_table};
    return tsr_threads_run(nranks, run_wrapped, &run, options);
}

tsr_status message_engine_run_own(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    program run = {body, arg, table_with_all()};
    return tsr_threads_run(nranks, run_wrapped, &run, options);
}
