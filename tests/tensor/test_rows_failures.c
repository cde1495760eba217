/* Calls by id in which one rank is at fault: it gets its own error, the others one that names it;
 * no table or result has changed, and the next call succeeds. */
#include "comm_suite.h"
#include "counted_memory.h"

#include <tessera/rows.h>
#include <tessera/sys/device.h>
#include <tessera/values.h>

#include <stdio.h>

enum { RANKS = 3, ODD = 1, ROWS = 7, WIDTH = 3, IDS = 5 };

typedef struct stage {
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *table;
    int64_t ids[IDS];
    float data[IDS * WIDTH];
    tsr_tensor named, rows;
} stage;

static void set_operands(stage *s, int rank)
{
    const int64_t count = IDS, shape[] = {IDS, WIDTH};
    for (int i = 0; i < IDS; i++)
        s->ids[i] = (3 * i + rank) % ROWS;
    for (int i = 0; i < IDS * WIDTH; i++)
        s->data[i] = -1;
    s->named = tsr_tensor_contiguous(s->ids, TSR_I64, 1, &count);
    s->rows = tsr_tensor_contiguous(s->data, TSR_F32, 2, shape);
}

static tsr_status raise_stage(stage *s, tsr_comm *comm, const char *placements, tsr_dtype dtype)
{
    const int64_t shape[] = {ROWS, WIDTH};
    *s = (stage){.mesh = NULL};
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &s->mesh));
    TSR_TRY(tsr_layout_parse(s->mesh, placements, 2, shape, dtype, &s->layout));
    TSR_TRY(tsr_dtensor_create(s->layout, tsr_device_host(), &s->table));
    set_operands(s, tsr_comm_rank(comm));
    return TSR_OK;
}

static void strike_stage(stage *s)
{
    tsr_dtensor_destroy(s->table);
    tsr_layout_destroy(s->layout);
    tsr_mesh_destroy(s->mesh);
}

static tsr_status set_table(stage *s, float value)
{
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    for (int64_t i = 0; i < local.shape[0] * local.shape[1]; i++)
        ((float *)local.data)[i] = value;
    return TSR_OK;
}

static tsr_status check_table(const stage *s, float value)
{
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    for (int64_t i = 0; i < local.shape[0] * local.shape[1]; i++)
        CHECK(((const float *)local.data)[i] == value);
    return TSR_OK;
}

static tsr_status check_data(const stage *s, float value)
{
    for (int i = 0; i < IDS * WIDTH; i++)
        CHECK(s->data[i] == value);
    return TSR_OK;
}

/* What rank ODD does wrong, and the words of its error. */
typedef struct mistake {
    void (*make)(stage *s);
    tsr_status status;
    const char *words;
} mistake;

static void too_large(stage *s)
{
    s->ids[3] = ROWS;
}

static void negative(stage *s)
{
    s->ids[0] = -1;
}

static void of_floats(stage *s)
{
    s->named.dtype = TSR_F32;
}

static void of_two_dims(stage *s)
{
    s->named.ndim = 2;
}

static void without_ids(stage *s)
{
    s->named.data = NULL;
}

static void other_dtype(stage *s)
{
    s->rows.dtype = TSR_I32;
}

static void other_width(stage *s)
{
    s->rows.shape[1] = 2;
}

static void too_few(stage *s)
{
    s->rows.shape[0] = 4;
}

static void with_gaps(stage *s)
{
    s->rows.strides[1] = 2;
}

static void without_rows(stage *s)
{
    s->rows.data = NULL;
}

static void in_the_table(stage *s)
{
    s->rows.data = tsr_dtensor_to_local(s->table).data;
}

