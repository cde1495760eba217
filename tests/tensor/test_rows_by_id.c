/* Rows by id over every engine, layout, dtype and op: all bytes of results and tables are those
 * that plain loops over whole tables give. */
#include "comm_suite.h"
#include "rows_oracle.h"

#include <tessera/mesh_comm.h>

#include <stdio.h>
#include <stdlib.h>

enum { GAP = 3, GUARD = 0x5a };

static const tsr_dtype dtypes[] = {TSR_F32,    TSR_BF16,   TSR_F64, TSR_F16,  TSR_I64, TSR_I32,
                                   TSR_I16,    TSR_I8,     TSR_U64, TSR_U32,  TSR_U16, TSR_U8,
                                   TSR_F8E4M3, TSR_F8E5M2, TSR_C64, TSR_C128, TSR_BOOL};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* A table: all ranks of the communicator are in its mesh. */
typedef struct site {
    int ranks;
    const char *mesh, *placements;
    int ndim;
    int64_t shape[4];
} site;

static const site sites[] = {
    {1, "1", "S(0)", 2, {13, 5}},
    {1, "1", "R", 1, {13}},
    {2, "2", "S(0)", 2, {13, 5}},
    {2, "2", "S(0;sizes=0,13)", 2, {13, 5}},
    {2, "2", "R", 2, {13, 5}},
    {2, "2", "S(1)", 2, {13, 5}},
    {2, "2", "S(0;interleave=3)", 3, {13, 2, 2}},
    {3, "3", "S(0;sizes=4,0,9)", 2, {13, 5}},
    {3, "3", "S(0;balanced)", 1, {13}},
    {3, "3", "S(1)", 2, {13, 7}},
    {3, "3@[2,0,1]", "S(0)", 2, {13, 3}},
    {4, "2x2", "S(0),S(1)", 2, {13, 5}},
    {4, "2x2", "R,S(0)", 2, {13, 5}},
    {4, "2x2", "S(0),R", 2, {13, 5}},
    {4, "2x2", "S(0),S(0)", 2, {13, 5}},
    {4, "2x2", "S(1)[1],S(0;balanced)[0]", 2, {13, 5}},
    {4, "2x2@[3,1,0,2]", "S(0),R", 2, {13, 5}},
    {4, "2x2@[3,1,0,2]", "S(1),S(0)", 3, {13, 2, 3}},
    {4, "4", "S(0;interleave=2)", 2, {13, 4}},
    {4, "4", "S(0;blocks=6,2,5)", 2, {13, 4}},
    {4, "4", "S(0;unit=2)", 2, {13, 4}},
    {4, "4", "S(1;interleave=2)", 2, {13, 16}},
    {4, "2x2", "S(1),S(2)", 3, {13, 3, 4}},
    {4, "2x2", "R,R", 2, {5, 3}},
    {4, "4", "S(0)", 2, {2, 3}},
    {4, "4", "S(0)", 3, {6, 0, 3}},
    {5, "5", "S(0;sizes=3,0,1,9,0)", 2, {13, 5}},
    {6, "2x3", "S(0),S(1;interleave=2)", 2, {13, 12}},
    {6, "2x3", "R,S(0;sizes=1,0,12)", 2, {13, 5}},
    {6, "3x2", "S(1),R", 2, {13, 7}},
};
enum { SITES = sizeof sites / sizeof *sites };

/* One rank's table with what it must hold. */
typedef struct stage {
    const site *s;
    tsr_dtype dtype;
    bool raw, gaps;
    tsr_dtype id_dtype;
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *table;
    unsigned char *memory; /* of a table with gaps between rows */
    int64_t rows, width;   /* of the whole table */
    unsigned char whole[ROWS_BYTES];
    /* what this rank brings */
    int64_t ids[2 * ROWS_IDS];
    unsigned char data[2 * ROWS_BYTES];
} stage;

/* A table over memory with gaps between its rows. */
static tsr_status lend_table(stage *s)
{
    int64_t shape[TSR_MAX_DIMS], row = 1;
    TSR_TRY(tsr_layout_local(s->layout, NULL, shape, NULL));
    for (int dim = 1; dim < s->s->ndim; dim++)
        row *= shape[dim];
    tsr_tensor local = tsr_tensor_contiguous(NULL, s->dtype, s->s->ndim, shape);
    local.strides[0] = row + GAP;
    s->memory = malloc((size_t)(shape[0] + 1) * (size_t)(row + GAP) * tsr_dtype_bytes(s->dtype));
    CHECK(s->memory);
    local.data = s->memory;
    return tsr_dtensor_from_local(&local, s->layout, NULL, &s->table);
}

