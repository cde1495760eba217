/* Calls by id of tables on devices: faults of one rank, plans of several tables, and devices that
 * fail. */
#include "comm_suite.h"
#include "rows_machine.h"
#include "rows_memory.h"
#include "support.h"

#include <tessera/dtensor.h>
#include <tessera/rows.h>

enum { RANKS = 3, ODD = 1, ROWS = 7, WIDTH = 4, IDS = 5 };

/* A rank's table and operands. Element c of row r of a table of f32 begins as 10 r + c. */
typedef struct stage {
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *table;
    rows_memory ids, rows;
    tsr_tensor named, data;
} stage;

static tsr_status fill_table(const stage *s)
{
    float values[ROWS * WIDTH] = {0};
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    int64_t ids[ROWS], count = 0;
    TSR_TRY(tsr_rows_of(s->layout, tsr_comm_rank(tsr_mesh_comm(s->mesh)), 0, ROWS, ids, &count));
    for (int64_t i = 0; i < count * WIDTH; i++)
        values[i] = (float)(10 * ids[i / WIDTH] + i % WIDTH);
    const rows_memory memory = {.device = local.device, .data = local.data};
    return rows_memory_put(&memory, values, (size_t)(count * WIDTH) * sizeof *values);
}

static tsr_status raise_stage(stage *s, tsr_comm *comm, bool on_host)
{
    const int64_t shape[] = {ROWS, WIDTH}, rows_shape[] = {IDS, WIDTH}, count = IDS;
    const tsr_device device = rows_machine_device(tsr_comm_rank(comm));
    *s = (stage){.mesh = NULL};
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &s->mesh));
    TSR_TRY(tsr_layout_parse(s->mesh, "S(0;sizes=3,0,4)", 2, shape, TSR_F32, &s->layout));
    TSR_TRY(tsr_dtensor_create(s->layout, on_host ? tsr_device_host() : device, &s->table));
    TSR_TRY(rows_memory_take(device, IDS * sizeof(int64_t), &s->ids));
    TSR_TRY(rows_memory_take(device, IDS * WIDTH * sizeof(float), &s->rows));
    s->named = tsr_tensor_contiguous(s->ids.data, TSR_I64, 1, &count);
    s->data = tsr_tensor_contiguous(s->rows.data, TSR_F32, 2, rows_shape);
    s->named.device = s->data.device = device;
    return on_host ? TSR_OK : fill_table(s);
}

static void strike_stage(stage *s)
{
    rows_memory_free(&s->ids);
    rows_memory_free(&s->rows);
    tsr_dtensor_destroy(s->table);
    tsr_layout_destroy(s->layout);
    tsr_mesh_destroy(s->mesh);
}

/* Ids 0 to IDS - 1, but for one. */
static tsr_status set_ids(const stage *s, int64_t position, int64_t id)
{
    int64_t ids[IDS];
    for (int64_t i = 0; i < IDS; i++)
        ids[i] = i == position ? id : i;
    return rows_memory_put(&s->ids, ids, sizeof ids);
}

static tsr_status set_rows(const stage *s, float value)
{
    float values[IDS * WIDTH];
    for (int i = 0; i < IDS * WIDTH; i++)
        values[i] = value;
    return rows_memory_put(&s->rows, values, sizeof values);
}

static tsr_status check_rows(const stage *s, float value)
{
    float values[IDS * WIDTH];
    TSR_TRY(rows_memory_get(&s->rows, values, sizeof values));
    for (int i = 0; i < IDS * WIDTH; i++)
        CHECK(values[i] == value);
    return TSR_OK;
}

