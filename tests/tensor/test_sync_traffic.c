/* All tensors of a sync share one message between two ranks. */
#include "comm_suite.h"
#include "message_engine.h"

#include <tessera/sync.h>

enum { RANKS = 5, TENSORS = 6 };

/* Messages that this rank has sent. */
static _Thread_local int64_t sent;

static tsr_status counted_exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                   size_t receive_count, tsr_device device, tsr_stream stream)
{
    sent += (int64_t)send_count;
    return message_engine_messages.exchange(self, sends, send_count, receives, receive_count, device, stream);
}

/* The messages of a run of `count` tensors. */
static tsr_status count_run(tsr_comm *comm, tsr_layout *const *layouts, tsr_dtensor *x, tsr_dtensor *y, size_t count,
                            int64_t *messages)
{
    static const char *const names[TENSORS] = {"a", "b", "c", "d", "e", "f"};
    tsr_sync_tensor sources[TENSORS], destinations[TENSORS];
    const tsr_dtensor *from[TENSORS];
    tsr_dtensor *to[TENSORS];
    tsr_sync *sync = NULL;
    for (size_t i = 0; i < count; i++) {
        sources[i] = (tsr_sync_tensor){names[i], layouts[0]};
        destinations[i] = (tsr_sync_tensor){names[i], layouts[1]};
        from[i] = x;
        TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(y), tsr_device_host(), &to[i]));
    }
    TSR_TRY(tsr_sync_create(comm, count, sources, count, destinations, NULL, &sync));
    TSR_TRY(tsr_sync_run(sync, from, to, NULL));
    sent = 0;
    TSR_TRY(tsr_sync_run(sync, from, to, NULL));
    *messages = sent;
    tsr_sync_destroy(sync);
    for (size_t i = 0; i < count; i++)
        tsr_dtensor_destroy(to[i]);
    return TSR_OK;
}

static tsr_status count_messages(tsr_comm *comm)
{
    const int64_t shape[] = {96, 64};
    const int rank = tsr_comm_rank(comm);
    tsr_mesh *from = NULL, *to = NULL;
    tsr_layout *layouts[2] = {NULL, NULL};
    tsr_dtensor *x = NULL, *y = NULL;
    int64_t one = 0, all = 0;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &from));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2@3", &to));
    TSR_TRY(tsr_layout_parse(from, "S(0)", 2, shape, TSR_F32, &layouts[0]));
    TSR_TRY(tsr_layout_parse(to, "S(1)", 2, shape, TSR_BF16, &layouts[1]));
    TSR_TRY(tsr_dtensor_create(layouts[0], tsr_device_host(), &x));
    TSR_TRY(tsr_dtensor_create(layouts[1], tsr_device_host(), &y));
    TSR_TRY(count_run(comm, layouts, x, y, 1, &one));
    TSR_TRY(count_run(comm, layouts, x, y, TENSORS, &all));
    /* A message to each server, and those in which ranks compare their calls: one to rank 0, which
     * answers all. */
    CHECK(one == all && all == (rank < 3 ? 2 : 0) + (rank == 0 ? RANKS - 1 : 1));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layouts[1]);
    tsr_layout_destroy(layouts[0]);
    tsr_mesh_destroy(to);
    tsr_mesh_destroy(from);
    return TSR_OK;
}

static tsr_status count_over(tsr_comm *carrier, void *arg)
{
    tsr_comm_messages messages = message_engine_messages;
    tsr_comm_table table = message_engine_table;
    void *self = NULL;
    tsr_comm *comm = NULL;
    (void)arg;
    messages.exchange = counted_exchange;
    messages.start = NULL;
    messages.finish = NULL;
    table.messages = &messages;
    TSR_TRY(message_engine_self(carrier, &self));
    TSR_TRY(tsr_comm_create_from_table(NULL, &table, self, &comm));
    const tsr_status status = count_messages(comm);
    tsr_comm_destroy(comm);
    return status;
}

static void tensors_share_messages(void **state)
{
    (void)state;
    if (tsr_threads_run(RANKS, count_over, NULL, NULL) != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tensors_share_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
