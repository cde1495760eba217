/* Plans of calls by id: several tables in one call, again and again. */
#include "comm_suite.h"
#include "counted_memory.h"
#include "rows_oracle.h"

#include <stdlib.h>

enum { TABLES = 3, CAPACITY = ROWS_IDS, ROUNDS = 6 };

/* Tables of one plan, on four ranks. */
typedef struct kind {
    const char *placements;
    tsr_dtype dtype, ids;
    int64_t rows, width;
} kind;

static const kind kinds[TABLES] = {
    {"S(0),R", TSR_F32, TSR_I64, 13, 5},
    {"S(1),S(0;sizes=9,0)", TSR_BF16, TSR_I32, 9, 6},
    {"R,S(1)", TSR_I64, TSR_I64, 4, 3},
};

typedef struct stage {
    tsr_mesh *mesh;
    tsr_dtensor *tables[TABLES];
    unsigned char whole[TABLES][ROWS_BYTES], data[TABLES][ROWS_BYTES];
    int64_t ids[TABLES][ROWS_IDS];
    tsr_tensor named[TABLES], rows[TABLES];
} stage;

static tsr_status raise_table(stage *s, int t)
{
    const kind *const k = &kinds[t];
    const int64_t shape[] = {k->rows, k->width};
    tsr_layout *layout;
    int64_t count;
    TSR_TRY(tsr_layout_parse(s->mesh, k->placements, 2, shape, k->dtype, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), &s->tables[t]);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    rows_fill(k->dtype, k->rows * k->width, 5 + (unsigned)t, false, s->whole[t]);
    const tsr_tensor local = tsr_dtensor_to_local(s->tables[t]);
    const size_t bytes = tsr_dtype_bytes(k->dtype);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)local.data + (size_t)i * bytes,
               s->whole[t] + (size_t)rows_global(tsr_dtensor_layout(s->tables[t]), i) * bytes, bytes);
    return TSR_OK;
}

static void bring(stage *s, int t, int round, int rank)
{
    const kind *const k = &kinds[t];
    const int64_t count = rows_count(round, rank), shape[] = {count, k->width};
    for (int64_t i = 0; i < count; i++) {
        const int64_t id = rows_id(round, rank, i, k->rows);
        const int32_t narrow = (int32_t)id;
        if (k->ids == TSR_I64)
            s->ids[t][i] = id;
        else
            memcpy((char *)s->ids[t] + (size_t)i * sizeof narrow, &narrow, sizeof narrow);
    }
    rows_fill(k->dtype, count * k->width, rows_salt(round, rank), false, s->data[t]);
    s->named[t] = tsr_tensor_contiguous(s->ids[t], k->ids, 1, &count);
    s->rows[t] = tsr_tensor_contiguous(s->data[t], k->dtype, 2, shape);
}

static tsr_status check_table(const stage *s, int t)
{
    const tsr_tensor local = tsr_dtensor_to_local(s->tables[t]);
    const size_t bytes = tsr_dtype_bytes(kinds[t].dtype);
    int64_t count;
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        CHECK(memcmp((char *)local.data + (size_t)i * bytes,
                     s->whole[t] + (size_t)rows_global(tsr_dtensor_layout(s->tables[t]), i) * bytes, bytes) == 0);
    return TSR_OK;
}

static tsr_status check_rows(const stage *s, int t, int round, int rank)
{
    const kind *const k = &kinds[t];
    const size_t row = (size_t)k->width * tsr_dtype_bytes(k->dtype);
    for (int64_t i = 0; i < rows_count(round, rank); i++)
        CHECK(memcmp(s->data[t] + (size_t)i * row, s->whole[t] + (size_t)rows_id(round, rank, i, k->rows) * row, row) ==
              0);
    return TSR_OK;
}

static tsr_status play_round(stage *s, tsr_rows_plan *plan, tsr_comm *comm, int round)
{
    const int rank = tsr_comm_rank(comm);
    const tsr_rows_op op = round % 2 ? TSR_ROWS_ADD : TSR_ROWS_ASSIGN;
    for (int t = 0; t < TABLES; t++)
        bring(s, t, round, rank);
    TSR_TRY(tsr_rows_plan_update(plan, s->named, s->rows, op));
    for (int t = 0; t < TABLES; t++) {
        const kind *const k = &kinds[t];
        rows_update_whole(k->dtype, op, k->rows, k->width, round, tsr_comm_size(comm), false, s->whole[t]);
        TSR_TRY(check_table(s, t));
    }
    TSR_TRY(tsr_rows_plan_gather(plan, s->named, s->rows));
    for (int t = 0; t < TABLES; t++)
        TSR_TRY(check_rows(s, t, round, rank));
    return TSR_OK;
}

static tsr_status refuse(stage *s, tsr_rows_plan *plan, tsr_comm *comm)
{
    tsr_tensor more = s->named[1];
    const tsr_tensor kept = s->named[1];
    const int rank = tsr_comm_rank(comm);
    more.shape[0] = CAPACITY + 1;
    if (rank == 2)
        s->named[1] = more;
    CHECK_ERROR(tsr_rows_plan_gather(plan, s->named, s->rows), rank == 2 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "tsr_rows_plan_gather: ids has 25 elements, but the plan is for 24");
    s->named[1] = kept;
    CHECK_ERROR(tsr_rows_plan_gather(plan, rank == 0 ? NULL : s->named, s->rows),
                rank == 0 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, "ids is NULL");
    CHECK_ERROR(tsr_rows_plan_gather(NULL, s->named, s->rows), TSR_ERROR_ARGUMENT, "plan is NULL");
    CHECK_ERROR(tsr_rows_plan_update(NULL, s->named, s->rows, TSR_ROWS_ADD), TSR_ERROR_ARGUMENT, "plan is NULL");
    return TSR_OK;
}