/* Where element `i` of the shard lies, in row-major order. */
static unsigned char *element_at(const tsr_tensor *local, int64_t i)
{
    int64_t row = 1;
    for (int dim = 1; dim < local->ndim; dim++)
        row *= local->shape[dim];
    return (unsigned char *)local->data +
           (size_t)(i / row * local->strides[0] + i % row) * tsr_dtype_bytes(local->dtype);
}

static tsr_status raise_stage(stage *s, tsr_comm *comm)
{
    int64_t count = 0;
    TSR_TRY(tsr_mesh_parse(comm, NULL, s->s->mesh, &s->mesh));
    TSR_TRY(tsr_layout_parse(s->mesh, s->s->placements, s->s->ndim, s->s->shape, s->dtype, &s->layout));
    if (s->gaps)
        TSR_TRY(lend_table(s));
    else
        TSR_TRY(tsr_dtensor_create(s->layout, tsr_device_host(), &s->table));
    s->rows = s->s->shape[0];
    s->width = 1;
    for (int dim = 1; dim < s->s->ndim; dim++)
        s->width *= s->s->shape[dim];
    rows_fill(s->dtype, s->rows * s->width, 17, s->raw, s->whole);
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        memcpy(element_at(&local, i), s->whole + (size_t)rows_global(s->layout, i) * tsr_dtype_bytes(s->dtype),
               tsr_dtype_bytes(s->dtype));
    return TSR_OK;
}

static void strike_stage(stage *s)
{
    tsr_dtensor_destroy(s->table);
    tsr_layout_destroy(s->layout);
    tsr_mesh_destroy(s->mesh);
    free(s->memory);
}

/* The ids that a rank brings in a round, as a tensor over s->ids. */
static tsr_tensor bring_ids(stage *s, int round, int rank)
{
    const int64_t count = rows_count(round, rank), step = s->gaps ? 2 : 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t id = rows_id(round, rank, i, s->rows);
        const int32_t narrow = (int32_t)id;
        if (s->id_dtype == TSR_I64)
            s->ids[i * step] = id;
        else
            memcpy((char *)s->ids + (size_t)(i * step) * sizeof narrow, &narrow, sizeof narrow);
    }
    tsr_tensor ids = tsr_tensor_contiguous(s->ids, s->id_dtype, 1, &count);
    ids.strides[0] = step;
    return ids;
}

/* `count` rows, as a tensor over s->data. */
static tsr_tensor rows_tensor(stage *s, int64_t count)
{
    int64_t shape[TSR_MAX_DIMS] = {count};
    for (int dim = 1; dim < s->s->ndim; dim++)
        shape[dim] = s->s->shape[dim];
    tsr_tensor data = tsr_tensor_contiguous(s->data, s->dtype, s->s->ndim, shape);
    data.strides[0] = s->width + (s->gaps ? GAP : 0);
    return data;
}

static tsr_tensor bring_rows(stage *s, int round, int rank)
{
    static _Thread_local unsigned char packed[ROWS_BYTES];
    const tsr_tensor data = rows_tensor(s, rows_count(round, rank));
    const size_t bytes = tsr_dtype_bytes(s->dtype), row = (size_t)s->width * bytes;
    rows_fill(s->dtype, data.shape[0] * s->width, rows_salt(round, rank), s->raw, packed);
    for (int64_t i = 0; i < data.shape[0]; i++)
        memcpy(s->data + (size_t)(i * data.strides[0]) * bytes, packed + (size_t)i * row, row);
    return data;
}

static tsr_status check_table(const stage *s)
{
    int64_t count = 0;
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    const size_t bytes = tsr_dtype_bytes(s->dtype);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++) {
        const int64_t global = rows_global(s->layout, i);
        if (memcmp(element_at(&local, i), s->whole + (size_t)global * bytes, bytes) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s on %s: element %lld of the table is wrong",
                                  tsr_dtype_name(s->dtype), s->s->placements, s->s->mesh, (long long)global);
    }
    return TSR_OK;
}