/* `added` was added to the elements of rows 0 to IDS - 1. */
static tsr_status check_table(const stage *s, float added)
{
    float values[ROWS * WIDTH] = {0};
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    int64_t ids[ROWS], count = 0;
    TSR_TRY(tsr_rows_of(s->layout, tsr_comm_rank(tsr_mesh_comm(s->mesh)), 0, ROWS, ids, &count));
    const rows_memory memory = {.device = local.device, .data = local.data};
    TSR_TRY(rows_memory_get(&memory, values, (size_t)(count * WIDTH) * sizeof *values));
    for (int64_t i = 0; i < count * WIDTH; i++)
        CHECK(values[i] == (float)(10 * ids[i / WIDTH] + i % WIDTH) + (ids[i / WIDTH] < IDS ? added : 0));
    return TSR_OK;
}

static tsr_status expect(int rank, tsr_status status, tsr_status wanted, const char *words)
{
    CHECK_ERROR(status, rank == ODD ? wanted : TSR_ERROR_PEER, words);
    return TSR_OK;
}

/* Ids on the device of one rank are out of range: all ranks hear of rank, position and value, and
 * nothing has been written. */
static tsr_status bring_bad_ids(tsr_comm *comm, void *arg)
{
    static const struct {
        int64_t position, id;
        const char *words;
    } cases[] = {{3, ROWS, "ids of rank 1 at position 3 is 7: there are 7 rows, counted from 0"},
                 {0, -1, "ids of rank 1 at position 0 is -1: there are 7 rows"},
                 {IDS - 1, INT64_MIN, "ids of rank 1 at position 4 is -9223372036854775808: there are 7 rows"}};
    const int rank = tsr_comm_rank(comm);
    stage s;
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, false));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TSR_TRY(set_ids(&s, rank == ODD ? cases[i].position : -1, cases[i].id));
        TSR_TRY(set_rows(&s, 5));
        TSR_TRY(expect(rank, tsr_rows_gather(s.table, &s.named, &s.data), TSR_ERROR_ARGUMENT, cases[i].words));
        TSR_TRY(check_rows(&s, 5));
        for (int op = 0; op < TSR_ROWS_OP_END; op++)
            TSR_TRY(expect(rank, tsr_rows_update(s.table, &s.named, &s.data, (tsr_rows_op)op), TSR_ERROR_ARGUMENT,
                           cases[i].words));
        TSR_TRY(check_table(&s, 0));
    }
    TSR_TRY(set_ids(&s, -1, 0));
    TSR_TRY(tsr_rows_update(s.table, &s.named, &s.data, TSR_ROWS_ADD));
    TSR_TRY(check_table(&s, 5 * RANKS));
    strike_stage(&s);
    return TSR_OK;
}

static void ids_out_of_range_are_named_and_nothing_is_written(void **state)
{
    (void)state;
    rows_machine_run(RANKS, bring_bad_ids, NULL);
}

/* What is on another device than its table is refused by name, and so are ranks of which one has
 * its table on the host. */
static tsr_status mix_devices(tsr_comm *comm, void *arg)
{
    const int rank = tsr_comm_rank(comm);
    float values[IDS * WIDTH] = {0};
    stage s, t;
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, false));
    TSR_TRY(raise_stage(&t, comm, rank == ODD));
    TSR_TRY(set_ids(&s, -1, 0));
    tsr_tensor rows = s.data;
    if (rank == ODD) {
        rows.data = values;
        rows.device = tsr_device_host();
    }
    TSR_TRY(expect(rank, tsr_rows_gather(s.table, &s.named, &rows), TSR_ERROR_ARGUMENT,
                   "out is on host, but the table is on"));
    TSR_TRY(expect(rank, tsr_rows_update(s.table, &s.named, &rows, TSR_ROWS_MAX), TSR_ERROR_ARGUMENT,
                   "rows is on host, but the table is on"));
    const int64_t ids[IDS] = {0};
    tsr_tensor named = s.named;
    if (rank == ODD) {
        named.data = (void *)ids;
        named.device = tsr_device_host();
    }
    CHECK_ERROR(tsr_rows_gather(t.table, &named, &rows), TSR_ERROR_ARGUMENT, "on mesh 3, on ");
    TSR_TRY(tsr_rows_gather(s.table, &named, &s.data));
    TSR_TRY(check_table(&s, 0));
    strike_stage(&s);
    strike_stage(&t);
    return TSR_OK;
}

