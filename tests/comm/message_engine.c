#include "message_engine.h"

#include <stdlib.h>

/* Its self. */
typedef struct lender {
    tsr_comm *inner;
} lender;

static tsr_comm *inner_of(void *self)
{
    return ((const lender *)self)->inner;
}

tsr_status message_engine_self(tsr_comm *inner, void **self)
{
    lender *made = malloc(sizeof *made);
    if (!made)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a handle of \"messages\"");
    made->inner = inner;
    *self = made;
    return TSR_OK;
}

void message_engine_release(void *self)
{
    free(self);
}

static int rank_of(void *self)
{
    return tsr_comm_rank(inner_of(self));
}

static int count_ranks(void *self)
{
    return tsr_comm_size(inner_of(self));
}

static tsr_status split(void *self, int color, int key, void **out)
{
    tsr_comm *part = NULL;
    TSR_TRY(tsr_comm_split(inner_of(self), color, key, &part));
    if (!part) {
        *out = NULL;
        return TSR_OK;
    }
    const tsr_status status = message_engine_self(part, out);
    if (status != TSR_OK)
        tsr_comm_destroy(part);
    return status;
}

static tsr_status exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives, size_t receive_count,
                           tsr_device device, tsr_stream stream)
{
    return tsr_comm_exchange(inner_of(self), sends, send_count, receives, receive_count, device, stream);
}

static tsr_status barrier(void *self)
{
    return tsr_comm_barrier(inner_of(self));
}

static void abort_all(void *self)
{
    tsr_comm_abort(inner_of(self));
}

static void destroy(void *self)
{
    tsr_comm_destroy(inner_of(self));
    free(self);
}

static tsr_status all_gather(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype, tsr_device device,
                             tsr_stream stream)
{
    return tsr_comm_all_gather(inner_of(self), send, receive, count, NULL, dtype, device, stream);
}

static tsr_status reduce_scatter(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype, tsr_reduce_op op,
                                 tsr_device device, tsr_stream stream)
{
    return tsr_comm_reduce_scatter(inner_of(self), send, receive, count, NULL, dtype, op, device, stream);
}

static tsr_status all_reduce(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype, tsr_reduce_op op,
                             tsr_device device, tsr_stream stream)
{
    return tsr_comm_all_reduce(inner_of(self), send, receive, count, dtype, op, device, stream);
}

static tsr_status broadcast(void *self, void *buffer, int64_t count, tsr_dtype dtype, int root, tsr_device device, tsr_stream stream)
{
    return tsr_comm_broadcast(inner_of(self), buffer, count, dtype, root, device, stream);
}

const tsr_comm_table message_engine_table = {
    .size = sizeof(tsr_comm_table),
    .name = "messages",
    .rank = rank_of,
    .ranks = count_ranks,
    .split = split,
    .exchange = exchange,
    .barrier = barrier,
    .abort = abort_all,
    .destroy = destroy,
};

tsr_status message_engine_wrap(tsr_comm *inner, int own, tsr_comm **out)
{
    tsr_comm_table table = message_engine_table;
    if (own) {
        table.all_gather = all_gather;
        table.reduce_scatter = reduce_scatter;
        table.all_reduce = all_reduce;
        table.broadcast = broadcast;
    }
    void *self = NULL;
    TSR_TRY(message_engine_self(inner, &self));
    const tsr_status status = tsr_comm_create_from_table(tsr_comm_context(inner), &table, self, out);
    if (status != TSR_OK)
        message_engine_release(self);
    return status;
}

typedef struct program {
    tsr_rank_main *body;
    void *arg;
    int own;
} program;

/* The rank's own communicator belongs to tsr_threads_run(), so the engine wraps a copy of it. */
static tsr_status run_wrapped(tsr_comm *comm, void *arg)
{
    const program *run = arg;
    tsr_comm *copy, *wrapped;
    TSR_TRY(tsr_comm_split(comm, 0, 0, &copy));
    tsr_status status = message_engine_wrap(copy, run->own, &wrapped);
    if (status != TSR_OK) {
        tsr_comm_destroy(copy);
        return status;
    }
    status = run->body(wrapped, run->arg);
    tsr_comm_destroy(wrapped);
    return status;
}

tsr_status message_engine_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    program run = {body, arg, 0};
    return tsr_threads_run(nranks, run_wrapped, &run, options);
}

tsr_status message_engine_run_own(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    program run = {body, arg, 1};
    return tsr_threads_run(nranks, run_wrapped, &run, options);
}