/* Gathered rows are those of the whole table, and nothing else was written. */
static tsr_status check_rows(const stage *s, int round, int rank, const tsr_tensor *out)
{
    const size_t bytes = tsr_dtype_bytes(s->dtype), row = (size_t)s->width * bytes,
                 step = (size_t)out->strides[0] * bytes;
    for (int64_t i = 0; i < out->shape[0]; i++) {
        const unsigned char *const found = s->data + (size_t)i * step;
        if (memcmp(found, s->whole + (size_t)rows_id(round, rank, i, s->rows) * row, row) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s on %s: row %lld of rank %d is wrong",
                                  tsr_dtype_name(s->dtype), s->s->placements, s->s->mesh, (long long)i, rank);
        for (size_t at = row; at < step; at++)
            CHECK(found[at] == GUARD);
    }
    for (size_t at = (size_t)out->shape[0] * step; at < sizeof s->data; at++)
        CHECK(s->data[at] == GUARD);
    return TSR_OK;
}

static tsr_status gather_and_check(stage *s, tsr_comm *comm, int round)
{
    const int rank = tsr_comm_rank(comm);
    const tsr_tensor ids = bring_ids(s, round, rank), out = rows_tensor(s, ids.shape[0]);
    memset(s->data, GUARD, sizeof s->data);
    TSR_TRY(tsr_rows_gather(s->table, &ids, &out));
    return check_rows(s, round, rank, &out);
}

static tsr_status update_and_check(stage *s, tsr_comm *comm, int round, tsr_rows_op op)
{
    const int rank = tsr_comm_rank(comm);
    const tsr_tensor ids = bring_ids(s, round, rank), rows = bring_rows(s, round, rank);
    TSR_TRY(tsr_rows_update(s->table, &ids, &rows, op));
    rows_update_whole(s->dtype, op, s->rows, s->width, round, tsr_comm_size(comm), s->raw, s->whole);
    return check_table(s);
}

static tsr_status play(stage *s, tsr_comm *comm)
{
    TSR_TRY(raise_stage(s, comm));
    TSR_TRY(gather_and_check(s, comm, 0));
    for (int op = 0; op < TSR_ROWS_OP_END; op++) {
        if (!rows_has_op(s->dtype, (tsr_rows_op)op) || (s->raw && op != TSR_ROWS_ASSIGN))
            continue;
        TSR_TRY(update_and_check(s, comm, 2 * op + 1, (tsr_rows_op)op));
        TSR_TRY(gather_and_check(s, comm, 2 * op + 2));
    }
    return TSR_OK;
}

/* What the ranks of a run play. */
typedef struct play_case {
    const site *s;
    tsr_dtype dtype;
    bool raw, gaps;
    tsr_dtype id_dtype;
} play_case;

static tsr_status play_case_on_rank(tsr_comm *comm, void *arg)
{
    const play_case *const c = arg;
    stage *const s = calloc(1, sizeof *s);
    CHECK(s);
    *s = (stage){.s = c->s, .dtype = c->dtype, .raw = c->raw, .gaps = c->gaps, .id_dtype = c->id_dtype};
    const tsr_status status = play(s, comm);
    strike_stage(s);
    free(s);
    return status;
}

/* Every layout, with dtypes that take turns. */
static void every_layout_gives_the_rows_of_plain_loops(void **state)
{
    (void)state;
    for (int i = 0; i < SITES; i++)
        for (int k = 0; k < 4; k++) {
            play_case c = {&sites[i], k == 0 ? TSR_F32 : dtypes[(3 * i + k) % DTYPES], k == 3, k % 2 == 1,
                           (i + k) % 2 ? TSR_I32 : TSR_I64};
            suite_run(c.s->ranks, play_case_on_rank, &c);
        }
}

static void every_dtype_has_its_ops(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPES; d++)
        for (int i = 0; i < SITES; i++) {
            play_case c = {&sites[i], dtypes[d], false, false, TSR_I64};
            if (sites[i].ranks == 3 || strcmp(sites[i].placements, "S(0),S(1)") == 0)
                suite_run(c.s->ranks, play_case_on_rank, &c);
        }
}