static void tensors_on_other_devices_are_refused_by_name(void **state)
{
    (void)state;
    rows_machine_run(RANKS, mix_devices, NULL);
}

/* Three entries of a plan, two of one table, again and again: updates of it act in their order. */
static tsr_status run_plan(tsr_comm *comm, void *arg)
{
    enum { TABLES = 3 };
    stage s, t;
    tsr_rows_plan *plan = NULL;
    const int64_t count = 0, none[] = {0, WIDTH};
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, false));
    TSR_TRY(raise_stage(&t, comm, false));
    tsr_dtensor *const tables[TABLES] = {s.table, t.table, s.table};
    TSR_TRY(tsr_rows_plan_create(TABLES, tables, IDS, &plan));
    TSR_TRY(set_ids(&s, -1, 0));
    TSR_TRY(set_ids(&t, -1, 0));
    const tsr_tensor ids[TABLES] = {s.named, t.named, s.named}, rows[TABLES] = {s.data, t.data, s.data};
    for (int round = 1; round <= 3; round++) {
        TSR_TRY(set_rows(&s, 2));
        TSR_TRY(set_rows(&t, -1));
        TSR_TRY(tsr_rows_plan_update(plan, ids, rows, TSR_ROWS_ADD));
        TSR_TRY(check_table(&s, (float)(4 * RANKS * round)));
        TSR_TRY(check_table(&t, (float)(-RANKS * round)));
    }
    TSR_TRY(tsr_rows_plan_update(plan, ids, rows, TSR_ROWS_ASSIGN));
    TSR_TRY(set_rows(&s, 0));
    TSR_TRY(set_rows(&t, 0));
    TSR_TRY(tsr_rows_plan_gather(plan, ids, rows));
    TSR_TRY(check_rows(&s, 2));
    TSR_TRY(check_rows(&t, -1));
    /* One rank brings no ids, on the host. */
    tsr_tensor some_ids[TABLES] = {s.named, t.named, s.named}, some_rows[TABLES] = {s.data, t.data, s.data};
    for (int i = 0; i < TABLES && tsr_comm_rank(comm) == ODD; i++) {
        some_ids[i] = tsr_tensor_contiguous(NULL, TSR_I32, 1, &count);
        some_rows[i] = tsr_tensor_contiguous(NULL, TSR_F32, 2, none);
        some_rows[i].device = s.data.device;
    }
    TSR_TRY(tsr_rows_plan_gather(plan, some_ids, some_rows));
    TSR_TRY(tsr_rows_plan_update(plan, some_ids, some_rows, TSR_ROWS_MAX));
    tsr_rows_plan_destroy(plan);
    strike_stage(&s);
    strike_stage(&t);
    return TSR_OK;
}

static void tables_of_a_plan_share_calls(void **state)
{
    (void)state;
    rows_machine_run(RANKS, run_plan, NULL);
}

/* Each operation on a device fails in turn: the rank that asked for it gets the error, the others
 * one that names the rank, and the next call succeeds. */