static tsr_status refuse_plans(stage *s, tsr_comm *comm)
{
    tsr_rows_plan *plan = NULL;
    tsr_mesh *other = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *stranger = NULL;
    const int64_t shape[] = {4, 2};
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "4", &other));
    TSR_TRY(tsr_layout_parse(other, "S(0)", 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &stranger));
    tsr_dtensor *mixed[] = {s->tables[0], stranger}, *none[] = {s->tables[0], NULL};
    CHECK_ERROR(tsr_rows_plan_create(2, mixed, 1, &plan), TSR_ERROR_ARGUMENT, "tables[1] is on another mesh");
    CHECK_ERROR(tsr_rows_plan_create(2, rank == 3 ? none : s->tables, 1, &plan),
                rank == 3 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, "tables[1] is NULL");
    CHECK_ERROR(tsr_rows_plan_create(1, s->tables, -1, &plan), TSR_ERROR_ARGUMENT, "capacity is -1");
    CHECK_ERROR(tsr_rows_plan_create(1, s->tables, 1, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    CHECK_ERROR(tsr_rows_plan_create(0, s->tables, 1, &plan), TSR_ERROR_ARGUMENT, "count is 0");
    CHECK_ERROR(tsr_rows_plan_create(1, NULL, 1, &plan), TSR_ERROR_ARGUMENT, "is NULL");
    CHECK_ERROR(tsr_rows_plan_create(1, rank == 1 ? &s->tables[1] : s->tables, 1, &plan), TSR_ERROR_ARGUMENT,
                "ranks disagree");
    CHECK(!plan);
    tsr_rows_plan_destroy(NULL);
    tsr_dtensor_destroy(stranger);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(other);
    return TSR_OK;
}

static tsr_status play(stage *s, tsr_comm *comm)
{
    tsr_rows_plan *plan = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2x2", &s->mesh));
    for (int t = 0; t < TABLES; t++)
        TSR_TRY(raise_table(s, t));
    TSR_TRY(refuse_plans(s, comm));
    TSR_TRY(tsr_rows_plan_create(TABLES, s->tables, CAPACITY, &plan));
    for (int round = 0; round < ROUNDS; round++)
        TSR_TRY(play_round(s, plan, comm, round));
    TSR_TRY(refuse(s, plan, comm));
    /* A plan keeps its tables. */
    tsr_dtensor_destroy(tsr_dtensor_retain(s->tables[0]));
    const size_t asked = counted_asked_here();
    for (int round = 0; round < ROUNDS; round++)
        TSR_TRY(play_round(s, plan, comm, round));
    CHECK(suite_engine->apart || counted_asked_here() == asked);
    tsr_rows_plan_destroy(plan);
    return TSR_OK;
}

static tsr_status play_on_rank(tsr_comm *comm, void *arg)
{
    stage *const s = calloc(1, sizeof *s);
    (void)arg;
    CHECK(s);
    const tsr_status status = play(s, comm);
    for (int t = 0; t < TABLES; t++)
        tsr_dtensor_destroy(s->tables[t]);
    tsr_mesh_destroy(s->mesh);
    free(s);
    return status;
}

static void tables_of_a_plan_share_calls_that_allocate_nothing(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = context;
    suite_run_with(4, play_on_rank, NULL, &options);
    tsr_context_destroy(context);
    assert_int_equal(memory.live_blocks, 0);
}

/* Updates of one table that a plan has twice act in its order. */
static tsr_status play_twice(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    tsr_rows_plan *plan = NULL;
    const int rank = tsr_comm_rank(comm);
    int64_t rows = 4, n = 1, id = 3;
    int32_t values[] = {10 + rank, 20 + rank};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 1, &rows, TSR_I32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &table));
    tsr_dtensor *const both[] = {table, table};
    TSR_TRY(tsr_rows_plan_create(2, both, 1, &plan));
    tsr_dtensor_destroy(table);
    const tsr_tensor ids = tsr_tensor_contiguous(&id, TSR_I64, 1, &n), named[] = {ids, ids};
    const tsr_tensor data[] = {tsr_tensor_contiguous(&values[0], TSR_I32, 1, &n),
                               tsr_tensor_contiguous(&values[1], TSR_I32, 1, &n)};
    TSR_TRY(tsr_rows_plan_update(plan, named, data, TSR_ROWS_ASSIGN));
    TSR_TRY(tsr_rows_plan_gather(plan, named, data));
    CHECK(values[0] == 21 && values[1] == 21);
    tsr_rows_plan_destroy(plan);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_table_may_stand_twice(void **state)
{
    (void)state;
    suite_run(2, play_twice, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_a_plan_share_calls_that_allocate_nothing),
        cmocka_unit_test(a_table_may_stand_twice),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
