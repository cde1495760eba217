/* Bytes of calls by id that travel as messages: a rank that names a row often sends, or is sent, no
 * more than one that names it once, except for sums of floats. */
#include "comm_suite.h"
#include "message_engine.h"

#include <tessera/dtensor.h>
#include <tessera/rows.h>

enum { RANKS = 2, ROWS = 8, WIDTH = 64, IDS = 16 };

/* Bytes that this rank has sent. */
static _Thread_local int64_t sent_bytes;

static tsr_status counted_exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                   size_t receive_count, tsr_device device, tsr_stream stream)
{
    for (size_t i = 0; i < send_count; i++)
        sent_bytes += (int64_t)sends[i].bytes;
    return message_engine_messages.exchange(self, sends, send_count, receives, receive_count, device, stream);
}

/* A call, and what it moves for each time that an id is named again. */
typedef struct traffic {
    int op; /* TSR_ROWS_OP_END: a gather */
    tsr_dtype dtype;
    int64_t id_bytes, row_bytes;
} traffic;

static const traffic calls[] = {
    {TSR_ROWS_OP_END, TSR_F32, 0, 0},
    {TSR_ROWS_ASSIGN, TSR_F32, 0, 0},
    {TSR_ROWS_MAX, TSR_F32, 0, 0},
    {TSR_ROWS_MAX, TSR_I16, 0, 0},
    {TSR_ROWS_ADD, TSR_I32, 0, 0},
    {TSR_ROWS_ADD, TSR_U8, 0, 0},
    {TSR_ROWS_ADD, TSR_F32, sizeof(int64_t), WIDTH * sizeof(float)},
    {TSR_ROWS_MEAN, TSR_F32, sizeof(int64_t), WIDTH * sizeof(float)},
};

static tsr_status call_once(tsr_dtensor *table, const traffic *t, int64_t count, int64_t *bytes)
{
    int64_t ids[IDS], shape[] = {count, WIDTH};
    double data[IDS * WIDTH] = {0};
    for (int64_t i = 0; i < count; i++)
        ids[i] = ROWS - 1 - i % 2;
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &count),
                     rows = tsr_tensor_contiguous(data, t->dtype, 2, shape);
    sent_bytes = 0;
    TSR_TRY(t->op == TSR_ROWS_OP_END ? tsr_rows_gather(table, &named, &rows)
                                     : tsr_rows_update(table, &named, &rows, (tsr_rows_op)t->op));
    *bytes = sent_bytes;
    return TSR_OK;
}

/* Rank 0 names rows of rank 1, and of a gather rank 1 sends them. */
static tsr_status count_bytes(tsr_comm *comm, const traffic *t)
{
    const int64_t shape[] = {ROWS, WIDTH};
    int64_t once = 0, often = 0;
    const int64_t most = tsr_comm_rank(comm) == 0 ? IDS : 0, some = most / 8;
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, shape, t->dtype, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &table));
    const tsr_tensor local = tsr_dtensor_to_local(table);
    memset(local.data, 0, (size_t)(local.shape[0] * WIDTH) * tsr_dtype_bytes(t->dtype));
    TSR_TRY(call_once(table, t, some, &once)); /* the first call makes the group of ranks, too */
    TSR_TRY(call_once(table, t, some, &once));
    TSR_TRY(call_once(table, t, most, &often));
    CHECK(often == once + (most - some) * (t->id_bytes + t->row_bytes));
    tsr_dtensor_destroy(table);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static tsr_status count_over(tsr_comm *carrier, void *arg)
{
    tsr_comm_messages messages = message_engine_messages;
    tsr_comm_table table = message_engine_table;
    void *self = NULL;
    tsr_comm *comm = NULL;
    messages.exchange = counted_exchange;
    messages.start = NULL;
    messages.finish = NULL;
    table.messages = &messages;
    TSR_TRY(message_engine_self(carrier, &self));
    TSR_TRY(tsr_comm_create_from_table(NULL, &table, self, &comm));
    const tsr_status status = count_bytes(comm, arg);
    tsr_comm_destroy(comm);
    return status;
}

static void rows_that_are_named_often_travel_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (tsr_threads_run(RANKS, count_over, (void *)&calls[i], NULL) != TSR_OK)
            fail_msg("call %zu: %s", i, tsr_status_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_that_are_named_often_travel_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