static tsr_status fail_in_turn(tsr_comm *comm, void *arg)
{
    const int rank = tsr_comm_rank(comm);
    const bool gathers = *(const bool *)arg;
    int failures = 0;
    stage s;
    TSR_TRY(raise_stage(&s, comm, false));
    TSR_TRY(set_ids(&s, -1, 0));
    TSR_TRY(set_rows(&s, 1));
    for (int nth = 1; nth < 60; nth++) {
        tsr_comm_barrier(comm);
        if (rank == ODD)
            rows_machine_fail(nth);
        tsr_comm_barrier(comm);
        const tsr_status status = gathers ? tsr_rows_gather(s.table, &s.named, &s.data)
                                          : tsr_rows_update(s.table, &s.named, &s.data, TSR_ROWS_MEAN);
        if (status == TSR_ERROR_PEER)
            CHECK_ERROR(status, TSR_ERROR_PEER, "failed: async");
        else
            CHECK(status == TSR_OK || status == TSR_ERROR_DEVICE || status == TSR_ERROR_MEMORY);
        failures += status != TSR_OK;
        tsr_comm_barrier(comm);
        if (rank == ODD)
            rows_machine_fail(0);
    }
    tsr_comm_barrier(comm);
    CHECK(failures > 4);
    TSR_TRY(fill_table(&s));
    TSR_TRY(set_rows(&s, 1));
    TSR_TRY(tsr_rows_update(s.table, &s.named, &s.data, TSR_ROWS_ADD));
    TSR_TRY(check_table(&s, RANKS));
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void a_device_that_fails_leaves_no_rank_waiting(void **state)
{
    bool gathers = false;
    (void)state;
    if (!rows_machine_fails)
        skip();
    rows_machine_run(RANKS, fail_in_turn, &gathers);
    gathers = true;
    rows_machine_run(RANKS, fail_in_turn, &gathers);
}

/* So many ids that messages have more than their beginnings. */
enum { MANY_ROWS = 300, MANY = 400 };

static int64_t many_id(int rank, int64_t i)
{
    return (i * 37 + rank * 11) % MANY_ROWS;
}

static int64_t many_times(int64_t row)
{
    int64_t times = 0;
    for (int rank = 0; rank < RANKS; rank++)
        for (int64_t i = 0; i < MANY; i++)
            times += many_id(rank, i) == row;
    return times;
}

/* Rows are 0, and become as large as they are named often. */
static tsr_status call_with_many(tsr_dtensor *table, int rank, const rows_memory *memory)
{
    static _Thread_local float values[MANY * WIDTH];
    int64_t ids[MANY], count = MANY;
    const int64_t shape[] = {MANY, WIDTH};
    for (int64_t i = 0; i < MANY; i++)
        ids[i] = many_id(rank, i);
    for (int64_t i = 0; i < MANY * WIDTH; i++)
        values[i] = 1;
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &count);
    tsr_tensor rows = tsr_tensor_contiguous(memory->data, TSR_F32, 2, shape);
    rows.device = memory->device;
    TSR_TRY(rows_memory_put(memory, values, sizeof values));
    TSR_TRY(tsr_rows_update(table, &named, &rows, TSR_ROWS_ADD));
    TSR_TRY(tsr_rows_gather(table, &named, &rows));
    TSR_TRY(rows_memory_get(memory, values, sizeof values));
    for (int64_t i = 0; i < MANY * WIDTH; i++)
        CHECK(values[i] == (float)many_times(ids[i / WIDTH]));
    return TSR_OK;
}

static tsr_status bring_many(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {MANY_ROWS, WIDTH};
    const float zeros[MANY_ROWS * WIDTH] = {0};
    const int rank = tsr_comm_rank(comm);
    const tsr_device device = rows_machine_device(rank);
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    rows_memory memory;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, device, &table));
    TSR_TRY(rows_memory_take(device, MANY * WIDTH * sizeof(float), &memory));
    const rows_memory local = {.device = device, .data = tsr_dtensor_to_local(table).data};
    TSR_TRY(rows_memory_put(&local, zeros, sizeof zeros / RANKS));
    TSR_TRY(call_with_many(table, rank, &memory));
    rows_memory_free(&memory);
    tsr_dtensor_destroy(table);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void many_ids_give_the_same_rows_as_few(void **state)
{
    (void)state;
    rows_machine_run(RANKS, bring_many, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_out_of_range_are_named_and_nothing_is_written),
        cmocka_unit_test(many_ids_give_the_same_rows_as_few),
        cmocka_unit_test(tensors_on_other_devices_are_refused_by_name),
        cmocka_unit_test(tables_of_a_plan_share_calls),
        cmocka_unit_test(a_device_that_fails_leaves_no_rank_waiting),
    };
    test_watchdog(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