/* Ranks outside the mesh make the calls, and bring nothing. */
static tsr_status play_on_some(tsr_comm *comm, void *arg)
{
    static const site some = {2, "2@1", "S(0)", 2, {7, 3}};
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    const int rank = tsr_comm_rank(comm);
    int64_t ids[] = {6, 0, 6}, n = 3, shape[] = {3, 3};
    float out[9] = {0};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, some.mesh, &mesh));
    TSR_TRY(tsr_layout_parse(mesh, some.placements, some.ndim, some.shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &table));
    const tsr_tensor local = tsr_dtensor_to_local(table), named = tsr_tensor_contiguous(ids, TSR_I64, 1, &n),
                     rows = tsr_tensor_contiguous(out, TSR_F32, 2, shape);
    int64_t count = 0;
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        ((float *)local.data)[i] = (float)rows_global(layout, i);
    const bool inside = rank == 1 || rank == 2;
    TSR_TRY(tsr_rows_gather(table, inside ? &named : NULL, inside ? &rows : NULL));
    for (int i = 0; i < 9; i++)
        CHECK(out[i] == (inside ? (float)(ids[i / 3] * 3 + i % 3) : 0));
    TSR_TRY(tsr_rows_update(table, inside ? &named : NULL, inside ? &rows : NULL, TSR_ROWS_ADD));
    for (int64_t i = 0; i < count; i++) {
        const int64_t g = rows_global(layout, i);
        CHECK(((float *)local.data)[i] == (float)(g / 3 == 6 ? 5 * g : g / 3 == 0 ? 3 * g : g));
    }
    tsr_dtensor_destroy(table);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void ranks_outside_the_mesh_bring_nothing(void **state)
{
    (void)state;
    suite_run(4, play_on_some, NULL);
}

/* Each slice has a table of its own, and ids of its own ranks. */
static tsr_status play_on_slices(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL, *slice = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    int64_t shape[] = {6}, n = 2, ids[] = {5, 2};
    int32_t out[2] = {0};
    const int rank = tsr_comm_rank(comm), which = rank / 2;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "dp=2,tp=2", &mesh));
    TSR_TRY(tsr_mesh_slice(mesh, "tp", &slice));
    TSR_TRY(tsr_layout_parse(slice, "S(0)", 1, shape, TSR_I32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &table));
    const tsr_tensor local = tsr_dtensor_to_local(table);
    for (int64_t i = 0; i < 3; i++)
        ((int32_t *)local.data)[i] = (int32_t)(100 * which + rows_global(layout, i));
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &n),
                     rows = tsr_tensor_contiguous(out, TSR_I32, 1, &n);
    TSR_TRY(tsr_rows_gather(table, &named, &rows));
    CHECK(out[0] == 100 * which + 5 && out[1] == 100 * which + 2);
    TSR_TRY(tsr_rows_update(table, &named, &rows, TSR_ROWS_ADD));
    for (int64_t i = 0; i < 3; i++) {
        const int64_t g = rows_global(layout, i);
        const int32_t value = (int32_t)(100 * which + g);
        CHECK(((int32_t *)local.data)[i] == (g == 5 || g == 2 ? 3 * value : value));
    }
    tsr_dtensor_destroy(table);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(slice);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void slices_have_tables_of_their_own(void **state)
{
    (void)state;
    suite_run(4, play_on_slices, NULL);
}

/* So many runs that the finder walks. */
static tsr_status play_fine_rows(tsr_comm *comm, void *arg)
{
    enum { ROWS = 200000, COUNT = 700 };
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    static _Thread_local int64_t ids[ROWS];
    static _Thread_local int32_t out[COUNT];
    int64_t shape[] = {ROWS}, n = COUNT, length = 0;
    const int rank = tsr_comm_rank(comm);
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0;interleave=50000)", 1, shape, TSR_I32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &table));
    const tsr_tensor local = tsr_dtensor_to_local(table);
    TSR_TRY(tsr_rows_of(layout, rank, 0, ROWS, ids, &length));
    CHECK(length == local.shape[0]);
    for (int64_t i = 0; i < length; i++)
        ((int32_t *)local.data)[i] = (int32_t)ids[i];
    for (int64_t i = 0; i < COUNT; i++)
        ids[i] = (i * 7919 + rank * 31) % ROWS;
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &n),
                     rows = tsr_tensor_contiguous(out, TSR_I32, 1, &n);
    TSR_TRY(tsr_rows_gather(table, &named, &rows));
    for (int64_t i = 0; i < COUNT; i++)
        CHECK(out[i] == (int32_t)ids[i]);
    tsr_dtensor_destroy(table);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void cuts_of_very_many_runs_are_walked(void **state)
{
    (void)state;
    suite_run(2, play_fine_rows, NULL);
}