static const mistake mistakes[] = {
    {too_large, TSR_ERROR_ARGUMENT, "ids of rank 1 at position 3 is 7: there are 7 rows, counted from 0"},
    {negative, TSR_ERROR_ARGUMENT, "ids of rank 1 at position 0 is -1: there are 7 rows"},
    {of_floats, TSR_ERROR_ARGUMENT, "ids is of f32: i32 and i64 are fine"},
    {of_two_dims, TSR_ERROR_ARGUMENT, "ids has 2 dims: it must have one"},
    {without_ids, TSR_ERROR_ARGUMENT, "ids has no data, but 5 elements"},
    {other_dtype, TSR_ERROR_ARGUMENT, "is of i32, but the table is of f32"},
    {other_width, TSR_ERROR_ARGUMENT, "has shape 5x2: 5 ids of this table have rows of shape 5x3"},
    {too_few, TSR_ERROR_ARGUMENT, "has shape 4x3: 5 ids"},
    {with_gaps, TSR_ERROR_UNSUPPORTED, "has gaps within its rows"},
    {without_rows, TSR_ERROR_ARGUMENT, "has no data, but 15 elements"},
    {in_the_table, TSR_ERROR_ARGUMENT, "overlaps the table"},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

/* The error of this rank's call. */
static tsr_status check_error(int rank, tsr_status status, const mistake *m)
{
    if (rank == ODD)
        CHECK_ERROR(status, m->status, m->words);
    else {
        CHECK_ERROR(status, TSR_ERROR_PEER, "rank 1 failed: ");
        CHECK_ERROR(status, TSR_ERROR_PEER, m->words);
    }
    return TSR_OK;
}

static tsr_status make_mistakes(tsr_comm *comm, void *arg)
{
    stage s;
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(raise_stage(&s, comm, arg, TSR_F32));
    TSR_TRY(set_table(&s, 2));
    for (int i = 0; i < MISTAKES; i++) {
        set_operands(&s, rank);
        if (rank == ODD)
            mistakes[i].make(&s);
        TSR_TRY(check_error(rank, tsr_rows_gather(s.table, &s.named, &s.rows), &mistakes[i]));
        TSR_TRY(check_error(rank, tsr_rows_update(s.table, &s.named, &s.rows, TSR_ROWS_ADD), &mistakes[i]));
        TSR_TRY(check_table(&s, 2));
        TSR_TRY(check_data(&s, -1));
    }
    const mistake no_ids = {NULL, TSR_ERROR_ARGUMENT, "ids is NULL"},
                  no_out = {NULL, TSR_ERROR_ARGUMENT, "out is NULL"};
    set_operands(&s, rank);
    TSR_TRY(check_error(rank, tsr_rows_gather(s.table, rank == ODD ? NULL : &s.named, &s.rows), &no_ids));
    TSR_TRY(check_error(rank, tsr_rows_gather(s.table, &s.named, rank == ODD ? NULL : &s.rows), &no_out));
    TSR_TRY(tsr_rows_gather(s.table, &s.named, &s.rows));
    TSR_TRY(check_data(&s, 2));
    TSR_TRY(tsr_rows_update(s.table, &s.named, &s.rows, TSR_ROWS_MAX));
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void a_mistake_is_told_to_all_and_nothing_is_written(void **state)
{
    (void)state;
    suite_run(RANKS, make_mistakes, "S(0)");
    suite_run(RANKS, make_mistakes, "S(1)");
    suite_run(RANKS, make_mistakes, "R");
}

/* Faults that all ranks share. */
static tsr_status refuse(tsr_comm *comm, void *arg)
{
    static const struct {
        const char *placements;
        tsr_dtype dtype;
        tsr_rows_op op;
        tsr_status status;
        const char *words;
    } cases[] = {
        {"P", TSR_F32, TSR_ROWS_ADD, TSR_ERROR_UNSUPPORTED, "mesh dim 0 holds terms, not rows"},
        {"S(0)", TSR_I32, TSR_ROWS_MEAN, TSR_ERROR_UNSUPPORTED, "op is mean, which i32 does not have"},
        {"S(0)", TSR_BOOL, TSR_ROWS_ADD, TSR_ERROR_UNSUPPORTED, "op is add, which bool does not have"},
        {"S(0)", TSR_C64, TSR_ROWS_MAX, TSR_ERROR_UNSUPPORTED, "op is max, which c64 does not have"},
        {"S(0)", TSR_F32, TSR_ROWS_OP_END, TSR_ERROR_ARGUMENT, "op is 4: assign, add, mean and max"},
    };
    (void)arg;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stage s;
        TSR_TRY(raise_stage(&s, comm, cases[i].placements, cases[i].dtype));
        CHECK_ERROR(tsr_rows_update(s.table, &s.named, &s.rows, cases[i].op), cases[i].status, cases[i].words);
        strike_stage(&s);
    }
    const tsr_tensor none = {.data = NULL};
    CHECK_ERROR(tsr_rows_gather(NULL, &none, &none), TSR_ERROR_ARGUMENT, "tsr_rows_gather: table is NULL");
    CHECK_ERROR(tsr_rows_update(NULL, &none, &none, TSR_ROWS_ADD), TSR_ERROR_ARGUMENT,
                "tsr_rows_update: table is NULL");
    CHECK(strcmp(tsr_rows_op_name(TSR_ROWS_MEAN), "mean") == 0 &&
          strcmp(tsr_rows_op_name((tsr_rows_op)9), "none") == 0);
    return suite_check_usable(comm);
}

/* Results over ids, which are read while results are written, or over another table of a plan;
 * records of an id and its row are fine. */
static tsr_status lay_over(tsr_comm *comm, void *arg)
{
    enum { RECORDS = 20, STEP = WIDTH + 1 };
    const int64_t shape[] = {ROWS, WIDTH}, count = RECORDS, of_rows[] = {RECORDS, WIDTH};
    const bool odd = tsr_comm_rank(comm) == ODD;
    const tsr_status wanted = odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    int64_t records[RECORDS * STEP], others[RECORDS * WIDTH], apart_ids[RECORDS] = {0};
    stage s;
    tsr_layout *layout;
    tsr_dtensor *tables[2];
    tsr_rows_plan *plan;
    TSR_TRY(raise_stage(&s, comm, arg, TSR_I64));
    TSR_TRY(tsr_layout_parse(s.mesh, "R", 2, shape, TSR_I64, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &tables[1]));
    TSR_TRY(tsr_dtensor_fill(s.table, 1e15, NULL));
    TSR_TRY(tsr_dtensor_fill(tables[1], 5, NULL));
    for (int i = 0; i < RECORDS * STEP; i++)
        records[i] = i % ROWS;
    tsr_tensor ids = tsr_tensor_contiguous(records, TSR_I64, 1, &count);
    tsr_tensor out = tsr_tensor_contiguous(others, TSR_I64, 2, of_rows), over = out;
    over.data = records;
    CHECK_ERROR(tsr_rows_gather(s.table, &ids, odd ? &over : &out), wanted, "tsr_rows_gather: out overlaps ids");
    ids.strides[0] = over.strides[0] = STEP;
    over.data = records + 1;
    TSR_TRY(tsr_rows_gather(s.table, &ids, &over));
    CHECK(records[STEP] == STEP % ROWS && records[STEP + 1] == 1000000000000000);
    over.data = records;
    CHECK_ERROR(tsr_rows_gather(s.table, &ids, odd ? &over : &out), wanted, "tsr_rows_gather: out overlaps ids");

    const tsr_tensor other = tsr_tensor_contiguous(apart_ids, TSR_I64, 1, &count);
    tables[0] = s.table;
    TSR_TRY(tsr_rows_plan_create(2, tables, RECORDS, &plan));
    const tsr_tensor both[] = {other, ids}, apart[] = {out, {.dtype = TSR_I64, .ndim = 2, .shape = {0, WIDTH}}};
    const tsr_tensor none = tsr_tensor_contiguous(NULL, TSR_I64, 1, (const int64_t[]){0}), one[] = {ids, none};
    tsr_tensor results[] = {over, out}, in_table[] = {out, apart[1]};
    in_table[0].data = tsr_dtensor_to_local(tables[1]).data;
    in_table[0].shape[0] = ROWS;
    tsr_tensor few[] = {ids, none};
    few[0].shape[0] = ROWS;
    CHECK_ERROR(tsr_rows_plan_gather(plan, odd ? both : one, odd ? results : apart), wanted,
                "tsr_rows_plan_gather: out[0] overlaps ids[1]");
    CHECK_ERROR(tsr_rows_plan_gather(plan, odd ? few : one, odd ? in_table : apart), wanted,
                "tsr_rows_plan_gather: out[0] overlaps tables[1]");
    CHECK_ERROR(tsr_rows_plan_update(plan, odd ? few : one, odd ? in_table : apart, TSR_ROWS_MAX), wanted,
                "tsr_rows_plan_update: rows[0] overlaps tables[1]");
    TSR_TRY(tsr_rows_plan_gather(plan, one, apart));
    CHECK(others[0] == 1000000000000000);
    tsr_rows_plan_destroy(plan);
    tsr_dtensor_destroy(tables[1]);
    tsr_layout_destroy(layout);
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void results_over_what_is_read_are_refused(void **state)
{
    (void)state;
    suite_run(RANKS, lay_over, "S(0)");
    suite_run(RANKS, lay_over, "S(1)");
}

static void what_no_rank_can_do_is_refused_by_name(void **state)
{
    (void)state;
    suite_run(RANKS, refuse, NULL);
}

/* A device on host memory. */
static tsr_status make_driver(tsr_device_driver **out)
{
    void *self;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    table.name = "elsewhere";
    return tsr_device_driver_create(&table, self, out);
}

static tsr_status refuse_devices(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_device_driver *driver;
    tsr_dtensor *far = NULL;
    tsr_rows_plan *plan = NULL;
    (void)arg;
    TSR_TRY(make_driver(&driver));
    const tsr_device device = {driver, 0};
    TSR_TRY(raise_stage(&s, comm, "S(0)", TSR_F32));
    TSR_TRY(tsr_dtensor_create(s.layout, device, &far));
    CHECK_ERROR(tsr_rows_gather(far, &s.named, &s.rows), TSR_ERROR_ARGUMENT,
                "tsr_rows_gather: out is on host, but the table is on elsewhere:0: rows are where the table is");
    tsr_tensor named = s.named, rows = s.rows;
    named.device = rows.device = device;
    CHECK_ERROR(tsr_rows_gather(s.table, &named, &s.rows), TSR_ERROR_ARGUMENT,
                "ids is on elsewhere:0, but the table is on host: ids are on the host, too");
    CHECK_ERROR(tsr_rows_update(s.table, &s.named, &rows, TSR_ROWS_ADD), TSR_ERROR_ARGUMENT,
                "rows is on elsewhere:0, but the table is on host");
    named.device.index = 1;
    CHECK_ERROR(tsr_rows_gather(far, &named, &rows), TSR_ERROR_ARGUMENT,
                "ids is on elsewhere:1, but the table is on elsewhere:0: ids are there or on the host");
    tsr_dtensor *const tables[] = {s.table, far};
    CHECK_ERROR(
        tsr_rows_plan_create(2, tables, 4, &plan), TSR_ERROR_ARGUMENT,
        "tables[1] is on elsewhere:0, but tables[0] is on host: tables that share an exchange are on one device");
    tsr_dtensor_destroy(far);
    strike_stage(&s);
    tsr_device_driver_destroy(driver);
    return suite_check_usable(comm);
}

static void tensors_on_different_devices_are_refused_by_name(void **state)
{
    (void)state;
    suite_run(RANKS, refuse_devices, NULL);
}

/* Engines that move memory of any device give its rows; others refuse it, and nothing waits. */
static tsr_status call_on_device(tsr_comm *comm, void *arg)
{
    stage s;
    tsr_device_driver *driver;
    tsr_dtensor *far = NULL;
    (void)arg;
    TSR_TRY(make_driver(&driver));
    const tsr_device device = {driver, 0};
    TSR_TRY(raise_stage(&s, comm, "S(0)", TSR_F32));
    TSR_TRY(tsr_dtensor_create(s.layout, device, &far));
    const tsr_tensor local = tsr_dtensor_to_local(far);
    memset(local.data, 0, (size_t)(local.shape[0] * local.shape[1]) * sizeof(float));
    s.named.device = s.rows.device = device;
    const tsr_status status = tsr_rows_update(far, &s.named, &s.rows, TSR_ROWS_MAX);
    if (status == TSR_OK)
        TSR_TRY(tsr_rows_gather(far, &s.named, &s.rows));
    else
        CHECK_ERROR(status, TSR_ERROR_UNSUPPORTED, "this engine moves host memory alone");
    TSR_TRY(check_data(&s, status == TSR_OK ? 0 : -1));
    tsr_dtensor_destroy(far);
    strike_stage(&s);
    tsr_device_driver_destroy(driver);
    return suite_check_usable(comm);
}

static void devices_that_an_engine_does_not_move_are_refused(void **state)
{
    (void)state;
    suite_run(RANKS, call_on_device, NULL);
}

static tsr_status disagree(tsr_comm *comm, void *arg)
{
    stage s;
    (void)arg;
    TSR_TRY(raise_stage(&s, comm, "S(0)", TSR_F32));
    TSR_TRY(set_table(&s, 2));
    const tsr_rows_op op = tsr_comm_rank(comm) == ODD ? TSR_ROWS_MAX : TSR_ROWS_ADD;
    CHECK_ERROR(tsr_rows_update(s.table, &s.named, &s.rows, op), TSR_ERROR_ARGUMENT,
                "rank 0 calls tsr_rows_update add of 1 table");
    TSR_TRY(check_table(&s, 2));
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void ranks_that_disagree_are_told_so(void **state)
{
    (void)state;
    suite_run(RANKS, disagree, NULL);
}

/* Rank ODD's n-th allocation within a call fails, for each n until the call has no more. */
static tsr_status run_short(tsr_comm *comm, void *arg)
{
    stage s;
    const int rank = tsr_comm_rank(comm);
    const tsr_rows_op op = *(const tsr_rows_op *)arg;
    bool gathers = op == TSR_ROWS_OP_END, done = false;
    TSR_TRY(raise_stage(&s, comm, "S(0)", TSR_F32));
    /* Groups are made, and plans of the engine, before memory is short. */
    TSR_TRY(tsr_rows_gather(s.table, &s.named, &s.rows));
    for (size_t nth = 1; !done; nth++) {
        tsr_dtensor_destroy(s.table);
        TSR_TRY(tsr_dtensor_create(s.layout, tsr_device_host(), &s.table));
        TSR_TRY(set_table(&s, 2));
        set_operands(&s, rank);
        if (rank == ODD)
            counted_fail_here(nth, false);
        const tsr_status status =
            gathers ? tsr_rows_gather(s.table, &s.named, &s.rows) : tsr_rows_update(s.table, &s.named, &s.rows, op);
        done = rank == ODD ? counted_fail_here(0, false) > 0 : status == TSR_OK;
        if (done) {
            TSR_TRY(status);
            continue;
        }
        CHECK_ERROR(status, rank == ODD ? TSR_ERROR_MEMORY : TSR_ERROR_PEER, "memory");
        TSR_TRY(check_table(&s, 2));
        TSR_TRY(check_data(&s, -1));
        CHECK(nth < 100);
    }
    strike_stage(&s);
    return suite_check_usable(comm);
}

static void a_rank_without_memory_is_named_and_nothing_is_written(void **state)
{
    (void)state;
    NEEDS_ONE_PROCESS();
    for (int op = 0; op <= TSR_ROWS_OP_END; op++) {
        counted_memory memory = {0};
        tsr_context *context = counted_context(&memory);
        tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
        options.context = context;
        suite_run_with(RANKS, run_short, &op, &options);
        tsr_context_destroy(context);
        assert_int_equal(memory.live_blocks, 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_is_told_to_all_and_nothing_is_written),
        cmocka_unit_test(results_over_what_is_read_are_refused),
        cmocka_unit_test(what_no_rank_can_do_is_refused_by_name),
        cmocka_unit_test(tensors_on_different_devices_are_refused_by_name),
        cmocka_unit_test(devices_that_an_engine_does_not_move_are_refused),
        cmocka_unit_test(ranks_that_disagree_are_told_so),
        cmocka_unit_test(a_rank_without_memory_is_named_and_nothing_is_written),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
