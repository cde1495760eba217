/* Calls by id that travel as messages. A rank that names a row often sends, or is sent, no more
 * bytes than one that names it once, except for sums of floats. What ranks name travels with the
 * counts, and takes an exchange of its own only where it is long. */
#include "comm_suite.h"
#include "message_engine.h"

#include <tessera/dtensor.h>
#include <tessera/rows.h>

enum { RANKS = 2, ROWS = 256, WIDTH = 64, IDS = 256 };

/* Exchanges that this rank has made, and bytes that it has sent. */
static _Thread_local int64_t exchanges, sent_bytes;

static tsr_status counted_exchange(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                   size_t receive_count, tsr_device device, tsr_stream stream)
{
    exchanges++;
    for (size_t i = 0; i < send_count; i++)
        sent_bytes += (int64_t)sends[i].bytes;
    return message_engine_messages.exchange(self, sends, send_count, receives, receive_count, device, stream);
}

/* A call, and the bytes that it moves for each time that an id is named again. */
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

/* Names `count` rows, of which `different` are different; all are rank 1's. */
static tsr_status call_once(tsr_dtensor *table, const traffic *t, int64_t count, int64_t different)
{
    int64_t ids[IDS], shape[] = {count, WIDTH};
    static _Thread_local double data[IDS * WIDTH];
    for (int64_t i = 0; i < count; i++)
        ids[i] = ROWS - 1 - i % different;
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &count),
                     rows = tsr_tensor_contiguous(data, t->dtype, 2, shape);
    exchanges = sent_bytes = 0;
    return t->op == TSR_ROWS_OP_END ? tsr_rows_gather(table, &named, &rows)
                                    : tsr_rows_update(table, &named, &rows, (tsr_rows_op)t->op);
}

/* Rank 0 names rows of rank 1, and of a gather rank 1 sends them. */
static tsr_status count_bytes(tsr_dtensor *table, int rank, const traffic *t)
{
    const int64_t most = rank == 0 ? IDS : 0, some = most / 8;
    TSR_TRY(call_once(table, t, some, 2));
    const int64_t once = sent_bytes;
    TSR_TRY(call_once(table, t, most, 2));
    CHECK(sent_bytes == once + (most - some) * (t->id_bytes + t->row_bytes));
    return TSR_OK;
}

/* Two agreements take two exchanges each. Beginnings have room for 63 ids, or, where rows travel
 * too, for 4,080 bytes of both. */
static tsr_status count_exchanges(tsr_dtensor *table, int rank, const traffic *t)
{
    const bool gathers = t->op == TSR_ROWS_OP_END;
    const int64_t row = WIDTH * (int64_t)tsr_dtype_bytes(t->dtype);
    const int64_t fits = gathers ? 63 : 4080 / (row + (int64_t)sizeof(int64_t));
    const int64_t least = gathers ? 6 : 5;
    for (int64_t more = 0; more < 2; more++) {
        TSR_TRY(call_once(table, t, rank == 0 ? fits + more : 0, fits + more));
        CHECK(exchanges == least + more);
    }
    return TSR_OK;
}

static tsr_status count_call(tsr_comm *comm, const traffic *t)
{
    const int64_t shape[] = {ROWS, WIDTH};
    const int rank = tsr_comm_rank(comm);
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, shape, t->dtype, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &table));
    const tsr_tensor local = tsr_dtensor_to_local(table);
    memset(local.data, 0, (size_t)(local.shape[0] * WIDTH) * tsr_dtype_bytes(t->dtype));
    TSR_TRY(call_once(table, t, 0, 1)); /* makes the group of ranks, too */
    TSR_TRY(count_bytes(table, rank, t));
    TSR_TRY(count_exchanges(table, rank, t));
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
    const tsr_status status = count_call(comm, arg);
    tsr_comm_destroy(comm);
    return status;
}

static void rows_travel_once_and_few_with_their_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (tsr_threads_run(RANKS, count_over, (void *)&calls[i], NULL) != TSR_OK)
            fail_msg("call %zu: %s", i, tsr_status_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_travel_once_and_few_with_their_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