/* Of so many ids that messages have more than their beginnings; rank 1 has few. */
enum { LONG_ROWS = 400, LONG_WIDTH = 3, LONG_COUNT = 500 };

static int64_t long_count(int rank)
{
    return rank == 1 ? 2 : LONG_COUNT - rank;
}

static int64_t long_id(int rank, int64_t i)
{
    return (i * i * 31 + rank * 17) % LONG_ROWS;
}

/* How often all ranks name a row. */
static int64_t long_times(int ranks, int64_t row)
{
    int64_t times = 0;
    for (int rank = 0; rank < ranks; rank++)
        for (int64_t i = 0; i < long_count(rank); i++)
            times += long_id(rank, i) == row;
    return times;
}

/* The element of the table that is element `i` of this rank's shard. */
static int64_t long_global(const int64_t *owned, const tsr_tensor *local, int rank, int64_t i)
{
    const int64_t width = local->shape[1];
    return owned[i / width] * LONG_WIDTH + (width == LONG_WIDTH ? i % width : rank);
}

static tsr_status play_long_call(tsr_dtensor *table, int rank, const tsr_tensor *named, const tsr_tensor *rows)
{
    const tsr_tensor local = tsr_dtensor_to_local(table);
    float *const data = rows->data;
    const int64_t count = named->shape[0];
    int64_t owned[LONG_ROWS], length = 0;
    TSR_TRY(tsr_rows_of(tsr_dtensor_layout(table), rank, 0, LONG_ROWS, owned, &length));
    CHECK(length == local.shape[0]);
    for (int64_t i = 0; i < length * local.shape[1]; i++)
        ((float *)local.data)[i] = (float)long_global(owned, &local, rank, i);
    TSR_TRY(tsr_rows_gather(table, named, rows));
    for (int64_t i = 0; i < count * LONG_WIDTH; i++) {
        CHECK(data[i] == (float)(long_id(rank, i / LONG_WIDTH) * LONG_WIDTH + i % LONG_WIDTH));
        data[i] = 2;
    }
    TSR_TRY(tsr_rows_update(table, named, rows, TSR_ROWS_ADD));
    for (int64_t i = 0; i < length * local.shape[1]; i++) {
        const int64_t g = long_global(owned, &local, rank, i);
        CHECK(((const float *)local.data)[i] == (float)(g + 2 * long_times(3, g / LONG_WIDTH)));
    }
    return TSR_OK;
}

static tsr_status play_long(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_dtensor *table = NULL;
    static _Thread_local int64_t ids[LONG_COUNT];
    static _Thread_local float data[LONG_COUNT * LONG_WIDTH];
    const int rank = tsr_comm_rank(comm);
    const int64_t count = long_count(rank), shape[] = {LONG_ROWS, LONG_WIDTH}, brought[] = {count, LONG_WIDTH};
    for (int64_t i = 0; i < count; i++)
        ids[i] = long_id(rank, i);
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &count),
                     rows = tsr_tensor_contiguous(data, TSR_F32, 2, brought);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, arg, 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &table));
    TSR_TRY(play_long_call(table, rank, &named, &rows));
    tsr_dtensor_destroy(table);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void many_ids_give_the_same_rows_as_few(void **state)
{
    (void)state;
    suite_run(3, play_long, "S(0)");
    suite_run(3, play_long, "S(1)");
    suite_run(3, play_long, "R");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_gives_the_rows_of_plain_loops),
        cmocka_unit_test(every_dtype_has_its_ops),
        cmocka_unit_test(ranks_outside_the_mesh_bring_nothing),
        cmocka_unit_test(slices_have_tables_of_their_own),
        cmocka_unit_test(cuts_of_very_many_runs_are_walked),
        cmocka_unit_test(many_ids_give_the_same_rows_as_few),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
